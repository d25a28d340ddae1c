"""Typed signatures of the activities that are no role; the bodies never run.

Workflows call these, `activities/` registers the implementations under the same names, and a test compares both.
"""

from temporalio import activity

from contracts.agents import PrepareAgentRequest, PreparedAgent
from contracts.evidence import ReportDraft
from contracts.messages import (
    ApplyRequest,
    CheckedProviders,
    CheckProvidersRequest,
    DocumentPiece,
    DocumentPieceRequest,
    ExtractClaimsRequest,
    ExtractedClaims,
    FinalizedVerification,
    FinalizeVerificationRequest,
    JoinRequest,
    Prepared,
    PrepareRequest,
    QueueTurn,
    ReadRecord,
    ReadRequest,
    RenderedReport,
    RenderRequest,
    SaveRequest,
    SearchRequest,
    SearchResponse,
    SelectedEvidence,
    SelectionRequest,
    SessionRef,
    TurnRequest,
)


@activity.defn(name="prepare_research")
async def prepare_research(request: PrepareRequest) -> Prepared:
    """Resolve the request against the workers' configuration; load the session to go on from."""
    raise AssertionError("a signature is never run")


@activity.defn(name="prepare_agent")
async def prepare_agent(request: PrepareAgentRequest) -> PreparedAgent:
    """Keep what an agent was given where its calls find it."""
    raise AssertionError("a signature is never run")


@activity.defn(name="check_providers")
async def check_providers(request: CheckProvidersRequest) -> CheckedProviders:
    """See which providers can be reached from where searches are made."""
    raise AssertionError("a signature is never run")


@activity.defn(name="take_turn")
async def take_turn(request: TurnRequest) -> QueueTurn:
    """See whether a run may begin, so that not more go on at once than there is room for."""
    raise AssertionError("a signature is never run")


@activity.defn(name="search")
async def search(request: SearchRequest) -> SearchResponse:
    """Ask one provider one query."""
    raise AssertionError("a signature is never run")


@activity.defn(name="read_source")
async def read_source(request: ReadRequest) -> ReadRecord:
    """Fetch, extract and archive one document."""
    raise AssertionError("a signature is never run")


@activity.defn(name="select_evidence")
async def select_evidence(request: SelectionRequest) -> SelectedEvidence:
    """Choose passages for claims or sections from whole stored texts."""
    raise AssertionError("a signature is never run")


@activity.defn(name="join_report")
async def join_report(request: JoinRequest) -> ReportDraft:
    """Put sections that were written apart into their frame."""
    raise AssertionError("a signature is never run")


@activity.defn(name="save_session")
async def save_session(request: SaveRequest) -> SessionRef:
    """Write a checkpoint."""
    raise AssertionError("a signature is never run")


@activity.defn(name="render_report")
async def render_report(request: RenderRequest) -> RenderedReport:
    """Number the citations and render Markdown, HTML and JSON."""
    raise AssertionError("a signature is never run")


@activity.defn(name="extract_claims")
async def extract_claims(request: ExtractClaimsRequest) -> ExtractedClaims:
    """Find the claims of a draft, and what a checker is to be asked of them."""
    raise AssertionError("a signature is never run")


@activity.defn(name="finalize_verification")
async def finalize_verification(request: FinalizeVerificationRequest) -> FinalizedVerification:
    """Put verdicts together, and choose which corrections stand."""
    raise AssertionError("a signature is never run")


@activity.defn(name="apply_corrections")
async def apply_corrections(request: ApplyRequest) -> ExtractedClaims:
    """Put proposals into a draft, and find what a checker is to be asked of it."""
    raise AssertionError("a signature is never run")


@activity.defn(name="read_document")
async def read_document(request: DocumentPieceRequest) -> DocumentPiece:
    """Serve a stored document in pieces."""
    raise AssertionError("a signature is never run")


SIGNATURES = (
    prepare_research,
    prepare_agent,
    check_providers,
    take_turn,
    search,
    read_source,
    select_evidence,
    join_report,
    save_session,
    render_report,
    extract_claims,
    finalize_verification,
    apply_corrections,
    read_document,
)
