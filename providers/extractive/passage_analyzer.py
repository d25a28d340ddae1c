"""The analyzer: two to five verbatim passages for a sub-query, or a gap that says what can be checked."""

import re
from collections.abc import Mapping

from contracts.addresses import normalized_text
from contracts.evidence import supported_confidence, voice_of
from contracts.exclusions import mentions_any
from contracts.roles import AnalyzeInput, AnalyzerAnswer, ProposedFinding, ProposedGap, Quote, SourceExtract
from contracts.vocabulary import GapKind
from providers.extractive import stated_gaps
from providers.extractive.answer_passages import answer_span
from providers.extractive.answer_search import AnswerSearch
from providers.extractive.asked_form import read_asked
from providers.extractive.facets import ENTITY_PREFIX, FACETS, QUALIFICATION
from providers.extractive.lexicon import DENYING
from providers.extractive.numbered_codes import lower_code_lines, without_code_lines
from providers.extractive.passages import FoundPassage, containment, shorten
from providers.extractive.question import QUESTION_PREFIX, read_question
from providers.extractive.question_terms import Frequencies, QuestionTerms, missing_names, text_keys
from providers.extractive.ranking import (
    DUPLICATE,
    PREMISE_BONUS,
    Aim,
    aim_of,
    choose_passages,
    known_frequencies,
    lower_taken,
    rank_passages,
    same,
    score_ranges,
)
from providers.extractive.sides import what_is
from providers.extractive.sources_read import Reading, readings

COVERAGE_FLOOR = 0.4
"""Share of the question's weight that the best passage must cover, else the question is not covered.

Answerable questions reach 0.42 and more, unanswerable ones stay below 0.25 [P]; up to 0.42 no fact of the question sets
in benchmarks/ is lost, and passages beside the point, just above 0.35, no longer make a completed run.
"""
FURTHER_FLOOR = 0.35
QUALIFYING_COVERAGE = 0.4
RELATIVE_FLOOR = 0.55
"""A further finding must reach this share of the best one's score."""
STATEMENT_LENGTH = 600
AGREEMENT = 0.5
LINE_OF_CONTENTS = re.compile(r"\d{1,3}(?:\.\d{1,3})++\.?[ \t]++[^\n.!?:]{1,120}+$")
"""The number and the heading of a section, as a table of contents lists them."""
MOST_ANSWERS = 3
MOST_FURTHER_ANSWERS = 1
"""The same for searches in other words: they tend to read the same pages, and their room is for what else those say."""


def analyze(task: AnalyzeInput, documents: Mapping[str, str]) -> AnalyzerAnswer:
    """Find the passages of one sub-query."""
    every = readings(task.sources, documents, task.language)
    if task.sub_query.facet.startswith(QUESTION_PREFIX):
        task = task.model_copy(update={"query": task.sub_query.text})
    question = read_question(task.query, task.language)
    asked = _question_to_answer(task)
    known = known_frequencies(task, every, asked, task.query, task.sub_query.text)
    missing = missing_names(asked, task.language, known, lambda: (reading.document.all_keys for reading in every))
    if missing:
        return AnalyzerAnswer(findings=[], gaps=[stated_gaps.names_missing(missing, known, task)])
    alone = task.sub_query.facet.startswith(QUESTION_PREFIX)
    main = alone or task.sub_query.facet == question.main_facet or task.sub_query.origin != "plan"
    aim = aim_of(question, task.sub_query.facet, task, every, asked=asked, searched=task.sub_query.text, main=main)
    by_source = {reading.source.id: reading for reading in every}
    candidates = lower_code_lines(_without_left_out(rank_passages(every, aim), task), by_source, task.query)
    answers = _without_left_out(_answers(task, every, aim), task)
    best = max((passage.coverage for passage in candidates), default=0.0)
    if best < COVERAGE_FLOOR and not answers:
        return AnalyzerAnswer(findings=[], gaps=[stated_gaps.below_floor(aim.terms, best, known, task)])
    fitting = [passage for passage in candidates if passage.coverage >= FURTHER_FLOOR]
    most = max(1, min(5, task.max_findings))
    if not main and task.sub_query.facet in FACETS:
        own = aim_of(question, question.main_facet, task, every, asked=asked)
        fitting = lower_taken(fitting, choose_passages(rank_passages(every, own), most, 0.0))
    others = [passage for passage in fitting if not any(same(passage, one) for one in answers)]
    floor = RELATIVE_FLOOR * fitting[0].score if fitting else 0.0
    kept = [*answers, *choose_passages(others, most - len(answers), floor)]
    sources = {reading.source.id: reading.source for reading in every}
    findings = [_finding(passage, fitting, sources, task, aim) for passage in kept]
    return AnalyzerAnswer(findings=findings, gaps=_gaps(kept, by_source, aim.terms, known, task, main=main))


def _without_left_out(passages: list[FoundPassage], task: AnalyzeInput) -> list[FoundPassage]:
    return [passage for passage in passages if not mentions_any(passage.text, task.exclude)]


