"""Sources, and what a search returns."""

from enum import StrEnum
from typing import Final

from pydantic import Field

from contracts.base import Contract
from contracts.documents import DocumentRef, SectionHint
from contracts.vocabulary import PageAccess, Quality, SourceStatus

CHOSEN_BY_OPERATOR: Final = "chosen by the operator"
"""How the reason of a label begins that no role may change."""


class SearchHit(Contract):
    """One result of one provider, in its rank."""

    url: str
    title: str
    snippet: str = ""
    rank: int = Field(ge=1)
    provider: str
    source_type: str = "web"
    published_at: str | None = None
    authors: list[str] = []
    venue: str | None = None
    doi: str | None = None
    sections: list[SectionHint] = []
    """Where in the stored text the match lies; only a corpus knows."""
    content_hash: str | None = None
    """SHA-256 of the text that `sections` refers to."""
    also_found_by: list[str] = []
    """Other providers that had the same source for the same query."""


class SourceAssessment(Contract):
    """What a source is worth, in parts of 0 to 1, and the label that follows."""

    authority: float = Field(ge=0, le=1)
    relevance: float = Field(ge=0, le=1)
    recency: float = Field(ge=0, le=1)
    content_quality: float = Field(ge=0, le=1)
    label: Quality
    reason: str
    """One line: what decided."""
    user_generated: bool = False
    """Whether its readers can write there: then nothing makes it `high` but the operator's word."""


class Candidate(Contract):
    """A hit that a sub-query may have read: kept so that a retry can read the next rank window."""

    sub_query_id: str
    hit: SearchHit


class Source(Contract):
    """A document that the run knows. Identity: canonical URL, else DOI, else content hash."""

    id: str
    url: str
    title: str
    authors: list[str] = []
    publisher: str | None = None
    venue: str | None = None
    doi: str | None = None
    published_at: str | None = None
    retrieved_at: str | None = None
    source_type: str = "web"
    snippet: str = ""
    provider: str
    sub_query_ids: list[str] = []
    """Every sub-query that found it; the first is its owner."""
    rank: int = 1
    iteration: int = 1
    status: SourceStatus = SourceStatus.NOT_FETCHED
    status_reason: str = ""
    quality: Quality = Quality.UNKNOWN
    quality_reason: str = ""
    assessment: SourceAssessment | None = None
    """None for what the operator declared, and for what was not read."""
    access: PageAccess = PageAccess.OPEN
    language: str | None = None
    """Of the text, as ISO 639 has it."""
    aliases: list[str] = []
    """Other URLs that led to it."""
    content_hash: str | None = None
    """SHA-256 of the raw bytes."""
    raw: DocumentRef | None = None
    text: DocumentRef | None = None
    pages: DocumentRef | None = None
    """The offsets at which its pages or slides begin, as a JSON list; None where it has none."""
    sections: list[SectionHint] = []
    analyzed: bool = False


class QueryOutcome(StrEnum):
    """What became of a query; no hits is an answer."""

    ANSWERED = "answered"
    FAILED = "failed"


class QueryRecord(Contract):
    """One query to one provider."""

    text: str
    """As it was asked: capitals tell names from words."""
    normalized_text: str
    """Its words for comparing, see `workflows.rules.query_matching.normalized_query`."""
    provider: str
    source_type: str = "web"
    sub_query_id: str
    iteration: int = Field(default=1, ge=1)
    found: int = Field(default=0, ge=0)
    outcome: QueryOutcome = QueryOutcome.ANSWERED
