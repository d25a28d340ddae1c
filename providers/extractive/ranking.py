"""Ranking: scores sentences against the question and grows the best ones into passages."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from contracts.roles import AnalyzeInput, WriteInput
from providers.extractive.facets import STRONG, Facet, facet_named
from providers.extractive.lexicon import (
    ASIDE_OPENING,
    BESIDE_OPENING,
    DENYING,
    HYPOTHETICAL,
    OF_THE_TEXT,
    PAST,
    POINTING,
    RELATED,
)
from providers.extractive.passages import FoundPassage, containment, grow, heading_of, span_of
from providers.extractive.question import Question, QuestionType
from providers.extractive.question_terms import (
    Frequencies,
    QuestionTerms,
    frequencies,
    key_words,
    question_terms,
    text_keys,
    text_pairs,
    with_acronyms,
    word_keys,
)
from providers.extractive.sentence_places import Places
from providers.extractive.sources_read import Reading
from providers.extractive.text_structure import Structure, TextBlockKind, is_foreign
from providers.text import FRAME_WORDS, stem, words

DUPLICATE = 0.7
"""Containment from which two passages count as the same (extractive-engine.md)."""
WHOLE_DOCUMENT = 150_000
"""Characters up to which all of a document is ranked; of a longer one only the sections that retrieval found."""
SEEDS_PER_DOCUMENT = 24
SECTION_COST = 0.06
TAKEN_COST = 0.3
STRONG_BONUS = 0.12
STRONG_IN_TOPIC = 0.25
ASIDE_COST = 0.12
PAST_COST = 0.15
SPARE_COST = 0.1
"""For a passage cut short: it stands in only where the whole one would overlap a better one."""
OVERVIEW_BONUS = 0.1
PREDICATE_BONUS = 0.25
SUBJECT_BONUS = 0.12
"""For a sentence that begins with the words of the question: they are what it speaks of."""
TOPIC = 0.6
"""Share of the question's weight in headings from which a section counts as being about the question."""
MAIN_WEIGHT = 0.1
PREMISE_BONUS = 0.14
ROWS_WELCOME = frozenset((QuestionType.LIST, QuestionType.QUANTITY))


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
    strong: re.Pattern[str] | None = None
    """Wording that answers the type of the question outright."""
    denial_bonus: float = 0.04
    number_wanted: bool = False
    predicate: frozenset[str] = frozenset()
    """Stems of what a premise claims (`require`): a denial that holds one speaks of the premise itself."""


def rank_passages(every: Iterable[Reading], aim: Aim) -> list[FoundPassage]:
    """All passages above nothing, best first; ties by place, so that arrival order decides nothing."""
    found: dict[tuple[str, int, int], FoundPassage] = {}
    every = list(every)
    best_hint = max((hint.score for reading in every for hint in reading.source.sections), default=0.0)
    for reading in every:
        for passage in _of_document(reading, aim, best_hint):
            best = found.get(passage.place)
            if best is None or passage.score > best.score:
                found[passage.place] = passage
    return sorted(found.values(), key=lambda passage: (-round(passage.score, 6), passage.place))


def score_ranges(reading: Reading, aim: Aim, ranges: Iterable[tuple[int, int]]) -> dict[tuple[int, int], FoundPassage]:
    """Given character ranges of a source as passages with their scores; ranges without a sentence are left out."""
    document = reading.document
    places = Places(document, reading.source, aim.terms, 0.0)
    found = {}
    for start, end in ranges:
        inside = [index for index, one in enumerate(document.sentences) if one.start < end and start < one.end]
        if inside:
            best = max(_sentence_score(document, index, aim, places) for index in inside)
            found[(start, end)] = _passage(reading, (inside[0], inside[-1]), best, aim, places, (start, end))
    return found


def choose_passages(candidates: Iterable[FoundPassage], most: int, floor: float) -> list[FoundPassage]:
    """The best passages that are neither near-duplicates of nor overlap a better one, spread over sections."""
    kept: list[FoundPassage] = []
    waiting = [passage for passage in candidates if passage.score >= floor]
    while waiting and len(kept) < most:
        best = max(waiting, key=lambda passage: round(passage.score - _measure_crowding(passage, kept), 6))
        kept.append(best)
        waiting = [passage for passage in waiting if not same(passage, best)]
    return kept