def _answers(task: AnalyzeInput, every: list[Reading], aim: Aim) -> list[FoundPassage]:
    """The passages that answer the person's question in the form that it asks for, surest first."""
    facet = task.sub_query.facet
    side = facet.removeprefix(ENTITY_PREFIX) if facet.startswith(ENTITY_PREFIX) else ""
    asked = what_is(side, task.language) if side else read_asked(task.query, task.language)
    search = AnswerSearch.of(asked, known_frequencies(task, every, side or task.query))
    own_words = bool(side) or normalized_text(task.sub_query.text) == normalized_text(task.query)
    most = MOST_ANSWERS if own_words else MOST_FURTHER_ANSWERS
    spans: dict[tuple[str, int, int], FoundPassage] = {}
    by_source = {reading.source.id: reading for reading in every}
    for answer in search.find(every)[: 4 * MOST_ANSWERS]:
        span = answer_span(answer, asked.form)
        if span is None or any(
            source == answer.reading.source.id and a < span[1] and span[0] < b for source, a, b in spans
        ):
            continue
        made = score_ranges(by_source[answer.reading.source.id], aim, [span]).get(span)
        if made is None or LINE_OF_CONTENTS.match(made.text):
            continue
        if not without_code_lines([made], by_source, task.query):
            continue
        if not any(containment(made.keys, other.keys) >= DUPLICATE for other in spans.values()):
            spans[(made.source_id, *span)] = made
        if len(spans) >= most:
            break
    return list(spans.values())


def _question_to_answer(task: AnalyzeInput) -> str:
    """What the passages must answer: the person's question; one side of a comparison, or guidance, by its own words."""
    facet = task.sub_query.facet
    own_words = facet.startswith(ENTITY_PREFIX) or facet == "guidance"
    return task.sub_query.text if own_words else task.query


def _finding(
    passage: FoundPassage,
    candidates: list[FoundPassage],
    sources: Mapping[str, SourceExtract],
    task: AnalyzeInput,
    aim: Aim,
) -> ProposedFinding:
    agreeing = _find_agreeing(passage, candidates, aim.terms)
    return ProposedFinding(
        content=shorten(passage.text, STATEMENT_LENGTH),
        confidence=_confidence([sources[passage.source_id], *(sources[other.source_id] for other in agreeing)]),
        quotes=[Quote(source_id=one.source_id, quote=one.text, start=one.start) for one in [passage, *agreeing[:2]]],
        category=_category(passage, task.sub_query.facet, aim),
    )


def _category(passage: FoundPassage, facet: str, aim: Aim) -> str | None:
    """The part of the brief that a passage is for; what answers one of several questions stays with it."""
    if not facet.startswith(QUESTION_PREFIX) and _qualifies(passage, aim):
        return QUALIFICATION
    return facet or None


def _find_agreeing(passage: FoundPassage, candidates: list[FoundPassage], terms: QuestionTerms) -> list[FoundPassage]:
    """The best similar passage of each other document."""
    found: dict[str, FoundPassage] = {}
    present = terms.present(passage.keys)
    for other in candidates:
        if other.source_id == passage.source_id or other.source_id in found:
            continue
        shared = terms.weight_of(present & terms.present(other.keys))
        if shared >= AGREEMENT and containment(passage.keys, other.keys) >= AGREEMENT:
            found[other.source_id] = other
    return list(found.values())


def _confidence(sources: list[SourceExtract]) -> str:
    """What the voices of these sources bear out: pages of one collection are one voice."""
    return supported_confidence((voice_of(one.url, one.publisher), one.quality) for one in sources).value


def _qualifies(passage: FoundPassage, aim: Aim) -> bool:
    """Whether it denies or narrows something in the very sentence that speaks of the question."""
    near = any(
        DENYING.search(sentence) and aim.terms.coverage(text_keys(sentence, "en")) >= QUALIFYING_COVERAGE
        for sentence in re.split(r"(?<=[.;!?])\s+", passage.text)
    )
    return near and (aim.denial_bonus >= PREMISE_BONUS or aim.facet.name == "limits")


def _headers_over(passage: FoundPassage, at_hand: Mapping[str, Reading]) -> str:
    return at_hand[passage.source_id].document.headers_over(passage.start, passage.end)


def _gaps(
    kept: list[FoundPassage],
    at_hand: Mapping[str, Reading],
    terms: QuestionTerms,
    known: Frequencies,
    task: AnalyzeInput,
    *,
    main: bool,
) -> list[ProposedGap]:
    """Terms of weight that no passage holds are named once, by the sub-query that asks the question itself."""
    if not main or not kept:
        return []
    held = frozenset[str]().union(*(terms.present(passage.keys) for passage in kept))
    # What stands above a passage in the report: its headings, and the header of its table.
    above = [(passage.heading, _headers_over(passage, at_hand)) for passage in kept]
    context = {key for shown in above for text in shown for key in text_keys(text, task.language)}
    open_terms = [
        term
        for term in terms.terms
        if term.key not in held and term.key not in context and term.weight >= 0.15 * terms.total
    ]
    if not open_terms:
        return []
    return [stated_gaps.words_unsupported([term.word for term in open_terms], kept, known, task, GapKind.WEAK_SUPPORT)]
