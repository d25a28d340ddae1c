"""The evidence of a run as quotations: read back from the stored texts, ranked anew, without doubles."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from contracts.evidence import Evidence, Finding
from contracts.roles import SourceExtract, WriteInput
from contracts.vocabulary import Confidence
from providers.engines.extractive.facets import ENTITY_PREFIX, FACETS, QUALIFICATION, facet_named
from providers.engines.extractive.passages import containment, heading_of
from providers.engines.extractive.question import Question
from providers.engines.extractive.ranking import DUPLICATE
from providers.engines.extractive.structure import Structure, structure_of
from providers.engines.extractive.terms import QuestionTerms, text_keys


@dataclass(frozen=True, slots=True)
class Quotation:
    """A verbatim passage with its marker and what it is good for."""

    marker: str
    source: SourceExtract
    start: int
    end: int
    text: str
    heading: str
    keys: frozenset[str]
    facet: str
    confidence: Confidence
    coverage: float
    own_coverage: float
    score: float

    @property
    def words(self) -> int:
        """Length in words, as the budget of the brief counts it."""
        return len(self.text.split())

    @property
    def place(self) -> tuple[str, int, int]:
        """Order that no rank decides."""
        return (self.source.id, self.start, self.end)


def quotations(
    task: WriteInput, documents: Mapping[str, str], question: Question, terms: QuestionTerms
) -> list[Quotation]:
    """Every piece of evidence whose text is at hand, best first, overlaps and near-duplicates left out."""
    sources = {source.id: source for source in task.sources}
    evidence = {piece.id: piece for piece in task.evidence}
    facets = {query.id: query.facet for query in task.sub_queries}
    found: dict[str, Quotation] = {}
    for finding in task.findings:
        facet = finding.category or facets.get(finding.sub_query_id or "", "")
        for position, piece_id in enumerate(finding.evidence_ids):
            piece = evidence.get(piece_id)
            source = sources.get(piece.source_id) if piece else None
            if piece is None or source is None or source.text is None or source.text.hash not in documents:
                continue
            document = structure_of(documents[source.text.hash], task.language)
            made = _quotation(piece, source, document, finding, facet, question, terms, first=position == 0)
            if made is not None and (piece.id not in found or _rank(made) < _rank(found[piece.id])):
                found[piece.id] = made
    return _distinct(sorted(found.values(), key=_rank))


def _rank(one: Quotation) -> tuple[float, str, int, int, str]:
    return (-round(one.score, 6), *one.place, one.facet)


def _quotation(
    piece: Evidence,
    source: SourceExtract,
    document: Structure,
    finding: Finding,
    facet: str,
    question: Question,
    terms: QuestionTerms,
    *,
    first: bool,
) -> Quotation | None:
    text = document.text[piece.start : piece.end]
    if not text.strip() or piece.end > len(document.text):
        return None
    keys = text_keys(text, document.language)
    block = next((block for block in reversed(document.blocks) if block.start <= piece.start), None)
    path = block.path if block else ()
    context = text_keys(" ".join([*path, source.title]), document.language)
    own = terms.coverage(keys)
    coverage = terms.coverage(keys, context)
    main = FACETS[question.main_facet]
    score = coverage + 0.5 * own
    score += 0.15 if main.pattern.search(text) else 0.0
    score += 0.1 if facet == main.name else 0.0
    score += 0.05 if finding.confidence in (Confidence.HIGH, Confidence.CONFIRMED) else 0.0
    score -= 0.1 if len(text) < 60 or len(text) > 800 else 0.0
    score -= 0.2 if text.lstrip().startswith("|") else 0.0
    score -= 0.0 if first else 0.1
    return Quotation(
        marker=f"[{piece.id}]",
        source=source,
        start=piece.start,
        end=piece.end,
        text=text,
        heading=heading_of(block, source.title) if block else source.title,
        keys=keys,
        facet=_known_facet(facet),
        confidence=finding.confidence,
        coverage=coverage,
        own_coverage=own,
        score=score,
    )


def _known_facet(name: str) -> str:
    if name == QUALIFICATION or name.startswith(ENTITY_PREFIX):
        return name
    return facet_named(name).name


def _distinct(ordered: Iterable[Quotation]) -> list[Quotation]:
    kept: list[Quotation] = []
    for one in ordered:
        overlap = any(
            one.source.id == other.source.id and one.start < other.end and other.start < one.end for other in kept
        )
        if not overlap and not any(containment(one.keys, other.keys) >= DUPLICATE for other in kept):
            kept.append(one)
    return kept
