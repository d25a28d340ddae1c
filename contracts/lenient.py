"""Lenient field types for model answers, because many endpoints enforce no schema. Pure."""

from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, ValidationError

from contracts.addresses import normalized_text
from contracts.texts import problem_message, shorten

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")


class UnfitAnswer(ValueError):
    """An answer without a usable part; the message suits a repair prompt."""


def one_line(limit: int) -> AfterValidator:
    """Validate text as one line of at most `limit` characters."""
    return AfterValidator(lambda text: to_line(text, limit))


def to_line(text: str, limit: int) -> str:
    """Return the text with white space collapsed, at most `limit` characters."""
    return shorten(" ".join(text.split()), limit)


Sentence: TypeAlias = Annotated[str, one_line(300)]
Query: TypeAlias = Annotated[str, one_line(400)]
Paragraph: TypeAlias = Annotated[str, one_line(800)]
"""One-line texts of a model, in three lengths."""


def member_or(kind: type[E], default: E) -> BeforeValidator:
    """Read a member of an enumeration in any case; `default` for an unknown word."""
    return BeforeValidator(lambda word: find_member(kind, word) or default)


def find_member(kind: type[E], word: Any) -> E | None:
    """Return the member that a word names in any case; None if there is none."""
    folded = word.strip().casefold() if isinstance(word, str) else ""
    return next((member for member in kind if member.value == folded), None)


def clamp(lowest: int, highest: int) -> AfterValidator:
    """Clamp a number to the range."""
    return AfterValidator(lambda number: min(highest, max(lowest, number)))


def distinct(items: Iterable[T], get_text: Callable[[T], str], known: Collection[str] = ()) -> list[T]:
    """Return the items whose text is not empty, repeated or among the `known` texts, in order."""
    seen = {normalized_text(text) for text in known} | {""}
    kept = []
    for item in items:
        key = normalized_text(get_text(item))
        if key not in seen:
            seen.add(key)
            kept.append(item)
    return kept


def max_lines(limit: int) -> AfterValidator:
    """Limit a list to `limit` lines, distinct and not empty."""
    return AfterValidator(lambda lines: distinct(lines, str)[:limit])


def take_first(items: list[T], limit: int, notes: list[str], noun: str) -> list[T]:
    """Return the first `limit` items, and note how many were dropped."""
    if len(items) > limit:
        notes.append(f"{noun} beyond the limit of {limit} were dropped: {len(items) - limit}")
    return items[:limit]


def problem_lines(error: ValidationError, limit: int) -> list[str]:
    """Return at most `limit` lines `path: message` about an invalid answer, without any of its text."""
    errors = error.errors(include_input=False, include_url=False)
    lines = [f"{'.'.join(map(str, item['loc'])) or '$'}: {problem_message(item)}"[:160] for item in errors[:limit]]
    if len(errors) > limit:
        return [*lines, f"and {len(errors) - limit} more"]
    return lines
