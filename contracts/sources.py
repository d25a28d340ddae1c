"""Sources, and what a search returns."""

from enum import StrEnum
from typing import Final

from pydantic import Field

from contracts.base import Contract
from contracts.documents import DocumentRef, SectionHint
from contracts.identity import canonical_url
from contracts.vocabulary import PageAccess, Quality, SourceStatus

CHOSEN_BY_OPERATOR: Final = "chosen by the operator"
"""How the reason of a label begins that no role may change."""


class SearchHit(Contract):
    """One result of one provider, in its rank.

    A workflow knows address, title, DOI, rank and provider; `entries` of the run's notebook hold the rest.
    """

    url: str
    title: str = ""
    snippet: str = ""
    rank: int = Field(default=1, ge=1)
    provider: str = ""
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
    entries: list[str] = []
    """Hashes of the stored entries that hold its details; empty where it holds them itself."""


def together(first: SearchHit, other: SearchHit) -> SearchHit:
    """The first of two hits of one source, with what the other knows better."""
    finders = [first.provider, *first.also_found_by, other.provider, *other.also_found_by]
    snippet = max(first.snippet, other.snippet, key=len)
    update: dict[str, object] = {
        "title": first.title if first.title not in {"", first.url} else other.title or first.title,
        "snippet": snippet,
        "authors": max(first.authors, other.authors, key=len),
        "published_at": _date(first.published_at, other.published_at),
        "venue": first.venue or other.venue,
        "doi": first.doi or other.doi,
        "source_type": first.source_type if first.source_type != "web" else other.source_type,
        "also_found_by": [name for name in dict.fromkeys(finders) if name != first.provider],
        "entries": list(dict.fromkeys([*first.entries, *other.entries])),
    }
    if not first.sections and canonical_url(first.url) == canonical_url(other.url):
        update |= {"sections": other.sections, "content_hash": other.content_hash}
    return first.model_copy(update=update)


def _date(first: str | None, other: str | None) -> str | None:
    """The first date, or the other where it only says the same more precisely."""
    return other if other and other.startswith(first or "") else first


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
    """A document that the run knows. Identity: canonical URL, else DOI, else content hash.

    A workflow knows what rules need; the entries of the run's notebook hold the rest.
    """

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
    found_quality: Quality | None = None
    """What the rules found, where the analyzer's opinion has changed `quality`; None: as `quality`."""
    best_quality: Quality = Quality.HIGH
    """The best that an analyzer may call it."""
    entry: str | None = None
    """Hash of the stored entry about it as it was read; None for what was not read, and in old sessions."""
    hit_entries: list[str] = []
    """Hashes of stored entries with further details: of the searches that found what was not read, or found it again
    elsewhere."""


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
