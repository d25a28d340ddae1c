"""Stored texts of a role call: loading them, and finding quotes in them verbatim or not at all."""

import asyncio
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel

from activities.roles.untrusted import INVISIBLE_CLASS
from contracts.addresses import digest, evidence_id, normalize
from contracts.evidence import DocumentRef, Evidence
from contracts.lenient import to_line
from contracts.roles import RoleAnswer, RoleInput, RoleSpec
from contracts.texts import HYPHEN_IN_WORD, without_hyphens
from contracts.tokens import Level
from contracts.vocabulary import EngineKind
from providers.interfaces import ContentStore
from providers.tokens.shown_sources import ShownSource

I = TypeVar("I", bound=RoleInput)
A = TypeVar("A", bound=RoleAnswer)

MIN_QUOTE_CHARACTERS: Final = 8  # shorter ones support nothing and occur everywhere
MAX_QUOTE_CHARACTERS: Final = 2_000
MAX_QUOTE_PLACES: Final = 50
VISIBLE: Final = re.compile(rf"(?:[^\s`\\{INVISIBLE_CLASS}]++|\\(?![\[\]]))+")
"""Characters that a quote must match; invisible ones, which a prompt does not contain, backticks, and backslashes
before brackets may differ: prompts escape what looks like a citation of ours."""
BLANK: Final = re.compile(r"\s")
HEADING_OR_FENCE: Final = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}+|~{3,}+)|#{1,6}[ \t]++(?P<heading>[^\n]*))", re.MULTILINE
)


@dataclass(frozen=True)
class RoleWork(Generic[I, A]):
    """An engine's answer, with everything that grounding it needs."""

    role: RoleSpec[Any, Any]
    request: I
    answer: A
    documents: Mapping[str, str]  # stored texts by hash
    engine: EngineKind  # the engine that answered
    hidden: frozenset[str] = frozenset()
    """Ids of an analysis's sources of which the prompt showed nothing."""
    levels: Mapping[str, Level] = field(default_factory=dict)
    """Levels of the items that the prompt did not show in full, by id."""
    narrowed: bool = False
    """True if the prompt of an analysis shows less of its sources than was chosen at first, for lack of room."""
    choose: Callable[[], Sequence[ShownSource]] | None = None
    """Returns what a model's prompt showed of the sources of an analysis, worked out once."""
    warnings: list[str] = field(default_factory=list)
    """One short line for each change or omission, without text of a page."""
    texts: list[str] = field(default_factory=list)
    """Text to store beside the result: a report, a transcript or a summary."""


async def load_documents(value: BaseModel, content: ContentStore) -> dict[str, str]:
    """Fetch the texts that an input refers to, by hash. Raises `ContentMissing`, `ContentCorrupt`, `Retryable`."""
    return await load_texts(content, _references(value))


async def load_texts(content: ContentStore, references: Iterable[DocumentRef]) -> dict[str, str]:
    """Fetch stored texts by hash, each once. Raises the errors of `load_documents`."""
    named = {reference.hash: reference for reference in references}
    return dict(zip(named, await asyncio.gather(*map(content.get_text, named.values())), strict=True))


def _references(value: BaseModel) -> list[DocumentRef]:
    """Return all document references in an input, in order."""
    found: list[DocumentRef] = []
    waiting: list[Any] = [value]
    while waiting:
        part = waiting.pop()
        if part is None or isinstance(part, (str, int, float)):  # nearly all parts; to ask for a model takes longer
            continue
        if isinstance(part, DocumentRef):
            found.append(part)
        elif isinstance(part, BaseModel):
            waiting += [getattr(part, name) for name in reversed(type(part).model_fields)]
        elif isinstance(part, dict):
            waiting += reversed(part.values())
        elif isinstance(part, (list, tuple)):
            waiting += reversed(part)
    return found


def find_quote(text: str, quote: str, start: int | None = None) -> tuple[int, int] | None:
    """Return the offsets of a quote in a text, the first that `find_quotes` returns; None if it is not there.

    `start` is the offset that the model gave; it counts only if the quote is there.
    """
    stripped = quote.strip()
    is_long = len(_flatten(stripped)[0].strip()) >= MIN_QUOTE_CHARACTERS
    if is_long and start is not None and start >= 0 and text.startswith(stripped, start):
        return _shorten(text, start, start + len(stripped))
    return next(iter(find_quotes(text, quote)), None)


def find_quotes(text: str, quote: str) -> list[tuple[int, int]]:
    """Return the offsets of a quote at each of its places in a text, at most `MAX_QUOTE_PLACES`; empty without any.

    Only white space, backticks, hyphens within words, backslashes before brackets, and invisible characters, which a
    prompt does not contain, may differ. A quote of over 2,000 characters is cut at the end of a sentence, else between
    words. Places where it is a paragraph of its own come first: a short definition may stand within another sentence,
    too.
    """
    stripped = quote.strip()
    if len(_flatten(stripped)[0].strip()) < MIN_QUOTE_CHARACTERS:
        return []
    for form in dict.fromkeys((stripped, normalize("NFC", stripped), normalize("NFD", stripped))):
        if form in text:
            spans = [(index, index + len(form)) for index in _places(text, form)]
            whole = [span for span in spans if _is_paragraph(text, *span)]
            return [_shorten(text, *span) for span in dict.fromkeys([*whole, *spans])]
        if found := _places_between(text, _flatten(form)[0].strip(), *_flatten(text)):
            return found
    return _places_between(text, without_hyphens(_flatten(stripped)[0].strip()), *_join(text))


