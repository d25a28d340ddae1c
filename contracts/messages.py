"""Requests and results of activities that are not roles."""

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from contracts.base import CompactModel
from contracts.checking import VerificationSummary
from contracts.evidence import DocumentRef, Evidence, ReportDraft, SearchHit, Verdict
from contracts.outcome import Citation, ReportFiles, ResearchResult, Usage
from contracts.request import SourceType, published_between
from contracts.resolved import ResolvedResearch
from contracts.sentences import Text
from contracts.state_changes import unpack_json
from contracts.vocabulary import Quality


class RunRequest(CompactModel):
    """The run of an activity, and its tenant."""

    research_id: str
    tenant: str = "default"


class PrepareRequest(CompactModel):
    """Input of `prepare_research`."""

    research_id: str
    request_json: str
    """The validated request, as JSON."""
    continued: bool = False
    """True after continue-as-new: the session's resolution is reused."""
    tenant_proof: str = ""
    """The proof of the starter for its tenant (`contracts.tenants`), unchecked."""
    started_by: str = ""
    """Id of the workflow that started the run; empty: a client."""


class TurnRequest(RunRequest):
    """A run that asks for a place among those at work."""

    priority: int = 3


class QueueTurn(CompactModel):
    """A run's place in the queue, as the answer to its request and in each signal `turn`."""

    place: int = 0
    """0: the run may start; else its place among the waiting runs, from 1."""
    waiting: int = 0
    """Number of waiting runs, including this one."""
    ticket: str = ""
    """Tells this wait from others of the same run. Empty in a signal: the queue has lost its list, ask again."""


class Prepared(CompactModel):
    """Output of `prepare_research`."""

    resolved: ResolvedResearch
    packed_state: str | None = None
    """A stored session to resume (see `ResearchState.pack`)."""
    stored_result: ResearchResult | None = None
    """Set if the stored session is complete; the run ends with it."""
    resolved_entry: str = ""
    """Hash of `resolved` in the run's notebook."""
    has_turn: bool = False
    """True if the run may start now; else it queues."""
    turn: QueueTurn | None = None
    """Its place in the queue, if it has to wait for a signal."""


class PlannedRun(CompactModel):
    """Output of the workflow `deep-research-plan`: the run it started."""

    research_id: str


def refresh_schedule(research_id: str) -> str:
    """Return the id of the server's schedule that refreshes a run."""
    return f"{research_id}-refresh"


class MetadataRequest(CompactModel):
    """Input of `describe_research`."""

    strategy: str = ""
    """Empty: the strategy whose plans need approval, else the default for requests."""
    tenant_proof: str = ""
    """The proof of the client that asks, as JSON; empty without one."""


class ResearchMetadata(CompactModel):
    """Metadata that a front end needs before any run."""

    research_collection: str = ""
    """Location of the sessions: a folder, or the URL of a store."""
    research_settings_schema: dict[str, Any] = {}
    """JSON Schema of the request settings, without references, with the effective defaults."""


class OutgoingRequest(CompactModel):
    """A request to a provider or site, with the restrictions of its run."""

    tenant: str = "default"
    domains_allow: list[str] = []
    """Domains that the host of each hit, and each redirect to a page, must belong to; empty means any."""
    domains_deny: list[str] = []
    """Domains that none of these hosts may belong to."""
    published_from: str | None = None
    """Earliest publication date (ISO), applied where dates are known."""
    date: str = ""
    """Date of the run, the reference for recency."""
    permitted: bool = False
    """False while the plan still needs a person's approval; no call is made then."""


class SearchRequest(RunRequest, OutgoingRequest):
    """One query to one search provider."""

    operation: str
    provider: str
    corpus: str | None = None
    text: str
    max_results: int = Field(default=10, ge=0)
    source_type: SourceType = SourceType.WEB
    language: str | None = None
    published_to: str | None = None
    earlier_entry: str = ""
    """Hash of the stored entry with the sources of the thread above, offered by the provider `earlier`."""
    titled: int = 50
    """Number of hits returned with titles; the others are read only in place of failed ones."""
    snippet_characters: int = 0
    """Length of the snippet returned with each title, for a role that chooses pages by it; 0: no snippet."""
    questions: list[str] = []
    """All sub-queries searched at the same time; pages are assessed against them."""
    resolved_entry: str = ""
    """Hash of the stored resolution that pages are assessed by."""
    patience_seconds: float | None = None
    """Time for retries of an unresponsive provider; None: the call's whole time."""


