"""Progress and ending of a run: usage, units, decisions, outcome."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, Final

from pydantic import Field, ValidationError, computed_field

from contracts.base import Contract
from contracts.checking import ReviewSummary, VerificationSummary
from contracts.evidence import DocumentRef
from contracts.plan import Objection, Waiting
from contracts.resolved import EffectiveLimits, ModelPrice, ProviderChoice, ResolvedResearch
from contracts.sentences import Text
from contracts.tokens import CallFidelity, FidelityTotals
from contracts.vocabulary import (
    Action,
    AgentStatus,
    Completeness,
    EngineKind,
    GatePolicy,
    Outcome,
    ReportKind,
    RunStatus,
    StopReason,
)

MONEY_DIGITS: Final = 10
"""Decimals of a US dollar: a token costs less than a millionth, a cached one a tenth of that.

Rounding to them makes sums independent of the order of addition.
"""


class Usage(Contract):
    """Counters of a run or of one call, which can be added."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens that the endpoint read from its prompt cache; part of `input_tokens`."""
    cache_write_tokens: int = 0
    """Input tokens that it wrote into its prompt cache; part of `input_tokens`."""
    cost_usd: float | None = 0.0
    """None once a paid call or search had no known price."""
    partial_cost_usd: float = 0.0
    """Known part of the cost, for its cap, while `cost_usd` is None; else 0."""
    searches: int = 0
    cached_searches: int = 0
    """Cache hits; part of `searches`."""
    reads: int = 0
    cached_reads: int = 0
    """Cache hits; part of `reads`."""
    active_seconds: float = 0.0

    @computed_field  # type: ignore[prop-decorator]  # mypy supports no decorators on top of a property
    @property
    def cached_share(self) -> float | None:
        """Return the share of input from the endpoint's prompt cache, 0 to 1; None without input."""
        if not self.input_tokens:
            return None
        return round(self.cached_tokens / self.input_tokens, 4)

    @property
    def tokens(self) -> int:
        """Return input plus output tokens, which `max_tokens` limits."""
        return self.input_tokens + self.output_tokens

    @property
    def known_cost_usd(self) -> float:
        """Return the known cost, which `max_cost_usd` limits."""
        if self.cost_usd is None:
            return self.partial_cost_usd
        return self.cost_usd

    def max_usd(self, price: ModelPrice | None) -> float | None:
        """Return the cost of the tokens without cache discounts; None without a known price."""
        if price is None:
            return None
        return (self.input_tokens * price.input + self.output_tokens * price.output) / 1_000_000

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of both; an unknown cost stays unknown, but its known part is added."""
        unknown = self.cost_usd is None or other.cost_usd is None
        known = round(self.known_cost_usd + other.known_cost_usd, MONEY_DIGITS)
        sums = {name: getattr(self, name) + getattr(other, name) for name in COUNTERS}
        return Usage(cost_usd=None if unknown else known, partial_cost_usd=known if unknown else 0.0, **sums)

    def beyond(self, other: "Usage") -> "Usage":
        """Return how far each counter exceeds the other's; 0 if it does not."""
        unknown = self.cost_usd is None and other.cost_usd is not None
        known = round(max(0.0, self.known_cost_usd - other.known_cost_usd), MONEY_DIGITS)
        counters = {name: max(0, getattr(self, name) - getattr(other, name)) for name in COUNTERS}
        return Usage(cost_usd=None if unknown else known, partial_cost_usd=known if unknown else 0.0, **counters)


COUNTERS: Final = tuple(name for name in Usage.model_fields if name not in {"cost_usd", "partial_cost_usd"})
"""Fields of a usage that are added without special rules."""


class CallAccount(Contract):
    """Engine, model and cost of a role's answer."""

    engine: EngineKind = EngineKind.EXTRACTIVE
    model: str | None = None
    prompt_version: str = ""
    usage: Usage = Field(default=Usage())
    estimated_input_tokens: int = 0
    """Estimate of the prompt's tokens, which decides whether the call fits what is reserved; 0 without a model."""
    warnings: list[str] = []
    """Coerced values, dropped items: one short line each, without page text."""
    content: CallFidelity | None = None
    """Content shown to a model; None without a model, or if none of it can be shortened."""


class Mark(StrEnum):
    """State of a unit of work."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class UnitProgress(Contract):
    """One unit of work: a phase, a step or an agent."""

    name: str
    """Its name in events."""
    label: str
    """Short verb or noun of at most nine characters, for a narrow column."""
    mark: Mark = Mark.WAITING
    detail: str = ""


class Progress(Contract):
    """The strategy's units in order, and the run's progress in one line."""

    summary: str = ""
    units: list[UnitProgress] = []


class Awaited(Contract):
    """A call in flight."""

    what: str
    """One line for a person: `analyze: How are backups made?`, as Markdown escapes it."""
    since: str
    """Start of the call by the run's clock, ISO 8601."""
    id: str = ""
    """Id of its activity, or of an agent's workflow."""
    attempt: int = 1
    """Above 1 while Temporal retries it; clients add it from the server's description."""
    last_failure: str = ""
    """Message of the previous attempt's failure, in one line."""


