"""Progress and end of a run: usage, units, decisions, outcome."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, Final

from pydantic import Field, ValidationError, computed_field

from contracts.base import Contract
from contracts.checking import ReviewSummary, VerificationSummary
from contracts.evidence import DocumentRef
from contracts.plan import Objection, Waiting
from contracts.resolved import EffectiveLimits, ModelPrice, ProviderChoice
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

Rounding every sum to them makes sums equal whatever the order in which they were made.
"""


class Usage(Contract):
    """Counters of a run or of one call; they add up."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Input tokens that the endpoint read from its prompt cache; part of `input_tokens`."""
    cache_write_tokens: int = 0
    """Input tokens that it wrote into its prompt cache; part of `input_tokens`."""
    cost_usd: float | None = 0.0
    """None as soon as one paid call or search had no known price."""
    partial_cost_usd: float = 0.0
    """Known part of a cost that is None, for the cap on it; 0 while the whole cost is known."""
    searches: int = 0
    cached_searches: int = 0
    """Searches that the cache answered; part of `searches`."""
    reads: int = 0
    cached_reads: int = 0
    """Reads that the cache answered; part of `reads`."""
    active_seconds: float = 0.0

    @computed_field  # type: ignore[prop-decorator]  # mypy knows no decorator on top of a property
    @property
    def cached_share(self) -> float | None:
        """Share of the input that came from the endpoint's prompt cache, 0 to 1; None without input."""
        return round(self.cached_tokens / self.input_tokens, 4) if self.input_tokens else None

    @property
    def tokens(self) -> int:
        """Input and output together: what `max_tokens` limits."""
        return self.input_tokens + self.output_tokens

    @property
    def known_cost_usd(self) -> float:
        """Known cost, which `max_cost_usd` limits."""
        return self.partial_cost_usd if self.cost_usd is None else self.cost_usd

    def most_usd(self, price: ModelPrice | None) -> float | None:
        """Return the cost of the tokens, none of them cached; None without a known price."""
        if price is None:
            return None
        return (self.input_tokens * price.input + self.output_tokens * price.output) / 1_000_000

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of both; an unknown cost stays unknown, with its known part."""
        unknown = self.cost_usd is None or other.cost_usd is None
        known = round(self.known_cost_usd + other.known_cost_usd, MONEY_DIGITS)
        sums = {name: getattr(self, name) + getattr(other, name) for name in COUNTERS}
        return Usage(cost_usd=None if unknown else known, partial_cost_usd=known if unknown else 0.0, **sums)

    def beyond(self, other: "Usage") -> "Usage":
        """Return the difference to a smaller usage: of each counter, and 0 where it is smaller."""
        unknown = self.cost_usd is None and other.cost_usd is not None
        known = round(max(0.0, self.known_cost_usd - other.known_cost_usd), MONEY_DIGITS)
        rest = {name: max(0, getattr(self, name) - getattr(other, name)) for name in COUNTERS}
        return Usage(cost_usd=None if unknown else known, partial_cost_usd=known if unknown else 0.0, **rest)


COUNTERS: Final = tuple(name for name in Usage.model_fields if name not in {"cost_usd", "partial_cost_usd"})
"""Fields of a usage that add up by themselves."""


class CallAccount(Contract):
    """Engine, model and cost of a role's answer."""

    engine: EngineKind = EngineKind.EXTRACTIVE
    model: str | None = None
    prompt_version: str = ""
    usage: Usage = Field(default=Usage())
    warnings: list[str] = []
    """Coerced values, dropped items: one short line each, without page text."""
    content: CallFidelity | None = None
    """Content that a model was shown; None without a model, or where none can be shortened."""


class Mark(StrEnum):
    """State of a unit of work."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class UnitProgress(Contract):
    """One unit of work: a phase, a step, an agent."""

    name: str
    """As events call it."""
    label: str
    """A verb or noun of at most nine characters, for a narrow column."""
    mark: Mark = Mark.WAITING
    detail: str = ""


class Progress(Contract):
    """The units of the strategy in order, and the progress of the run in one line."""

    summary: str = ""
    units: list[UnitProgress] = []


class Awaited(Contract):
    """A call that is under way."""

    what: str
    """One line for a person: `analyze: How are backups made?`, as Markdown escapes it."""
    since: str
    """Time of the request by the run's clock, ISO 8601."""
    id: str = ""
    """Id of its activity, or of the workflow of an agent."""
    attempt: int = 1
    """Above 1 while Temporal retries it, as in an outage; a client adds it from the server's description."""
    last_failure: str = ""
    """Message of the attempt before, in one line."""


class Event(Contract):
    """One thing that happened, for watchers."""

    seq: int
    type: str
    """A dotted name: `phase.started`, `source.added`, `gate.evaluated`, …"""
    time: str
    text: str = ""
    """One line for a person."""
    data: dict[str, Any] = {}


class EventPage(Contract):
    """Answer of the query `events(after)`: at most 200 events and the cursor for the next call."""

    events: list[Event] = []
    next: int = 0


class AgentDecision(Contract):
    """One entry of the decision log."""

    seq: int
    agent: str
    """The decider: a role, `gatherer`, or another name that the strategy declares."""
    action: str
    phase: str | None = None
    iteration: int = 1
    rationale: str = ""
    inputs: dict[str, Any] = {}
    outputs: dict[str, Any] | None = None
    timestamp: str = ""
    """ISO 8601 with offset, from the workflow's own clock."""


class GateIssue(Contract):
    """One reason why a gate is not satisfied."""

    code: str
    message: str