class SearchResponse(CompactModel):
    """Hits in rank order, with term frequencies if the provider has them."""

    provider: str
    hits: list[SearchHit] = []
    documents_searched: int | None = None
    term_documents: dict[str, int] = {}
    """Stem → number of documents with it, for the words of the query; empty if unknown."""
    spellings: dict[str, str] = {}
    """Stem in no document → the most similar word in some document."""
    cached: bool = False
    """True for a cache hit: no provider got a request."""
    cost_usd: float | None = 0.0
    """None if the provider charges an unknown amount."""
    spent_before: Usage | None = None
    """Cost of earlier, failed attempts."""
    warnings: list[str] = []
    """Filters that the provider could not apply: one short line each."""
    entry: str | None = None
    """Hash of the stored entry with the full hits, of which only labels are inline; None if all is inline."""


class ReadRequest(OutgoingRequest):
    """One document to read."""

    source_id: str
    url: str
    title: str = ""
    query: str = ""
    """The query that found it, the reference for relevance."""
    snippet: str = ""
    published_at: str | None = None
    doi: str | None = None
    mode: SourceType = SourceType.WEB
    """Selects the authority table."""
    exposes_private_text: bool = False
    """True if the URL contains text private to the run; it is then refused."""
    hit_entries: list[str] = []
    """Hashes of the search entries with its other fields; empty if all is inline."""
    needs_title: bool = False
    """True if the workflow lacks the title."""
    known_entry: str = ""
    """Hash of the entry from an earlier read; the document is read again and compared."""
    patience_seconds: float = 10.0
    """Time for retries of a site that does not answer or answers 5xx."""


def reading_conditions(resolved: ResolvedResearch, questions: Iterable[str], date: str) -> dict[str, Any]:
    """Return the fields of `ReadRequest` that decide how a web page is fetched and assessed.

    `questions` are all that were searched together, so a page's assessment does not depend on which found it first.
    """
    return {
        "query": "\n".join(questions),
        "date": date,
        "mode": resolved.search.source_types[0],
        "published_from": published_between(resolved.constraints.timeframe, date)[0],
        "domains_allow": resolved.search.domains_allow,
        "domains_deny": resolved.search.domains_deny,
    }


class ReadRecord(CompactModel):
    """Short result of a read; the notebook entry has the rest, the content store the text."""

    url: str = ""
    """The final URL; empty if it equals the requested one."""
    title: str = ""
    """Empty if it equals the hit's title."""
    publisher: str | None = None
    content_hash: str
    text: DocumentRef
    media_type: str = "text/html"
    """Detected media type of the original; the most common one is the default, which histories omit."""
    pages: DocumentRef | None = None
    quality: Quality
    quality_reason: Text = ""
    best_quality: Quality = Quality.HIGH
    cached: bool = False
    """True for a cache hit: no site got a request."""
    earlier: bool = False
    """True if a run above this one in its thread had archived the same text. Histories of earlier versions lack it."""
    abstract_only: bool = False
    """True if the abstract of a paper was read in place of its text."""
    entry: str | None = None
    """Hash of its stored entry; None if all is inline."""


class CheckProvidersRequest(RunRequest):
    """Search providers to check before a run starts."""

    providers: list[str]
    permitted: bool = False
    """False while the plan still needs a person's approval; no call is made then."""


class StateChange(CompactModel):
    """A run's state as a diff from the stored one (`contracts.state_changes`); both digests are verified."""

    base: str = ""
    """Digest of the stored state; empty if the change is the whole state."""
    digest: str
    """Digest of the resulting state."""
    packed: str
    """The change as compressed JSON in base64."""
    in_flight: "StateChange | None" = None
    """The change that leads to `base` and may not be stored yet, because the call that stores it has not ended."""


class SaveRequest(RunRequest):
    """A checkpoint."""

    change: StateChange
    closed: bool = False
    """True for a run's last save."""
    yields_turn: bool = False
    """True while the run waits for a person; another run may start in its place."""