class Event(Contract):
    """One event of a run, for watchers."""

    seq: int
    type: str
    """A dotted name: `phase.started`, `source.added`, `gate.evaluated`, …"""
    time: str
    text: str = ""
    """One line for a person."""
    data: dict[str, Any] = {}


class EventPage(Contract):
    """Answer of the query `events(after)`: at most 200 events, and the cursor for the next call."""

    events: list[Event] = []
    next: int = 0


class AgentDecision(Contract):
    """One entry of the decision log."""

    seq: int
    agent: str
    """A role, `gatherer`, or another name that the strategy declares."""
    action: str
    phase: str | None = None
    iteration: int = 1
    rationale: str = ""
    inputs: dict[str, Any] = {}
    outputs: dict[str, Any] | None = None
    timestamp: str = ""
    """ISO 8601 with offset, by the workflow's clock."""


class GateIssue(Contract):
    """One reason why a gate is not satisfied."""

    code: str
    message: Text


class GateResult(Contract):
    """Result of a phase's gate."""

    phase: str
    valid: bool
    issues: list[GateIssue] = []
    quality_score: float = Field(ge=0, le=10)
    metrics: dict[str, bool | int | float] = {}
    policy: GatePolicy = GatePolicy.STRICT


MODEL: Final = "model"
PERSON: Final = "person"
HOOK: Final = "hook"
"""Origins of guidance; that of people and hooks is listed in the report."""


class Guidance(Contract):
    """A message for the next phase from a think-pause, a hook or a person."""

    origin: str
    """`model`, `hook` or `person`."""
    phase: str | None = None
    role: str = ""
    """Role that it is addressed to; empty: every role."""
    iteration: int = 0
    """Iteration in which a model gave it; 0 for a person or a hook, whose guidance does not expire."""
    text: str = Field(max_length=2_000)


class Pause(Contract):
    """Decision after a unit of work (gate, reflection, hook, decision), binding for the strategy's next unit."""

    phase: str
    action: Action
    rationale: str = ""
    score: float = 0.0
    issues: list[GateIssue] | None = None
    """Of a retry: what to do differently; None: all issues of the gate."""


INLINE_REPORT_CHARACTERS = 128_000


class Counts(Contract):
    """Counts of a run's sub-queries, sources, findings, evidence and gaps."""

    iterations: int = 0
    sub_queries: int = 0
    sources: int = 0
    sources_cited: int = 0
    not_fetched: int = 0
    """Sources found but not read; those skipped because of limits count once the run is over."""
    duplicates: int = 0
    findings: int = 0
    evidence: int = 0
    """All passages, cited or not."""
    passages_cited: int = 0
    sources_offered: int = 0
    """Sources that earlier questions of the thread had archived; 0 for a question that follows none. Histories of
    earlier versions lack this and the next two."""
    sources_earlier: int = 0
    """Those of `sources` whose text an earlier question of the thread had archived."""
    passages_earlier: int = 0
    """Those of `passages_cited` that come from such a text."""
    gaps_open: int = 0
    gaps: int = 0
    queries_failed: int = 0
    """Sub-queries that no provider answered."""
    documents_searched: int | None = None


class Ending(Contract):
    """Ending of a run, decided by the workflow before the report is rendered."""

    outcome: Outcome
    stop_reason: StopReason
    completeness: Completeness
    unanswered: int | None = None
    """Number of parts of the plan that are neither answered nor stated as gaps; None if no model judges that."""
    ended_at: str

    @property
    def is_answered(self) -> bool:
        """Return true if every part of the plan is answered or its gap stated, whatever else the run lacks."""
        return self.completeness is Completeness.FULL or (
            self.completeness is Completeness.PARTIAL and self.unanswered == 0
        )

    def after_check(self, check: VerificationSummary) -> "Ending":
        """Return the ending after verification; a completed run with a warning becomes partial."""
        unsupported = self.outcome is Outcome.COMPLETED and check.warning
        if unsupported:
            return self.with_fields(outcome=Outcome.PARTIAL)
        return self


class Citation(Contract):
    """A citation number and its source, a bijection that never changes."""

    number: int
    source_id: str
    label: str = ""
    """Link text in place of `[number]`, for `report.json`; empty for a plain number."""


class ReportFiles(Contract):
    """The three formats of a report, in the content store."""

    markdown: DocumentRef
    html: DocumentRef
    json_document: DocumentRef

    def by_form(self) -> dict[str, DocumentRef]:
        """Return the files by format name."""
        return {"md": self.markdown, "html": self.html, "json": self.json_document}


