"""Claims: the sentences and quoted passages of the finished Markdown that carry citations."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from activities.reporting.citations import CitationMark
from activities.reporting.links import Registry, strip_addresses
from activities.reporting.markdown_layout import ProseBlock, clean_characters, layout, plain_text
from activities.reporting.quotations import (
    OPENING_QUOTES,
    QUOTE_SIGNS,
    Stretch,
    bare_words,
    blank_marks,
    forms,
    print_words,
    quoted_stretches,
    without_quotation_marks,
    words_of,
)
from contracts.identity import long_hash
from contracts.request import Verify
from providers.sentences import sentence_spans
from providers.verification.rules_checker import Verdict, check

BLANKS = re.compile(r"\s*+")
WORD_FOR_WORD = "The passage is word for word the quoted text of its source."
NOT_CHECKED = "Nobody has checked whether the cited passages support this sentence."
NOT_THE_QUOTE = "The passage is not word for word the text that it cites."
VERBATIM, BY_RULES, NO_METHOD = "verbatim", "rules", "none"
UNVERIFIED = "unverified"


@dataclass(frozen=True)
class CitedWords:
    """A passage as a claim is compared with it."""

    quote: str
    heading: str
    title: str


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
    """A `Verdict`, or `unverified`."""
    method: str
    """`verbatim`, `rules` or `none`."""
    reason: str


@dataclass(frozen=True)
class Judged:
    """Verdict, method and reason."""

    verdict: str
    method: str
    reason: str


def judge(
    words: str, cited: Sequence[CitedWords], registry: Registry, language: str, *, quoted: bool, verify: Verify
) -> Judged:
    """What the rules say of the words of a claim and of the passages that it cites. Pure: an audit does it again."""
    if word_for_word(words, (item.quote for item in cited), registry):
        return Judged(Verdict.SUPPORTED, VERBATIM, WORD_FOR_WORD)
    if quoted or verify is Verify.OFF or not cited:
        return Judged(UNVERIFIED, NO_METHOD, NOT_THE_QUOTE if quoted else NOT_CHECKED)
    about = [text for item in cited for text in (item.title, item.heading) if text]
    judgement = check(plain_text(words), [item.quote for item in cited], about, language)
    return Judged(judgement.verdict, BY_RULES, judgement.reason)


def _sentences(text: str, block: ProseBlock, marks: Sequence[CitationMark]) -> Iterator[Stretch]:
    """Sentences of a block that have marks; marks that follow a sentence end belong to that sentence."""
    piece = blank_marks(text, block.start, block.end, marks)
    ends = [block.start + first + len(piece[first:end].rstrip()) for first, end in sentence_spans(piece)]
    start, left = block.start, deque(marks)
    for end in [*ends, block.end]:
        stop, own = end, []
        while left and (left[0].start < stop or _blanks_end(text, stop) >= left[0].start):
            own.append(left.popleft())
            stop = max(stop, own[-1].end)
        first = start + len(text[start:stop]) - len(text[start:stop].lstrip())
        if own:
            yield Stretch(first, stop, own)
        start = max(start, stop)


def _blanks_end(text: str, place: int) -> int:
    found = BLANKS.match(text, place)
    return found.end() if found else place


def _line_block(text: str, mark: CitationMark) -> ProseBlock:
    start = text.rfind("\n", 0, mark.start) + 1
    end = text.find("\n", mark.end)
    return ProseBlock(start, len(text) if end < 0 else end, quoted=False, row=True)


def _stretches(text: str, marks: Sequence[CitationMark]) -> Iterator[Stretch]:
    """Each mark in exactly one stretch, in order of the text."""
    blocks = layout(text).blocks
    left = deque(sorted(marks, key=lambda mark: mark.start))
    place = 0
    while left:
        first = left[0]
        while place < len(blocks) and blocks[place].end < first.end:
            place += 1
        inside = place < len(blocks) and blocks[place].start <= first.start
        block = blocks[place] if inside else _line_block(text, first)
        here = []
        while left and left[0].end <= block.end:
            here.append(left.popleft())
        if block.row:
            yield from _row_stretches(text, block, here)
        else:
            yield from (quoted_stretches if block.quoted else _sentences)(text, block, here)


def _row_stretches(text: str, row: ProseBlock, marks: Sequence[CitationMark]) -> Iterator[Stretch]:
    """A row of a table as a whole; where its cells are quotations with marks of their own, each of these."""
    masked = layout(text).masked
    borders = [row.start - 1, *(place for place in range(row.start, row.end) if masked[place] == "|"
               and masked[place - 1] != "\\"), row.end]  # fmt: skip
    cells: list[Stretch] = []
    for before, after in pairwise(borders):
        own = [mark for mark in marks if before < mark.start < after]
        start = before + 1 + len(text[before + 1 : after]) - len(text[before + 1 : after].lstrip())
        if own:
            cells.append(Stretch(start, own[-1].end, own))
    if all(text.startswith(OPENING_QUOTES, cell.start) for cell in cells):
        yield from cells
    else:
        yield Stretch(row.start, row.end, marks)


def word_for_word(piece: str, quotes: Iterable[str], registry: Registry) -> bool:
    """Whether a piece of Markdown, its own numbers left out, is exactly one of the quotes. White space is as blanks."""
    said, bare = forms(piece), bare_words(without_quotation_marks(QUOTE_SIGNS.sub("", piece).strip()))
    return any(
        print_words(quote, registry) in said
        or (bare and bare_words(strip_addresses(clean_characters(quote), registry, [])) == bare)
        for quote in quotes
    )


def find_claims(
    markdown: str,
    marks: Sequence[CitationMark],
    passages: Mapping[str, CitedWords],
    registry: Registry,
    *,
    language: str = "en",
    verify: Verify = Verify.LIGHT,
) -> list[Claim]:
    """The claims of a finished report, in order. `marks` are the places of its numbers in `markdown`."""
    claims = []
    for stretch in _stretches(markdown, marks):
        own = stretch.marks
        cited = list(dict.fromkeys(identity for mark in own for identity in mark.evidence_ids))
        piece = words_of(markdown, stretch)
        words = [passages[identity] for identity in cited]
        judged = judge(piece, words, registry, language, quoted=stretch.quoted, verify=verify)
        text = markdown[stretch.start : stretch.end]
        claims.append(
            Claim(
                id="c-" + long_hash(text, stretch.start),
                text=text,
                start=stretch.start,
                end=stretch.end,
                citation_numbers=list(dict.fromkeys(mark.number for mark in own)),
                evidence_ids=cited,
                verdict=judged.verdict,
                method=judged.method,
                reason=judged.reason,
            )
        )
    return claims