def lower_taken(candidates: Iterable[FoundPassage], taken: list[FoundPassage]) -> list[FoundPassage]:
    """The candidates with those pushed down that another sub-query is bound to quote."""
    moved = [
        replace(passage, score=passage.score - TAKEN_COST) if any(same(passage, other) for other in taken) else passage
        for passage in candidates
    ]
    return sorted(moved, key=lambda passage: (-round(passage.score, 6), passage.place))


def _measure_crowding(passage: FoundPassage, kept: list[FoundPassage]) -> float:
    """What a further passage of a section that was quoted already has to make up for."""
    return SECTION_COST * sum(
        passage.source_id == other.source_id and passage.section == other.section for other in kept
    )


def same(one: FoundPassage, other: FoundPassage) -> bool:
    """Whether two passages overlap, or say nearly the same."""
    overlap = one.source_id == other.source_id and one.start < other.end and other.start < one.end
    return overlap or containment(one.keys, other.keys) >= DUPLICATE


def _of_document(reading: Reading, aim: Aim, best_hint: float) -> list[FoundPassage]:
    document, source = reading.document, reading.source
    places = Places(document, source, aim.terms, best_hint)
    whole = len(document.text) <= WHOLE_DOCUMENT or not places.hinted
    scores = [
        _sentence_score(document, index, aim, places) if whole or places.in_hint(index) else 0.0
        for index in range(len(document.sentences))
    ]
    seeds = sorted(range(len(scores)), key=lambda index: (-round(scores[index], 6), index))[:SEEDS_PER_DOCUMENT]
    passages = []
    for seed in seeds:
        if scores[seed] <= 0:
            break
        for number, grown in enumerate(_ranges(document, seed, scores)):
            passage = _passage(reading, grown, scores[seed] - number * SPARE_COST, aim, places)
            if not is_foreign(passage.text):
                passages.append(passage)
    return passages


def _ranges(document: Structure, seed: int, scores: list[float]) -> list[tuple[int, int]]:
    """The passage around a sentence, and a shorter one that may still stand where the first would overlap another."""
    found = [grow(document, seed, scores), grow(document, seed, scores, spare=True)]
    return list(dict.fromkeys(one for one in found if one is not None))


def _passage(
    reading: Reading, grown: tuple[int, int], best: float, aim: Aim, places: Places, span: tuple[int, int] | None = None
) -> FoundPassage:
    document = reading.document
    first, last = grown
    start, end = span or span_of(document, first, last)
    text = document.text[start:end]
    keys = text_keys(text, document.language)
    block = document.block_of(first)
    own = aim.terms.coverage(keys)
    seed_own = max(aim.terms.coverage(document.traits(index).keys) for index in range(first, last + 1))
    first_sentence = text.split(". ", 1)[0]
    aside = ASIDE_COST if ASIDE_OPENING.match(text) or POINTING.search(first_sentence) else 0.0
    beside = ASIDE_COST if BESIDE_OPENING.match(text) and aim.facet.name != "comparison" else 0.0
    beside += ASIDE_COST if OF_THE_TEXT.search(first_sentence) or HYPOTHETICAL.search(text) else 0.0
    past = PAST_COST if PAST.search(text) and aim.facet.name != "version" else 0.0
    gained = 0.35 * max(0.0, own - seed_own)
    return FoundPassage(
        source_id=reading.source.id,
        start=start,
        end=end,
        text=text,
        heading=heading_of(block, reading.source.title),
        keys=keys,
        score=best
        + gained
        - aside
        - beside
        - past
        + 0.1 * own
        + 0.1 * aim.terms.phrasing(text_pairs(text, document.language)),
        coverage=aim.terms.coverage(keys | places.context(block)),
        own_coverage=own,
        sentences=last - first + 1,
        section=block.section,
    )


