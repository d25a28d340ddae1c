"""Choice of what a call shows of its sources: the best sections first, then the rest of pages that matter. Pure.

Every block of every source is ranked by `providers.extractive.ranking` against each of the call's questions. What stays
hidden is listed by its headings, so that a model can ask for it. A prompt with less room shows fewer of the same
sections, chosen in the same way.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Final, NamedTuple

from contracts.call_sizes import max_sources
from contracts.evidence import SectionRef
from contracts.roles import AnalyzeInput, SourceExtract
from providers.extractive.blocks import is_index
from providers.extractive.ranking import Ranking, SourceWords
from providers.text import detect_language, subject_keys
from providers.tokens.lookup import PASSAGES_PER_GAP, SECTION_CHARACTERS, find_passages, section_around
from providers.tokens.sections import (
    MAX_SECTION_CHARACTERS,
    TERM,
    Section,
    SectionUnit,
    blocks_between,
    sections_of,
    units_of,
)
from providers.tokens.shortening import cut_pieces, sentences_between
from providers.tokens.shown_sources import HiddenSection, ShownSource, beginning_of, token_size

MAX_WHOLE_TOKENS: Final = 12_000
"""A page up to this size is shown whole: the manual pages that answered a question best have 5,000 to 11,000."""
OPENED_WHOLE_TOKENS: Final = 16_000
"""A page up to this size is shown whole to whoever opened it: of one of 14,200 a reader was shown 8,000, and asked for
the rest in a second call that cost more than the 6,000 that were left out, when no money was left to show them."""
LONG_PAGE_TOKENS: Final = 8_000
"""Of a longer page, for each purpose for which it was opened: of 18,900 tokens on all options of a command a reader was
shown 12,500 for a question about one, and its agent had no money for its other pages. It may ask for more by number."""
SMALL_PAGE_TOKENS: Final = 4_000
"""A larger page is shown whole only if much of it fits the questions."""
FITTING_SHARE: Final = 1 / 3
"""Least share of such a page that its sections above the floor have: of nine pages of 7,000 to 11,000 tokens that two
real runs showed whole, a model quoted one to three short sections of those with less."""
MIN_SOURCE_TOKENS: Final = 150  # of a source, with its title and address
MIN_PART_CHARACTERS: Final = 100  # shown of a source for which there is hardly any room
MIN_CHARACTERS_PER_TOKEN: Final = 1.4  # of digits and punctuation (`providers.tokens.allotment`)
MIN_LISTED_CHARACTERS: Final = 200  # of a hidden section; a shorter one is shown
BESIDE_TOKENS: Final = 4_000
"""Of pages whose sections were named for a gap, or asked for, beside these. What was asked for has as much itself: in
21 second readings of real models 222 quotes were of it and 5 of 100,000 characters beside it."""
WANTED_TOKENS: Final = 600
"""Of a page whose sections were asked for, however little room there is: the frame of such a call has ten times as
much, and the end of a sentence answers nothing. A section of a manual has 400 on average."""
FURTHER_PASSAGE_CHARACTERS: Final = 2_000
"""Around the second and the third best passage on a gap, in a last look at it."""
REPEATED_TOKENS: Final = 2_000
"""Of a source that an earlier analysis read for other questions: the sections that fit the new ones best."""
WHOLE_FLOOR: Final = 0.5
"""Weighted share of a question's words that a block of a page must have, for the page to be shown whole."""
FIRST_TOKENS: Final = 1_200
"""Of each source that belongs to the questions, before any is shown at length."""
FLOOR: Final = 0.35
"""The same for a page, or a section of one, to be shown at all; words that no source of the call has do not count."""
FURTHER_FLOOR: Final = 0.2
"""The same for a section that a second call shows beside those that were asked for."""
MAX_HIT_SECTIONS: Final = 2  # of a page in which searches found something, and that are shown for that alone
READ_ON_SHARE: Final = 0.5
"""Of the score of a page's best section that a long section must have to be shown beyond its best parts."""
NAME_WEIGHT: Final = 0.5  # of the rare names in code that a section has, beside its words
RARE_SHARE: Final = 0.2
MIN_RARE_SECTIONS: Final = 3
"""A name in code is rare in a page if at most this share, or number, of its sections have it."""
CODE_NAME: Final = re.compile(r"(?<![\w.-])[A-Za-z][\w.-]*\w(?:\(\))?|(?<![\w.-])[A-Za-z]\(\)")
CODE_MARK: Final = re.compile(r"[\d_.(]|(?<=[a-z])[A-Z]")
"""Marks of a name in code, such as `n_dead_tup`, `bm25()`, `libpq.so` or `readOnly`, within the word."""
LANGUAGE_CHARACTERS: Final = 5_000  # of a page, to detect its language
SPREAD_WEIGHT: Final = 0.5  # of words that are spread over a section, for its coverage
COVERAGE_WEIGHT: Final = 0.3  # of a whole section's words, beside its best block
HEADING_WEIGHT: Final = 0.3  # for the score of its section
HEADING_COVERAGE: Final = 0.15
"""Of the share of a heading's words that a question has, for score and coverage of its section: a short section has few
of the words of a long question, also where it answers a part of it."""


