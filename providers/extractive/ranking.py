"""Ranking: passages of the sources that share the rarest words with a question, best first. Pure.

A passage is a paragraph or its best sentences, a list item with its introduction, a table row with its header, or a few
short blocks of one section. Its score is the weighted share of the question's words, with a bonus for closeness and for
words in its heading; it says nothing about whether the passage answers the question.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final

from contracts.exclusions import mentions_any
from contracts.roles import AnalyzeInput, SourceExtract, WriteInput
from providers.extractive.blocks import QUESTION_MARKS, Kind, PassageBlock, blocks_of, candidates_of, lines_of
from providers.extractive.semantic import Vector, likeness, token_table
from providers.text import (
    WORD,
    is_covered,
    key_weights,
    language_data,
    question_stems,
    sentence_spans,
    word_keys,
    words,
)

COVERAGE_FLOOR: Final = 0.4
"""Weighted share of the question's words below which a passage is not shown (measured in `benchmarks/`)."""
CONTEXT_WEIGHT: Final = 0.5  # of a word found only in the heading path, the title or the introduction
NEAR: Final = 3  # places from one word to another that count as next to each other
PROXIMITY_BONUS: Final = 0.15
"""Bonus for question words next to each other; chosen, like the others, on the tuned sets of the benchmark."""
HEADING_BONUS: Final = 0.2  # for question words in the nearest heading
CHARACTER_COST: Final = 0.00006
"""Penalty per character: of two passages with equal coverage, the shorter one comes first."""
NEIGHBOUR_CHARACTERS: Final = 300  # of a line with its neighbours, in which lines answer or explain each other
FULL_STOPS: Final = ".!。！"
LINES_BEFORE: Final = 1  # of a long paragraph, or around a line of its own
LINES_AFTER: Final = 2  # the same, after it
MAX_SENTENCES: Final = 4  # of a passage that is cut from a longer paragraph
PASSAGE_CHARACTERS: Final = 1600  # a paragraph up to this length is one passage
MAX_ANNOUNCED_LENGTH: Final = 900
"""Up to this length, a listing, a list or a table is quoted with the sentence that announces it."""
MAX_WHOLE_CHARACTERS: Final = 150_000
"""Up to this many characters, a document is ranked whole; of a longer one, the sections that the search named."""
MAX_CUT_PASSAGES: Final = 60  # passages that are cut to their best sentences
RERANKED: Final = 30  # passages whose order closeness of meaning may change
MEANING_WEIGHT: Final = 0.5
"""Of the cosine between question and passage, beside the score: chosen on the tuned sets, as the others."""


@dataclass(frozen=True, slots=True)
class Passage:
    """`text[start:end]` of a source, with its heading path and the share of the question that it covers (0 to 1)."""

    source: SourceExtract
    start: int
    end: int
    path: tuple[str, ...]
    lead: str  # the introduction of its list or the header of its table, if outside the range
    context_keys: frozenset[str]  # keys of the title, the heading path and the lead
    coverage: float
    score: float


@dataclass(frozen=True)
class Question:
    """The words of a question with their weights: the rarer among the documents, the heavier."""

    weights: Mapping[str, float]
    pairs: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, text: str, language: str, counts: Mapping[str, int], documents: int) -> "Question":
        """Weigh by inverse document frequency, as in BM25, to a sum of 1; `counts` are documents by stem."""
        stems = question_stems(text, language)
        weights = key_weights({key: counts.get(key, 0) for key in stems}, documents)
        total = sum(weights.values()) or 1.0
        return cls({key: weight / total for key, weight in weights.items()}, list(pairwise(stems)))

    def coverage(self, body: Iterable[str], context_keys: Iterable[str] = ()) -> float:
        """Return the covered share of the weights; words found only above the passage count half."""
        inside = self.weights.keys() & set(body)
        outside = (self.weights.keys() & set(context_keys)) - inside
        return sum(self.weights[key] for key in inside) + CONTEXT_WEIGHT * sum(self.weights[key] for key in outside)

    def closeness(self, numbered_keys: Sequence[tuple[int, str]]) -> float:
        """Return the share of neighbouring question words that are at most three words apart in a passage."""
        latest: dict[str, int] = {}
        near: set[int] = set()
        for position, key in numbered_keys:
            latest[key] = position
            for pair, neighbour in self._neighbours.get(key, ()):
                if position - latest.get(neighbour, -NEAR - 1) <= NEAR:
                    near.add(pair)
            if len(near) == len(self.pairs):
                break
        if not self.pairs:
            return 0.0
        return len(near) / len(self.pairs)

    @cached_property
    def _neighbours(self) -> dict[str, list[tuple[int, str]]]:
        """The pairs of each key, by number, with the other key of the pair."""
        neighbours: dict[str, list[tuple[int, str]]] = {}
        for number, (one, other) in enumerate(self.pairs):
            neighbours.setdefault(one, []).append((number, other))
            neighbours.setdefault(other, []).append((number, one))
        return neighbours


