"""Evidence for a claim or a section, chosen from whole stored texts: what is asked, and what is told of it."""

from typing import Final

from pydantic import Field

from contracts.base import Terse
from contracts.evidence import Evidence
from contracts.identity import evidence_id
from contracts.notebooks import refer_source
from contracts.roles import SourceExtract

SPANS_PER_QUESTION: Final = 8
SPANS_PER_SOURCE: Final = 3


class SelectionRequest(Terse):
    """What evidence is wanted for."""

    research_id: str
    tenant: str = "default"
    language: str = "en"
    questions: list[str]
    """Texts of claims, or questions that sections answer."""
    sources: list[SourceExtract]
    """Where to look: sources with a stored text, or with nothing but the snippet of a search."""
    per_question: int = Field(default=SPANS_PER_QUESTION, ge=1, le=50)
    per_source: int = Field(default=SPANS_PER_SOURCE, ge=1, le=50)
    """For one question."""

    def by_reference(self) -> "SelectionRequest":
        """The same with hashes in place of what entries of the notebook tell of its sources."""
        return self.model_copy(update={"sources": [refer_source(source) for source in self.sources]})


class SelectedSpan(Terse):
    """A passage by its place: `text[start:end]` of the source with that number in the request."""

    source: int = Field(ge=0)
    start: int = Field(ge=0)
    end: int = Field(ge=1)
    relevance: float = 0.0
    """How much of the question it has, 0 to 1, with what a shared figure adds."""
    numeric: bool = False
    """Whether it has a figure of the question."""
    snippet_based: bool = False
    """Whether it stands in the snippet of a search, the page itself not having been read: never to be cited."""


class SelectedEvidence(Terse):
    """What was found for each question, the best first."""

    entry: str | None = None
    """Hash of the notebook's entry (`AnalysisEntry`) that holds the passages as evidence; None where none was found."""
    spans: list[list[SelectedSpan]] = []
    """By question, in their order."""

    def evidence(self, request: SelectionRequest) -> list[list[Evidence]]:
        """The passages that can be cited, by question, as the state of a run keeps evidence; `request` as it was."""
        return [
            [
                Evidence(
                    id=evidence_id(request.sources[span.source].id, span.start, span.end),
                    source_id=request.sources[span.source].id,
                    start=span.start,
                    end=span.end,
                    entry=self.entry,
                )
                for span in found
                if not span.snippet_based
            ]
            for found in self.spans
        ]
