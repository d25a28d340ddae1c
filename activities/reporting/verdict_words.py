"""Signs of verdicts, for every form of a report; their words stand with the sentences of the report's language."""

from typing import Final

VERDICT_SIGNS: Final[dict[str, str]] = {
    "supported": "✓",
    "partial": "±",
    "unsupported": "✗",
    "contradicted": "≠",
    "not_enough_information": "?",
    "unverified": "–",
}
"""In the order in which readers are shown them."""
