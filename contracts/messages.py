"""Requests and results of activities that are no role."""

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from contracts.base import CompactModel
from contracts.checking import VerificationSummary
from contracts.evidence import DocumentRef, ReportDraft, SearchHit, Verdict
from contracts.outcome import Citation, ReportFiles, ResearchResult, Usage
from contracts.request import SourceType, published_between
from contracts.resolved import ResolvedResearch
from contracts.state_changes import unpack_json
from contracts.vocabulary import Quality


class RunRequest(CompactModel):
    """The run that an activity works for, and its tenant."""

    research_id: str
    tenant: str = "default"


class PrepareRequest(CompactModel):
    """Input of `prepare_research`."""

    research_id: str
    request_json: str
    """The validated request, as JSON."""
    continued: bool = False
    """True for a new history of the same run: the resolution of its session stays."""


class Prepared(CompactModel):
    """Output of `prepare_research`."""

    resolved: ResolvedResearch
    packed_state: str | None = None
    """A stored session to go on from (see `ResearchState.pack`)."""
    stored_result: ResearchResult | None = None
    """Set when the stored session is complete: the run ends with it."""
    resolved_entry: str = ""
    """Hash of `resolved` in the run's notebook."""
    has_turn: bool = False
    """True if the run may begin at once; else it waits for its turn."""


class PlannedRun(CompactModel):
    """Output of the workflow `deep-research-plan`: the run that it has started."""

    research_id: str


def refresh_schedule(research_id: str) -> str:
    """Return the id of the server's schedule that refreshes a run."""
    return f"{research_id}-refresh"


class MetadataRequest(CompactModel):
    """Input of `describe_research`."""

    strategy: str = ""
    """Empty: the one whose plans wait for a person's approval, else the default of requests."""


class ResearchMetadata(CompactModel):
    """What a front end needs before any run."""

    research_collection: str = ""
    """Place of the sessions: a folder, or the URL of a store."""
    research_settings_schema: dict[str, Any] = {}
    """JSON Schema of the settings of a request, without references, with the defaults that are in force."""


class TurnRequest(RunRequest):
    """A run that intends to start."""

    known_place: int = 0
    """Place in the queue as the run knows it; 0 for none yet."""


class QueueTurn(CompactModel):
    """Place of a run in the queue of runs."""

    place: int = 0
    """0: the run may begin; else its place among the waiting runs, from 1."""
    waiting: int = 0
    """Number of waiting runs, this one included."""
    pause_seconds: float = 0.0
    """Time until the next request for the place."""


class OutgoingRequest(CompactModel):
    """A request to a provider or a site, with the conditions of its run."""

    tenant: str = "default"
    domains_allow: list[str] = []
    """Hosts that hits, and all addresses on the way to a page, must belong to or lie below; empty means any."""
    domains_deny: list[str] = []
    """Hosts that none of them may belong to."""
    published_from: str | None = None
    """ISO date of the earliest publication, where dates are known."""
    date: str = ""
    """Date of the run: recency is judged against it."""
    permitted: bool = False
    """False while a person has yet to approve the plan: no call is made."""


class SearchRequest(RunRequest, OutgoingRequest):
    """One query to one provider."""

    operation: str
    provider: str
    corpus: str | None = None
    text: str
    max_results: int = Field(default=10, ge=0)
    source_type: SourceType = SourceType.WEB
    language: str | None = None
    published_to: str | None = None
    earlier_entry: str = ""
    """Hash of the stored entry with the sources of an earlier run, which the provider `earlier` offers."""
    titled: int = 50
    """Number of hits whose titles the response contains: the others are read only in place of failed ones."""
    questions: list[str] = []
    """All sub-queries that are searched at the same time: found pages are judged by them."""
    resolved_entry: str = ""
    """Hash of the stored resolution, by which pages are judged."""
    patience_seconds: float | None = None
    """Time for which a provider that does not answer is tried; None: as long as the call has time."""


class SearchResponse(CompactModel):
    """Hits in rank order, and the frequencies of the words where the provider knows them."""

    provider: str
    hits: list[SearchHit] = []
    documents_searched: int | None = None
    term_documents: dict[str, int] = {}
    """Stem → number of documents that contain it, for the words of the query; empty where unknown."""
    spellings: dict[str, str] = {}
    """Stem that no document contains → the most similar word that some contain."""
    cached: bool = False
    """True if the answer came from the cache: no provider got a request."""
    cost_usd: float | None = 0.0
    """None if the provider charges an unknown amount."""
    spent_before: Usage | None = None
    """Cost of earlier attempts without a result."""
    warnings: list[str] = []
    """Filters that the provider could not apply: one short line each."""
    entry: str | None = None
    """Hash of the stored entry with the whole hits, of which only labels are here. None: all is here."""


class ReadRequest(OutgoingRequest):
    """One document to read."""

    source_id: str
    url: str
    title: str = ""
    query: str = ""
    """The query that found it: relevance is judged against it."""
    snippet: str = ""
    published_at: str | None = None
    doi: str | None = None
    mode: SourceType = SourceType.WEB
    """Table of authorities that applies."""
    exposes_private_text: bool = False
    """The address contains words that only this run knows: it is refused."""
    hit_entries: list[str] = []
    """Hashes of the entries of the searches that found it, with the other fields; empty: all is here."""
    needs_title: bool = False
    """True if the workflow does not know the title."""
    known_entry: str = ""
    """Hash of the stored entry about the document as it was read before: it is read again, and compared."""
    patience_seconds: float = 10.0
    """Time for which a site that does not answer, or answers 5xx, is tried."""