@dataclass(frozen=True, eq=False, slots=True)
class SourceWords:
    """The texts of a task's sources by id, divided into words once for all questions."""

    texts: Mapping[str, str]
    places: Mapping[str, Mapping[str, Sequence[tuple[int, int]]]]
    """Of each text the places of each key: offset and number of the word."""
    counts: Mapping[str, int]
    """Documents that have a key, of the `total` ones that were searched, else of the sources."""
    total: int

    @classmethod
    def of(cls, task: AnalyzeInput | WriteInput, documents: Mapping[str, str]) -> "SourceWords":
        """Divide the texts of a task; `documents` are stored texts by hash."""
        texts = {
            source.id: documents[source.text.hash]
            for source in task.sources
            if source.text is not None and source.text.hash in documents
        }
        places = {key: _places(text, task.language) for key, text in texts.items()}
        counts = task.term_documents
        total = task.documents_searched
        if not total:
            counts = Counter(key for places_of_text in places.values() for key in places_of_text)
            total = len(places)
        return cls(texts, places, counts, total)


class Ranking:
    """Passages of the sources of one task, ranked against one question."""

    def __init__(self, task: AnalyzeInput | WriteInput, source_words: SourceWords, query: str) -> None:
        self._language = task.language
        self._exclude = task.exclude
        self.query = query
        self._is_semantic = task.semantic
        self.texts = source_words.texts
        self._sources = {source.id: source for source in task.sources if source.id in self.texts}
        self.question = Question.of(query, self._language, source_words.counts, source_words.total)
        weights = self.question.weights
        # The question's words in each source: offset, number of the word, key.
        self._occurrences = {
            name: sorted((start, number, key) for key in weights for start, number in places.get(key, ()))
            for name, places in source_words.places.items()
        }
        self._measured: dict[tuple[object, ...], Passage] = {}
        self._context_cache: dict[tuple[str, ...], frozenset[str]] = {}

    def passages(self) -> list[Passage]:
        """Return every passage that shares a word with the question, best first; ties by position.

        An entry of an index is one only if no other passage has as much of the question.
        """
        candidates = [
            (passage, block)
            for source in self._sources.values()
            for block in self._blocks(source)
            if (passage := self.measure(source, block.start, block.end, block)).coverage
        ]
        best = max((passage.coverage for passage, block in candidates if block.kind is not Kind.ENTRY), default=0.0)
        candidates = [pair for pair in candidates if pair[1].kind is not Kind.ENTRY or pair[0].coverage > best]
        candidates.sort(key=lambda pair: _order(pair[0]))
        cut = [self._cut(passage, block) for passage, block in candidates[:MAX_CUT_PASSAGES]]
        return sorted((passage for passage in cut if not mentions_any(self.text(passage), self._exclude)), key=_order)

    def by_meaning(self, passages: Sequence[Passage]) -> list[Passage]:
        """Return the passages with the first thirty ordered by their score and their closeness of meaning.

        In a run without semantic ranking their order stays. Raises `NotConfigured` if its extra is not installed.
        """
        if not self._is_semantic:
            return list(passages)
        first = [
            replace(passage, score=passage.score + MEANING_WEIGHT * self.likeness_to(self._whole(passage)))
            for passage in passages[:RERANKED]
        ]
        return [*sorted(first, key=_order), *passages[RERANKED:]]

    def likeness_to(self, text: str) -> float:
        """Return how close the meaning of a text is to the question, from -1 to 1. Raises `NotConfigured`."""
        return likeness(self._meaning, token_table().vector(text))

    @cached_property
    def _meaning(self) -> Vector:
        return token_table().vector(self.query)

    def _whole(self, passage: Passage) -> str:
        """Return a passage after its title, its headings and what introduces it, which say what it is about."""
        return " ".join([passage.source.title, *passage.path, passage.lead, self.text(passage)])

    def found(self, source_id: str, start: int, end: int) -> frozenset[str]:
        """Return the question's words in a range of a source."""
        occurrences = self._occurrences[source_id]
        first, last = (bisect_left(occurrences, (offset, 0, "")) for offset in (start, end))
        return frozenset(key for _, _, key in occurrences[first:last])

    @cached_property
    def achievable(self) -> float:
        """Return the weighted share of the question's words that any of the sources has; 1 if none has any."""
        return self.question.coverage(key for rows in self._occurrences.values() for _, _, key in rows) or 1.0

    def asked_share(self, heading: str, title: str) -> float:
        """Return the share of a heading's words that the question has; those of its page's title do not count."""
        ignored = {*_keys(title, self._language), *_stop_keys(self._language)}
        named = {key for key in _keys(heading, self._language) if any(map(str.isalpha, key))} - ignored
        if not named:
            return 0.0
        return len(named & self.question.weights.keys()) / len(named)

    def text(self, passage: Passage) -> str:
        """Return the text of a passage."""
        return self.texts[passage.source.id][passage.start : passage.end]

    def keys(self, passage: Passage) -> frozenset[str]:
        """Return the keys of its words."""
        return frozenset(_keys(self.text(passage), self._language))

    def at(self, source_id: str, start: int, end: int) -> Passage:
        """Return a range of a source as a passage."""
        enclosing = next(
            (block for block in lines_of(self.texts[source_id]) if block.start < end and start < block.end), None
        )
        return self.measure(self._sources[source_id], start, end, enclosing)

    def measure(self, source: SourceExtract, start: int, end: int, block: PassageBlock | None) -> Passage:
        """Score a range that starts in a block: once, though a block is chosen for its section and for its unit."""
        path = block.path if block else ()
        lead = None
        if block and block.lead and block.lead[0] < start:
            lead = block.lead
        key = (source.id, start, end, path, lead)
        if key not in self._measured:
            lead_text = ""
            if lead:
                lead_text = self.texts[source.id][slice(*lead)]
            self._measured[key] = self._score(source, start, end, path, lead_text)
        return self._measured[key]

    def _score(self, source: SourceExtract, start: int, end: int, path: tuple[str, ...], lead: str) -> Passage:
        occurrences = self._occurrences[source.id]
        inside = occurrences[bisect_left(occurrences, (start, 0, "")) : bisect_left(occurrences, (end, 0, ""))]
        if not inside:
            return Passage(source, start, end, path, lead, frozenset(), 0.0, 0.0)
        context_keys = self._context_keys((source.title, lead, *path))
        coverage = self.question.coverage((key for _, _, key in inside), context_keys)
        nearest = self._context_keys((path[-1] if path else source.title,))
        score = (
            coverage
            + PROXIMITY_BONUS * self.question.closeness([(number, key) for _, number, key in inside])
            + HEADING_BONUS * self.question.coverage(nearest)
            - CHARACTER_COST * (end - start)
        )
        return Passage(source, start, end, path, lead, context_keys, coverage, score)

    def _context_keys(self, lines: tuple[str, ...]) -> frozenset[str]:
        """Return the question's words in the lines above a passage."""
        if lines not in self._context_cache:
            keys = {key for line in lines for key in _keys(line, self._language)}
            self._context_cache[lines] = frozenset(keys & self.question.weights.keys())
        return self._context_cache[lines]

    def _blocks(self, source: SourceExtract) -> Iterable[PassageBlock]:
        text = self.texts[source.id]
        hints = source.sections
        candidates = candidates_of(text, [start for start, _, _ in self._occurrences[source.id]])
        if len(text) <= MAX_WHOLE_CHARACTERS or not hints:
            return candidates
        return (block for block in candidates if any(hint.start <= block.start < hint.end for hint in hints))

    def _cut(self, passage: Passage, block: PassageBlock) -> Passage:
        """Cut a long paragraph to its best sentences, and add the context that they need."""
        text = self.texts[passage.source.id]
        start = passage.start
        end = passage.end
        if end - start > PASSAGE_CHARACTERS and block.kind in (Kind.PROSE, Kind.ITEM):
            spans = [(start + first, start + last) for first, last in sentence_spans(text[start:end])]
            if len(spans) > 1:
                start, end = self._best_window(passage, block, spans)
        start = self._with_predecessor(text, start, block)
        if block.lead and end - block.lead[0] <= PASSAGE_CHARACTERS:
            start = min(start, block.lead[0])
            end = max(end, _with_announced(text, block.lead[1]))
        if end == block.end:
            end = _with_announced(text, end)
            end = _with_answer(text, end)
        return self.measure(passage.source, start, end, block)

    def _best_window(self, passage: Passage, block: PassageBlock, spans: list[tuple[int, int]]) -> tuple[int, int]:
        text = self.texts[passage.source.id]
        data = language_data(self._language)
        windows = [
            (first, last)
            for first in range(len(spans))
            for last in range(first, min(first + MAX_SENTENCES, len(spans)))
            if last == first or spans[last][1] - spans[first][0] <= PASSAGE_CHARACTERS
        ]
        first, last = max(
            windows, key=lambda pair: self.measure(passage.source, spans[pair[0]][0], spans[pair[1]][1], block).score
        )
        while first > 0 and last - first < MAX_SENTENCES and _opens_with(text, spans[first][0], data.openings):
            first -= 1
        for start, _ in spans[last + 1 : first + MAX_SENTENCES + 1]:
            if not _opens_with(text, start, data.corrections):
                break
            last += 1
        start = spans[first][0]
        end = spans[last][1]
        return start, start + len(text[start:end].rstrip())

    def _with_predecessor(self, text: str, start: int, block: PassageBlock) -> int:
        """Return the start of a passage, moved to the sentence before if its first word refers to it."""
        if block.kind is not Kind.PROSE or not _opens_with(text, start, language_data(self._language).openings):
            return start
        blocks = blocks_of(text)
        index = bisect_right(blocks, start, key=lambda item: item.start) - 1
        previous = blocks[index - 1] if index > 0 else None
        if previous is None or previous.kind is not Kind.PROSE or previous.path != block.path:
            return start
        spans = sentence_spans(text[previous.start : previous.end])
        if spans:
            return previous.start + spans[-1][0]
        return start

    def with_neighbours(self, passages: Sequence[Passage]) -> list[Passage]:
        """Return the passages; what ends without a full stop, with its short paragraph or the lines around it.

        No line is in two passages.
        """
        found = list(passages)
        for number, passage in enumerate(found):
            taken = [(one.start, one.end) for one in found if one.source.id == passage.source.id and one is not passage]
            found[number] = self._with_neighbours(passage, taken)
        return found

    def _with_neighbours(self, passage: Passage, taken: Sequence[tuple[int, int]]) -> Passage:
        text = self.texts[passage.source.id]
        blocks = lines_of(text)
        first = bisect_right(blocks, passage.start, key=lambda block: block.start) - 1
        last = bisect_left(blocks, passage.end, key=lambda block: block.start) - 1
        kinds = {block.kind for block in blocks[max(first, 0) : last + 1]}
        is_sentence = text[passage.end - 1] in FULL_STOPS and not kinds <= {Kind.LINE, Kind.ENTRY}
        if first < 0 or is_sentence or Kind.ROW in kinds:
            return passage
        start = passage.start
        end = passage.end

        def fits(index: int) -> bool:
            block = blocks[index]
            outer = (min(start, blocks[index].start), max(end, blocks[index].end))
            is_free = not any(outer[0] < taken_end and taken_start < outer[1] for taken_start, taken_end in taken)
            return is_free and block.headings == blocks[first].headings and outer[1] - outer[0] <= NEIGHBOUR_CHARACTERS

        low, high = _paragraph_of(text, blocks, first, last)
        is_whole = (low, high) != (first, last) and blocks[high].end - blocks[low].start <= NEIGHBOUR_CHARACTERS
        if is_whole:
            after = high
        else:
            after = min(last + LINES_AFTER, len(blocks) - 1)
        before = low if is_whole else max(first - LINES_BEFORE, 0)
        for index in range(last + 1, after + 1):
            if not fits(index):
                break
            end = blocks[index].end
        for index in range(first - 1, before - 1, -1):
            if not fits(index):
                break
            start = blocks[index].start
        is_same = (start, end) == (passage.start, passage.end)
        if is_same:
            return passage
        return self.measure(passage.source, start, end, blocks[first])

    def distinct(self, passages: Iterable[Passage], limit: int) -> list[Passage]:
        """Return the best passages, without those that overlap a better one or repeat it without new figures."""
        kept: list[tuple[Passage, frozenset[str]]] = []
        for passage in passages:
            if len(kept) == limit:
                break
            words = self.keys(passage)
            keys = words - _stop_keys(self._language) or words
            figures = {key for key in keys if any(map(str.isdecimal, key))}
            if not any(
                (passage.source.id == other.source.id and passage.start < other.end and other.start < passage.end)
                or (is_covered(keys, known) and figures <= known)
                for other, known in kept
            ):
                kept.append((passage, keys))
        return [passage for passage, _ in kept]


