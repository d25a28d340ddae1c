"""Sources, the documents that they were stored as, quotes with their places, and the claims that cite them."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field

from contracts.addresses import canonical_url, doi_of, source_id
from contracts.base import BoundedList, CompactModel, Contract, ListEntry
from contracts.names import CORPUS_SCHEME
from contracts.texts import DOCUMENT_HASH
from contracts.vocabulary import (
    TOP_CONFIDENCE,
    Confidence,
    GapKind,
    GapStatus,
    Quality,
    ReportKind,
    Severity,
    SourceStatus,
)


class DocumentRef(Contract):
    """A stored document: content-addressed, immutable."""

    hash: str = Field(pattern=DOCUMENT_HASH.pattern)
    media_type: str = "text/plain"
    size: int = Field(default=0, ge=0, description="characters for text, bytes for anything else")


class SectionHint(Contract):
    """A part of a document that retrieval found relevant: character range into the stored text."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    heading: str = ""
    score: float = 0.0


class ReportDraft(Contract):
    """A draft in the content store. Markers are evidence ids in brackets: `[ev-…]`.

    The report gate reads `characters`, `has_headings` and `unresolved_markers`.
    """

    document: DocumentRef
    revision: int = 1
    """From 1 for each new report."""
    title: str = ""
    summary: str = ""
    sections: list[str] = []
    word_count: int = 0
    characters: int = 0
    has_headings: bool = False
    evidence_ids: list[str] = []
    """Evidence cited, in order of first appearance."""
    unresolved_markers: list[str] = []
    """Unknown markers, removed from the draft and reported."""
    foreign_urls: list[str] = []
    """Addresses outside the source registry; removed from the draft and reported."""
    iteration: int = 1
    kind: ReportKind = ReportKind.REPORT
    direct: bool = False
    """True for an answer without research, without citations."""
    empty: bool = False
    """True for the brief without any finding, without citations."""
    words_by_section: dict[str, int] = {}
    """Of a live report: words under each heading of the outline, in its order."""


ASKED_BY_PERSON: Final = "steer"
"""Origin of the gaps that people open while a run goes on."""


class Evidence(Contract):
    """A verbatim passage: `text[start:end]` of the stored text of its source."""

    id: str
    source_id: str
    start: int = Field(ge=0)
    end: int = Field(ge=1)
    quote_hash: str = ""
    """SHA-256 of the quote: compared by `research audit`. Empty where the entry has it."""
    heading: str = ""
    page: int | None = None
    """The page or slide on which it begins, from 1; None where its source has none."""
    sub_query_id: str | None = None
    entry: str | None = None
    """Hash of the stored entry with the other fields; None: all are here."""


class Finding(Contract):
    """A statement with the evidence that supports it."""

    id: str
    statement: str = Field(max_length=600)
    confidence: Confidence = Confidence.LOW
    evidence_ids: list[str] = []
    source_ids: list[str] = []
    sub_query_id: str | None = None
    category: str | None = None
    contradicts: list[str] = []
    """Ids of findings of other sources that cannot be true beside it; in the entry, where there is one."""
    iteration: int = 1
    entry: str | None = None
    """Hash of the stored entry with it and its evidence; None: all is here."""


class Gap(Contract):
    """A hole in the findings."""

    id: str
    description: str = Field(max_length=400)
    kind: GapKind = GapKind.MISSING
    status: GapStatus = GapStatus.OPEN
    severity: Severity = Severity.MODERATE
    priority: int = Field(default=1, ge=1)
    suggested_queries: list[str] = []
    origin: str = "analysis"
    """`analysis`, `sub_query:<id>`, `steer`."""
    resolved_by: list[str] = []
    iteration: int = 1


class Verdict(StrEnum):
    """Verdict on a claim."""

    SUPPORTED = "supported"
    PARTIAL = "partial"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    NOT_ENOUGH_INFORMATION = "not_enough_information"
    UNVERIFIED = "unverified"
    """Without a verdict, or without a usable one: never counted as supported."""


class CheckMethod(StrEnum):
    """Author of a verdict."""

    VERBATIM = "verbatim"
    """It is word for word a passage that it cites."""
    RULES = "rules"
    MODEL = "model"
    NONE = "none"


class ClaimVerdict(CompactModel):
    """A verdict with its reason."""

    claim_id: str
    verdict: Verdict
    method: CheckMethod
    reason: str = ""


VerdictsEntry: TypeAlias = ListEntry[ClaimVerdict]
"""The verdicts of one draft."""


