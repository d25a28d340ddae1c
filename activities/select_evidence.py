"""The activity `select_evidence`: passages of whole stored texts for claims and sections, kept as evidence."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from temporalio import activity

from activities.failures import RECORDS, attempt
from activities.roles.grounding import Headings, load_documents
from contracts.addresses import digest, evidence_id
from contracts.evidence import Evidence
from contracts.messages import SelectedEvidence, SelectedSpan, SelectionRequest
from contracts.notebooks import AnalysisEntry
from contracts.roles import SourceExtract
from providers.interfaces import ContentStore, IsolatedCalls, Notebooks
from providers.verification.passage_selection import select_passages

SELECTED: Final = f"{__name__}:select_in_subprocess"

Selected = list[list[tuple[int, int, int, float, bool, str]]]
"""By question: number of the text, start, end, relevance, whether numeric, heading."""


def select_in_subprocess(
    questions: Sequence[str], texts: Sequence[str], language: str, most: int, most_of_a_text: int
) -> Selected:
    """`select_passages` for a child process, with the heading above each passage."""
    headings: dict[int, Headings] = {}
    chosen: Selected = []
    for found in select_passages(questions, texts, language, most=most, most_of_a_text=most_of_a_text):
        chosen.append([])
        for span in found:
            if span.text not in headings:
                headings[span.text] = Headings(texts[span.text])
            heading = headings[span.text].above(span.start)
            chosen[-1].append((span.text, span.start, span.end, span.relevance, span.numeric, heading))
    return chosen


class SelectionActivities:
    """Looks through stored texts in killable processes."""

    def __init__(self, content: ContentStore, notebooks: Notebooks, isolated: IsolatedCalls) -> None:
        self._content = content
        self._notebooks = notebooks
        self._isolated = isolated

    @activity.defn(name="select_evidence")
    async def select_evidence(self, request: SelectionRequest) -> SelectedEvidence:
        """Choose passages, and keep those that can be cited in an entry of the notebook."""
        async with attempt(RECORDS):
            sources = await self._notebooks.complete_extracts(request.sources)
            texts = await self._texts(sources)
            chosen: Selected = await self._isolated.call(
                SELECTED, request.questions, texts, request.language, request.per_question, request.per_source
            )
            kept = await asyncio.to_thread(_evidence_of, chosen, sources, texts)
            entry = await self._notebooks.write(kept) if kept.evidence else None
        spans = [
            [
                SelectedSpan(
                    source=number,
                    start=start,
                    end=end,
                    relevance=relevance,
                    numeric=numeric,
                    snippet_based=sources[number].text is None,
                )
                for number, start, end, relevance, numeric, _ in found
            ]
            for found in chosen
        ]
        return SelectedEvidence(entry=entry, spans=spans)

    async def _texts(self, sources: Sequence[SourceExtract]) -> list[str]:
        """What each source can be searched in: its stored text, else the snippet of the search that found it."""
        stored: Mapping[str, str] = await load_documents(AnalysisEntry(sources=list(sources)), self._content)
        return [stored[source.text.hash] if source.text else source.snippet for source in sources]


def _evidence_of(chosen: Selected, sources: Sequence[SourceExtract], texts: Sequence[str]) -> AnalysisEntry:
    evidence: dict[str, Evidence] = {}
    used: dict[str, SourceExtract] = {}
    for number, start, end, _, _, heading in (span for found in chosen for span in found):
        source = sources[number]
        if source.text is None:
            continue
        key = evidence_id(source.id, start, end)
        evidence[key] = Evidence(
            id=key,
            source_id=source.id,
            start=start,
            end=end,
            quote_hash=digest(texts[number][start:end]),
            heading=heading,
        )
        used[source.id] = source
    return AnalysisEntry(evidence=list(evidence.values()), sources=list(used.values()))
