"""Choice of what a call shows of its sources: whole pages first, then sections, then blocks. Pure.

Every block of every source is ranked by `providers.extractive.ranking` against each of the call's questions. A page
that matters is shown whole if it fits, a longer one by its best sections; what stays hidden is listed by its headings,
so that a model can ask for it.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, NamedTuple

from contracts.call_sizes import max_sources
from contracts.evidence import SectionRef
from contracts.lenient import to_line
from contracts.roles import AnalyzeInput, SourceExtract
from providers.extractive.blocks import Kind, PassageBlock, blocks_of, is_index
from providers.extractive.ranking import Ranking, SourceWords
from providers.text import detect_language
from providers.tokens.allotment import estimated_tokens
from providers.tokens.shortening import cut_pieces

MAX_WHOLE_TOKENS: Final = 12_000
"""A page up to this size is shown whole: the manual pages that answered a question best have 5,000 to 11,000."""
MAX_SECTION_CHARACTERS: Final = 4_000  # a section up to this length is shown whole, or not at all
MAX_UNIT_CHARACTERS: Final = 4_000  # a longer list, table or paragraph is shown in parts
PART_CHARACTERS: Final = 2_000  # of such a part
MIN_SOURCE_TOKENS: Final = 150  # of a source, with its title and address
MIN_PART_CHARACTERS: Final = 100  # shown of a source for which there is hardly any room
MIN_CHARACTERS_PER_TOKEN: Final = 1.4  # of digits and punctuation (`providers.tokens.allotment`)
MIN_SECTION_CHARACTERS: Final = 400  # shorter neighbours below one heading are one section
TITLE_CHARACTERS: Final = 100
MIN_LISTED_CHARACTERS: Final = 200  # of a hidden section; a shorter one is shown
MAX_OUTLINE_LINES: Final = 40  # hidden sections named for each source: the best ones, in order
REPEATED_TOKENS: Final = 2_000
"""Of a source that an earlier analysis read for other questions: the sections that fit the new ones best."""
WHOLE_FLOOR: Final = 0.5
"""Weighted share of a question's words that a block of a page must have, for the page to be shown whole."""
FIRST_TOKENS: Final = 1_200
"""Of each source that belongs to the questions, before any is shown at length."""
FLOOR: Final = 0.35
"""The same for a page, or a section of one, to be shown at all; words that no source of the call has do not count."""
LANGUAGE_CHARACTERS: Final = 5_000  # of a page, to detect its language
SPREAD_WEIGHT: Final = 0.5  # of words that are spread over a section, for its coverage
COVERAGE_WEIGHT: Final = 0.3  # of a whole section's words, beside its best block
HEADING_WEIGHT: Final = 0.3
HEADING_COVERAGE: Final = 0.15
"""Of the share of a heading's words that a question has, for score and coverage of its section: a short section has few
of the words of a long question, also where it answers a part of it."""
SHORT_TITLE_CHARACTERS: Final = 20
BEGINNING_CHARACTERS: Final = 60  # of a section with such a title, in an outline
LINE_TOKENS: Final = 2.5  # of the sign that begins each line of a prompt
HEADING_OR_FENCE: Final = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}+|~{3,}+)|(?P<level>#{1,6})[ \t]++(?P<title>[^\n]*))", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Section:
    """`text[start:end]`: a heading with what follows it up to the next one, or a part of a text without headings."""

    start: int
    end: int
    path: tuple[str, ...]
    """Its heading and those above it, outermost first; for a part without a heading, its first words."""

    @property
    def title(self) -> str:
        """Return its own heading."""
        return self.path[-1] if self.path else ""


@dataclass(frozen=True, slots=True)
class HiddenSection:
    """A section that a prompt does not show, or only in part, under the number by which a model may ask for it."""

    number: int
    section: Section
    in_part: bool = False
    beginning: str = ""
    """Its first words below the heading, where that is too short to tell what stands there: `Parameters`."""

    def describe(self) -> str:
        """Return its line in the outline: number, heading, first words, characters, and whether a part is shown."""
        size = f"{self.section.end - self.section.start:,} characters"
        name = f"{self.section.title}: {self.beginning}" if self.beginning else self.section.title
        return f"{self.number}. {name} ({size}{', a part of it is shown' if self.in_part else ''})"


def _beginning(text: str, section: Section) -> str:
    """Return the first words of a section below its heading, if that is short and one of its own."""
    heading = HEADING_OR_FENCE.match(text, section.start)
    if len(section.title) > SHORT_TITLE_CHARACTERS or heading is None or not heading["level"]:
        return ""
    return to_line(
        text[heading.end() : min(section.end, heading.end() + 4 * BEGINNING_CHARACTERS)], BEGINNING_CHARACTERS
    )


@dataclass(frozen=True, slots=True)
class ShownSource:
    """The parts of a source's text that a prompt shows, in order, and the sections that it does not show."""

    source: SourceExtract
    text: str
    spans: tuple[tuple[int, int], ...]
    hidden: tuple[HiddenSection, ...]

    @property
    def characters(self) -> int:
        """Return the number of characters shown."""
        return sum(end - start for start, end in self.spans)

    def excerpt(self) -> str:
        """Return the shown parts; a line with the headings above marks each omission."""
        parts: list[str] = []
        last = 0
        for start, end in self.spans:
            if self.text[last:start].strip():
                parts.append(f"\n{self._omission(start)}\n" if parts or start else "")
            parts.append(self.text[start:end] if parts and parts[-1] else self.text[start:end].lstrip("\n"))
            last = end
        if self.text[last:].strip() and parts:
            parts.append("\n[…]")
        return "".join(parts).strip("\n")

    def _omission(self, start: int) -> str:
        """Return the line in place of what is omitted before an offset, with the headings above it."""
        section = next((one for one in sections_of(self.text) if one.start <= start < one.end), None)
        above = section.path if section else ()
        # A part that begins with its own heading needs only those above it.
        named = above[:-1] if section and section.start == start else above
        if not named:
            return "[…]"
        return f"[…] (in: {' › '.join(named)})"


def show_sources(request: AnalyzeInput, documents: Mapping[str, str]) -> list[ShownSource]:
    """Choose what a call shows of its sources; those that do not belong to its questions are omitted.

    `documents` are stored texts by hash. The sources stay in their order, and the shown parts have at most
    `request.shown_tokens` estimated tokens together, unless the protected sources alone have more. Sections that were
    asked for (`request.wanted`) come first, and then nothing else is shown.
    """
    return _Choice(_with_sections(request, documents), documents).shown()


def _with_sections(request: AnalyzeInput, documents: Mapping[str, str]) -> AnalyzeInput:
    """Return the request with the sections that it names by number; unchanged if it names none that exist."""
    if not request.sections or request.wanted:
        return request
    known = numbered_sections(request, documents)
    return request.with_fields(wanted=[known[number] for number in request.sections if number in known])


def numbered_sections(request: AnalyzeInput, documents: Mapping[str, str]) -> dict[int, SectionRef]:
    """Return the sections of a call's sources by number, whatever of them is shown."""
    texts = source_texts(request, documents)
    sections = ((name, section) for name, text in texts.items() for section in sections_of(text))
    return {
        number: SectionRef(source_id=name, start=section.start, end=section.end)
        for number, (name, section) in enumerate(sections, start=1)
    }


def rest_of_pages(request: AnalyzeInput, documents: Mapping[str, str], asked: Sequence[SectionRef]) -> list[SectionRef]:
    """Return what else of the pages of `asked` sections fits into a second call: sections not shown yet, best first.

    The call is made anyway, and what it does not show of a page that matters would be read in a third one.
    """
    return _Choice(request, documents).rest(asked)


def source_texts(request: AnalyzeInput, documents: Mapping[str, str]) -> dict[str, str]:
    """Return the stored texts of the sources that a call may show, by id, in order."""
    sources = request.sources[: max_sources(request)]
    return {
        source.id: documents[source.text.hash]
        for source in sources
        if source.text is not None and source.text.hash in documents
    }


def token_size(text: str) -> float:
    """Estimate the tokens of a text in a prompt, with the signs of its lines."""
    return estimated_tokens(text) + LINE_TOKENS * (text.count("\n") + 1)


# --- the structure of a text ------------------------------------------------------------------------------------------
@lru_cache(maxsize=64)
def sections_of(text: str) -> tuple[Section, ...]:
    """Cut a text at its headings, outside of code; a text without any, into parts of whole blocks.

    Short neighbours below one heading are one section, and a heading without text begins the section below it.
    """
    sections = list(_merged(text, list(_headed(text))))
    return tuple(_named(text, part) for section in sections for part in _parts(text, section))


def _named(text: str, section: Section) -> Section:
    """Return a section with its first words as its name, if it has no heading."""
    if section.path:
        return section
    return replace(section, path=(_first_words(text, section.start),))


def _headed(text: str) -> Iterator[Section]:
    path: list[tuple[int, str]] = []
    fence = ""
    start = 0
    for match in HEADING_OR_FENCE.finditer(text):
        marks = match["fence"]
        if marks:
            if not fence:
                fence = marks
            elif marks.startswith(fence):
                fence = ""
            continue
        title = " ".join(match["title"].rstrip().rstrip("#").split())[:TITLE_CHARACTERS]
        if fence or not title:
            continue
        if text[start : match.start()].strip():
            yield Section(start, match.start(), tuple(name for _, name in path))
        start = match.start()
        path = [*(one for one in path if one[0] < len(match["level"])), (len(match["level"]), title)]
    if text[start:].strip():
        yield Section(start, len(text), tuple(name for _, name in path))


def _merged(text: str, sections: Sequence[Section]) -> Iterator[Section]:
    """Join a heading without text to what follows, and short sections below one heading to each other."""
    waiting: Section | None = None
    for section in sections:
        if waiting is None:
            waiting = section
            continue
        is_bare = text[waiting.start : waiting.end].count("\n", 0, len(text[waiting.start : waiting.end].rstrip())) == 0
        siblings = waiting.path[:-1] == section.path[:-1]
        if is_bare and section.path[: len(waiting.path)] == waiting.path:
            waiting = replace(section, start=waiting.start)
        elif siblings and section.end - waiting.start <= MIN_SECTION_CHARACTERS:
            title = f"{waiting.title}; {section.title}"[: 2 * TITLE_CHARACTERS]
            waiting = Section(waiting.start, section.end, (*section.path[:-1], title))
        else:
            yield waiting
            waiting = section
    if waiting is not None:
        yield waiting


def _parts(text: str, section: Section) -> Iterator[Section]:
    """Yield a section; one without a heading, or far longer than a section should be, in parts named by first words."""
    if section.end - section.start <= (MAX_SECTION_CHARACTERS if not section.path else 5 * MAX_SECTION_CHARACTERS):
        yield section
        return
    start = end = section.start
    for unit in units_of(text, section):
        if unit.end - start > MAX_SECTION_CHARACTERS and end > start:
            yield _part(text, section, start, end)
            start = end
        end = unit.end
    if end > start:
        yield _part(text, section, start, end)


def _part(text: str, section: Section, start: int, end: int) -> Section:
    if start == section.start and section.path:
        return Section(start, end, section.path)
    return Section(start, end, (*section.path, _first_words(text, start)))


def _first_words(text: str, start: int) -> str:
    words = " ".join(text[start : start + 2 * TITLE_CHARACTERS].lstrip("#>*-| \n").split())
    return f"… {words[: TITLE_CHARACTERS // 2].rsplit(' ', 1)[0]} …"


@dataclass(frozen=True, slots=True)
class SectionUnit:
    """Blocks that are shown together: a list with its introduction, a table with its head, a listing with its sentence.

    Consecutive units of a section have nothing omitted between them.
    """

    start: int
    end: int
    blocks: tuple[PassageBlock, ...]
    lead: tuple[int, int] | None = None
    """Introduction or table head to show with it, for a part of a long list or table."""


def units_of(text: str, section: Section) -> list[SectionUnit]:
    """Cut a section into units that cover it without holes."""
    groups: list[list[PassageBlock]] = []
    for block in _blocks_between(text, section.start, section.end):
        if groups and _belongs(text, groups[-1][-1], block):
            groups[-1].append(block)
        else:
            groups.append([block])
    if not groups:
        return [SectionUnit(section.start, section.end, ())]
    ends = [group[-1].end for group in groups]
    starts = [section.start, *ends[:-1]]
    ends[-1] = section.end
    whole = [
        SectionUnit(start, end, tuple(group), _lead(group, start))
        for start, end, group in zip(starts, ends, groups, strict=True)
    ]
    return [part for unit in whole for part in _unit_parts(text, unit)]


def _blocks_between(text: str, start: int, end: int) -> Sequence[PassageBlock]:
    blocks = blocks_of(text)
    first, last = (bisect_left(blocks, offset, key=lambda block: block.start) for offset in (start, end))
    return blocks[first:last]


def _belongs(text: str, before: PassageBlock, block: PassageBlock) -> bool:
    """Return true for a block that is not understood without the one before it."""
    if block.kind is Kind.CODE:
        return True
    if block.kind in (Kind.ITEM, Kind.ROW) and before.kind is block.kind:
        return True
    return text[before.start : before.end].rstrip().endswith(":")


def _unit_parts(text: str, unit: SectionUnit) -> Iterator[SectionUnit]:
    """Yield a unit; a very long one in parts: between its blocks, each with the introduction or the table head."""
    if unit.end - unit.start <= MAX_UNIT_CHARACTERS:
        yield unit
        return
    if len(unit.blocks) < 2:
        pieces = cut_pieces(text, unit.start, unit.end, PART_CHARACTERS)
        yield from (SectionUnit(start, end, unit.blocks) for start, end in pieces)
        return
    start = unit.start
    group: list[PassageBlock] = []
    for block in unit.blocks:
        if group and block.end - start > PART_CHARACTERS:
            yield from _unit_parts(text, SectionUnit(start, group[-1].end, tuple(group), _lead(group, start)))
            start = group[-1].end
            group = []
        group.append(block)
    rest = SectionUnit(start, unit.end, tuple(group), _lead(group, start))
    if start > unit.start:
        yield from _unit_parts(text, rest)
        return
    # Short blocks, and behind them lines that are none, such as a table of contents.
    pieces = cut_pieces(text, rest.start, rest.end, PART_CHARACTERS)
    yield from (SectionUnit(first, last, rest.blocks, rest.lead) for first, last in pieces)


def _lead(group: Sequence[PassageBlock], start: int) -> tuple[int, int] | None:
    """Return the introduction or table head of blocks, if it lies before their beginning."""
    lead = group[0].lead
    if lead and lead[0] < start:
        return lead
    return None


class _Fit(NamedTuple):
    """The fit of a section for a call: score and coverage for the best of its questions, share of the heading asked."""

    score: float
    coverage: float
    asked: float


# --- the choice -------------------------------------------------------------------------------------------------------
@dataclass
class _Candidate:
    """A source with its ranked sections, and the parts of it chosen so far."""

    source: SourceExtract
    text: str
    sections: list[tuple[float, float, Section]]
    """Score, coverage and section, best first."""
    coverage: float
    score: float
    spans: list[tuple[int, int]] = field(default_factory=list)
    used: float = 0.0

    def has(self, start: int, end: int) -> bool:
        """Return true if a range is chosen already."""
        return any(first <= start and end <= last for first, last in self.spans)

    def touches(self, start: int, end: int) -> bool:
        """Return true if a part of a range is chosen already."""
        return any(first < end and start < last for first, last in self.spans)

    def add(self, start: int, end: int) -> None:
        """Choose a range, joined with those that it touches."""
        touching = [span for span in self.spans if span[0] <= end and start <= span[1]]
        merged = (min([start, *(first for first, _ in touching)]), max([end, *(last for _, last in touching)]))
        self.spans = sorted([*(span for span in self.spans if span not in touching), merged])


class _Choice:
    """Spends the tokens of one call, best first."""

    def __init__(self, request: AnalyzeInput, documents: Mapping[str, str]) -> None:
        self.request = request
        self.documents = documents
        self.left = float(request.shown_tokens)
        topics = [*(query.text for query in request.queries), request.query]
        source_words = SourceWords.of(request, documents)
        self.rankings = [Ranking(request, source_words, topic) for topic in dict.fromkeys(topics) if topic.strip()]
        texts = source_texts(request, documents)
        ranked = (self._ranked(source, texts[source.id]) for source in request.sources if source.id in texts)
        self.candidates = [candidate for candidate in ranked if candidate.sections]

    def shown(self) -> list[ShownSource]:
        if self.request.wanted:
            self._take_wanted()
        else:
            self._take_best()
        numbers = {
            (section.source_id, section.start): number
            for number, section in numbered_sections(self.request, self.documents).items()
        }
        return [
            ShownSource(
                candidate.source,
                candidate.text,
                tuple(candidate.spans),
                tuple(
                    HiddenSection(
                        numbers[candidate.source.id, part.start],
                        part,
                        in_part=candidate.touches(part.start, part.end),
                        beginning=_beginning(candidate.text, part),
                    )
                    for part in self._hidden(candidate)
                ),
            )
            for candidate in self.candidates
            if candidate.spans
        ]

    def rest(self, asked: Sequence[SectionRef]) -> list[SectionRef]:
        """Return sections of the pages of `asked` ones that the call did not show whole and that fit beside them."""
        self._take_best()
        texts = {one.source.id: one.text for one in self.candidates}
        left = self.request.shown_tokens - sum(
            token_size(texts[one.source_id][one.start : one.end]) for one in asked if one.source_id in texts
        )
        taken = {(one.source_id, one.start) for one in asked}
        pages = [one for one in self.candidates if one.source.id in {each.source_id for each in asked}]
        hidden = [(score, one, part) for one in pages for score, _, part in one.sections
                  if not one.has(part.start, part.end) and (one.source.id, part.start) not in taken]  # fmt: skip
        hidden.sort(key=lambda item: (-item[0], item[1].source.id, item[2].start))
        rest = list[SectionRef]()
        for _, one, part in hidden:
            size = token_size(one.text[part.start : part.end])
            if size <= left:
                rest.append(SectionRef(source_id=one.source.id, start=part.start, end=part.end))
                left -= size
        return rest

    # --- ranking ------------------------------------------------------------------------------------------------------
    def _ranked(self, source: SourceExtract, text: str) -> _Candidate:
        measured = [(self._measure(source, text, section), section) for section in sections_of(text)]
        # What a heading promises makes a section of a page worth showing, and not the page.
        score, coverage, _ = max((fit for fit, _ in measured), default=_Fit(0.0, 0.0, 0.0))
        sections = [
            (fit.score + HEADING_WEIGHT * fit.asked, fit.coverage + HEADING_COVERAGE * fit.asked, section)
            for fit, section in measured
        ]
        sections.sort(key=lambda ranked: (-ranked[0], ranked[2].start))
        if is_index(text):
            coverage = 0.0
        return _Candidate(source, text, sections, coverage, score)

    def _measure(self, source: SourceExtract, text: str, section: Section) -> _Fit:
        """Return how a section fits the question that it fits best, and how much of its heading is asked."""
        blocks = _blocks_between(text, section.start, section.end)
        best = (0.0, 0.0)
        asked = max((one.asked_share(section.title, source.title) for one in self.rankings), default=0.0)
        for ranking in self.rankings:
            if not blocks:  # lines without a sentence
                lines = ranking.measure(source, section.start, section.end, None)
                best = max(best, (lines.score, lines.coverage / ranking.achievable))
                continue
            # The words of a heading are those of the block below it.
            starts = [section.start, *(block.start for block in blocks[1:])]
            passages = [
                ranking.measure(source, start, block.end, block) for start, block in zip(starts, blocks, strict=True)
            ]
            whole = ranking.measure(source, section.start, section.end, blocks[0])
            score = max(passage.score for passage in passages) + COVERAGE_WEIGHT * whole.coverage
            coverage = max([SPREAD_WEIGHT * whole.coverage, *(passage.coverage for passage in passages)])
            coverage /= ranking.achievable
            best = max(best, (score, coverage))
        return _Fit(*best, asked)

    def _unit_score(self, one: _Candidate, unit: SectionUnit) -> float:
        """Return the score of the best block of a unit, as far as it lies in it."""
        spans = [(max(block.start, unit.start), min(block.end, unit.end), block) for block in unit.blocks]
        return max(
            (
                ranking.measure(one.source, start, end, block).score
                for ranking in self.rankings
                for start, end, block in spans
            ),
            default=0.0,
        )

    # --- spending -----------------------------------------------------------------------------------------------------
    def _take_best(self) -> None:
        protected = [candidate for candidate in self.candidates if self._is_protected(candidate)]
        for one in protected:
            self._take_all(one)
        others = [candidate for candidate in self.candidates if candidate not in protected and self._belongs(candidate)]
        if not others and not protected and self.candidates:
            # Without a page above the floor, the best one is shown: the words of its author may be others.
            others = [max(self.candidates, key=lambda one: one.coverage)]
        others.sort(key=lambda one: (one.source.again, -one.score, one.source.id))
        others = others[: max(1, int(self.left / MIN_SOURCE_TOKENS))]
        first = min(FIRST_TOKENS, self.left / max(1, len(others)))
        for one in others:
            self._take_section(one, one.sections[0][2], min(first, self.left))
        for one in others:
            rest = token_size(one.text) - one.used
            matters = not one.source.again and one.coverage >= WHOLE_FLOOR
            fits = rest <= self.left and token_size(one.text) <= MAX_WHOLE_TOKENS
            if matters and fits and self._limit(one) == len(one.text):
                self._take(one, 0, len(one.text))
        ranked = [(score, other, section) for other in others for score, coverage, section in other.sections
                  if coverage >= FLOOR]  # fmt: skip
        ranked.sort(key=lambda item: (-item[0], item[1].source.id, item[2].start))
        for _, one, section in ranked:
            if one.source.again:
                room = min(self.left, REPEATED_TOKENS - one.used)
            else:
                room = self.left
            self._take_section(one, section, room)
        # A section that is hardly longer than its line in the outline is shown in its place.
        for one in others:
            short = [part for _, _, part in one.sections if part.end - part.start <= MIN_LISTED_CHARACTERS]
            for section in short if not one.source.again else ():
                self._take_section(one, section, self.left)

    def _take_wanted(self) -> None:
        by_id = {candidate.source.id: candidate for candidate in self.candidates}
        for wanted in self.request.wanted:
            one = by_id.get(wanted.source_id)
            if one is None:
                continue
            section = next((part for part in sections_of(one.text) if part.start == wanted.start), None)
            self._take_section(one, section or Section(wanted.start, wanted.end, ()), self.left)

    def _belongs(self, one: _Candidate) -> bool:
        """Return true for a page that has enough of a question's words, or is in another language than they."""
        if self.request.SHOWS_ALL:
            return True
        if one.coverage == 0:
            return detect_language(one.text[:LANGUAGE_CHARACTERS]) != self.request.language
        return one.coverage >= FLOOR

    def _is_protected(self, one: _Candidate) -> bool:
        return one.source.id in self.request.protected_source_ids

    def _take_all(self, one: _Candidate) -> None:
        """Show a source whole, or its best sections up to the limit of characters, whatever room there is."""
        if self._limit(one) == len(one.text):
            self._take(one, 0, len(one.text))
        for _, _, section in one.sections:
            self._take_section(one, section, math.inf)

    def _limit(self, one: _Candidate) -> int:
        """Return the most characters to show of a source."""
        return min(len(one.text), self.request.max_characters or len(one.text))

    def _take(self, one: _Candidate, start: int, end: int) -> None:
        """Show a range, and pay for what of it was not chosen before."""
        before = sum(token_size(one.text[first:last]) for first, last in one.spans)
        one.add(start, end)
        cost = sum(token_size(one.text[first:last]) for first, last in one.spans) - before
        one.used += cost
        self.left -= cost

    def _take_section(self, one: _Candidate, section: Section, room: float) -> None:
        """Show a section whole if it is short and fits, else its best units with their neighbours."""
        characters = self._limit(one) - sum(end - start for start, end in one.spans)
        size = token_size(one.text[section.start : section.end])
        if one.has(section.start, section.end) or room <= 0 or characters <= 0:
            return
        is_short = section.end - section.start <= min(MAX_SECTION_CHARACTERS, characters)
        if size <= room and (is_short or self.request.wanted):
            lead = units_of(one.text, section)[0].lead
            for start, end in ((section.start, section.end), *([lead] if lead else [])):
                self._take(one, start, end)
            return
        self._take_units(one, section, room, characters)

    def _take_units(self, one: _Candidate, section: Section, room: float, characters: int) -> None:
        """Show the best units of a section with their neighbours; if not even one fits, the best part of the best."""
        units = units_of(one.text, section)
        best = sorted(range(len(units)), key=lambda index: (-self._unit_score(one, units[index]), index))
        order = dict.fromkeys(
            near for index in best for near in (index, index - 1, index + 1) if 0 <= near < len(units)
        )
        limit = min(characters, MAX_SECTION_CHARACTERS)
        taken = False
        for index in order:
            unit = units[index]
            ranges = [(unit.start, unit.end), *([unit.lead] if unit.lead else [])]
            fresh = [span for span in ranges if not one.has(*span)]
            length = sum(end - start for start, end in fresh)
            cost = sum(token_size(one.text[start:end]) for start, end in fresh)
            if not fresh or length > limit or cost > room:
                continue
            for span in fresh:
                self._take(one, *span)
            taken = True
            limit -= length
            room -= cost
        size = min(limit, int(room * MIN_CHARACTERS_PER_TOKEN))
        if not taken and not one.spans and size >= MIN_PART_CHARACTERS:
            unit = units[best[0]]
            parts = [SectionUnit(*part, unit.blocks) for part in cut_pieces(one.text, unit.start, unit.end, size)]
            chosen = max(parts, key=lambda part: self._unit_score(one, part))
            self._take(one, chosen.start, chosen.end)

    # --- the outline --------------------------------------------------------------------------------------------------
    def _hidden(self, one: _Candidate) -> list[Section]:
        """Return the sections that are not shown or only in part: at most 40, the best ones, in their order."""
        hidden = [section for _, _, section in one.sections if not one.has(section.start, section.end)]
        return sorted(hidden[:MAX_OUTLINE_LINES], key=lambda section: section.start)