def _places(text: str, part: str) -> list[int]:
    """Return the offsets at which a part of a text begins, without overlaps."""
    places = list[int]()
    index = text.find(part)
    while index >= 0 and len(places) < MAX_QUOTE_PLACES:
        places.append(index)
        index = text.find(part, index + len(part))
    return places


def _places_between(text: str, part: str, flat: str, offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Return the places of a part in another form of a text, whose characters have these offsets in it."""
    spans = [(offsets[index], offsets[index + len(part) - 1] + 1) for index in _places(flat, part)]
    return [_shorten(text, *_with_backticks(text, *span)) for span in spans]


def _is_paragraph(text: str, start: int, end: int) -> bool:
    """Return whether a part of a text has its lines for itself."""
    return text[start - 1 : start] in ("", "\n") and text[end : end + 1] in ("", "\n")


def _with_backticks(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span with the backticks at its ends without which code that begins or ends there is half open."""
    opens = text[start - 1 : start] == "`" if start else False
    closes = text[end : end + 1] == "`"
    if text.count("`", start, end) % 2 == 0:
        if opens and closes:
            return (start - 1, end + 1)
        return (start, end)
    if opens:
        return (start - 1, end)
    return (start, end + closes)


@lru_cache(maxsize=4)  # for the many quotes of a page
def _flatten(text: str) -> tuple[str, Sequence[int]]:
    """Return the visible characters of a text with single blanks, and the offset of each."""
    parts: list[str] = []
    offsets = array("L")
    end = 0
    for word in VISIBLE.finditer(text):
        blank = BLANK.search(text, end, word.start())
        if blank and parts:
            parts.append(" ")
            offsets.append(blank.start())
        parts.append(word[0])
        offsets.extend(range(*word.span()))
        end = word.end()
    return "".join(parts), offsets


@lru_cache(maxsize=4)
def _join(text: str) -> tuple[str, Sequence[int]]:
    """Return what `_flatten` does, without the hyphens within words."""
    flat, offsets = _flatten(text)
    places = [match.start() for match in HYPHEN_IN_WORD.finditer(flat)]
    kept = array("L")
    start = 0
    for place in places:
        kept.extend(offsets[start:place])
        start = place + 1
    kept.extend(offsets[start:])
    return without_hyphens(flat), kept


def _without_half_listing(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without a line at its beginning or end that opens or closes a listing of which the rest is not in
    it.
    """
    fences = [match for match in HEADING_OR_FENCE.finditer(text, start, end) if match["fence"]]
    if len(fences) % 2 == 0:
        return start, end
    after_first = text.find("\n", fences[0].end(), end)
    if not text[start : fences[0].start()].strip() and after_first >= 0:
        start = after_first + 1
    elif not text[fences[-1].end() : end].strip():
        end = fences[-1].start()
    return start, start + len(text[start:end].rstrip())


def _shorten(text: str, start: int, end: int) -> tuple[int, int]:
    start, end = _without_half_listing(text, start, end)
    if end - start <= MAX_QUOTE_CHARACTERS:
        return start, end
    limit = start + MAX_QUOTE_CHARACTERS
    cut = text.rfind(". ", start, limit) + 1 or text.rfind(" ", start, limit)
    return start, cut if cut > start else limit


def evidence_at(source_id: str, text: str, start: int, end: int) -> Evidence:
    """Return the passage `text[start:end]` of a source as evidence."""
    offsets, headings = _headings(text)
    preceding = bisect_right(offsets, start)
    return Evidence(
        id=evidence_id(source_id, start, end),
        source_id=source_id,
        start=start,
        end=end,
        quote_hash=digest(text[start:end]),
        heading=headings[preceding - 1] if preceding else "",
    )


def heading_offsets(text: str) -> list[int]:
    """Return the offsets of the headings of a text, in order."""
    return _headings(text)[0]


@lru_cache(maxsize=32)  # for the many passages of a page
def _headings(text: str) -> tuple[list[int], list[str]]:
    """Return offsets and texts of the headings of a text, outside of code; at most 120 characters of each."""
    offsets: list[int] = []
    headings: list[str] = []
    fence = ""
    for match in HEADING_OR_FENCE.finditer(text):
        marks = match["fence"]
        if marks and not fence:
            fence = marks
        elif marks and marks.startswith(fence):
            fence = ""
        elif not fence and (heading := to_line((match["heading"] or "").rstrip().rstrip("#"), 120)):
            offsets.append(match.start())
            headings.append(heading)
    return offsets, headings
