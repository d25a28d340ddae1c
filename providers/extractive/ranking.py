"""Ranking: the passages of what was read that share the rarest words with a question, best first. Pure.

A passage is one to four sentences, a list item with its introduction, or a table row with its header. Nothing here
judges whether it answers: the score says how much of the question's words it covers, rare words counting most.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from contracts.exclusions import mentions_any
from contracts.roles import AnalyzeInput, SourceExtract, WriteInput
from providers.extractive.blocks import Kind, PassageBlock, blocks_of, together
from providers.text import language_data, question_stems, sentence_spans, word_keys, words

FLOOR: Final = 0.4
"""Share of the weight of the question's words below which a passage is not shown (measured in `benchmarks/`)."""
DUPLICATE: Final = 0.7
"""Share of the words of the shorter of two passages from which they count as the same."""
ABOVE: Final = 0.5
"""What a word counts that is in the heading path, the title, or the introduction alone."""
TOGETHER: Final = 0.15
"""What a passage gains in which words that follow each other in the question are close to each other."""
HEADING: Final = 0.1
HINT: Final = 0.1
CHARACTER_COST: Final = 0.00006
MOST_SENTENCES: Final = 4
PASSAGE_CHARACTERS: Final = 600
"""A paragraph up to this length is one passage."""
CODE_CHARACTERS: Final = 900
"""Up to this length a listing is quoted with the step before it."""
WHOLE_DOCUMENT: Final = 150_000
"""Characters up to which all of a document is ranked; of a longer one the sections that the search named."""
CUT_CLOSELY: Final = 40
"""Blocks whose sentences are looked at."""


@dataclass(frozen=True, slots=True)
class Passage:
    """`text[start:end]` of a source, with what is above it and how much of the question it covers (0 to 1)."""

    source: SourceExtract
    start: int
    end: int
    path: tuple[str, ...]
    lead: str
    """The introduction of its list or the header of its table, where the range is without it."""
    keys: frozenset[str]
    above: frozenset[str]
    """Stems of the title, the heading path and the lead."""
    coverage: float
    score: float


@dataclass(frozen=True)
class Question:
    """The words of a question with their weights: the rarer a word among the documents, the heavier."""

    weights: Mapping[str, float]
    pairs: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, text: str, language: str, counts: Mapping[str, int], documents: int) -> "Question":
        """Weigh by inverse document frequency, as BM25 does; `counts` are documents by stem."""
        order = question_stems(text, language)
        documents = max(documents, 2)
        known = {key: min(counts.get(key, 0), documents) for key in order}
        weights = {key: math.log(1 + (documents - count + 0.5) / (count + 0.5)) for key, count in known.items()}
        return cls(weights, list(pairwise(order)))

    def coverage(self, body: frozenset[str], above: frozenset[str]) -> float:
        """Return the covered share of the weights; words that are above the passage alone count half."""
        covered = sum(
            weight if key in body else ABOVE * weight if key in above else 0.0 for key, weight in self.weights.items()
        )
        return covered / (sum(self.weights.values()) or 1.0)

    def closeness(self, order: Sequence[str]) -> float:
        """Return the share of neighbours in the question that are at most three words apart in a text."""
        if not self.pairs:
            return 0.0
        places: dict[str, list[int]] = {}
        for place, key in enumerate(order):
            if key in self.weights:
                places.setdefault(key, []).append(place)
        near = (
            any(abs(here - there) <= 3 for here in places.get(one, ()) for there in places.get(other, ()))
            for one, other in self.pairs
        )
        return sum(near) / len(self.pairs)


