"""The claims of a draft: its sentences, table rows and quoted passages that assert something, cited or not.

What bears a citation is a claim, whatever its form: the citation says so. What bears none is one if it asserts
something (`providers.verification.assertions`).
"""

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from activities.reporting.citations import CLUSTER, CitationMark
from activities.reporting.markdown_layout import ProseBlock, layout, plain_text
from activities.reporting.quotations import (
    BEFORE_WORDS,
    ENDS,
    OPENING_QUOTES,
    Stretch,
    blank_marks,
    quoted_stretches,
    words_of,
)
from activities.roles.evidence_markers import INLINE_QUOTE, MARKER
from contracts.addresses import long_hash
from contracts.evidence import Claim, ClaimKind
from providers.text import sentence_spans
from providers.verification.assertions import asserts
from providers.verification.quantities import find_quantities

BLANKS = re.compile(r"\s*+")
CELL_BORDERS = re.compile(r"\\.|\|", re.DOTALL)
EMPTY_LINE = re.compile(r"[ \t>]*+(?:[-*+]|\d{1,9}[.)])?+[ \t|*_]*+")
MOSTLY_QUOTED = 0.5
"""From this share of its characters on a sentence is a quotation."""


@dataclass(frozen=True)
class FoundClaim:
    """A claim with its place in a text."""

    claim: Claim
    """Its ranges are of the text that was searched."""
    marks: Sequence[CitationMark]
    words: str
    """Its Markdown without marks."""
    quoted: bool
    """Whether it is a passage of a block quote."""


def claims_of_draft(
    draft: str, evidence: Collection[str], *, language: str = "en", uncited: bool = True
) -> list[Claim]:
    """The claims of a stored draft with `[ev-…]` markers, in order. Pure.

    Markers that name nothing in `evidence` count for nothing. `uncited` is False for a text of the extractive engine,
    whose words without a citation speak of the report alone.
    """
    return [found.claim for found in find_draft_claims(draft, evidence, language=language, uncited=uncited)]


def find_draft_claims(
    draft: str, evidence: Collection[str], *, language: str = "en", uncited: bool = True
) -> list[FoundClaim]:
    """The same with their Markdown."""
    marks = [
        CitationMark(match.start(), match.end(), 0, tuple(dict.fromkeys(
            identity for identity in MARKER.findall(match["marks"]) if identity in evidence
        )))
        for match in CLUSTER.finditer(layout(draft).masked)
        if match["marks"]
    ]  # fmt: skip
    return find_claims(draft, marks, language=language, uncited=uncited)


def without_uncited(draft: str, evidence: Collection[str], language: str = "en") -> tuple[str, int]:
    """The draft without its assertions that cite nothing, and how many they were; an item left empty goes, too."""
    found = [claim for claim in claims_of_draft(draft, evidence, language=language) if not claim.cited]
    for claim in reversed(found):
        before, behind = draft[: claim.start], draft[claim.end :]
        first, last = before.rfind("\n") + 1, (behind + "\n").index("\n")
        if EMPTY_LINE.fullmatch(before[first:] + behind[:last]):
            before, behind = before[:first], behind[last + 1 :]
        draft = before + behind
    return draft, len(found)


def find_claims(
    text: str,
    marks: Sequence[CitationMark],
    *,
    language: str = "en",
    uncited: bool = True,
    passed_over: tuple[int, int] = (0, 0),
) -> list[FoundClaim]:
    """The claims of a Markdown text whose citations stand at `marks`, in order.

    In the range `passed_over` nothing without a citation counts.
    """
    sections = _Sections(text, marks)
    seen: Counter[str] = Counter()
    found = []
    for stretch, row in _stretches(text, marks, passed_over if uncited else (0, len(text))):
        raw = words_of(text, stretch)
        words = plain_text(_row_words(raw) if row else raw)
        cited = list(dict.fromkeys(identity for mark in stretch.marks for identity in mark.evidence_ids))
        section = sections.above(stretch.start)
        if not cited and not asserts(words, language, leads=sections.leads(stretch.end)):
            continue
        key = key_of(words, cited)
        claim = Claim(
            id=claim_id(key, seen[key]),
            text=words,
            kind=_kind(words, language, quoted=stretch.quoted),
            section=section,
            evidence_ids=cited,
            start=stretch.start,
            end=stretch.end,
        )
        seen[key] += 1
        found.append(FoundClaim(claim, stretch.marks, raw, stretch.quoted))
    return found


def key_of(words: str, cited: Sequence[str]) -> str:
    """What a claim is known by: its plain words without white space, and its evidence in any order."""
    return "".join(words.split()) + "\x1e" + " ".join(sorted(cited))


def claim_id(key: str, before: int) -> str:
    """The id of the claim with this key, of which so many stood before."""
    return "c-" + long_hash(key, before)