class RenderRequest(RunRequest):
    """Input for rendering the report in its three formats from the state, whose `draft` names the text."""

    change: StateChange


class RenderedReport(CompactModel):
    """The report with numbered citations, in the content store; its first 128 KB also inline, packed."""

    files: ReportFiles
    packed: str = ""
    cut: bool = False
    summary: str = ""
    citations: list[Citation] = []
    verification: VerificationSummary = VerificationSummary()
    verdicts: list[Verdict] = []
    """Verdict on each claim in the report, in order."""

    @property
    def text(self) -> str:
        """Return the beginning of the report."""
        if not self.packed:
            return ""
        return str(unpack_json(self.packed))


class DocumentPieceRequest(RunRequest):
    """Request for a piece of a stored document, for clients that reach only the engine; not for other tenants' runs."""

    name: str
    """`report.md`, `report.html`, `report.json`, `session.json`, `draft.md`, a source id, or the hash of a revision."""
    offset: int = 0
    limit: int = 1_000_000
    tenant_proof: str = ""
    """The proof of the client for its tenant, as of a start of the run; one in an argument does not count."""


class DocumentPiece(CompactModel):
    """At most 1 MB of a document."""

    text: str
    next_offset: int | None = None
    size: int = 0


class ExtractClaimsRequest(RunRequest):
    """Input for extracting the latest draft's claims, and judging by rules those that rules can."""

    change: StateChange
    answers: list[str] = []
    """Hashes of the entries with earlier answers."""
    sections: list[DocumentRef] = []
    """Separately written sections, in place of the latest draft."""
    headings: list[str] = []
    """Heading of each section, used if its text has none."""


class ExtractedClaims(CompactModel):
    """Claims for a checker."""

    claims_entry: str
    """Hash of the `ClaimsEntry`, or of the `CorrectedEntry` for corrections."""
    asked_entry: str = ""
    sizes: list[int] = []
    """Bytes of each claim for the checker, most important first."""
    claims: int = 0


class FinalizeVerificationRequest(RunRequest):
    """Input for combining the verdicts on a draft and, with `corrected_entry`, choosing the accepted corrections."""

    mode: str = ""
    by_model: bool = True
    claims_entry: str = ""
    corrected_entry: str = ""
    looked_entry: str = ""
    """Hash of the entry with the doubtful claims of a second look, whose answers are among `answers`."""
    corrections_entry: str = ""
    """Hash of the entry with earlier corrections."""
    answers: list[str] = []
    unreached: int = 0
    """Number of claims of the last batch that no checker judged."""
    corrects: bool = False


class FinalizedVerification(CompactModel):
    """The verdicts on a draft, and its claims to correct."""

    claims_entry: str = ""
    """Hash for the resulting draft; empty if unchanged."""
    verdicts_entry: str = ""
    corrections_entry: str = ""
    summary: VerificationSummary = VerificationSummary()
    verdicts: list[Verdict] = []
    """Verdict on each claim, in order."""
    draft: ReportDraft | None = None
    """The corrected draft; None if no correction was accepted."""
    evidence: list[Evidence] = []
    """Passages of pages that the corrected draft cites, and that the run did not have."""
    doubtful_entry: str = ""
    sizes: list[int] = []
    """Bytes of each claim to correct."""
    second_entry: str = ""
    """Hash of the entry with the doubtful claims and whole sections for a second look; empty if none is due."""
    second_claims: int = 0
    """Number of these claims."""
    second_bytes: int = 0
    """Size of these claims with their passages and sections."""
    answers_entry: str = ""
    """Hash of the entry with answers of the check about claims that cite more now; empty without any."""
    undone: int = 0
    """Removals that were not made, because passages of the run have the words of too many of the statements."""


class ApplyRequest(RunRequest):
    """Input for applying proposals of a corrector and of rules to the draft, before they are checked."""

    by_model: bool = True
    claims_entry: str
    proposals: list[str]
    """Hashes of the entries with proposals."""
    doubtful_entry: str = ""
    """Hash of the entry with the doubtful claims, for which further citations are tried."""
    answers: list[str] = []


class JoinRequest(RunRequest):
    """Separately written sections, and the frame around them."""

    frame: ReportDraft
    sections: list[DocumentRef]
    headings: list[str]
    """Heading of each section, used if its text has none."""