def _sentence_score(document: Structure, index: int, aim: Aim, places: Places) -> float:
    text = document.of(document.sentences[index])
    block = document.block_of(index)
    row = block.kind is TextBlockKind.ROW
    if not document.traits(index).quotable:
        return 0.0
    keys = document.traits(index).keys
    pairs = document.traits(index).pairs
    lead = places.lead_in(index)
    if lead is not None:
        keys, pairs = keys | document.traits(lead).keys, pairs | document.traits(lead).pairs
    if places.opens_block(index):
        label_keys, label_pairs = places.label(block)
        keys, pairs = keys | label_keys, pairs | label_pairs
    own = aim.terms.coverage(keys)
    topic = places.topic(block)
    if own <= 0 and topic < TOPIC:
        return 0.0
    score = 0.35 * own + 0.45 * topic + 0.08 * aim.searched.coverage(keys) + places.hint_bonus(index)
    score += 0.1 * aim.terms.phrasing(pairs)
    if row:
        told = aim.strong is not None and aim.rows_welcome and aim.strong.search(text)
        return (score + (STRONG_IN_TOPIC if told else 0.0)) * (0.95 if aim.rows_welcome else 0.6)
    score += aim.facet_weight if aim.facet.pattern.search(text) else -0.5 * aim.facet_weight
    if aim.strong is not None and aim.strong.search(text):
        score += STRONG_IN_TOPIC if topic >= TOPIC else STRONG_BONUS
    score += SUBJECT_BONUS * aim.terms.coverage(document.traits(index).opening)
    score += 0.07 if places.opens_block(index) else 0.0
    score += 0.07 if places.opens_section(index) else 0.0
    score += OVERVIEW_BONUS * places.overview(index)
    if own >= 0.3 and DENYING.search(text):
        score += aim.denial_bonus + (PREDICATE_BONUS if aim.predicate & keys else 0.0)
    score -= 0.08 if len(text) < 45 else 0.05 if len(text) > 420 else 0.0
    score -= ASIDE_COST if aim.number_wanted and aim.strong is not None and not aim.strong.search(text) else 0.0
    return max(score - places.history_cost(block), 0.0)


def known_frequencies(task: AnalyzeInput | WriteInput, every: list[Reading], *texts: str) -> Frequencies:
    """Document frequencies of the words of these texts."""
    wanted = [word_keys(word, task.language)[0] for text in texts for word in key_words(text, task.language)]
    return frequencies(
        task.documents_searched, task.term_documents, (reading.document.all_keys for reading in every), wanted
    )


def aim_of(
    question: Question,
    facet_name: str,
    task: AnalyzeInput | WriteInput,
    every: list[Reading],
    *,
    asked: str | None = None,
    searched: str | None = None,
    main: bool = True,
) -> Aim:
    """What to rank by: `asked` must be answered, `searched` are the words of the sub-query."""
    asked, searched = asked or question.text, searched or question.text
    known = known_frequencies(task, every, asked, searched)
    terms = with_acronyms(
        question_terms(asked, task.language, known), [reading.document.text for reading in every], task.language
    )
    facet = facet_named(facet_name)
    number_wanted = question.kind is QuestionType.QUANTITY
    return Aim(
        terms=terms,
        searched=question_terms(searched, task.language, known),
        facet=facet,
        facet_weight=MAIN_WEIGHT if main else 2 * MAIN_WEIGHT,
        strong=STRONG["quantity"] if number_wanted else STRONG.get(facet.name),
        denial_bonus=PREMISE_BONUS if question.may_hold_a_premise else 0.03,
        number_wanted=number_wanted,
        predicate=_predicate(question) if question.may_hold_a_premise else frozenset(),
        rows_welcome=question.kind in ROWS_WELCOME or facet.name == "settings",
    )


def _predicate(question: Question) -> frozenset[str]:
    """Stems of the framing verbs of a premise (`require`, `support`), and what may stand for them."""
    found = {stem(word) for word in words(question.text) if word.casefold() in FRAME_WORDS}
    return frozenset(found.union(*(RELATED.get(key, frozenset()) for key in found)))