class Ranking:
    """The passages of the sources of one task, against one question."""

    def __init__(self, task: AnalyzeInput | WriteInput, documents: Mapping[str, str], query: str) -> None:
        self._language, self._exclude = task.language, task.exclude
        self.texts = {
            source.id: documents[source.text.hash]
            for source in task.sources
            if source.text is not None and source.text.hash in documents
        }
        self._sources = {source.id: source for source in task.sources if source.id in self.texts}
        counts, total = task.term_documents, task.documents_searched
        if not total:
            counts = Counter(key for text in self.texts.values() for key in set(_keys(text, self._language)))
            total = len(self.texts)
        self._best_hint = max((each.score for one in task.sources for each in one.sections), default=0.0) or 1.0
        self.question = Question.of(query, self._language, counts, total)

    def passages(self) -> list[Passage]:
        """Return every passage that shares a word with the question, best first; ties by place."""
        rough = [
            (self.measure(source, block.start, block.end, block), block)
            for source in self._sources.values()
            for block in self._blocks(source)
        ]
        rough = sorted((pair for pair in rough if pair[0].score > 0), key=lambda pair: _order(pair[0]))
        cut = [self._cut(passage, block) for passage, block in rough[:CUT_CLOSELY]]
        found = [one for one in cut if not mentions_any(self.text(one), self._exclude)]
        return sorted(found, key=_order)

    def text(self, passage: Passage) -> str:
        """Return the words of a passage."""
        return self.texts[passage.source.id][passage.start : passage.end]

    def at(self, source_id: str, start: int, end: int) -> Passage:
        """Return a range of a source as a passage."""
        blocks = blocks_of(self.texts[source_id])
        inside = next((block for block in blocks if block.start < end and start < block.end), None)
        return self.measure(self._sources[source_id], start, end, inside)

    def measure(self, source: SourceExtract, start: int, end: int, block: PassageBlock | None) -> Passage:
        """Score a range that begins in a block."""
        text = self.texts[source.id]
        order = _keys(text[start:end], self._language)
        body = frozenset(order)
        path = block.path if block else ()
        lead = text[slice(*block.lead)] if block and block.lead and block.lead[0] < start else ""
        above = frozenset().union(*(_keys(line, self._language) for line in (source.title, lead, *path)))
        shares = any(key in body for key in self.question.weights)
        coverage = self.question.coverage(body, above) if shares else 0.0
        score = 0.0
        if shares:
            heading = self.question.coverage(
                frozenset(_keys(path[-1] if path else source.title, self._language)), frozenset()
            )
            hint = max((each.score for each in source.sections if each.start <= start < each.end), default=0.0)
            score = (
                coverage
                + TOGETHER * self.question.closeness(order)
                + HEADING * heading
                + HINT * hint / self._best_hint
                - CHARACTER_COST * (end - start)
            )
        return Passage(source, start, end, path, lead, body, above, coverage, score)

    def _blocks(self, source: SourceExtract) -> Iterator[PassageBlock]:
        text = self.texts[source.id]
        every = blocks_of(text)
        if len(text) > WHOLE_DOCUMENT and source.sections:
            every = tuple(
                block for block in every if any(hint.start <= block.start < hint.end for hint in source.sections)
            )
        yield from (block for block in every if block.kind is not Kind.CODE)
        yield from together(every)

    def _cut(self, passage: Passage, block: PassageBlock) -> Passage:
        """Cut a long paragraph to its best sentences, and add what belongs to them."""
        text = self.texts[passage.source.id]
        start, end = passage.start, passage.end
        if block.kind in (Kind.PROSE, Kind.ITEM) and not (block.lead is None and end - start <= PASSAGE_CHARACTERS):
            spans = [(start + first, start + last) for first, last in sentence_spans(text[start:end])]
            if len(spans) > 1 and end - start > PASSAGE_CHARACTERS:
                start, end = self._best_window(passage, block, spans)
        start = self._with_predecessor(text, start, block)
        if block.kind is Kind.ITEM and block.lead and end - block.lead[0] <= PASSAGE_CHARACTERS:
            start = min(start, block.lead[0])
        if end == block.end:
            end = _with_code(text, end)
        return self.measure(passage.source, start, end, block)

    def _best_window(self, passage: Passage, block: PassageBlock, spans: list[tuple[int, int]]) -> tuple[int, int]:
        text = self.texts[passage.source.id]
        best, chosen = -1.0, spans[0]
        for first in range(len(spans)):
            for last in range(first, min(first + MOST_SENTENCES, len(spans))):
                start, end = spans[first][0], spans[last][1]
                if last > first and end - start > PASSAGE_CHARACTERS:
                    break
                score = self.measure(passage.source, start, end, block).score
                if score > best:
                    best, chosen = score, (first, last)
        first, last = chosen
        openings = language_data(self._language).openings
        while first > 0 and last - first < MOST_SENTENCES and _opens_with(text[spans[first][0] :], openings):
            first -= 1
        while (
            last + 1 < len(spans)
            and last - first < MOST_SENTENCES
            and _opens_with(text[spans[last + 1][0] :], language_data(self._language).corrections)
        ):
            last += 1
        end = spans[last][1]
        return spans[first][0], end - (len(text[:end]) - len(text[:end].rstrip()))

    def _with_predecessor(self, text: str, start: int, block: PassageBlock) -> int:
        """Return where a passage begins whose first word needs the sentence before it."""
        if block.kind is not Kind.PROSE or not _opens_with(text[start:], language_data(self._language).openings):
            return start
        blocks = blocks_of(text)
        place = bisect_right(blocks, start, key=lambda each: each.start) - 1
        before = blocks[place - 1] if place > 0 else None
        if before is None or before.kind is not Kind.PROSE or before.path != block.path:
            return start
        spans = sentence_spans(text[before.start : before.end])
        return before.start + spans[-1][0] if spans else start


def distinct(passages: Iterable[Passage], most: int) -> list[Passage]:
    """Return the best passages without near-duplicates and without those that overlap a better one."""
    kept: list[Passage] = []
    for one in passages:
        if len(kept) == most:
            break
        if not any(_overlap(one, other) or _is_duplicate(one, other) for other in kept):
            kept.append(one)
    return kept


def _overlap(one: Passage, other: Passage) -> bool:
    return one.source.id == other.source.id and one.start < other.end and other.start < one.end


def _is_duplicate(one: Passage, other: Passage) -> bool:
    return len(one.keys & other.keys) >= DUPLICATE * min(len(one.keys), len(other.keys))


def _order(passage: Passage) -> tuple[float, str, int, int]:
    return -round(passage.score, 6), passage.source.id, passage.start, passage.end


def _opens_with(text: str, words: frozenset[str]) -> bool:
    opening = text[:40].lstrip(" \t\n>-*“\"'(").casefold()
    first = opening.split(maxsplit=1)[0].strip(",.;:’'") if opening else ""
    return first in words


def _with_code(text: str, end: int) -> int:
    """Return the end of the listing that follows a step that announces it."""
    blocks = blocks_of(text)
    place = bisect_right(blocks, end - 1, key=lambda each: each.start)
    code = blocks[place] if place < len(blocks) else None
    if code is None or code.kind is not Kind.CODE or text[end : code.start].strip() or text[end - 1] != ":":
        return end
    return code.end if code.end - end <= CODE_CHARACTERS else end


@lru_cache(maxsize=20_000)
def _keys(text: str, language: str) -> tuple[str, ...]:
    return tuple(key for word in words(text) for key in word_keys(word, language))
