"""The evidence of a run as quotations: read back from the stored texts, ranked anew, without doubles."""

from collections.abc import Iterable
from dataclasses import dataclass

from contracts.roles import SourceExtract, WriteInput
from contracts.vocabulary import Confidence
from providers.extractive.facets import ENTITY_PREFIX, QUALIFICATION, facet_named
from providers.extractive.numbered_codes import lower_code_lines
from providers.extractive.passages import FoundPassage, containment
from providers.extractive.question import QUESTION_PREFIX
from providers.extractive.ranking import DUPLICATE, Aim, score_ranges
from providers.extractive.sources_read import Reading


@dataclass(frozen=True, slots=True)
class Quotation:
    """A verbatim passage with its marker and what it is good for."""

    marker: str
    source: SourceExtract
    passage: FoundPassage
    facet: str
    confidence: Confidence

    @property
    def text(self) -> str:
        """The quote itself."""
        return self.passage.text

    @property
    def words(self) -> int:
        """Length in words, as the budget of the brief counts it."""
        return len(self.text.split())


def quotations(task: WriteInput, every: Iterable[Reading], aim: Aim) -> list[Quotation]:
    """Every piece of evidence whose text is at hand, best first, overlaps and near-duplicates left out."""
    at_hand = {reading.source.id: reading for reading in every}
    evidence = {piece.id: piece for piece in task.evidence if piece.source_id in at_hand}
    passages: dict[tuple[str, int, int], FoundPassage] = {}
    for source_id, reading in at_hand.items():
        length = len(reading.document.text)
        ranges = {
            (piece.start, piece.end)
            for piece in evidence.values()
            if piece.source_id == source_id and piece.start < piece.end <= length
        }
        scored = score_ranges(reading, aim, sorted(ranges)).values()
        for passage in lower_code_lines(scored, at_hand, task.query):
            if passage.text.strip():
                passages[passage.place] = passage
    facets = {query.id: query.facet for query in task.sub_queries}
    found: dict[str, Quotation] = {}
    for finding in task.findings:
        facet = _known_facet(finding.category or facets.get(finding.sub_query_id or "", ""))
        for piece_id in finding.evidence_ids:
            piece = evidence.get(piece_id)
            quoted = passages.get((piece.source_id, piece.start, piece.end)) if piece else None
            if quoted is None:
                continue
            made = Quotation(f"[{piece_id}]", at_hand[quoted.source_id].source, quoted, facet, finding.confidence)
            if piece_id not in found or _rank(made) < _rank(found[piece_id]):
                found[piece_id] = made
    return _distinct(sorted(found.values(), key=_rank))


def _rank(one: Quotation) -> tuple[float, str, int, int, str]:
    return (-round(one.passage.score, 6), *one.passage.place, one.facet)


def _known_facet(name: str) -> str:
    if name == QUALIFICATION or name.startswith((ENTITY_PREFIX, QUESTION_PREFIX)):
        return name
    return facet_named(name).name


def _distinct(ordered: Iterable[Quotation]) -> list[Quotation]:
    kept: list[Quotation] = []
    for one in ordered:
        if not any(
            _overlap(one, other) or containment(one.passage.keys, other.passage.keys) >= DUPLICATE for other in kept
        ):
            kept.append(one)
    return kept


def _overlap(one: Quotation, other: Quotation) -> bool:
    (source, start, end), (other_source, other_start, other_end) = one.passage.place, other.passage.place
    return source == other_source and start < other_end and other_start < end