def _stretches(
    text: str, marks: Sequence[CitationMark], passed_over: tuple[int, int]
) -> Iterator[tuple[Stretch, bool]]:
    """Each mark in exactly one stretch, in order of the text, and what has none; with whether it is a row."""
    left = deque(sorted(marks, key=lambda mark: mark.start))
    done = 0
    for block in layout(text).blocks:
        while left and left[0].start < block.start:
            line = _line_block(text, left[0])
            yield Stretch(line.start, line.end, _taken(left, line.end)), True
            done = line.end
        here = _taken(left, block.end)
        free = block.start >= done and not (passed_over[0] <= block.start < passed_over[1])
        if here or (free and not block.heading):
            yield from _within(text, block, here, every=free and not block.heading)
        done = max(done, block.end)
    while left:
        line = _line_block(text, left[0])
        yield Stretch(line.start, line.end, _taken(left, line.end)), True


def _taken(left: deque[CitationMark], end: int) -> list[CitationMark]:
    """The marks that end before a place, taken away."""
    own = []
    while left and left[0].end <= end:
        own.append(left.popleft())
    return own


def _within(
    text: str, block: ProseBlock, marks: Sequence[CitationMark], *, every: bool
) -> Iterator[tuple[Stretch, bool]]:
    """The stretches of a block; those without marks only where `every` one is wanted."""
    if block.row:
        yield from ((stretch, True) for stretch in _row_stretches(text, block, marks))
        return
    found = list(quoted_stretches(text, block, marks) if block.quoted else _sentences(text, block, marks))
    end = found[-1].end if found else block.start
    if block.quoted and text[end : block.end].strip(BEFORE_WORDS + ENDS):
        found.append(Stretch(end, block.end, [], quoted=True))
    yield from ((stretch, False) for stretch in found if stretch.marks or every)


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
    if cells and all(text.startswith(OPENING_QUOTES, cell.start) for cell in cells):
        yield from cells
    else:
        yield Stretch(row.start, row.end, marks)


def _sentences(text: str, block: ProseBlock, marks: Sequence[CitationMark]) -> Iterator[Stretch]:
    """Sentences of a block; marks that follow a sentence end belong to that sentence."""
    piece = blank_marks(text, block.start, block.end, marks)
    ends = [block.start + first + len(piece[first:end].rstrip()) for first, end in sentence_spans(piece)]
    start, left = block.start, deque(marks)
    for end in [*ends, block.end]:
        stop, own = end, []
        while left and (left[0].start < stop or _blanks_end(text, stop) >= left[0].start):
            own.append(left.popleft())
            stop = max(stop, own[-1].end)
        first = start + len(text[start:stop]) - len(text[start:stop].lstrip())
        if first < stop:
            yield Stretch(first, stop, own)
        start = max(start, stop)


def _blanks_end(text: str, place: int) -> int:
    found = BLANKS.match(text, place)
    return found.end() if found else place


def _line_block(text: str, mark: CitationMark) -> ProseBlock:
    start = text.rfind("\n", 0, mark.start) + 1
    end = text.find("\n", mark.end)
    return ProseBlock(start, len(text) if end < 0 else end, quoted=False, row=True)


def _kind(words: str, language: str, *, quoted: bool) -> ClaimKind:
    said = sum(len(match[0]) for match in INLINE_QUOTE.finditer(words))
    if quoted or said >= MOSTLY_QUOTED * max(1, len(words)):
        return ClaimKind.QUOTE
    return ClaimKind.NUMERIC if find_quantities(words, language) else ClaimKind.GENERAL


def _row_words(row: str) -> str:
    """The cells of a row as one line of prose."""
    return CELL_BORDERS.sub(lambda match: ", " if match[0] == "|" else match[0], row.strip().strip("|"))


class _Sections:
    """The headings of a text below its title, and where its lists and quotations begin."""

    def __init__(self, text: str, marks: Sequence[CitationMark]) -> None:
        self._text = text
        self._headings: list[tuple[int, str]] = []
        for block in layout(text).blocks:
            if block.heading and not block.row:
                inside = [mark for mark in marks if block.start <= mark.start and mark.end <= block.end]
                words = plain_text(blank_marks(text, block.start, block.end, inside))
                self._headings.append((block.start, words if block.heading > 1 else ""))

    def above(self, place: int) -> str:
        """The nearest heading above a place."""
        index = bisect_right(self._headings, place, key=lambda item: item[0])
        return self._headings[index - 1][1] if index else ""

    def leads(self, end: int) -> bool:
        """Whether a list, a table or a quotation begins on the next line with words."""
        following = self._text[end : end + 200].lstrip(" \t*_`")
        return following.startswith("\n") and following.lstrip()[:1] in tuple("-*+>|0123456789")
