"""Verdicts and methods in words and signs, for every form of a report."""

from typing import Final

from activities.reporting.report_words import ReportWords
from contracts.claims import CheckMethod

VERDICT_SIGNS: Final[dict[str, str]] = {
    "supported": "✓",
    "partial": "±",
    "unsupported": "✗",
    "contradicted": "≠",
    "not_enough_information": "?",
    "unverified": "–",
}
"""In the order in which readers are shown them."""


def name_verdict(verdict: str, say: ReportWords) -> str:
    """A verdict by its name among people; one that is not known stands for itself."""
    return say[f"judged_{verdict}"] if verdict in VERDICT_SIGNS else verdict


def name_method(method: str, say: ReportWords) -> str:
    """Who judged a claim; a method that is not known stands for itself."""
    return say[f"method_{method}"] if method in tuple(CheckMethod) else method