def show_sources(request: AnalyzeInput, documents: Mapping[str, str]) -> list[ShownSource]:
    """Choose what a call shows of its sources; those that do not belong to its questions are omitted.

    `documents` are stored texts by hash. The sources stay in their order, and the shown parts have at most
    `request.shown_tokens` estimated tokens together, unless the protected sources alone have more. Sections that were
    asked for (`request.wanted`) come first, and then nothing else is shown.
    """
    return SourceChoice(request, documents).shown(request.shown_tokens)


class SourceChoice:
    """The sources of one call, ranked once and chosen from for any number of tokens."""

    def __init__(self, request: AnalyzeInput, documents: Mapping[str, str]) -> None:
        self._request = request
        self._documents = documents
        self._shown: dict[int, list[ShownSource]] = {}

    def shown(self, tokens: int) -> list[ShownSource]:
        """Return what a call with so many tokens shows of them (`show_sources`)."""
        if tokens not in self._shown:
            self._shown[tokens] = self._ranked.with_tokens(tokens).shown()
        return self._shown[tokens]

    @cached_property
    def _ranked(self) -> "_Choice":
        return _Choice(_with_sections(self._request, self._documents), self._documents)


def _with_sections(request: AnalyzeInput, documents: Mapping[str, str]) -> AnalyzeInput:
    """Return the request with the sections that it names by number; unchanged if it names none that exist."""
    if request.wanted:
        return request
    if request.for_gaps:
        return request.with_fields(wanted=sections_for_gaps(request, documents))
    if not request.sections:
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


def sections_for_gaps(request: AnalyzeInput, documents: Mapping[str, str]) -> list[SectionRef]:
    """Return the sections that speak most of the gaps of a call, those that matter most to any gap first.

    They are those in which a reader of the page expects the answer, and those of the best passages on it. Of a long
    section it is the part around the passage.
    """
    texts = source_texts(request, documents)
    subjects = [[gap.description, *gap.suggested_queries] for gap in request.gaps]
    found = find_passages(texts, subjects, request.language, PASSAGES_PER_GAP)
    ranked: list[tuple[int, SectionRef]] = []
    for gap, passages in zip(request.gaps, found, strict=True):
        expected = [(one.source_id, one.start, one.start) for one in gap.unread if one.source_id in texts]
        best = [(one.source_id, one.start, one.end) for one in passages]
        places = [*enumerate(best), *((0, place) for place in expected)]
        for rank, (name, start, end) in places:
            limit = FURTHER_PASSAGE_CHARACTERS if rank else SECTION_CHARACTERS
            ranked.append((rank, section_around(texts[name], name, start, end, limit)))
    ranked.sort(key=lambda item: item[0])
    by_place = {(section.source_id, section.start): section for _, section in reversed(ranked)}
    return list(by_place.values())[::-1]


