"""Sources, their stored documents, quotes with their offsets, and the claims that cite them."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field, TypeAdapter

from contracts.addresses import canonical_url, find_doi, source_id
from contracts.base import BoundedList, CompactModel, Contract, ListEntry
from contracts.names import OWN_SCHEMES
from contracts.sentences import Message, Text
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

if TYPE_CHECKING:
    from contracts.messages import ReadRecord


MAX_LINKS: Final = 100
"""Of one page."""


class DocumentRef(Contract):
    """A stored document, content-addressed and immutable."""

    hash: str = Field(pattern=DOCUMENT_HASH.pattern)
    media_type: str = "text/plain"
    size: int = Field(default=0, ge=0, description="characters for text, bytes for anything else")


class SectionHint(Contract):
    """A part of a document that matched in retrieval: a character range of the stored text."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    heading: str = ""
    score: float = 0.0


class SectionRef(Contract):
    """A section of a source's stored text: `text[start:end]`."""

    source_id: str
    start: int = Field(ge=0)
    end: int = Field(ge=1)
    beside: bool = False
    """True for a section that nobody asked for, and that is shown beside those where there is room."""


class ReportDraft(Contract):
    """A draft in the content store. Markers are evidence ids in brackets: `[ev-…]`.

    The report gate reads `characters`, `has_headings` and `unresolved_markers`.
    """

    document: DocumentRef
    revision: int = 1
    """Starts at 1 for each new report."""
    title: str = ""
    summary: str = ""
    sections: list[str] = []
    word_count: int = 0
    characters: int = 0
    has_headings: bool = False
    evidence_ids: list[str] = []
    """Cited evidence, in order of first appearance."""
    unresolved_markers: list[str] = []
    """Unknown markers, removed from the draft and reported."""
    foreign_urls: list[str] = []
    """URLs outside the source registry; removed from the draft and reported."""
    iteration: int = 1
    """0 for a draft that a resumed run is to replace."""
    kind: ReportKind = ReportKind.REPORT
    direct: bool = False
    """True for an answer without research or citations."""
    empty: bool = False
    """True for the short text of a run without findings; it has no citations."""
    words_by_section: dict[str, int] = {}
    """For a live report: word count under each heading, in outline order."""

    def without_longer_figures(self) -> Self:
        """Return a copy without the longer fields that follow from the text, to make histories smaller."""
        return self.with_fields(title="", summary="", sections=[], evidence_ids=[], words_by_section={})

    def with_history_of(self, draft: Self, revision: int) -> Self:
        """Return a copy with this revision, and with the fields of another draft that do not follow from its text."""
        return self.with_fields(
            unresolved_markers=draft.unresolved_markers,
            foreign_urls=draft.foreign_urls,
            iteration=draft.iteration,
            kind=draft.kind,
            direct=draft.direct,
            empty=draft.empty,
            revision=revision,
        )


ASKED_BY_PERSON: Final = "steer"
"""Origin of gaps that people open during a run."""


class Evidence(Contract):
    """A verbatim passage: `text[start:end]` of its source's stored text."""

    id: str
    source_id: str
    start: int = Field(ge=0)
    end: int = Field(ge=1)
    quote_hash: str = ""
    """SHA-256 of the quote, which `research audit` compares; empty if it is in the entry."""
    heading: str = ""
    page: int | None = None
    """The page or slide on which it starts, from 1; None if its source has none."""
    uncertain: bool = False
    """Whether two readers of the original differ on words of it."""
    entry: str | None = None
    """Hash of the stored entry with the other fields; None if all are inline."""


class Finding(Contract):
    """A statement with its supporting evidence."""

    id: str
    statement: str = Field(max_length=600)
    confidence: Confidence = Confidence.LOW
    evidence_ids: list[str] = []
    source_ids: list[str] = []
    sub_query_id: str | None = None
    category: str | None = None
    contradicts: list[str] = []
    """Ids of conflicting findings from other sources; in the entry, if there is one."""
    remarks: list[str] = []
    """Figures and names of the statement that a comparison of words did not find in its passages, title, headings and
    question, or found otherwise; in the entry, if there is one."""
    priority: int = 2
    """What the answer needs: 1 what it cannot do without, 2 what completes it, 3 background; in the entry, if there is
    one."""
    sub_query_count: int = 1
    """Number of sub-queries that it helps to answer; in the entry, if there is one."""
    beside: list[str] = []
    """Statements of other readers on the same passages, each with a figure or a name that those before lack; only in a
    writer's request."""
    by_rules: bool = False
    """True if it was made without the model in a run with one, because of a limit or a fault."""
    iteration: int = 1
    entry: str | None = None
    """Hash of the stored entry with it and its evidence; None if all is inline."""