class GateResult(Contract):
    """Result of the check of a phase."""

    phase: str
    valid: bool
    issues: list[GateIssue] = []
    quality_score: float = Field(ge=0, le=10)
    metrics: dict[str, bool | int | float] = {}
    policy: GatePolicy = GatePolicy.STRICT


PERSON: Final = "person"
HOOK: Final = "hook"
"""Origins of guidance that the report lists."""


class Guidance(Contract):
    """A message of a think-pause, a hook or a person for the next phase."""

    origin: str
    """`model`, `rules`, `hook` or `person`."""
    phase: str | None = None
    text: str = Field(max_length=2_000)


class Pause(Contract):
    """Decision after a unit of work (gate, reflection, hook, decision); the strategy's next unit obeys it."""

    phase: str
    action: Action
    rationale: str = ""
    score: float = 0.0


INLINE_REPORT_CHARACTERS = 128_000


class Counts(Contract):
    """Numbers of everything."""

    iterations: int = 0
    sub_queries: int = 0
    sources: int = 0
    sources_cited: int = 0
    not_fetched: int = 0
    """Sources that were found and not read; those that no limit left room for count once the run is over."""
    duplicates: int = 0
    findings: int = 0
    evidence: int = 0
    """All passages, cited or not."""
    passages_cited: int = 0
    gaps_open: int = 0
    gaps: int = 0
    queries_failed: int = 0
    """Sub-queries that no provider answered."""
    documents_searched: int | None = None


class Ending(Contract):
    """End of a run, as the workflow decides it before the report is rendered."""

    outcome: Outcome
    stop_reason: StopReason
    completeness: Completeness
    ended_at: str

    def after_check(self, check: VerificationSummary) -> "Ending":
        """Return the ending of a report with such verdicts: without enough support it is not completed."""
        unsupported = self.outcome is Outcome.COMPLETED and check.warning
        return self.model_copy(update={"outcome": Outcome.PARTIAL}) if unsupported else self


class Citation(Contract):
    """A number in the report and the source behind it: a bijection that never changes."""

    number: int
    source_id: str
    label: str = ""
    """Text of the link in place of `[number]`, for `report.json`; empty for a plain number."""


class ReportFiles(Contract):
    """The three forms of a report in the content store."""

    markdown: DocumentRef
    html: DocumentRef
    json_document: DocumentRef

    def by_form(self) -> dict[str, DocumentRef]:
        """Return them by the name of their form."""
        return {"md": self.markdown, "html": self.html, "json": self.json_document}


class ResearchResult(Contract):
    """Result of the workflow and of every handle, also from the session when the server has none."""

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
    """What helps where resuming the run as it is would do nothing; else empty."""
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
    """An agent as the status of its run shows it."""

    id: str
    task: str
    strategy: str
    status: AgentStatus
    workflow_id: str = ""
    """Workflow with its own query `status`."""
    phase: str = ""
    """Its own current phase; empty where unknown."""
    started_at: str = ""
    ended_at: str = ""
    problem: str = ""
    summary: str = ""
    counts: Counts = Counts()
    usage: Usage = Usage()
    agents: list["AgentProgress"] = []
    """Its own agents, in the order in which they were given their tasks."""

    def with_all_below(self, level: int = 1) -> Iterator[tuple[int, "AgentProgress"]]:
        """Give this agent and all below it, each with its level, parents before their agents."""
        yield level, self
        for agent in self.agents:
            yield from agent.with_all_below(level + 1)


class ResearchStatus(Contract):
    """Answer of the query `status`."""

    research_id: str
    query: str
    status: RunStatus
    queue_place: int | None = None
    """Place of a run that waits for its turn, from 1; None for any other run."""
    queue_length: int = 0
    """Number of waiting runs, this one included."""
    phase: str | None = None
    iteration: int = 1
    max_iterations: int = 1
    limits: EffectiveLimits | None = None
    """None until the run is resolved."""
    strategy: str = "supervisor"
    progress: Progress = Progress()
    agents: list[AgentProgress] = []
    """Agents of the run, in the order in which they were given their tasks."""
    engine: str = ""
    corpus: str | None = None
    egress: str = ""
    """`nothing leaves this machine`, or the hosts that receive text."""
    estimate: str = ""
    """Expected amounts and the cap, in one line; empty for a run without paid calls."""
    web: bool = False
    providers: list[ProviderChoice] = []
    """Providers in use, and the reason against each other one."""
    waiting: Waiting | None = None
    outline: list[str] = []
    questions: list[str] = []
    """Questions of the plan to the person."""
    assumptions: list[str] = []
    """Answers that the plan assumes."""
    objections: list[Objection] = []
    """Reasons against queries of the plan, overruled ones included."""
    counts: Counts = Counts()
    usage: Usage = Usage()
    usage_by_role: dict[str, Usage] = {}
    usage_by_phase: dict[str, Usage] = {}
    fidelity: FidelityTotals | None = None
    """Content of calls that models were shown; None before the first call of such a kind."""
    verification: VerificationSummary = VerificationSummary()
    elapsed_seconds: float = 0.0
    """Active seconds as of `as_of`."""
    as_of: str = ""
    """The run's clock when something last happened in it, ISO 8601; empty for what is read from a stored session."""
    awaiting: list[Awaited] = []
    """Calls under way, oldest first."""
    deadline_seconds: float = 0.0
    last_decision: str = ""
    last_failure: str = ""
    degraded: list[str] = []
    guidance: list[Guidance] = []
    """Requests of people and hooks during the run, and their effect."""
    outcome: Outcome | None = None
    stop_reason: StopReason | None = None
    started_at: str = ""
    ended_at: str | None = None
