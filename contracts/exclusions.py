"""Whether a text is about something that a run leaves out: by words, alike for both engines and every role. Pure."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from contracts.addresses import normalize
from contracts.names import CORPUS_SCHEME

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
SENTENCE_END: Final = re.compile(r"(?<=[.!?;:])\s+|\n+")
TITLE_PARTS: Final = re.compile(r"\s[-–—|·/]\s|:\s|\s[»›]\s")
BESIDE_ADDRESS: Final = " .,;:!?\"'“”„()"
LEAST_SUFFIX: Final = 2


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


def covers(asked: str, subject: str) -> bool:
    """Whether nothing is left of a question without a subject."""
    return find_about(asked, [subject], asked) is not None


def find_about(text: str, subjects: Iterable[str], asked: str) -> str | None:
    """The subject that a query or a gap is about: one that it names.

    `asked` is the question, without words that say nothing of what it is about. Where it names the subject itself, a
    query that still asks for most of the rest of it is not about that.
    """
    return next((subject for subject in subjects if _is_about(text, subject, asked)), None)


def _is_about(text: str, subject: str, asked: str) -> bool:
    if not mentions(text, subject):
        return False
    if not mentions(asked, subject):
        return True
    own, found = tokens(subject), tokens(text)
    rest = [word for word in tokens(asked) if not any(_is_same(one, word) for one in own)]
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
    return any(
        mentions(part, subject) and 2 * size >= sum(word.isalpha() for word in tokens(part))
        for part in TITLE_PARTS.split(title)
    )


def find_addresses(text: str) -> list[str]:
    """The hosts and the paths of files in a text, without a scheme, folded."""
    words = (word.strip(BESIDE_ADDRESS).casefold().partition("://") for word in text.replace(",", " ").split())
    bare = [(rest if scheme else first).strip("/") for first, scheme, rest in words]
    return [word for word in bare if _is_address(word)]


def _is_address(word: str) -> bool:
    """Whether a word is `example.org`, `example.org/path` or `notes/old.md`."""
    host, _, path = word.partition("/")
    name = host if "." in host else path.rpartition("/")[2]
    labels = name.split(".")
    known = all(label.replace("-", "").replace("_", "").isalnum() for label in labels)
    return len(labels) > 1 and known and labels[-1].isalpha() and len(labels[-1]) >= LEAST_SUFFIX


def is_at(url: str, place: str) -> bool:
    """Whether an address is at a place: a host with everything below it, or a path within a folder."""
    if " " in place or find_addresses(place) != [place.casefold()]:
        return False
    wanted = place.casefold()
    if url.startswith(CORPUS_SCHEME):
        path = url.removeprefix(CORPUS_SCHEME).casefold()
        return f"/{wanted}/" in f"/{path}/"
    parts = urlsplit(url.casefold())
    host, _, path = wanted.partition("/")
    own = parts.hostname or ""
    return (own == host or own.endswith(f".{host}")) and f"{parts.path}/".startswith(f"/{path}/" if path else "/")
