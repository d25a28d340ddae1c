"""Ranking: which sentences of the sources speak of the question, and the passages around them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from contracts.documents import SectionHint
from contracts.roles import SourceExtract
from providers.engines.extractive.facets import Facet
from providers.engines.extractive.lexicon import QUALIFYING
from providers.engines.extractive.passages import Passage, containment, grow, heading_of, span_of
from providers.engines.extractive.structure import Block, BlockKind, Structure, is_foreign, is_statement, structure_of
from providers.engines.extractive.terms import QuestionTerms, text_keys, text_pairs

DUPLICATE = 0.7
"""Containment from which two passages count as the same (extractive-engine.md)."""
SEEDS_PER_DOCUMENT = 24
SECTION_COST = 0.06
HINT_BONUS = 0.15
TOPIC = 0.6
"""Share of the question's weight in headings from which a section counts as being about the question."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A source with its text cut into sentences."""

    source: SourceExtract
    document: Structure


@dataclass(frozen=True, slots=True)
class Aim:
    """What passages are ranked by."""

    terms: QuestionTerms
    """Terms of the person's question."""
    searched: QuestionTerms
    """Terms of the sub-query."""
    facet: Facet
    facet_weight: float
    rows_welcome: bool = False


def readings(sources: Iterable[SourceExtract], documents: Mapping[str, str], language: str) -> list[Reading]:
    """The sources whose text is at hand, each once, in the order of their ids."""
    found = {
        source.id: Reading(source, structure_of(documents[source.text.hash], language))
        for source in sources
        if source.text is not None and source.text.hash in documents
    }
    return [found[key] for key in sorted(found)]


def ranked(every: Iterable[Reading], aim: Aim) -> list[Passage]:
    """All passages above nothing, best first; ties by place, so that arrival order decides nothing."""
    found: dict[tuple[str, int, int], Passage] = {}
    every = list(every)
    best_hint = max((hint.score for reading in every for hint in reading.source.sections), default=0.0)
    for reading in every:
        for passage in _of_document(reading, aim, best_hint):
            best = found.get(passage.place)
            if best is None or passage.score > best.score:
                found[passage.place] = passage
    return sorted(found.values(), key=lambda passage: (-round(passage.score, 6), passage.place))


def chosen(candidates: Iterable[Passage], most: int, floor: float) -> list[Passage]:
    """The best passages that are neither near-duplicates of nor overlap a better one, spread over sections."""
    kept: list[Passage] = []
    waiting = [passage for passage in candidates if passage.score >= floor]
    while waiting and len(kept) < most:
        best = max(waiting, key=lambda passage: round(passage.score - _crowding(passage, kept), 6))
        kept.append(best)
        waiting = [passage for passage in waiting if not _same(passage, best)]
    return kept


def _crowding(passage: Passage, kept: list[Passage]) -> float:
    """What a further passage of a section that was quoted already has to make up for."""
    return SECTION_COST * sum(
        passage.source_id == other.source_id and passage.section == other.section for other in kept
    )


def _same(one: Passage, other: Passage) -> bool:
    overlap = one.source_id == other.source_id and one.start < other.end and other.start < one.end
    return overlap or containment(one.keys, other.keys) >= DUPLICATE


def _of_document(reading: Reading, aim: Aim, best_hint: float) -> list[Passage]:
    document, source = reading.document, reading.source
    hints = [hint for hint in source.sections if 0 <= hint.start < hint.end <= len(document.text)]
    title_keys = structure_of(source.title, document.language).all_keys
    topics = {path: aim.terms.coverage(keys | title_keys) for path, keys in document.context_keys.items()}
    scores = [
        _sentence_score(document, index, aim, topics, _hint_bonus(document, index, hints, best_hint))
        for index in range(len(document.sentences))
    ]
    seeds = sorted(range(len(scores)), key=lambda index: (-round(scores[index], 6), index))[:SEEDS_PER_DOCUMENT]
    passages = []
    for seed in seeds:
        if scores[seed] <= 0:
            break
        grown = grow(document, seed, scores)
        if grown is not None:
            passage = _passage(reading, grown, scores[seed], aim, title_keys)
            if not is_foreign(passage.text):
                passages.append(passage)
    return passages


def _passage(reading: Reading, grown: tuple[int, int], best: float, aim: Aim, title_keys: frozenset[str]) -> Passage:
    document = reading.document
    first, last = grown
    start, end = span_of(document, first, last)
    text = document.text[start:end]
    keys = frozenset[str]().union(*document.keys[first : last + 1], text_keys(text.split("\n", 1)[0], document.language))
    block = document.block_of(first)
    context = document.context_keys[block.path] | title_keys
    own = aim.terms.coverage(keys)
    phrasing = aim.terms.phrasing(text_pairs(text, document.language))
    return Passage(
        source_id=reading.source.id,
        start=start,
        end=end,
        text=text,
        heading=heading_of(block, reading.source.title),
        keys=keys,
        score=best + 0.3 * own + 0.15 * phrasing,
        coverage=aim.terms.coverage(keys | context),
        own_coverage=own,
        sentences=last - first + 1,
        section=block.section,
    )


def _sentence_score(
    document: Structure, index: int, aim: Aim, topics: Mapping[tuple[str, ...], float], hint_bonus: float
) -> float:
    text = document.of(document.sentences[index])
    block = document.block_of(index)
    row = block.kind is BlockKind.ROW
    if is_foreign(text) or (not row and not is_statement(text)):
        return 0.0
    keys = document.keys[index]
    label = _label_keys(document, block)
    own = aim.terms.coverage(keys | label)
    topic = topics[block.path]
    opens = index == 0 or document.sentences[index - 1].block != document.sentences[index].block
    if own <= 0 and topic < TOPIC:
        return 0.0
    score = 0.45 * own + 0.3 * topic + 0.1 * aim.searched.coverage(keys) + hint_bonus
    score += 0.1 * aim.terms.phrasing(document.pairs[index])
    if row:
        return score * (0.95 if aim.rows_welcome else 0.6)
    score += aim.facet_weight if aim.facet.pattern.search(text) else -0.5 * aim.facet_weight
    score += 0.06 if opens and block.kind is BlockKind.PROSE else 0.0
    score += 0.04 if own >= 0.5 and QUALIFYING.search(text) else 0.0
    score -= 0.08 if len(text) < 45 else 0.05 if len(text) > 420 else 0.0
    return max(score, 0.0)


def _label_keys(document: Structure, block: Block) -> frozenset[str]:
    """Stems of the term that a block explains."""
    if block.label is None:
        return frozenset()
    return text_keys(document.text[block.label :].split("\n", 1)[0], document.language)


def _hint_bonus(document: Structure, index: int, hints: list[SectionHint], best: float) -> float:
    """Up to `HINT_BONUS` inside a section that retrieval found, by its score against the best of all sources."""
    sentence = document.sentences[index]
    inside = [hint.score for hint in hints if hint.start <= sentence.start < hint.end]
    return HINT_BONUS * max(inside) / best if inside and best > 0 else 0.0