def reading_conditions(resolved: ResolvedResearch, questions: Iterable[str], date: str) -> dict[str, Any]:
    """Return the fields of `ReadRequest` by which a page of the web is fetched and judged.

    `questions` are all that were searched at the same time: which one found a page first must not decide its worth.
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
    """Result of a read, in short: an entry of the notebook has the rest, the content store the text."""

    url: str = ""
    """The final URL; empty where it is the requested one."""
    title: str = ""
    """Empty where it is the one of the hit."""
    publisher: str | None = None
    content_hash: str
    text: DocumentRef
    media_type: str = "text/html"
    """Of the original, as it was recognized; most are pages, so this costs no history of theirs."""
    pages: DocumentRef | None = None
    quality: Quality
    quality_reason: str = ""
    best_quality: Quality = Quality.HIGH
    cached: bool = False
    """True if it came from the cache: no site got a request."""
    entry: str | None = None
    """Hash of the stored entry about it; None: all is here."""


class CheckProvidersRequest(RunRequest):
    """Search providers to be checked before a run starts."""

    providers: list[str]
    permitted: bool = False
    """False while a person has yet to approve the plan: no call is made."""


class StateChange(CompactModel):
    """A run's state as a change of the stored one (`contracts.state_changes`); both digests are compared."""

    base: str = ""
    """Digest of the stored state; empty where the change is the whole state."""
    digest: str
    """Of the state after it."""
    packed: str
    """The change as compressed JSON in base64."""


class SaveRequest(RunRequest):
    """A checkpoint."""

    change: StateChange
    closed: bool = False
    """True for the last save of a run."""
    yields_turn: bool = False
    """True where the run waits for a person: another one may begin in its place."""


class RenderRequest(RunRequest):
    """Make the three forms of the report from the state (whose `draft` names the text)."""

    change: StateChange


class RenderedReport(CompactModel):
    """The report with numbers, in the content store; its beginning of up to 128 KB also here, packed."""

    files: ReportFiles
    packed: str = ""
    cut: bool = False
    summary: str = ""
    citations: list[Citation] = []
    verification: VerificationSummary = VerificationSummary()
    verdicts: list[Verdict] = []
    """Verdict of each claim in the report, in order."""

    @property
    def text(self) -> str:
        """The beginning of the report."""
        return str(unpack_json(self.packed)) if self.packed else ""


class DocumentPieceRequest(RunRequest):
    """A piece of a stored document, for clients that reach only the engine; another tenant's run has none."""

    name: str
    """`report.md`, `report.html`, `report.json`, `session.json`, `draft.md`, a source id, or the hash of a revision."""
    offset: int = 0
    limit: int = 1_000_000


class DocumentPiece(CompactModel):
    """At most 1 MB of a document."""

    text: str
    next_offset: int | None = None
    size: int = 0


class ExtractClaimsRequest(RunRequest):
    """Find the claims of the newest draft, and judge by rules where they can."""

    change: StateChange
    answers: list[str] = []
    """Hashes of the entries of earlier answers."""


class ExtractedClaims(CompactModel):
    """Claims for a checker."""

    claims_entry: str
    """Hash of the `ClaimsEntry`; for corrections of the `CorrectedEntry`."""
    asked_entry: str = ""
    sizes: list[int] = []
    """Bytes of each claim for the checker, the most important first."""
    claims: int = 0


class FinalizeVerificationRequest(RunRequest):
    """Put the verdicts on a draft together; with `corrected_entry` choose the corrections that stay."""

    mode: str = ""
    by_model: bool = True
    claims_entry: str = ""
    corrected_entry: str = ""
    corrections_entry: str = ""
    """Hash of the entry of earlier corrections."""
    answers: list[str] = []
    unreached: int = 0
    """Number of claims that no checker judged, of the last batch."""
    corrects: bool = False


class FinalizedVerification(CompactModel):
    """The verdicts on a draft, and its claims to be corrected."""

    claims_entry: str = ""
    """Hash for the resulting draft; empty where it is the given one."""
    verdicts_entry: str = ""
    corrections_entry: str = ""
    summary: VerificationSummary = VerificationSummary()
    verdicts: list[Verdict] = []
    """Of each claim, in order."""
    draft: ReportDraft | None = None
    """The corrected draft; None where no correction stays."""
    doubtful_entry: str = ""
    sizes: list[int] = []
    """Bytes of each claim that is to be corrected."""


class ApplyRequest(RunRequest):
    """Put proposals of a corrector and of rules into the draft, to be checked."""

    by_model: bool = True
    claims_entry: str
    proposals: list[str]
    """Hashes of the entries of proposals."""
    answers: list[str] = []


class JoinRequest(RunRequest):
    """Sections that were written apart, and the frame around them."""

    frame: ReportDraft
    sections: list[DocumentRef]
    headings: list[str]
    """Heading of each section, where its text has none."""