def _order(passage: Passage) -> tuple[float, str, int, int]:
    return -round(passage.score, 6), passage.source.id, passage.start, passage.end


def _opens_with(text: str, start: int, openings: frozenset[str]) -> bool:
    first = WORD.search(text, start, start + 40)
    return first is not None and first[0].casefold() in openings


def _paragraph_of(text: str, blocks: Sequence[PassageBlock], first: int, last: int) -> tuple[int, int]:
    """Return the first and last block of the paragraphs with these blocks: no blank line is between their lines.

    Of a paragraph that is too long to be shown, only as much as shows that.
    """

    def fits() -> bool:
        return blocks[last].end - blocks[first].start <= NEIGHBOUR_CHARACTERS

    while first > 0 and fits() and text.count("\n", blocks[first - 1].end, blocks[first].start) == 1:
        first -= 1
    while last + 1 < len(blocks) and fits() and text.count("\n", blocks[last].end, blocks[last + 1].start) == 1:
        last += 1
    return first, last


def _with_announced(text: str, end: int) -> int:
    """Return the end of the listing, list or table that a passage announces with a colon, as far as it fits."""
    if text[end - 1] != ":":
        return end
    blocks = blocks_of(text)
    index = bisect_right(blocks, end - 1, key=lambda block: block.start)
    last = end
    kind = blocks[index].kind if index < len(blocks) else Kind.PROSE
    while index < len(blocks) and blocks[index].kind is kind is not Kind.PROSE:
        # The rule below a table header separates nothing.
        if text[last : blocks[index].start].strip("|-: \t\n") or blocks[index].end - end > MAX_ANNOUNCED_LENGTH:
            break
        last = blocks[index].end
        index += 1
    return last


