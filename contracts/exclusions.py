"""Whether a text is about something that a run leaves out: by words, alike for both engines and every role. Pure."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from contracts.names import CORPUS_SCHEME
from contracts.unicode_forms import normalize

TOKEN: Final = re.compile(r"\d+(?:\.\d+)*|[^\W\d_]+")
INFLECTIONS: Final = frozenset(
    (
        "",
        "s",
        "es",
        "e",
        "en",
        "n",
        "em",
        "er",
        "ern",
        "d",
        "ed",
        "ing",
        "y",
        "ies",
        "ung",
        "ungen",
        "a",
        "i",
        "o",
        "os",
    )
)
"""Endings that make no other word of it, in the languages that the engine knows: workflows have no stemmer."""
TELLING: Final = 4
"""Letters from which on a word of a question counts."""
SENTENCE_END: Final = re.compile(r"(?<=[.!?;:])\s+|\n+")
TITLE_PARTS: Final = re.compile(r"\s[-–—|·/]\s|:\s|\s[»›]\s")
ADDRESS: Final = re.compile(r"(?:[a-z]+://)?((?:[a-z0-9_-]+\.)+[a-z]{2,}(?:/[^\s,;]*)?|[\w-]+/[\w./-]*)", re.IGNORECASE)
"""A host, or a path in a folder."""


@lru_cache(maxsize=4_096)
def tokens(text: str) -> tuple[str, ...]:
    """The words and numbers of a text, folded."""
    return tuple(TOKEN.findall(normalize("NFKC", text).casefold()))


def mentions(text: str, subject: str) -> bool:
    """Whether all words of a subject stand in a text; one with a number, as `version 9`, as it is written."""
    wanted, found = tokens(subject), tokens(text)
    if not wanted:
        return False
    if any(word[0].isdigit() for word in wanted):
        starts = range(len(found) - len(wanted) + 1)
        return any(all(map(_is_same, wanted, found[start:])) for start in starts)
    return all(any(_is_same(word, other) for other in found) for word in wanted)


def _is_same(word: str, other: str) -> bool:
    """Whether two folded words differ in their ending at most; `9` is `9.6`, too."""
    if word == other:
        return True
    if word[0].isdigit() or other[0].isdigit():
        return other.startswith(f"{word}.")
    common = next(
        (place for place, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other))
    )
    rests = (word[common:], other[common:])
    least = 3 if max(map(len, rests)) == 1 else 4
    return common >= least and INFLECTIONS.issuperset(rests)


def covers(question: str, subject: str) -> bool:
    """Whether nothing is left of a question without a subject."""
    return find_about(question, [subject], question) is not None


def find_about(text: str, subjects: Iterable[str], question: str) -> str | None:
    """The subject that a query or a gap is about: one that it names.

    Where the question names it itself, a query that still asks for most of the rest of the question is not about it.
    """
    return next((subject for subject in subjects if _is_about(text, subject, question)), None)


def _is_about(text: str, subject: str, question: str) -> bool:
    if not mentions(text, subject):
        return False
    if not mentions(question, subject):
        return True
    own, found = tokens(subject), tokens(text)
    rest = [
        word
        for word in tokens(question)
        if (len(word) >= TELLING or word[0].isdigit()) and not any(_is_same(one, word) for one in own)
    ]
    kept = sum(any(_is_same(word, other) for other in found) for word in rest)
    return 2 * kept <= len(rest)


def find_mainly_about(text: str, subjects: Iterable[str]) -> str | None:
    """The subject that at least half of the sentences of a passage name."""
    sentences = [sentence for sentence in SENTENCE_END.split(text) if TOKEN.search(sentence)]
    for subject in subjects:
        if sentences and 2 * sum(mentions(sentence, subject) for sentence in sentences) >= len(sentences):
            return subject
    return None


def is_kept_out(title: str, url: str, subjects: Sequence[str], only_from: Sequence[str]) -> bool:
    """Whether a source is not to be used: its title is about a subject, or it is from elsewhere than it may be."""
    if only_from and not any(is_at(url, place) for place in only_from):
        return True
    return any(_has_title(title, subject) or is_at(url, subject) for subject in subjects)


def _has_title(title: str, subject: str) -> bool:
    """Whether a subject makes up half of a part of a title: `Explicit Locking` is about locks."""
    size = len(tokens(subject))
    return any(mentions(part, subject) and 2 * size >= len(tokens(part)) for part in TITLE_PARTS.split(title))


def is_at(url: str, place: str) -> bool:
    """Whether an address is at a place: a host with everything below it, or a path within a folder."""
    found = ADDRESS.fullmatch(place.strip())
    if found is None:
        return False
    wanted = found[1].casefold().strip("/")
    if url.startswith(CORPUS_SCHEME):
        path = f"/{url.removeprefix(CORPUS_SCHEME).casefold()}"
        return f"/{wanted}/" in f"{path}/"
    parts = urlsplit(url.casefold())
    host, _, path = wanted.partition("/")
    own = parts.hostname or ""
    return (own == host or own.endswith(f".{host}")) and f"{parts.path}/".startswith(f"/{path}")