class Gap(Contract):
    """Something that the findings lack."""

    id: str
    description: Text = Field(max_length=400)
    kind: GapKind = GapKind.MISSING
    status: GapStatus = GapStatus.OPEN
    severity: Severity = Severity.MODERATE
    priority: int = Field(default=1, ge=1)
    suggested_queries: list[str] = []
    origin: str = "analysis"
    """`analysis`, `sub_query:<id>`, `refiner`, `steer`."""
    resolved_by: list[str] = []
    unread: list[SectionRef] = []
    """Sections of pages already read in which a reader that was not shown them expects the answer."""
    iteration: int = 1

    @property
    def settlement(self) -> dict[str, Any]:
        """Return the status of the gap and the findings that answer it, for the decision log."""
        settlement: dict[str, Any] = {"status": self.status.value}
        if self.resolved_by:
            settlement["resolved_by"] = self.resolved_by
        return settlement

    def closed_by(self, finding_ids: list[str]) -> Self:
        """Return the gap as answered by these findings."""
        return self.with_fields(status=GapStatus.ADDRESSED, resolved_by=finding_ids)


class Verdict(StrEnum):
    """Verdict on a claim."""

    SUPPORTED = "supported"
    PARTIAL = "partial"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    NOT_ENOUGH_INFORMATION = "not_enough_information"
    UNVERIFIED = "unverified"
    """No usable verdict; never counted as supported."""


class CheckMethod(StrEnum):
    """Method that produced a verdict."""

    VERBATIM = "verbatim"
    """The claim repeats a cited passage word for word."""
    RULES = "rules"
    MODEL = "model"
    NONE = "none"


class ClaimVerdict(CompactModel):
    """A verdict with its reason."""

    claim_id: str
    verdict: Verdict
    method: CheckMethod
    reason: Text = ""
    lacking: list[str] = []
    """Of `partial`: the words of the claim for which no passage speaks, as they stand in it."""


VerdictsEntry: TypeAlias = ListEntry[ClaimVerdict]
"""The verdicts of one draft."""


MIN_VOICES = 2  # independent sources from which a finding is surer than by one


def source_voice(url: str, publisher: str | None) -> str:
    """Return the voice of a source: its collection, else its publisher, else its host."""
    if url.startswith(OWN_SCHEMES):
        return url.partition("/")[0]
    if publisher and publisher.strip():
        return " ".join(publisher.casefold().split())
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return host.removeprefix("www.")


def supported_confidence(sources: Iterable[tuple[str, Quality]]) -> Confidence:
    """Return the highest confidence that sources support, given the voice and quality of each.

    Two independent voices of high quality give `high`; one of high quality, or two others, `medium`; else `low`.
    """
    known = [(voice, quality) for voice, quality in sources if voice]
    voices = {voice for voice, _ in known}
    authoritative = {voice for voice, quality in known if quality is Quality.HIGH}
    if len(authoritative) >= MIN_VOICES:
        return Confidence.HIGH
    if authoritative or len(voices) >= MIN_VOICES:
        return Confidence.MEDIUM
    return Confidence.LOW


def bounded_confidence(claimed: Confidence, supported: Confidence) -> Confidence:
    """Cap a claimed confidence at the one its sources support."""
    order = (Confidence.SPECULATION, Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH)
    if claimed in TOP_CONFIDENCE and supported is Confidence.HIGH:
        return claimed
    return min(claimed if claimed in order else Confidence.HIGH, supported, key=order.index)


OWN_DOCUMENTS: Final = Message("by_operator")
OWN_SETTING: Final = Message("by_setting")
CHOSEN_BY_OPERATOR: Final = (OWN_DOCUMENTS, OWN_SETTING)
"""Prefixes of the reasons for labels that no role may change."""


class SourceDetails(Contract):
    """Metadata of a source, from a search or from the page itself."""

    title: str = ""
    snippet: str = ""
    source_type: str = "web"
    authors: BoundedList[str] = []
    venue: str | None = None
    doi: str | None = None
    published_at: str | None = None
    address: str = ""
    """Web address that the server of a private document gives for it: shown in place of its URL, never opened."""
    abstract_only: bool = False
    """True for a paper of which only the abstract is open, or was read: nobody may take it for the paper."""