class ResearchResult(Contract):
    """Result of the workflow and of every handle; read from the session if the server has none."""

    research_id: str
    outcome: Outcome
    stop_reason: StopReason
    completeness: Completeness = Completeness.EMPTY
    kind: ReportKind = ReportKind.REPORT
    summary: str = ""
    report: str = ""
    report_cut: bool = False
    report_ref: DocumentRef | None = None
    files: ReportFiles | None = None
    counts: Counts = Counts()
    usage: Usage = Usage()
    verification: VerificationSummary = VerificationSummary()
    review: ReviewSummary | None = None
    degraded: list[str] = []
    failed_branches: list[str] = []
    limitations: list[str] = []
    resumable: bool = False
    advice: str = ""
    """Remedy if resuming the run unchanged would achieve nothing; else empty."""
    started_at: str = ""
    ended_at: str = ""
    metadata: dict[str, Any] | None = None


def carried_result(details: Sequence[object]) -> ResearchResult | None:
    """Return the result in the first detail of a failure; None if it has none."""
    if not details or not isinstance(details[0], dict):
        return None
    try:
        return ResearchResult.model_validate(details[0])
    except ValidationError:
        return None


class AgentProgress(Contract):
    """An agent in its run's status."""

    id: str
    task: str
    strategy: str
    status: AgentStatus
    workflow_id: str = ""
    """Id of its workflow, which has its own `status` query."""
    phase: str = ""
    """Its current phase; empty if unknown."""
    started_at: str = ""
    ended_at: str = ""
    problem: str = ""
    summary: str = ""
    counts: Counts = Counts()
    usage: Usage = Usage()
    agents: list["AgentProgress"] = []
    """Its own agents, in task order."""

    def walk(self, level: int = 1) -> Iterator[tuple[int, "AgentProgress"]]:
        """Yield this agent and all its descendants with their levels, parents first."""
        yield level, self
        for agent in self.agents:
            yield from agent.walk(level + 1)


class ResearchStatus(Contract):
    """Answer of the query `status`."""

    research_id: str
    query: str
    status: RunStatus
    queue_place: int | None = None
    """Queue position of a waiting run, from 1; None for any other run."""
    queue_length: int = 0
    """Number of waiting runs, including this one."""
    phase: str | None = None
    iteration: int = 1
    max_iterations: int = 1
    limits: EffectiveLimits | None = None
    """None until the run is resolved."""
    strategy: str = "supervisor"
    progress: Progress = Progress()
    agents: list[AgentProgress] = []
    """Agents of the run, in task order."""
    engine: str = ""
    corpus: str | None = None
    egress: str = ""
    """`nothing leaves this machine`, or the hosts that receive text."""
    estimate: str = ""
    """Expected usage and the cost cap, in one line; empty for a run without paid calls."""
    web: bool = False
    providers: list[ProviderChoice] = []
    """Providers in use, and the reasons why others are not."""
    waiting: Waiting | None = None
    outline: list[str] = []
    questions: list[str] = []
    """The plan's questions to the user."""
    assumptions: list[str] = []
    """Answers assumed by the plan."""
    objections: list[Objection] = []
    """Reasons against queries of the plan, including overruled ones."""
    counts: Counts = Counts()
    usage: Usage = Usage()
    usage_by_role: dict[str, Usage] = {}
    usage_by_phase: dict[str, Usage] = {}
    fidelity: FidelityTotals | None = None
    """Content shown to models; None before the first call with content that can be shortened."""
    verification: VerificationSummary = VerificationSummary()
    elapsed_seconds: float = 0.0
    """Active seconds as of `as_of`."""
    as_of: str = ""
    """Run clock at the latest event, ISO 8601; empty for a status read from a stored session."""
    awaiting: list[Awaited] = []
    """Calls in flight, oldest first."""
    deadline_seconds: float = 0.0
    last_decision: str = ""
    last_failure: str = ""
    degraded: list[str] = []
    guidance: list[Guidance] = []
    """Guidance from people and hooks during the run."""
    outcome: Outcome | None = None
    stop_reason: StopReason | None = None
    started_at: str = ""
    ended_at: str | None = None

    def of_request(self, resolved: ResolvedResearch, *, progress: Progress, elapsed_seconds: float) -> "ResearchStatus":
        """Return the status with what its resolved request says, and with its progress and active seconds."""
        return self.with_fields(
            research_id=resolved.research_id,
            query=resolved.query,
            max_iterations=resolved.limits.max_iterations,
            limits=resolved.limits,
            strategy=resolved.strategy,
            progress=progress,
            engine=resolved.engine.value,
            corpus=resolved.corpus.name if resolved.corpus else None,
            egress=resolved.egress,
            estimate=resolved.estimate.words() if resolved.estimate else "",
            web=resolved.web,
            providers=resolved.providers,
            elapsed_seconds=elapsed_seconds,
            deadline_seconds=resolved.limits.deadline_seconds,
        )

    def with_newest(self, agents: list[AgentProgress], awaiting: list[Awaited]) -> "ResearchStatus":
        """Return the status with the latest state of agents and calls; the usage of agents at work is added."""
        usage = self.usage
        for agent in (agent for top in agents for _, agent in top.walk()):
            if agent.status is AgentStatus.RUNNING:
                usage = usage.plus(agent.usage)
        return self.with_fields(agents=agents, awaiting=awaiting, usage=usage)