def rest_of_pages(request: AnalyzeInput, documents: Mapping[str, str], asked: Sequence[SectionRef]) -> list[SectionRef]:
    """Return what else of the pages of `asked` sections fits into a second call: sections not shown yet, best first.

    They have no more tokens than what was asked for. The call is made anyway, and what it does not show of a page that
    matters would be read in a third one.
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


class _Fit(NamedTuple):
    """The fit of a section for a call, by the question that it fits best."""

    score: float = 0.0
    coverage: float = 0.0
    words: float = 0.0
    """Coverage without regard to names in code."""
    asked: float = 0.0
    """Share of the heading that is asked."""
    named: float = 0.0
    """Share of the question that those of its rare names in code have which the section has, too."""


class _Ranked(NamedTuple):
    """A section with its rank; one that `passes` may be shown, whatever the other sections have."""

    score: float
    coverage: float
    section: Section
    passes: bool


def _code_names(question: str) -> Iterable[str]:
    """Yield the words of a question that are written like code."""
    for match in CODE_NAME.finditer(question):
        word = match[0]
        if CODE_MARK.search(word):
            yield word.removesuffix("()").rstrip(".")


# --- the choice -------------------------------------------------------------------------------------------------------
@dataclass
class _Candidate:
    """A source with its ranked sections, and the parts of it chosen so far."""

    source: SourceExtract
    text: str
    sections: list[_Ranked]
    """Best first."""
    hits: list[Section]
    """Those in which a search found something, best first."""
    coverage: float
    score: float
    spans: list[tuple[int, int]] = field(default_factory=list)
    before: list[tuple[int, int]] = field(default_factory=list)
    """What an earlier answer to the same request was shown."""
    used: float = 0.0

    def has(self, start: int, end: int) -> bool:
        """Return true if a range is chosen already."""
        return any(first <= start and end <= last for first, last in self.spans)

    def is_known(self, start: int, end: int) -> bool:
        """Return true for a range without a word that was not shown, here or before."""
        return not any(self.text[first:last].strip() for first, last in self.rest_of(start, end))

    def touches(self, start: int, end: int) -> bool:
        """Return true if a part of a range was shown, here or before."""
        return any(first < end and start < last for first, last in (*self.spans, *self.before))

    def rest_of(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the parts of a range that were not shown, neither here nor before."""
        parts = []
        for first, last in sorted([*self.spans, *self.before]):
            if start < min(first, end):
                parts.append((start, min(first, end)))
            start = max(start, last)
        return [*parts, (start, end)] if start < end else parts

    def add(self, start: int, end: int) -> None:
        """Choose a range, joined with those that it touches."""
        touching = [span for span in self.spans if span[0] <= end and start <= span[1]]
        merged = (min([start, *(first for first, _ in touching)]), max([end, *(last for _, last in touching)]))
        self.spans = sorted([*(span for span in self.spans if span not in touching), merged])


def _best_first(pages: Iterable[_Candidate], floor: float = 1.0) -> list[tuple[_Ranked, _Candidate]]:
    """Return the sections of pages that may be shown, or have this share of a question, with their pages."""
    sections = [(each, one) for one in pages for each in one.sections if each.passes or each.coverage >= floor]
    return sorted(sections, key=lambda item: (-item[0].score, item[1].source.id, item[0].section.start))


def _neighbours(text: str, units: Sequence[SectionUnit], index: int) -> list[int]:
    """Return the units before and after one that may continue it; a definition of a list continues none."""
    if _is_definition(text, units[index]):
        return []
    near = (index - 1, index + 1)
    return [number for number in near if 0 <= number < len(units) and not _is_definition(text, units[number])]