ENOUGH_VOICES = 2


def voice_of(url: str, publisher: str | None = None) -> str:
    """The voice of a source: the collection it belongs to, else its publisher, else the host it was read from."""
    if url.startswith(CORPUS_SCHEME):
        return CORPUS_SCHEME + url.removeprefix(CORPUS_SCHEME).partition("/")[0]
    if publisher and publisher.strip():
        return " ".join(publisher.casefold().split())
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return host.removeprefix("www.")


def supported_confidence(sources: Iterable[tuple[str, Quality]]) -> Confidence:
    """The highest confidence that sources support, by the voice and quality of each.

    Several independent voices of high quality are `high`; one of high quality, or several others, `medium`; else `low`.
    """
    known = [(voice, quality) for voice, quality in sources if voice]
    voices = {voice for voice, _ in known}
    authoritative = {voice for voice, quality in known if quality is Quality.HIGH}
    if len(authoritative) >= ENOUGH_VOICES:
        return Confidence.HIGH
    return Confidence.MEDIUM if authoritative or len(voices) >= ENOUGH_VOICES else Confidence.LOW


def bounded_confidence(claimed: Confidence, supported: Confidence) -> Confidence:
    """Bound a claimed confidence by that of its sources."""
    order = (Confidence.SPECULATION, Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH)
    if claimed in TOP_CONFIDENCE and supported is Confidence.HIGH:
        return claimed
    return min(claimed if claimed in order else Confidence.HIGH, supported, key=order.index)


OWN_DOCUMENTS, OWN_SETTING = "your documents", "your setting for this site"
CHOSEN_BY_OPERATOR: Final = (OWN_DOCUMENTS, OWN_SETTING)
"""Beginnings of the reasons of labels that no role may change."""


class SourceDetails(Contract):
    """Statements of a search, or of a page, about a source."""

    title: str = ""
    snippet: str = ""
    source_type: str = "web"
    authors: BoundedList[str] = []
    venue: str | None = None
    doi: str | None = None
    published_at: str | None = None


class SearchHit(SourceDetails):
    """One result of one provider, in its rank.

    A workflow knows address, title, DOI, rank and provider; `entries` of the run's notebook have the rest.
    """

    url: str
    rank: int = Field(default=1, ge=1)
    provider: str = ""
    sections: list[SectionHint] = []
    """Places of the match in the stored text; only a corpus knows."""
    content_hash: str | None = None
    """SHA-256 of the text that `sections` refers to."""
    entries: list[str] = []
    """Hashes of the stored entries with its details; empty: they are here."""


def together(first: SearchHit, other: SearchHit) -> SearchHit:
    """Merge two hits of one source: the first one, with details of the other that it lacks."""
    lacking = [name for name, field in SourceDetails.model_fields.items() if getattr(first, name) == field.default]
    update: dict[str, object] = {
        **{name: getattr(other, name) for name in lacking},
        "entries": list(dict.fromkeys([*first.entries, *other.entries])),
    }
    if not first.sections and canonical_url(first.url) == canonical_url(other.url):
        update |= {"sections": other.sections, "content_hash": other.content_hash}
    return first.model_copy(update=update)


class SourceAssessment(Contract):
    """Parts of the quality of a source, 0 to 1, and the label that follows."""

    authority: float = Field(ge=0, le=1)
    relevance: float = Field(ge=0, le=1)
    recency: float = Field(ge=0, le=1)
    content_quality: float = Field(ge=0, le=1)
    label: Quality
    reason: str
    """The deciding part, in one line."""
    user_generated: bool = False
    """True if its readers can write there: then only the operator can call it `high`."""


class Candidate(Contract):
    """A hit that a sub-query may read: a retry reads the next rank window."""

    sub_query_id: str
    hit: SearchHit


class ReadDetails(SourceDetails):
    """A source as it was read."""

    url: str
    publisher: str | None = None
    retrieved_at: str | None = None
    """Time of reading, ISO 8601; a workflow leaves it to the entry."""
    media_type: str = ""
    """Of the original, as it was recognized; empty where it was not read."""
    quality: Quality = Quality.UNKNOWN
    quality_reason: str = ""
    assessment: SourceAssessment | None = None
    """None for sources that the operator declared, and for unread ones."""
    language: str | None = None
    """Of the text, as ISO 639 has it."""
    raw: DocumentRef | None = None
    text: DocumentRef | None = None
    sections: list[SectionHint] = []


