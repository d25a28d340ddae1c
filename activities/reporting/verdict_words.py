"""Verdicts and methods in words and signs, for every form of a report."""

from typing import Final

VERDICT_WORDS: Final[dict[str, str]] = {
    "supported": "Supported",
    "partial": "Supported in part",
    "unsupported": "Not supported",
    "contradicted": "Contradicted",
    "not_enough_information": "Not decided",
    "unverified": "Not checked",
}
"""In the order in which readers are shown them."""
VERDICT_SIGNS: Final[dict[str, str]] = {
    "supported": "✓",
    "partial": "±",
    "unsupported": "✗",
    "contradicted": "≠",
    "not_enough_information": "?",
    "unverified": "–",
}
METHOD_WORDS: Final[dict[str, str]] = {
    "verbatim": "word for word",
    "rules": "judged by rules",
    "model": "judged by a model",
    "none": "nothing compared",
}
