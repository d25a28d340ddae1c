"""The analyzer: two to five verbatim passages for a sub-query, or a gap that says what can be checked."""

from collections.abc import Mapping
from dataclasses import replace

from contracts.roles import AnalysisDraft, AnalyzeInput, FindingDraft, GapDraft, QuoteDraft, SourceExtract
from contracts.vocabulary import GapKind, Quality
from providers.engines.extractive import gaps
from providers.engines.extractive.facets import ENTITY_PREFIX, FACETS, QUALIFICATION, STRONG, facet_named
from providers.engines.extractive.lexicon import QUALIFYING
from providers.engines.extractive.passages import Passage, containment, shorten
from providers.engines.extractive.question import QuestionType, read_question
from providers.engines.extractive.ranking import Aim, Reading, chosen, lowered, ranked, readings
from providers.engines.extractive.acronyms import with_acronyms
from providers.engines.extractive.terms import (
    Frequencies,
    QuestionTerms,
    frequencies,
    key_words,
    missing_names,
    question_terms,
    word_keys,
)

COVERAGE_FLOOR = 0.35
"""Share of the question's weight that the best passage must cover, else the question is not covered [P]."""
FURTHER_FLOOR = 0.25
MAIN_WEIGHT = 0.1
RELATIVE_FLOOR = 0.55
"""A further finding must reach this share of the best one's score."""
MAIN_FACETS = frozenset(("mechanism", "steps", "reason", "comparison", "items", "definition", "fact", ""))
STATEMENT_LENGTH = 600
AGREEMENT = 0.5


def analyze(task: AnalyzeInput, documents: Mapping[str, str]) -> AnalysisDraft:
    """Find the passages of one sub-query (S0-061 to S0-069, C0-26)."""
    every = readings(task.sources, documents, task.language)
    question = read_question(task.query)
    asked = _asked(task)
    known = _known(task, every, asked)
    terms = with_acronyms(
        question_terms(asked, task.language, known), [reading.document.text for reading in every], task.language
    )
    missing = missing_names(asked, task.language, known, [reading.document.all_keys for reading in every])
    if missing:
        return AnalysisDraft(findings=[], gaps=[gaps.names_missing(missing, known, task)])
    facet = facet_named(task.sub_query.facet)
    main = task.sub_query.facet == question.main_facet or task.sub_query.origin != "plan"
    aim = Aim(
        terms=terms,
        searched=question_terms(task.sub_query.text, task.language, known),
        facet=facet,
        facet_weight=MAIN_WEIGHT if main else 2 * MAIN_WEIGHT,
        strong=STRONG.get(facet.name),
        denial_bonus=0.14 if question.may_hold_a_premise else 0.03,
        rows_welcome=question.kind in (QuestionType.LIST, QuestionType.FACT) or facet.name == "settings",
    )
    candidates = ranked(every, aim)
    best = max((passage.coverage for passage in candidates), default=0.0)
    if best < COVERAGE_FLOOR:
        return AnalysisDraft(findings=[], gaps=[gaps.below_floor(terms, best, known, task)])
    fitting = [passage for passage in candidates if passage.coverage >= FURTHER_FLOOR]
    most = max(1, min(5, task.max_findings))
    if not main and task.sub_query.facet in FACETS:
        own = replace(aim, facet=FACETS[question.main_facet], facet_weight=MAIN_WEIGHT, strong=STRONG.get(question.main_facet))
        fitting = lowered(fitting, chosen(ranked(every, own), most, 0.0))
    kept = chosen(fitting, most, RELATIVE_FLOOR * fitting[0].score if fitting else 0.0)
    sources = {reading.source.id: reading.source for reading in every}
    findings = [_finding(passage, fitting, kept, sources, task, terms) for passage in kept]
    return AnalysisDraft(findings=findings, gaps=_gaps(kept, terms, known, task, main=main))


def _asked(task: AnalyzeInput) -> str:
    """What the passages must answer: the person's question; one side of a comparison, or guidance, by its own words."""
    facet = task.sub_query.facet
    own_words = facet.startswith(ENTITY_PREFIX) or facet == "guidance"
    return task.sub_query.text if own_words else task.query


def _known(task: AnalyzeInput, every: list[Reading], asked: str) -> Frequencies:
    wanted = [
        word_keys(word, task.language)[0]
        for word in [*key_words(asked), *key_words(task.query), *key_words(task.sub_query.text)]
    ]
    return frequencies(
        task.documents_searched, task.term_documents, (reading.document.all_keys for reading in every), wanted
    )


def _finding(
    passage: Passage,
    candidates: list[Passage],
    kept: list[Passage],
    sources: Mapping[str, SourceExtract],
    task: AnalyzeInput,
    terms: QuestionTerms,
) -> FindingDraft:
    agreeing = _agreeing(passage, candidates, kept, terms)
    return FindingDraft(
        content=shorten(passage.text, STATEMENT_LENGTH),
        confidence=_confidence([sources[passage.source_id], *(sources[other.source_id] for other in agreeing)]),
        quotes=[
            QuoteDraft(source_id=one.source_id, quote=one.text, start=one.start) for one in [passage, *agreeing[:2]]
        ],
        category=QUALIFICATION if _qualifies(passage, terms) else task.sub_query.facet or None,
    )


def _agreeing(
    passage: Passage, candidates: list[Passage], kept: list[Passage], terms: QuestionTerms
) -> list[Passage]:
    """The best similar passage of each other document."""
    found: dict[str, Passage] = {}
    present = terms.present(passage.keys)
    for other in candidates:
        if other.source_id == passage.source_id or other.source_id in found:
            continue
        shared = terms.weight_of(present & terms.present(other.keys))
        if shared >= AGREEMENT and containment(passage.keys, other.keys) >= AGREEMENT and other not in kept:
            found[other.source_id] = other
    return list(found.values())


def _confidence(sources: list[SourceExtract]) -> str:
    """S0-065: agreement of good documents is high, one authority or several documents medium, else low."""
    authoritative = sum(source.quality is Quality.HIGH for source in sources)
    if authoritative >= 2:
        return "high"
    return "medium" if authoritative or len(sources) > 1 else "low"


def _qualifies(passage: Passage, terms: QuestionTerms) -> bool:
    """Whether it limits or denies something near what the question speaks of."""
    return passage.own_coverage >= 0.4 and QUALIFYING.search(passage.text) is not None and bool(terms.terms)


def _gaps(
    kept: list[Passage], terms: QuestionTerms, known: Frequencies, task: AnalyzeInput, *, main: bool
) -> list[GapDraft]:
    """Terms of weight that no passage holds are named once, by the sub-query that asks the question itself."""
    if not main or not kept:
        return []
    held = frozenset[str]().union(*(terms.present(passage.keys) for passage in kept))
    context = {key for passage in kept for key in word_keys_of(passage.heading, task.language)}
    open_terms = [
        term
        for term in terms.terms
        if term.key not in held and term.key not in context and term.weight >= 0.15 * terms.total
    ]
    if not open_terms:
        return []
    return [gaps.words_unsupported([term.word for term in open_terms], kept, known, task, GapKind.WEAK_SUPPORT)]


def word_keys_of(text: str, language: str) -> frozenset[str]:
    """Stems of a short text."""
    from providers.engines.extractive.terms import text_keys

    return text_keys(text, language)
