"""Claims: the sentences and quoted passages of the finished Markdown that carry citations."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import nupunkt

from activities.reporting.addresses import Registry, strip_addresses
from activities.reporting.characters import clean_characters, one_line
from activities.reporting.citations import Mark, without_numbers
from activities.reporting.layout import Block, layout, plain_text
from activities.reporting.passages import Passage
from contracts.identity import short_hash

LINE_PREFIX = re.compile(r"\n(?:[ \t]*>)+[ \t]?")
QUOTATION_PAIRS = (("“", "”"), ('"', '"'), ("«", "»"), ("„", "“"), ("‘", "’"))
WORD_FOR_WORD = "The passage is word for word the quoted text of its source."
NOT_CHECKED = "Nobody has checked whether the cited passages support this sentence."
NOT_THE_QUOTE = "The passage is not word for word the text that it cites; its support has not been checked."


@dataclass(frozen=True)
class Claim:
    """A statement of the report: `markdown[start:end] == text`."""

    id: str
    text: str
    start: int
    end: int
    citation_numbers: list[int]
    evidence_ids: list[str]
    verdict: str
    method: str
    reason: str


@dataclass(frozen=True)
class _Stretch:
    start: int
    end: int
    quoted: bool


def _blank(text: str, start: int, end: int, marks: Sequence[Mark]) -> str:
    """A piece of the text with its marks as blanks, so that sentence ends are found where people see them."""
    piece = text[start:end]
    for mark in marks:
        piece = piece[: mark.start - start] + " " * (mark.end - mark.start) + piece[mark.end - start :]
    return piece


def _sentences(text: str, block: Block, marks: Sequence[Mark]) -> Iterator[_Stretch]:
    """Sentences of a block; marks that follow a sentence end belong to that sentence."""
    piece = _blank(text, block.start, block.end, marks)
    ends = [block.start + len(piece[:end].rstrip()) for _, end in nupunkt.sent_spans(piece)]
    bounds = []
    for end in ends:
        stop = end
        for mark in marks:
            if mark.start >= stop and not text[stop : mark.start].strip():
                stop = mark.end
        bounds.append(stop)
    start = block.start
    for stop in [*bounds, block.end]:
        first = start + len(text[start:stop]) - len(text[start:stop].lstrip())
        if first < stop:
            yield _Stretch(first, stop, quoted=False)
        start = max(start, stop)


def _quoted(text: str, block: Block, marks: Sequence[Mark]) -> Iterator[_Stretch]:
    """Passages of a quotation: each ends with its marks."""
    start = block.start
    for place, mark in enumerate(marks):
        following = marks[place + 1] if place + 1 < len(marks) else None
        if following and not text[mark.end : following.start].strip(" \t,;"):
            continue
        first = start + len(text[start : mark.end]) - len(text[start : mark.end].lstrip(" \t\n>"))
        yield _Stretch(first, mark.end, quoted=True)
        start = mark.end


def _line_block(text: str, mark: Mark) -> Block:
    start = text.rfind("\n", 0, mark.start) + 1
    end = text.find("\n", mark.end)
    return Block(start, len(text) if end < 0 else end, quoted=False, row=True)


def _stretches(text: str, marks: Sequence[Mark]) -> Iterator[tuple[_Stretch, list[Mark]]]:
    """Each mark in exactly one stretch, in order of the text."""
    blocks = layout(text).blocks
    left = sorted(marks, key=lambda mark: mark.start)
    place = 0
    while left:
        first = left[0]
        while place < len(blocks) and blocks[place].end < first.end:
            place += 1
        inside = place < len(blocks) and blocks[place].start <= first.start
        block = blocks[place] if inside else _line_block(text, first)
        here = [mark for mark in left if mark.end <= block.end]
        left = left[len(here) :]
        if block.row:
            yield _Stretch(block.start, block.end, quoted=False), here
            continue
        for stretch in (_quoted if block.quoted else _sentences)(text, block, here):
            own = [mark for mark in here if stretch.start <= mark.start and mark.end <= stretch.end]
            if own:
                yield stretch, own


def _unquoted(words: str) -> str:
    for opening, closing in QUOTATION_PAIRS:
        if len(words) > 1 and words.startswith(opening) and words.endswith(closing):
            return words[1:-1].strip()
    return words


def _forms(piece: str) -> set[str]:
    """What a piece of Markdown says: as written, and as a reader sees it, each with and without quotation marks."""
    lines = LINE_PREFIX.sub("\n", piece).strip()
    forms = {" ".join(lines.split()), plain_text(lines)}
    return forms | {_unquoted(form) for form in forms}


def _expected(quote: str, registry: Registry) -> str:
    """The quote as a report may print it: without invisible characters, foreign addresses and numbers in brackets."""
    allowed = strip_addresses(clean_characters(quote), registry, [])
    return one_line(without_numbers(allowed))


def word_for_word(piece: str, quotes: Iterable[str], registry: Registry) -> bool:
    """Whether a piece of Markdown, its own numbers left out, is exactly one of the quotes. White space is as blanks."""
    forms = _forms(piece)
    return any(_expected(quote, registry) in forms for quote in quotes)


def find_claims(
    markdown: str, marks: Sequence[Mark], passages: Mapping[str, Passage], registry: Registry
) -> list[Claim]:
    """The claims of a finished report, in order. `marks` are the places of its numbers in `markdown`."""
    claims = []
    for stretch, own in _stretches(markdown, marks):
        cited = list(dict.fromkeys(identity for mark in own for identity in mark.evidence_ids))
        piece = _blank(markdown, stretch.start, stretch.end, own)
        same = word_for_word(piece, (passages[identity].quote for identity in cited), registry)
        text = markdown[stretch.start : stretch.end]
        reason = WORD_FOR_WORD if same else NOT_THE_QUOTE if stretch.quoted else NOT_CHECKED
        claims.append(
            Claim(
                id="c-" + short_hash(text, stretch.start),
                text=text,
                start=stretch.start,
                end=stretch.end,
                citation_numbers=list(dict.fromkeys(mark.number for mark in own)),
                evidence_ids=cited,
                verdict="supported" if same else "unverified",
                method="quote_match" if same else "none",
                reason=reason,
            )
        )
    return claims