def _is_definition(text: str, unit: SectionUnit) -> bool:
    return bool(unit.blocks) and TERM.match(text, unit.blocks[0].start) is not None


class _Choice:
    """Spends the tokens of one call, best first."""

    def __init__(self, request: AnalyzeInput, documents: Mapping[str, str]) -> None:
        self.request = request
        self.documents = documents
        self.left = float(request.shown_tokens)
        topics = [*(query.text for query in request.queries), request.query]
        if request.for_gaps:  # where there is room for a part, it is the part that answers them
            topics = [gap.description for gap in request.gaps]
        source_words = SourceWords.of(request, documents)
        self.rankings = [Ranking(request, source_words, topic) for topic in dict.fromkeys(topics) if topic.strip()]
        texts = source_texts(request, documents)
        ranked = (self._ranked(source, texts[source.id]) for source in request.sources if source.id in texts)
        self.candidates = [candidate for candidate in ranked if candidate.sections]

    def with_tokens(self, tokens: int) -> "_Choice":
        """Return a choice among the same ranked sources, of which nothing is chosen yet."""
        other = copy(self)
        other.request = self.request.with_fields(shown_tokens=tokens)
        other.left = float(tokens)
        other.candidates = [replace(one, spans=[], before=[], used=0.0) for one in self.candidates]
        return other

    def shown(self) -> list[ShownSource]:
        if self.request.wanted or self.request.for_gaps:
            self._take_wanted()
        else:
            self._take_best()
        return [self._as_shown(candidate) for candidate in self.candidates if candidate.spans]

    def _as_shown(self, one: _Candidate) -> ShownSource:
        hidden = tuple(
            HiddenSection(
                self._numbers[one.source.id, part.start],
                part,
                in_part=one.touches(part.start, part.end),
                rank=rank,
                beginning=beginning_of(one.text, part),
            )
            for rank, part in (() if self.request.for_gaps else self._hidden(one))
        )
        least = WANTED_TOKENS if self.request.wanted else 0.0
        return ShownSource(one.source, one.text, tuple(one.spans), hidden, partial(self._narrowed, one), least)

    @cached_property
    def _numbers(self) -> dict[tuple[str, int], int]:
        """Return the numbers of all sections by source and offset."""
        numbered = numbered_sections(self.request, self.documents)
        return {(section.source_id, section.start): number for number, section in numbered.items()}

    def _narrowed(self, one: _Candidate, tokens: float) -> ShownSource:
        """Return what is shown of a source with fewer tokens: the best sections and units of those chosen."""
        fewer = replace(one, spans=[], used=0.0)
        room = tokens
        asked = [(wanted.source_id, wanted.start) for wanted in self._in_turn]
        order = {place: number for number, place in enumerate(asked)}
        best = sorted(one.sections, key=lambda each: order.get((one.source.id, each.section.start), len(order)))
        for number, ranked in enumerate(best):
            parts = [(max(first, ranked.section.start), min(last, ranked.section.end)) for first, last in one.spans]
            for start, end in parts:
                if start < end:
                    section = replace(ranked.section, start=start, end=end)
                    self._take_section(fewer, section, room - fewer.used, whole=not number)
        return self._as_shown(fewer)

    def rest(self, asked: Sequence[SectionRef]) -> list[SectionRef]:
        """Return sections of the pages of `asked` ones that the call did not show whole and that fit beside them.

        Sections that have hardly a word of the questions are none of them.
        """
        self._take_best()
        by_id = {one.source.id: one for one in self.candidates}
        wanted = sum(
            self._rest_size(by_id[one.source_id], one.start, one.end) for one in asked if one.source_id in by_id
        )
        left = min(self._most_tokens - wanted, wanted, BESIDE_TOKENS)
        taken = {(one.source_id, one.start) for one in asked}
        pages = [by_id[name] for name in dict.fromkeys(one.source_id for one in asked) if name in by_id]
        hidden = [(ranked.score, one, ranked.section) for one in pages for ranked in one.sections
                  if (ranked.passes or ranked.coverage >= FURTHER_FLOOR)
                  and not one.is_known(ranked.section.start, ranked.section.end)
                  and (one.source.id, ranked.section.start) not in taken]  # fmt: skip
        hidden.sort(key=lambda item: (-item[0], item[1].source.id, item[2].start))
        rest = list[SectionRef]()
        for _, one, part in hidden:
            size = self._rest_size(one, part.start, part.end)
            if size <= left:
                rest.append(SectionRef(source_id=one.source.id, start=part.start, end=part.end, beside=True))
                left -= size
        return rest

    @staticmethod
    def _rest_size(one: _Candidate, start: int, end: int) -> float:
        """Return the tokens of what of a range is not chosen yet; of all of it if that is chosen."""
        return sum(token_size(one.text[first:last]) for first, last in one.rest_of(start, end) or [(start, end)])

    # --- ranking ------------------------------------------------------------------------------------------------------
    def _ranked(self, source: SourceExtract, text: str) -> _Candidate:
        sections = sections_of(text)
        names = self._rare_names(source, sections)
        measured = [(self._measure(source, text, section, names), section) for section in sections]
        # What a heading promises makes a section of a page worth showing, and not the page.
        best = max((fit for fit, _ in measured), default=_Fit())
        ranked = []
        for fit, section in measured:
            share = fit.coverage + HEADING_COVERAGE * fit.asked
            rank = fit.score + HEADING_WEIGHT * fit.asked + NAME_WEIGHT * fit.named
            ranked.append(_Ranked(rank, share, section, passes=share >= FLOOR or fit.named > 0))
        ranked.sort(key=lambda each: (-each.score, each.section.start))
        # What a search found may be many sections: the one that fits best is what it found.
        found = {
            next(
                (n for n, each in enumerate(ranked) if hint.start < each.section.end and each.section.start < hint.end),
                0,
            )
            for hint in source.sections
        }
        best_hits = sorted(found)[:MAX_HIT_SECTIONS]
        ranked = [each._replace(passes=each.passes or number in best_hits) for number, each in enumerate(ranked)]
        hits = [ranked[number].section for number in best_hits if ranked]
        coverage = 0.0 if is_index(text) else best.words
        return _Candidate(source, text, ranked, hits, coverage, best.score)

    def _rare_names(self, source: SourceExtract, sections: Sequence[Section]) -> list[frozenset[str]]:
        """Return, for each question, the keys of its names in code that few sections of a page have."""
        limit = max(MIN_RARE_SECTIONS, RARE_SHARE * len(sections))
        found = []
        for ranking in self.rankings:
            counts = Counter(
                key for section in sections for key in ranking.found(source.id, section.start, section.end)
            )
            named = {key for word in _code_names(ranking.query) for key in subject_keys(word, self.request.language)}
            found.append(frozenset(key for key in named if 0 < counts[key] <= limit))
        return found

    def _measure(self, source: SourceExtract, text: str, section: Section, names: Sequence[frozenset[str]]) -> _Fit:
        """Return how a section fits the question that it fits best, and how much of its heading is asked.

        `names` are the rare names of each question. Spread over a table or a list, they count like words of one block.
        """
        blocks = blocks_between(text, section.start, section.end)
        best = _Fit()
        asked = max((one.asked_share(section.title, source.title) for one in self.rankings), default=0.0)
        for ranking, rare in zip(self.rankings, names, strict=True):
            here = rare & ranking.found(source.id, section.start, section.end)
            named = ranking.question.coverage(here) / ranking.achievable
            if not blocks:  # lines without a sentence
                lines = ranking.measure(source, section.start, section.end, None)
                share = lines.coverage / ranking.achievable
                best = max(best, _Fit(lines.score, share, share, asked, named))
                continue
            # The words of a heading are those of the block below it.
            starts = [section.start, *(block.start for block in blocks[1:])]
            passages = [
                ranking.measure(source, start, block.end, block) for start, block in zip(starts, blocks, strict=True)
            ]
            whole = ranking.measure(source, section.start, section.end, blocks[0])
            score = max(passage.score for passage in passages) + COVERAGE_WEIGHT * whole.coverage
            spread = SPREAD_WEIGHT * whole.coverage / ranking.achievable
            words = max(spread, *(passage.coverage / ranking.achievable for passage in passages))
            coverage = max(words, spread + (1 - SPREAD_WEIGHT) * named)
            best = max(best, _Fit(score, coverage, words, asked, named))
        return best

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
        self.left = self._most_tokens
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
            for section in dict.fromkeys([*one.hits[:1], one.sections[0].section]):
                self._take_section(one, section, min(first - one.used, self.left))
        ranked = _best_first(others)
        for each, one in ranked:
            self._take_section(one, each.section, self._room(one))
        # A long section that much of a question fits is read on, where the others have what they need. One of several
        # questions is met by chance more easily, so then the page must matter.
        is_alone = len(self.request.queries) == 1
        for each, one in ranked:
            fits = each.coverage >= FLOOR and each.score >= READ_ON_SHARE * one.sections[0].score
            if fits and (is_alone or one.coverage >= WHOLE_FLOOR) and not one.source.again:
                self._take_section(one, each.section, self.left, whole=True)
        for one in others:
            rest = token_size(one.text) - one.used
            if not one.source.again and rest <= self.left and self._is_read_whole(one):
                self._take(one, 0, len(one.text))
        # Whoever opened a long page asks for more of it: what may be asked for is shown while there is room.
        if self.request.outlined:
            for each, one in _best_first(others, FURTHER_FLOOR):
                self._take_section(one, each.section, self.left)
        # A section that is hardly longer than its line in the outline is shown in its place.
        for one in others:
            short = [each.section for each in one.sections]
            short = [part for part in short if part.end - part.start <= MIN_LISTED_CHARACTERS]
            for section in short if not one.source.again else ():
                self._take_section(one, section, self.left)

    @property
    def _most_tokens(self) -> float:
        """Return the tokens that a call may show by its own choice: fewer of a long page that was opened to be read."""
        most = float(self.request.shown_tokens)
        sizes = [token_size(one.text) for one in self.candidates]
        if self.request.outlined and sizes and max(sizes) > OPENED_WHOLE_TOKENS:
            return min(most, float(LONG_PAGE_TOKENS * len(self.request.queries)))
        return most

    def _room(self, one: _Candidate) -> float:
        """Return the tokens that a source may still take."""
        if one.source.again:
            return min(self.left, REPEATED_TOKENS - one.used)
        return self.left

    def _is_read_whole(self, one: _Candidate) -> bool:
        """Return true for a page to show whole where there is room: one that was opened to be read, and of others those
        that matter and are small or fit in large part.
        """
        size = token_size(one.text)
        most = OPENED_WHOLE_TOKENS if self.request.outlined else MAX_WHOLE_TOKENS
        if size > most or self._limit(one) < len(one.text):
            return False
        if self.request.outlined:
            return not is_index(one.text)
        if one.coverage < WHOLE_FLOOR:
            return False
        fitting = sum(each.section.end - each.section.start for each in one.sections if each.coverage >= FLOOR)
        return size <= SMALL_PAGE_TOKENS or fitting >= FITTING_SHARE * len(one.text)

    def _take_wanted(self) -> None:
        """Show the sections asked for, without the parts that the answer which asked for them was shown."""
        for one in self.candidates:
            one.before = [(part.start, part.end) for part in self.request.seen if part.source_id == one.source.id]
        if self.request.shown_before and not self.request.narrowed_before:
            self._take_best()
            self.left = float(self.request.shown_tokens)
            for one in self.candidates:
                one.before = one.spans
                one.spans = []
                one.used = 0.0
        by_id = {candidate.source.id: candidate for candidate in self.candidates}
        for wanted in self._in_turn:
            page = by_id.get(wanted.source_id)
            if page is None:
                continue
            # A last look chooses parts of long sections itself.
            known = () if self.request.for_gaps else sections_of(page.text)
            named = (part for part in known if part.start == wanted.start)
            section = next(named, Section(wanted.start, wanted.end, ()))
            parts = [part for part in page.rest_of(section.start, section.end) if page.text[slice(*part)].strip()]
            for start, end in parts or [(section.start, section.end)]:
                self._take_section(page, replace(section, start=start, end=end), self.left, whole=True)
        if self.request.shown_before or self.request.sections or self.request.for_gaps:
            return
        # Named by a reader who saw headings alone: what else answers stands often beside it.
        room = min(self.left, BESIDE_TOKENS)
        pages = [by_id[name] for name in {wanted.source_id for wanted in self.request.wanted} if name in by_id]
        for each, one in _best_first(pages):
            size = self._rest_size(one, each.section.start, each.section.end)
            if size <= room and not one.is_known(each.section.start, each.section.end):
                self._take_section(one, each.section, room)
                room -= size

    @property
    def _in_turn(self) -> list[SectionRef]:
        """Return the sections asked for, as they get their room: the shorter ones before the longer, and those beside
        them last. A last look at gaps has them in the order of their rank.
        """
        if self.request.for_gaps:
            return self.request.wanted
        return sorted(self.request.wanted, key=lambda part: (part.beside, 0 if part.beside else part.end - part.start))

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
        for each in one.sections:
            self._take_section(one, each.section, math.inf)

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

    def _take_section(self, one: _Candidate, section: Section, room: float, *, whole: bool = False) -> None:
        """Show a section whole if it is short and fits, else its best units with their neighbours.

        A long one is shown up to a limit, unless all of it is wanted.
        """
        characters = self._limit(one) - sum(end - start for start, end in one.spans)
        size = token_size(one.text[section.start : section.end])
        if one.has(section.start, section.end) or room <= 0 or characters <= 0:
            return
        is_short = section.end - section.start <= min(MAX_SECTION_CHARACTERS, characters)
        if whole:
            size = self._rest_size(one, section.start, section.end)
        if size <= room and (is_short or whole) and section.end - section.start <= self._limit(one):
            lead = units_of(one.text, section)[0].lead
            for start, end in ((section.start, section.end), *([lead] if lead else [])):
                self._take(one, start, end)
            return
        limit = characters if whole else min(characters, MAX_SECTION_CHARACTERS)
        self._take_units(one, section, room, limit)

    def _take_units(self, one: _Candidate, section: Section, room: float, limit: int) -> None:
        """Show the best units of a section with their neighbours; if not even one fits, the best part of the best."""
        units = units_of(one.text, section)
        best = sorted(range(len(units)), key=lambda index: (-self._unit_score(one, units[index]), index))
        order = dict.fromkeys(near for index in best for near in (index, *_neighbours(one.text, units, index)))
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
            # A part that begins within a sentence may say the opposite: "not" stands before it.
            whole = [part for part in sentences_between(one.text, unit.start, unit.end) if part[1] - part[0] <= size]
            pieces = whole or cut_pieces(one.text, unit.start, unit.end, size)
            parts = [SectionUnit(*part, unit.blocks) for part in pieces]
            chosen = max(parts, key=lambda part: self._unit_score(one, part))
            self._take(one, chosen.start, chosen.end)

    # --- the outline --------------------------------------------------------------------------------------------------
    def _hidden(self, one: _Candidate) -> list[tuple[int, Section]]:
        """Return the sections that are not shown or only in part, each with its rank, in their order."""
        parts = [each.section for each in one.sections]
        hidden = [(rank, part) for rank, part in enumerate(parts) if not one.is_known(part.start, part.end)]
        return sorted(hidden, key=lambda item: item[1].start)
