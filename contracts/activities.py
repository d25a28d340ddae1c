"""Typed signatures of the activities that are no role; the bodies never run.

Workflows call these, `activities/` registers the implementations under the same names, and a test compares both.
"""

from temporalio import activity

from contracts.base import Contract
from contracts.documents import DocumentRef
from contracts.outcome import Citation, ReportFiles, ResearchResult
from contracts.request import SourceType
from contracts.resolved import ResolvedResearch
from contracts.sources import SearchHit, SourceAssessment
from contracts.usage import Usage
from contracts.vocabulary import PageAccess, Quality


class PrepareRequest(Contract):
    """Input of `prepare_research`."""

    research_id: str
    request_json: str
    """The validated request, with what was given and nothing else: a resumed run keeps the rest as it was."""
    continued: bool = False
    """True when the history starts anew: the session's own resolution stays as it is."""


class Prepared(Contract):
    """Output of `prepare_research`."""

    resolved: ResolvedResearch
    packed_state: str | None = None
    """A stored session to go on from (see `ResearchState.pack`)."""
    stored_result: ResearchResult | None = None
    """Set when the stored session is complete: the run ends with it."""


class SessionRef(Contract):
    """A saved session."""

    research_id: str
    document: DocumentRef | None = None


class SearchRequest(Contract):
    """One query to one provider."""

    research_id: str
    tenant: str = "default"
    operation: str
    provider: str
    corpus: str | None = None
    corpus_digest: str = ""
    """Which state of the corpus the run searches, where hosts share published ones."""
    text: str
    max_results: int = 10
    offset: int = 0
    source_type: SourceType = SourceType.WEB
    domains_allow: list[str] = []
    """Hosts that a hit must belong to, with everything below them; empty means any."""
    domains_deny: list[str] = []
    language: str | None = None
    published_from: str | None = None
    """ISO date of the earliest publication, where the provider can tell."""
    published_to: str | None = None


class SearchResponse(Contract):
    """Hits in rank order, and what the provider can say of the words."""

    provider: str
    hits: list[SearchHit] = []
    documents_searched: int | None = None
    term_documents: dict[str, int] = {}
    """Stem → number of documents that contain it, for the words of the query; empty where unknown."""
    coverage: float | None = None
    """Share of the query's weight that the best passage covers, 0 to 1; None where unknown."""
    cached: bool = False
    """Whether the answer came from the cache, so that no provider was asked."""
    cost_usd: float | None = 0.0
    """What the provider charged; None if it charges an unknown amount."""
    spent_before: Usage | None = None
    """What earlier attempts paid for nothing; None for nothing."""
    warnings: list[str] = []
    """What the provider could not do of what was asked: one short line each."""


class ReadRequest(Contract):
    """One document to read."""

    research_id: str
    tenant: str = "default"
    operation: str
    source_id: str
    url: str
    corpus_digest: str = ""
    """Of which state of a corpus, where hosts share published ones."""
    title: str = ""
    query: str = ""
    """What it was found for: relevance is judged against it."""
    snippet: str = ""
    source_type: str = "web"
    published_at: str | None = None
    venue: str | None = None
    doi: str | None = None
    mode: SourceType = SourceType.WEB
    """Which table of authorities applies."""
    published_from: str | None = None
    date: str = ""
    """Date of the run: recency is judged against it."""
    domains_allow: list[str] = []
    """Hosts that every address on the way to the page must belong to; empty means any."""
    domains_deny: list[str] = []
    """Hosts that none may belong to."""
    holds_private: bool = False
    """The address carries words that only this run knows: it is refused. False in old histories."""


class ReadRecord(Contract):
    """What reading gave: a short record, the text itself is in the content store."""

    url: str
    """The final URL."""
    title: str
    authors: list[str] = []
    publisher: str | None = None
    published_at: str | None = None
    retrieved_at: str
    media_type: str
    content_hash: str
    raw: DocumentRef
    text: DocumentRef
    characters: int
    quality: Quality
    quality_reason: str = ""
    assessment: SourceAssessment | None = None
    access: PageAccess = PageAccess.OPEN
    language: str | None = None
    cached: bool = False
    """Whether it came from the cache, so that no site was asked."""
    warnings: list[str] = []


class CheckProvidersRequest(Contract):
    """Which search providers are to be looked at before a run begins."""

    research_id: str
    tenant: str = "default"
    providers: list[str]


class CheckedProviders(Contract):
    """What the workers that search say of them."""

    unavailable: dict[str, str] = {}
    """Name → why it cannot be asked, with what to do about it; the others can."""


class SaveRequest(Contract):
    """A checkpoint: the packed state of a run."""

    research_id: str
    tenant: str = "default"
    packed_state: str
    closed: bool = False
    """True for the last save of a run."""


class RenderRequest(Contract):
    """Make the three forms of the report from the packed state (whose `draft` names the text)."""

    research_id: str
    tenant: str = "default"
    packed_state: str


class RenderedReport(Contract):
    """The report with numbers, in the content store; `markdown` inline up to 128 KB."""

    files: ReportFiles
    markdown: str
    cut: bool = False
    summary: str = ""
    citations: list[Citation] = []


class DocumentPieceRequest(Contract):
    """A piece of a stored document, for clients that reach only the engine."""

    research_id: str
    tenant: str = "default"
    """Whose run it is: another tenant's has no document."""
    name: str
    """`report.md`, `report.html`, `report.json`, `session.json`, or a source id."""
    offset: int = 0
    limit: int = 1_000_000


class DocumentPiece(Contract):
    """At most 1 MB of a document."""

    text: str
    next_offset: int | None = None
    size: int = 0


@activity.defn(name="prepare_research")
async def prepare_research(request: PrepareRequest) -> Prepared:
    """Resolve the request against the workers' configuration; load the session to go on from."""
    raise AssertionError("a signature is never run")


@activity.defn(name="check_providers")
async def check_providers(request: CheckProvidersRequest) -> CheckedProviders:
    """See which providers can be reached from where searches are made."""
    raise AssertionError("a signature is never run")


@activity.defn(name="search")
async def search(request: SearchRequest) -> SearchResponse:
    """Ask one provider one query."""
    raise AssertionError("a signature is never run")


@activity.defn(name="read_source")
async def read_source(request: ReadRequest) -> ReadRecord:
    """Fetch, extract and archive one document."""
    raise AssertionError("a signature is never run")


@activity.defn(name="save_session")
async def save_session(request: SaveRequest) -> SessionRef:
    """Write a checkpoint."""
    raise AssertionError("a signature is never run")


@activity.defn(name="render_report")
async def render_report(request: RenderRequest) -> RenderedReport:
    """Number the citations and render Markdown, HTML and JSON."""
    raise AssertionError("a signature is never run")


@activity.defn(name="read_document")
async def read_document(request: DocumentPieceRequest) -> DocumentPiece:
    """Serve a stored document in pieces."""
    raise AssertionError("a signature is never run")


SIGNATURES = (prepare_research, check_providers, search, read_source, save_session, render_report, read_document)
