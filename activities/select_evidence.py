"""Passages of whole stored texts for claims and for the questions of sections, each with its place and heading."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from temporalio import activity

from activities.failures import RECORDS, attempt
from activities.roles.grounding import evidence_at, load_documents
from contracts.evidence import Evidence
from contracts.messages import SelectedEvidence, SelectedSpan, SelectionRequest
from contracts.notebooks import AnalysisEntry
from providers.interfaces import ContentStore
from providers.storage.stored_notebooks import Notebooks
from providers.verification.passage_selection import Span, select_passages


def choose_passages(
    questions: Sequence[str], texts: Sequence[tuple[str, str]], language: str, most: int, most_of_a_text: int
) -> list[list[tuple[Span, Evidence]]]:
    """Choose for each question the best passages, best first; `texts` are ids of sources with their texts."""

    def passage(span: Span) -> tuple[Span, Evidence]:
        source_id, text = texts[span.text]
        return span, evidence_at(source_id, text, span.start, span.end)

    plain = [text for _, text in texts]
    chosen = select_passages(questions, plain, language, most=most, most_of_a_text=most_of_a_text)
    return [[passage(span) for span in found] for found in chosen]


@dataclass(frozen=True, eq=False)
class SelectionActivities:
    """Searches stored texts in a thread: the work is linear in their length, and no parser takes part."""

    content: ContentStore
    notebooks: Notebooks

    @activity.defn(name="select_evidence")
    async def select_evidence(self, request: SelectionRequest) -> SelectedEvidence:
        """Choose passages, and store those that can be cited in an entry of the notebook.

        A source that was not read is searched in the snippet of the search that found it, and never cited.
        """
        async with attempt(RECORDS):
            sources = await self.notebooks.complete_extracts(request.sources)
            stored = await load_documents(AnalysisEntry(sources=list(sources)), self.content)
            texts = [(source.id, stored[source.text.hash] if source.text else source.snippet) for source in sources]
            chosen = await asyncio.to_thread(
                choose_passages, request.questions, texts, request.language, request.per_question, request.per_source
            )
            citable = {
                each.id: (span.text, each)
                for found in chosen
                for span, each in found
                if sources[span.text].text is not None
            }
            used = {place: sources[place] for place, _ in citable.values()}
            entry = AnalysisEntry(evidence=[each for _, each in citable.values()], sources=list(used.values()))
            spans = [
                [
                    SelectedSpan(
                        source=span.text,
                        start=span.start,
                        end=span.end,
                        relevance=span.relevance,
                        numeric=span.numeric,
                        snippet_based=sources[span.text].text is None,
                    )
                    for span, _ in found
                ]
                for found in chosen
            ]
            return SelectedEvidence(entry=await self.notebooks.write(entry) if citable else None, spans=spans)