class Validators(Contract):
    """Statements of a site about the version of a page that it sent, by which it can say that it has no other one."""

    etag: str = ""
    last_modified: str = ""


OF_HIT: Final = ("url", "title", "provider", "doi", "rank")


class Source(ReadDetails):
    """A document that the run knows. Identity: canonical URL, else DOI, else content hash; see also `SearchHit`."""

    id: str
    title: str
    provider: str
    sub_query_ids: list[str] = []
    """Every sub-query that found it; the first is its owner."""
    rank: int = 1
    iteration: int = 1
    status: SourceStatus = SourceStatus.NOT_FETCHED
    status_reason: str = ""
    aliases: list[str] = []
    """Other URLs that led to it."""
    content_hash: str | None = None
    """SHA-256 of the raw bytes."""
    pages: DocumentRef | None = None
    """The offsets at which its pages or slides begin, as a JSON list; None where it has none."""
    analyzed: bool = False
    found_quality: Quality | None = None
    """Quality by the rules, where the analyzer has changed `quality`; None: as `quality`."""
    best_quality: Quality = Quality.HIGH
    """The best that an analyzer may call it."""
    entry: str | None = None
    """Hash of the stored entry about it as it was read; None where it was not read."""
    hit_entries: list[str] = []
    """Hashes of the entries of searches with further details: of an unread source, or of its other addresses."""

    @classmethod
    def of_hit(cls, hit: SearchHit, sub_query_ids: list[str]) -> "Source":
        """Return the source that a hit leads to, which is not fetched."""
        named = {name: getattr(hit, name) for name in OF_HIT}
        return cls(**named, id=source_id(hit.url), sub_query_ids=sub_query_ids, hit_entries=hit.entries)

    def as_hit(self) -> SearchHit:
        """Return the hit that would lead to it again."""
        return SearchHit(**{name: getattr(self, name) for name in OF_HIT}, entries=self.hit_entries)


def keys_of(found: SearchHit | Source) -> list[str]:
    """Return the values that hits of one source share: the canonical URL, and the DOI if there is one."""
    name = doi_of(found.doi) or doi_of(found.url)
    return [canonical_url(found.url), *([f"doi:{name}"] if name else [])]


ArtifactKind: TypeAlias = Literal["pdf", "html", "text"]
KIND_OF: Final[Mapping[str, ArtifactKind]] = {
    "application/pdf": "pdf", "text/html": "html", "application/xhtml+xml": "html"
}  # fmt: skip
"""Kind of an original by its media type; any other one is shown by its text."""


class Artifact(Contract):
    """A stored file of a source: the original as it was fetched, or the text that was read from it."""

    file_id: str
    """Hash of the file in the content store."""
    name: str
    kind: ArtifactKind
    media_type: str = "text/plain"
    source_id: str
    source_url: str
    retrieved_at: str | None = None


def source_document(source: Source, findings: Iterable[Finding]) -> dict[str, Any]:
    """Return a source as JSON with its stored files and the statements that were found in it."""
    files = artifacts_of(source)
    return source.model_dump(mode="json") | {
        "file_id": files[0].file_id if files else None,
        "artifacts": [file.model_dump(mode="json") for file in files],
        "notes": [finding.statement for finding in findings if source.id in finding.source_ids],
    }


def artifacts_of(source: Source) -> list[Artifact]:
    """Return the stored files of a source that was read: original and text, once where they are the same bytes."""
    text = source.text
    if text is None:
        return []
    shared = {"source_id": source.id, "source_url": source.url, "retrieved_at": source.retrieved_at}
    file_name = urlsplit(source.url).path.rpartition("/")[2]
    read = Artifact(file_id=text.hash, name=f"{source.title or file_name}.txt", kind="text", **shared)
    if source.content_hash in (None, text.hash):
        return [read]
    media_type = source.raw.media_type if source.raw else source.media_type
    kind = KIND_OF.get(media_type.partition(";")[0].strip().lower(), "text")
    known = {"file_id": source.content_hash, "name": file_name or source.title, "media_type": media_type}
    return [Artifact(kind=kind, **known, **shared), read]


class QueryRecord(Contract):
    """One query to one provider."""

    text: str
    """The query as it was sent: capitals mark names."""
    provider: str
    source_type: str = "web"
    sub_query_id: str
    iteration: int = Field(default=1, ge=1)
    found: int = Field(default=0, ge=0)
    outcome: Literal["answered", "failed"] = "answered"
    """No hits is an answer."""
