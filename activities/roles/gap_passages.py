"""Passages of the sources already read that may answer open gaps, under numbers for the role that judges them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from activities.roles.grounding import RoleWork
from contracts.call_sizes import MAX_GAP_PASSAGES
from contracts.evidence import Gap, SectionRef
from contracts.gaps import MAX_GAP_SECTIONS, GapReading
from contracts.roles import GapsInput, RoleAnswer
from providers.tokens.lookup import PASSAGES_PER_GAP, FoundPassage, find_passages, section_around


@dataclass(frozen=True)
class GapPassages:
    """The passages of one call, numbered from 1, and their numbers by gap."""

    passages: Sequence[FoundPassage]
    numbers: Mapping[str, Sequence[int]]


def passages_of(request: GapsInput, documents: Mapping[str, str]) -> GapPassages:
    """Return the best passages for each gap, each listed once; `documents` are stored texts by hash."""
    texts = {
        source.id: documents[source.text.hash]
        for source in request.read_sources
        if source.text is not None and source.text.hash in documents
    }
    found = find_passages(texts, [_forms(gap) for gap in request.gaps], request.language, PASSAGES_PER_GAP)
    listed: dict[FoundPassage, int] = {}
    numbers: dict[str, list[int]] = {gap.id: [] for gap in request.gaps}
    # The best passage of every gap comes before the second one of any.
    for rank in range(PASSAGES_PER_GAP):
        for gap, passages in zip(request.gaps, found, strict=True):
            if rank < len(passages) and (passages[rank] in listed or len(listed) < MAX_GAP_PASSAGES):
                numbers[gap.id].append(listed.setdefault(passages[rank], len(listed) + 1))
    return GapPassages(list(listed), numbers)


def _forms(gap: Gap) -> list[str]:
    return [gap.description, *gap.suggested_queries]


def ground_readings(work: RoleWork[GapsInput, Any]) -> RoleAnswer:
    """Return the answer of a role that judges gaps, with the passages to read further as sections of their sources."""
    answer = work.answer.fitted(work.request, work.warnings)
    passages = passages_of(work.request, work.documents).passages
    sources = {source.id: source for source in work.request.read_sources}
    readings: list[GapReading] = []
    is_unknown = False
    for gap_id, numbers in answer.passages.items():
        sections: dict[tuple[str, int], SectionRef] = {}
        for number in numbers:
            if not 1 <= number <= len(passages):
                is_unknown = True
                continue
            passage = passages[number - 1]
            text = sources[passage.source_id].text
            stored = work.documents[text.hash] if text else ""
            section = section_around(stored, passage.source_id, passage.start, passage.end)
            sections.setdefault((section.source_id, section.start), section)
        if sections:
            readings.append(GapReading(gap_id=gap_id, sections=list(sections.values())[:MAX_GAP_SECTIONS]))
    if is_unknown:
        work.warnings.append("numbers of passages that are not listed were ignored")
    result: RoleAnswer = work.role.result.model_validate({**dict(answer), "readings": readings})
    return result
