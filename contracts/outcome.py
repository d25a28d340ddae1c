"""The result of a run and the answers to its queries."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from contracts.base import Contract
from contracts.checking import ReviewSummary, VerificationSummary
from contracts.decisions import Guidance
from contracts.documents import DocumentRef
from contracts.progress import Awaited, Progress
from contracts.resolved import EffectiveLimits, ProviderChoice
from contracts.usage import Usage
from contracts.vocabulary import AgentStatus, Completeness, Outcome, RunStatus, StopReason
from contracts.waiting import Waiting

INLINE_REPORT_CHARACTERS = 128_000


class Counts(Contract):
    """How much there is of everything."""

    iterations: int = 0
    sub_queries: int = 0
    sources: int = 0
    sources_cited: int = 0
    duplicates: int = 0
    findings: int = 0
    evidence: int = 0
    """Passages that were kept, cited or not."""
    passages_cited: int = 0
    gaps_open: int = 0
    gaps: int = 0
    queries_failed: int = 0
    """Sub-queries that no provider answered."""
    documents_searched: int | None = None


class Ending(Contract):
    """How a run ended, as the workflow decides it before it asks for the report."""

    outcome: Outcome
    stop_reason: StopReason
    completeness: Completeness
    ended_at: str


class Citation(Contract):
    """A number in the report and the source behind it: a bijection that never changes."""

    number: int
    source_id: str


class ReportFiles(Contract):
    """The three forms of a report in the content store."""

    markdown: DocumentRef
    html: DocumentRef
    json_document: DocumentRef


class ResearchResult(Contract):
    """What the workflow returns and what every handle gets, also from the session when the engine has none."""

    research_id: str
    outcome: Outcome
    stop_reason: StopReason
    completeness: Completeness = Completeness.EMPTY
    summary: str = ""
    report: str = ""
    report_cut: bool = False
    report_ref: DocumentRef | None = None
    files: ReportFiles | None = None
    counts: Counts = Counts()
    usage: Usage = Usage()
    verification: VerificationSummary = VerificationSummary()
    """What was checked of the report's claims."""
    review: ReviewSummary | None = None
    degraded: list[str] = []
    failed_branches: list[str] = []
    limitations: list[str] = []
    resumable: bool = False
    """Whether a session is kept that `research resume` goes on from."""
    started_at: str = ""
    ended_at: str = ""
    metadata: dict[str, Any] | None = None


def carried_result(details: Sequence[object]) -> ResearchResult | None:
    """The result in the first detail of a failure, if the run put one there."""
    if not details or not isinstance(details[0], dict):
        return None
    try:
        return ResearchResult.model_validate(details[0])
    except ValidationError:
        return None


class AgentProgress(Contract):
    """An agent as the status of its run shows it."""

    id: str
    task: str
    strategy: str
    status: AgentStatus
    workflow_id: str = ""
    """Where to ask for more: its query `status` answers as that of a run does."""
    phase: str = ""
    """What it works on, as it says itself; empty where it was not asked."""
    started_at: str = ""
    ended_at: str = ""
    problem: str = ""
    """Why it brought less than it should; empty where it finished its work."""
    summary: str = ""
    counts: Counts = Counts()
    usage: Usage = Usage()


class ResearchStatus(Contract):
    """Answer of the query `status`."""

    research_id: str
    query: str
    status: RunStatus
    queue_place: int | None = None
    """The place of a run that waits for its turn, from 1."""
    queue_length: int = 0
    """How many wait with it."""
    phase: str | None = None
    iteration: int = 1
    max_iterations: int = 1
    limits: EffectiveLimits | None = None
    """What bounds the run; None until it is resolved."""
    strategy: str = "supervisor"
    progress: Progress = Progress()
    """The units of the strategy and how far each is."""
    agents: list[AgentProgress] = []
    """The agents of the run, in the order in which they were given their tasks."""
    engine: str = ""
    corpus: str | None = None
    egress: str = ""
    """Where text goes: `nothing leaves this machine`, or the hosts."""
    web: bool = False
    providers: list[ProviderChoice] = []
    """Which providers are asked, and why each other one is not."""
    advice: list[str] = []
    waiting: Waiting | None = None
    """What a person is asked now; None where nobody is."""
    counts: Counts = Counts()
    usage: Usage = Usage()
    usage_by_role: dict[str, Usage] = {}
    usage_by_phase: dict[str, Usage] = {}
    verification: VerificationSummary = VerificationSummary()
    """What was checked of the claims so far."""
    elapsed_seconds: float = 0.0
    """Active seconds as of `as_of`."""
    as_of: str = ""
    """The run's clock when something last happened in it, ISO 8601; empty for what is read from a stored session."""
    awaiting: list[Awaited] = []
    """The calls under way, oldest first."""
    deadline_seconds: float = 0.0
    last_decision: str = ""
    last_failure: str = ""
    degraded: list[str] = []
    guidance: list[Guidance] = []
    """What people and hooks asked for while the run went on, and what is done with it."""
    outcome: Outcome | None = None
    stop_reason: StopReason | None = None
    started_at: str = ""
    ended_at: str | None = None
