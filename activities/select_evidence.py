"""Passages of whole stored texts for claims and for the questions of sections, each with its place and heading."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from temporalio import activity

from activities.failures import RECORDS, attempt
from activities.roles.grounding import evidence_at, load_documents
from contracts.evidence import Evidence
from contracts.messages import SelectedEvidence, SelectionRequest
from contracts.notebooks import AnalysisEntry
from providers.interfaces import ContentStore
from providers.storage.stored_notebooks import Notebooks
from providers.verification.passage_selection import select_passages


def choose_passages(
    questions: Sequence[str], texts: Mapping[str, str], language: str, most: int, most_of_a_text: int
) -> list[list[Evidence]]:
    """Choose for each question the best passages, best first; `texts` are the texts of sources by their ids."""
    sources = list(texts)
    chosen = select_passages(questions, list(texts.values()), language, most=most, most_of_a_text=most_of_a_text)
    return [
        [evidence_at(sources[span.text], texts[sources[span.text]], span.start, span.end) for span in found]
        for found in chosen
    ]


@dataclass(frozen=True, eq=False)
class SelectionActivities:
    """Searches stored texts in a thread: the work is linear in their length, and no parser takes part."""

    content: ContentStore
    notebooks: Notebooks

    @activity.defn(name="select_evidence")
    async def select_evidence(self, request: SelectionRequest) -> SelectedEvidence:
        """Choose passages of the sources that were read, and store them in an entry of the notebook."""
        async with attempt(RECORDS):
            sources = await self.notebooks.complete_extracts(request.sources)
            stored = await load_documents(AnalysisEntry(sources=list(sources)), self.content)
            texts = {source.id: stored[source.text.hash] for source in sources if source.text}
            chosen = await asyncio.to_thread(
                choose_passages, request.questions, texts, request.language, request.per_question, request.per_source
            )
            passages = {each.id: each for found in chosen for each in found}
            cited = {each.source_id for each in passages.values()}
            used = [source for source in sources if source.id in cited]
            entry = AnalysisEntry(evidence=list(passages.values()), sources=used)
            return SelectedEvidence(
                entry=await self.notebooks.write(entry) if passages else None,
                places=[[each.place for each in found] for found in chosen],
            )
