"""Words that a model wrote, made fit for typed values: pure, and never raising a value by guess."""

from enum import StrEnum
from typing import TypeVar

from contracts.texts import shorten

E = TypeVar("E", bound=StrEnum)


def find_member(kind: type[E], word: str) -> E | None:
    """The member that a word names, whatever its case; None where there is none."""
    folded = word.strip().casefold()
    return next((member for member in kind if member.value == folded), None)


def clamp(number: float, lowest: float, highest: float) -> float:
    """The number, moved into the range."""
    return min(highest, max(lowest, number))


def one_line(text: str) -> str:
    """The text with every run of white space as one space."""
    return " ".join(text.split())


def encodable(text: str) -> str:
    """The text without what UTF-8 cannot carry: JSON may bring lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def line_of(text: str, limit: int) -> str:
    """A model's words as one line of at most `limit` characters that UTF-8 can carry."""
    return shorten(one_line(encodable(text)), limit)