def _with_answer(text: str, end: int) -> int:
    """Return the end of the block after a question, if the text fits."""
    if text[end - 1] not in QUESTION_MARKS:
        return end
    blocks = blocks_of(text)
    index = bisect_left(blocks, end, key=lambda block: block.start)
    if not 0 < index < len(blocks) or blocks[index].headings != blocks[index - 1].headings:
        return end
    if blocks[index].end - end <= MAX_ANNOUNCED_LENGTH:
        return blocks[index].end
    return end


@lru_cache(maxsize=64)
def _places(text: str, language: str) -> dict[str, list[tuple[int, int]]]:
    """Return the places of each key of a text: offset of its word, and number among all words and parts of compounds.

    A question has few of the keys, so its words are found without a walk through the text for each question.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    number = 0
    for match in WORD.finditer(text):
        for key in word_keys(match[0], language):
            places.setdefault(key, []).append((match.start(), number))
            number += 1
    return places


@lru_cache(maxsize=16)
def _stop_keys(language: str) -> frozenset[str]:
    return frozenset(key for word in language_data(language).stop for key in word_keys(word, language))


@lru_cache(maxsize=20_000)
def _keys(line: str, language: str) -> tuple[str, ...]:
    return tuple(key for word in words(line) for key in word_keys(word, language))
