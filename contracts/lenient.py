"""Lenient reading of answers, as many endpoints enforce no schema: types of fields that make words fit. Pure."""

from collections.abc import Callable, Collection, Iterable
from enum import StrEnum
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, ValidationError

from contracts.addresses import normalized_text
from contracts.texts import problem_message, shorten

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")


class UnfitAnswer(ValueError):
    """An answer without any usable part; the message is fit for a repair prompt."""


def one_line(limit: int) -> AfterValidator:
    """Text on one line of at most `limit` characters."""
    return AfterValidator(lambda text: line_of(text, limit))


def line_of(text: str, limit: int) -> str:
    """The text with every run of white space as one space, at most `limit` characters."""
    return shorten(" ".join(text.split()), limit)


Sentence: TypeAlias = Annotated[str, one_line(300)]
Query: TypeAlias = Annotated[str, one_line(400)]
Paragraph: TypeAlias = Annotated[str, one_line(800)]
"""Texts of a model on one line, with their most characters."""


def known_word(kind: type[E], default: E) -> BeforeValidator:
    """Member of an enumeration in any case; `default` for a word that names none."""
    return BeforeValidator(lambda word: find_member(kind, word) or default)


def find_member(kind: type[E], word: Any) -> E | None:
    """The member that a word names in any case; None if there is none."""
    folded = word.strip().casefold() if isinstance(word, str) else ""
    return next((member for member in kind if member.value == folded), None)


def within(lowest: int, highest: int) -> AfterValidator:
    """Number, moved into the range."""
    return AfterValidator(lambda number: min(highest, max(lowest, number)))


def distinct(items: Iterable[T], words: Callable[[T], str], known: Collection[str] = ()) -> list[T]:
    """The items whose words are neither empty, nor repeated, nor among the `known` texts, in their order."""
    seen = {normalized_text(text) for text in known} | {""}
    found = []
    for item in items:
        key = normalized_text(words(item))
        if key not in seen:
            seen.add(key)
            found.append(item)
    return found


def at_most(most: int) -> AfterValidator:
    """List of at most so many lines, each once and none empty."""
    return AfterValidator(lambda lines: distinct(lines, str)[:most])


def first(items: list[T], most: int, notes: list[str], noun: str) -> list[T]:
    """The first `most` items, with a note on how many were dropped."""
    if len(items) > most:
        notes.append(f"{noun} beyond the limit of {most} were dropped: {len(items) - most}")
    return items[:most]


def lines_of(error: ValidationError, most: int) -> list[str]:
    """At most so many lines `path: message` of an answer that does not fit, without any of its words."""
    found = error.errors(include_input=False, include_url=False)
    lines = [f"{'.'.join(map(str, item['loc'])) or '$'}: {problem_message(item)}"[:160] for item in found[:most]]
    return [*lines, f"and {len(found) - most} more"] if len(found) > most else lines