class SearchHit(SourceDetails):
    """One ranked result of one provider.

    A workflow has its URL, title, DOI, rank and provider, and whether more than the abstract is open; the notebook
    `entries` have the rest.
    """

    url: str
    rank: int = Field(default=1, ge=1)
    provider: str = ""
    abstract: str = ""
    """Abstract of a paper: read in place of a text that is not open or cannot be read."""
    expects_pdf: bool = False
    """True if its URL is that of a PDF: anything else there is not the paper."""
    sections: list[SectionHint] = []
    """Matching parts of the stored text; set only by a corpus."""
    content_hash: str | None = None
    """SHA-256 of the text that `sections` refer to."""
    document: DocumentRef | None = None
    """The document itself, if its server sent it with the hit."""
    archived: str = ""
    """Hash of the stored entry of an earlier read, by a run of the same thread; empty if there is none. Histories of
    earlier versions lack it."""
    archived_pages: DocumentRef | None = None
    """Page list of that read; None if the document has no pages."""
    entries: list[str] = []
    """Hashes of the stored entries with its details; empty if they are inline."""


def join_hits(first: SearchHit, second: SearchHit) -> SearchHit:
    """Merge two hits of one source: the first, with its missing details filled from the other.

    Of a paper that only the other has with an open text, that text is read, at its URL.
    """
    missing = [name for name, field in SourceDetails.model_fields.items() if getattr(first, name) == field.default]
    update: dict[str, object] = {
        **{name: getattr(second, name) for name in missing},
        "entries": list(dict.fromkeys([*first.entries, *second.entries])),
        "abstract": first.abstract or second.abstract,
        "abstract_only": first.abstract_only and second.abstract_only,
    }
    if first.abstract_only and not second.abstract_only:
        update |= {"url": second.url, "expects_pdf": second.expects_pdf}
    if canonical_url(first.url) == canonical_url(second.url):
        if not first.sections:
            update |= {"sections": second.sections, "content_hash": second.content_hash}
        if not first.archived:
            update |= {"archived": second.archived, "archived_pages": second.archived_pages}
    return first.model_copy(update=update)


class SourceAssessment(Contract):
    """Quality scores of a source, each from 0 to 1, and the resulting label."""

    authority: float = Field(ge=0, le=1)
    relevance: float = Field(ge=0, le=1)
    recency: float = Field(ge=0, le=1)
    content_quality: float = Field(ge=0, le=1)
    label: Quality
    reason: Text
    """The deciding score, in one line."""
    user_generated: bool = False
    """True if its readers can post there; only the operator can then rate it `high`."""


class Candidate(Contract):
    """A hit that a sub-query may read; a retry reads the next rank window."""

    sub_query_id: str
    hit: SearchHit


class ReadDetails(SourceDetails):
    """A source as it was read."""

    url: str
    publisher: str | None = None
    retrieved_at: str | None = None
    """Time of reading, ISO 8601; only in the entry, not in the workflow."""
    media_type: str = ""
    """Detected media type of the original; empty if it was not read."""
    quality: Quality = Quality.UNKNOWN
    quality_reason: Text = ""
    assessment: SourceAssessment | None = None
    """None for sources rated by the operator, and for unread ones."""
    language: str | None = None
    """ISO 639 code of the text's language."""
    raw: DocumentRef | None = None
    text: DocumentRef | None = None
    sections: list[SectionHint] = []
    warnings: list[Text] = []
    """Parts of the original that are missing in the text, or whose reading is uncertain; one short line each."""
    reader: str = ""
    """Version of the readers that made the text; empty in runs of earlier versions."""

    @property
    def shown_url(self) -> str:
        """The address to show to people: of a private document the one that its server gives, if it gives one."""
        return self.address or self.url


PAGE_STARTS: Final = TypeAdapter(list[int])


class PageList(Contract):
    """The beginnings of the pages of a text, and what of it is uncertain; stored as JSON beside the text."""

    starts: list[int] = []
    uncertain: list[tuple[int, int]] = []
    """Start and end of the parts whose words two readers read differently."""

    @classmethod
    def read(cls, text: str) -> "PageList":
        """Read a stored list, or one of an earlier version, which has the starts alone. Raises ValueError."""
        if text.startswith("["):
            return cls(starts=PAGE_STARTS.validate_json(text))
        return cls.model_validate_json(text)

    def page_of(self, start: int) -> int | None:
        """Return the page on which a passage starts; None without pages."""
        if not self.starts:
            return None
        return bisect_right(self.starts, start)

    def is_uncertain(self, start: int, end: int) -> bool:
        """Return whether a passage has words whose reading is uncertain."""
        return any(first < end and start < last for first, last in self.uncertain)


class Validators(Contract):
    """HTTP validators of a fetched page, for conditional requests."""

    etag: str = ""
    last_modified: str = ""


