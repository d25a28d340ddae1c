"""The enumerations of the domain, in the words that the field uses."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class AgentRole(StrEnum):
    """The six roles of the supervisor–specialist pattern."""

    SUPERVISOR = "supervisor"
    PLANNER = "planner"
    GATHERER = "gatherer"
    ANALYZER = "analyzer"
    SYNTHESIZER = "synthesizer"
    REFINER = "refiner"


class Phase(StrEnum):
    """The working phases. Idle, completed and aborted are no phases: `RunStatus` names them."""

    PLANNING = "planning"
    GATHERING = "gathering"
    ANALYSIS = "analysis"
    SYNTHESIS = "synthesis"
    REFINEMENT = "refinement"


class RunStatus(StrEnum):
    """Where a run stands, as shown to people."""

    CREATED = "created"
    QUEUED = "queued"
    RUNNING = "running"
    AWAITING_CLARIFICATION = "awaiting_clarification"
    AWAITING_APPROVAL = "awaiting_approval"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    PARTIAL = "partial"
    EMPTY = "empty"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    FAILED = "failed"


AWAITING: Final = (RunStatus.AWAITING_CLARIFICATION, RunStatus.AWAITING_APPROVAL)
"""A person is waited for; the clock of the run stands still."""


class Outcome(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    PARTIAL = "partial"
    EMPTY = "empty"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    FAILED = "failed"


class ReportKind(StrEnum):
    """What a report is: statements that a model wrote, or passages that nobody judged."""

    REPORT = "report"
    PASSAGES = "passages"


class StopReason(StrEnum):
    """Why a run stopped; every run ends with exactly one."""

    NO_OPEN_GAPS = "no_open_gaps"
    NO_ACTIONABLE_GAPS = "no_actionable_gaps"
    COVERAGE_SUFFICIENT = "coverage_sufficient"
    MAX_ITERATIONS = "max_iterations"
    ANSWERED_DIRECTLY = "answered_directly"
    BUDGET_TIME = "budget_time"
    BUDGET_TOKENS = "budget_tokens"
    BUDGET_CALLS = "budget_calls"
    BUDGET_COST = "budget_cost"
    NO_EVIDENCE = "no_evidence"
    NO_PROVIDERS = "no_providers"
    PROVIDER_OUTAGE = "provider_outage"
    INVALID_INPUT = "invalid_input"
    CLARIFICATION_EXPIRED = "clarification_expired"
    APPROVAL_EXPIRED = "approval_expired"
    APPROVAL_REJECTED = "approval_rejected"
    USER_STOPPED = "user_stopped"
    USER_CANCELLED = "user_cancelled"
    INTERNAL_ERROR = "internal_error"


NATURAL_STOPS: Final = (
    StopReason.NO_OPEN_GAPS,
    StopReason.NO_ACTIONABLE_GAPS,
    StopReason.MAX_ITERATIONS,
    StopReason.COVERAGE_SUFFICIENT,
    StopReason.ANSWERED_DIRECTLY,
)
"""The run stopped because its work was done; no limit, fault or person cut it short."""

STOP_REASON_TEXTS: Final[Mapping[str, str]] = {
    StopReason.NO_OPEN_GAPS: "no gap was left open",
    StopReason.NO_ACTIONABLE_GAPS: "the gaps that are left could not be closed with further searches",
    StopReason.COVERAGE_SUFFICIENT: "the gaps that are left were judged not to be worth another iteration",
    StopReason.MAX_ITERATIONS: "the limit of iterations was reached",
    StopReason.ANSWERED_DIRECTLY: "the question was answered without research",
    StopReason.BUDGET_TIME: "the time limit was reached",
    StopReason.BUDGET_TOKENS: "the token limit was reached",
    StopReason.BUDGET_CALLS: "the limit of model calls was reached",
    StopReason.BUDGET_COST: "the cost limit was reached",
    StopReason.NO_EVIDENCE: "no passage was found that answers the question",
    StopReason.NO_PROVIDERS: "no model or no search provider was available",
    StopReason.PROVIDER_OUTAGE: "a service that the run needs did not answer",
    StopReason.INVALID_INPUT: "the request was not valid",
    StopReason.CLARIFICATION_EXPIRED: "nobody answered what the question means",
    StopReason.APPROVAL_EXPIRED: "nobody approved the plan in time",
    StopReason.APPROVAL_REJECTED: "the plan was rejected",
    StopReason.USER_STOPPED: "the user asked for the report early",
    StopReason.USER_CANCELLED: "the user cancelled the run",
    StopReason.INTERNAL_ERROR: "an internal error ended the run",
}
"""Each reason as reports and limitations say it."""


class Completeness(StrEnum):
    """How much of the question the report covers; independent of the outcome."""

    FULL = "full"
    PARTIAL = "partial"
    EMPTY = "empty"


class Quality(StrEnum):
    """What a source is worth."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How well a finding is supported."""

    CONFIRMED = "confirmed"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    SPECULATION = "speculation"


TOP_CONFIDENCE: Final = (Confidence.CONFIRMED, Confidence.HIGH)
"""What counts as well supported."""


class SourceStatus(StrEnum):
    """What became of a source."""

    FULL = "full"
    SNIPPET_ONLY = "snippet_only"
    FAILED = "failed"
    NOT_FETCHED = "not_fetched"


class NodeKind(StrEnum):
    """What a node of a plan is: a question to search for, a step, a task of an agent, a leaf of a tree."""

    QUERY = "query"
    STEP = "step"
    TASK = "task"
    LEAF = "leaf"


class NodeStatus(StrEnum):
    """A node ends completed, failed or skipped; `answered` is a matter of findings, not of this status."""

    PENDING = "pending"
    EXECUTING = "executing"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"


class GapStatus(StrEnum):
    """The life of a gap."""

    OPEN = "open"
    ADDRESSED = "addressed"
    UNADDRESSABLE = "unaddressable"
    SUPERSEDED = "superseded"


class GapKind(StrEnum):
    """What sort of hole a gap is."""

    MISSING = "missing"
    QUESTION = "question"
    CONTRADICTION = "contradiction"
    WEAK_SUPPORT = "weak_support"
    LIMITATION = "limitation"


class Severity(StrEnum):
    """How much a gap matters."""

    CRITICAL = "critical"
    MODERATE = "moderate"
    MINOR = "minor"


class Action(StrEnum):
    """What the supervisor decides after a phase."""

    PROCEED = "proceed"
    RETRY = "retry"
    ITERATE = "iterate"
    COMPLETE = "complete"


class ThinkMode(StrEnum):
    """What reflects in a think-pause: a model, the gate's rules alone, or nothing."""

    MODEL = "model"
    RULES = "rules"
    OFF = "off"


class GatePolicy(StrEnum):
    """Strict: a failed gate causes one retry with changed input. Advisory: it is only recorded."""

    STRICT = "strict"
    ADVISORY = "advisory"


class EngineKind(StrEnum):
    """Which engine does the roles."""

    MODEL = "model"
    EXTRACTIVE = "extractive"


class Tier(StrEnum):
    """How demanding a role is; each tier maps to a model."""

    SIMPLE = "simple"
    ANALYTICAL = "analytical"
    COMPLEX = "complex"


class AgentStatus(StrEnum):
    """Where an agent of a run stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    """It brought back what it has, finished or not."""
    CUT_OFF = "cut_off"
    """The run ended or was stopped while it worked: a resumed run may give its task again."""
    FAILED = "failed"
    """Nothing came from it."""