class Source(ReadDetails):
    """A document known to the run. Identity: canonical URL, else DOI, else content hash; see also `SearchHit`."""

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
    """Start offsets of its pages or slides, stored as a JSON list; None if it has none."""
    analyzed: bool = False
    nothing_on: list[str] = []
    """Ids of the sub-queries on which a model that was shown all of its text found nothing."""
    earlier: bool = False
    """True if a run above this one in its thread had archived the same text. States of earlier versions lack it."""
    found_quality: Quality | None = None
    """Quality by rules, if the analyzer has changed `quality`; else None."""
    best_quality: Quality = Quality.HIGH
    """The highest quality that an analyzer may assign."""
    entry: str | None = None
    """Hash of its stored entry; None if it was not read."""
    hit_entries: list[str] = []
    """Hashes of search entries with more details, for an unread source or its aliases."""

    @classmethod
    def of_hit(cls, hit: SearchHit, sub_query_ids: list[str]) -> "Source":
        """Return the source of a hit, not fetched yet."""
        return cls(
            id=source_id(hit.url),
            url=hit.url,
            title=hit.title,
            provider=hit.provider,
            doi=hit.doi,
            rank=hit.rank,
            abstract_only=hit.abstract_only,
            sub_query_ids=sub_query_ids,
            hit_entries=hit.entries,
        )

    def read(self, record: "ReadRecord", url: str, title: str) -> Self:
        """Return the source as this record says that it was read; URL and title default to the given ones."""
        return self.with_fields(
            url=record.url or url,
            title=record.title or title,
            publisher=record.publisher,
            content_hash=record.content_hash,
            text=record.text,
            media_type=record.media_type,
            pages=record.pages,
            quality=record.quality,
            quality_reason=record.quality_reason,
            best_quality=record.best_quality,
            entry=record.entry,
            earlier=record.earlier,
            abstract_only=record.abstract_only,
            status=SourceStatus.FULL,
        )

    def as_hit(self) -> SearchHit:
        """Return a hit that leads to this source."""
        return SearchHit(
            url=self.url,
            title=self.title,
            provider=self.provider,
            doi=self.doi,
            rank=self.rank,
            abstract_only=self.abstract_only,
            entries=self.hit_entries,
        )


def keys_of(item: SearchHit | Source) -> list[str]:
    """Return the keys that hits of one source share: the canonical URL, and its DOIs.

    A preprint may have two of them: that of its journal, and that of its URL at arXiv.
    """
    dois = filter(None, (find_doi(item.doi), find_doi(item.url)))
    return [canonical_url(item.url), *(f"doi:{doi}" for doi in dict.fromkeys(dois))]


ArtifactKind: TypeAlias = Literal["pdf", "html", "text"]
ARTIFACT_KINDS: Final[Mapping[str, ArtifactKind]] = {
    "application/pdf": "pdf", "text/html": "html", "application/xhtml+xml": "html"
}  # fmt: skip
"""Artifact kind by media type; all others are shown as text."""


class Artifact(Contract):
    """A stored file of a source: the original as fetched, or the text extracted from it."""

    file_id: str
    """Hash of the file in the content store."""
    name: str
    kind: ArtifactKind
    media_type: str = "text/plain"
    source_id: str
    source_url: str
    retrieved_at: str | None = None


def source_document(source: Source, findings: Iterable[Finding]) -> dict[str, Any]:
    """Return a source as JSON, with its stored files and the statements found in it."""
    files = list_artifacts(source)
    return source.model_dump(mode="json") | {
        "file_id": files[0].file_id if files else None,
        "artifacts": [file.model_dump(mode="json") for file in files],
        "notes": [finding.statement for finding in findings if source.id in finding.source_ids],
    }


def list_artifacts(source: Source) -> list[Artifact]:
    """Return the stored files of a read source: original and text, or one file if both are the same bytes."""
    text = source.text
    if text is None:
        return []
    shared = {"source_id": source.id, "source_url": source.url, "retrieved_at": source.retrieved_at}
    file_name = urlsplit(source.url).path.rpartition("/")[2]
    text_file = Artifact(file_id=text.hash, name=f"{source.title or file_name}.txt", kind="text", **shared)
    if source.content_hash in (None, text.hash):
        return [text_file]
    media_type = source.raw.media_type if source.raw else source.media_type
    kind = ARTIFACT_KINDS.get(media_type.partition(";")[0].strip().lower(), "text")
    fields = {"file_id": source.content_hash, "name": file_name or source.title, "media_type": media_type}
    return [Artifact(kind=kind, **fields, **shared), text_file]


class QueryRecord(Contract):
    """One query to one provider."""

    text: str
    """The query as sent; its capitals mark names."""
    provider: str
    source_type: str = "web"
    sub_query_id: str
    iteration: int = Field(default=1, ge=1)
    found: int = Field(default=0, ge=0)
    outcome: Literal["answered", "failed"] = "answered"
    """A query without hits counts as answered."""
