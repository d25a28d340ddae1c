"""The enumerations of the domain, in the field's terms."""

from enum import StrEnum
from typing import Final, Self


class AgentRole(StrEnum):
    """The six roles of the supervisor–specialist pattern."""

    SUPERVISOR = "supervisor"
    PLANNER = "planner"
    GATHERER = "gatherer"
    ANALYZER = "analyzer"
    SYNTHESIZER = "synthesizer"
    REFINER = "refiner"


class Phase(StrEnum):
    """The working phases; idle, completed and aborted are not phases but states in `RunStatus`."""

    PLANNING = "planning"
    GATHERING = "gathering"
    ANALYSIS = "analysis"
    SYNTHESIS = "synthesis"
    REFINEMENT = "refinement"


class RunStatus(StrEnum):
    """State of a run, as shown to people."""

    CREATED = "created"
    QUEUED = "queued"
    RUNNING = "running"
    AWAITING_CLARIFICATION = "awaiting_clarification"
    AWAITING_APPROVAL = "awaiting_approval"
    COMPLETED = "completed"
    PARTIAL = "partial"
    EMPTY = "empty"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    FAILED = "failed"


AWAITING: Final = (RunStatus.AWAITING_CLARIFICATION, RunStatus.AWAITING_APPROVAL)
"""The run waits for a person, and its clock is stopped."""


class Outcome(StrEnum):
    """Outcome of a run."""

    COMPLETED = "completed"
    PARTIAL = "partial"
    EMPTY = "empty"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    FAILED = "failed"


FAILURES: Final = (Outcome.REFUSED, Outcome.TIMED_OUT, Outcome.FAILED)


class ReportKind(StrEnum):
    """Kind of a report: statements of a model, or unjudged passages."""

    REPORT = "report"
    PASSAGES = "passages"


class ReportSection(StrEnum):
    """Section appended to a report and generated from the run's state, so that no writer can omit it."""

    OPEN_QUESTIONS = "open_questions"
    KNOWLEDGE_GAPS = "knowledge_gaps"


class StopReason(StrEnum):
    """Reason why a run ended; every run has exactly one."""

    text: str
    """The reason in words, for reports and limitations."""

    def __new__(cls, value: str, text: str = "") -> Self:
        """Create a member with its text."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.text = text
        return member

    NO_OPEN_GAPS = "no_open_gaps", "no gap was left open"
    NO_ACTIONABLE_GAPS = "no_actionable_gaps", "the gaps that are left could not be closed with further searches"
    COVERAGE_SUFFICIENT = "coverage_sufficient", "the gaps that are left were judged not to be worth another iteration"
    MAX_ITERATIONS = "max_iterations", "the limit of iterations was reached"
    ANSWERED_DIRECTLY = "answered_directly", "the question was answered without research"
    BUDGET_TIME = "budget_time", "the time limit was reached"
    BUDGET_TOKENS = "budget_tokens", "the token limit was reached"
    BUDGET_CALLS = "budget_calls", "the limit of model calls was reached"
    BUDGET_COST = "budget_cost", "the cost limit was reached"
    BUDGET_REST = "budget_rest", "what was left of the cost limit was too little for the next step"
    NO_EVIDENCE = "no_evidence", "no passage was found that answers the question"
    NO_PROVIDERS = "no_providers", "there was no model, or nothing to search"
    PROVIDER_OUTAGE = "provider_outage", "a service that the run needs did not answer"
    INVALID_INPUT = "invalid_input", "the request was not valid"
    CLARIFICATION_EXPIRED = "clarification_expired", "nobody answered what the question means"
    APPROVAL_EXPIRED = "approval_expired", "nobody approved the plan in time"
    APPROVAL_REJECTED = "approval_rejected", "the plan was rejected"
    INFEASIBLE = "infeasible", "the question is too wide for the limits of the run"
    USER_STOPPED = "user_stopped", "the user asked for the report early"
    USER_CANCELLED = "user_cancelled", "the user cancelled the run"
    CALL_NOT_ALLOWED = "call_not_allowed", "a role may not call another role that the work needs"
    INTERNAL_ERROR = "internal_error", "an internal error ended the run"


SPENDING_LIMITS: Final = frozenset({StopReason.BUDGET_CALLS, StopReason.BUDGET_TOKENS, StopReason.BUDGET_COST})
"""Limits of which a reserve for the report is left when they are reached."""
NATURAL_STOPS: Final = (
    StopReason.NO_OPEN_GAPS,
    StopReason.NO_ACTIONABLE_GAPS,
    StopReason.MAX_ITERATIONS,
    StopReason.COVERAGE_SUFFICIENT,
    StopReason.ANSWERED_DIRECTLY,
)
"""The run stopped because its work was done, not cut short by a limit, fault or person."""

LIMITS: Final = (
    StopReason.BUDGET_TIME,
    StopReason.BUDGET_TOKENS,
    StopReason.BUDGET_CALLS,
    StopReason.BUDGET_COST,
    StopReason.BUDGET_REST,
    StopReason.PROVIDER_OUTAGE,
)
"""The run was cut short, but not by a person."""


class Completeness(StrEnum):
    """Share of the question covered by the report; independent of the outcome."""

    FULL = "full"
    PARTIAL = "partial"
    EMPTY = "empty"


class Quality(StrEnum):
    """Quality of a source."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """Level of support for a finding."""

    CONFIRMED = "confirmed"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    SPECULATION = "speculation"


TOP_CONFIDENCE: Final = (Confidence.CONFIRMED, Confidence.HIGH)
"""Confidence of well-supported findings."""


class SourceStatus(StrEnum):
    """State of a source."""

    FULL = "full"
    FAILED = "failed"
    NOT_FETCHED = "not_fetched"


class NodeKind(StrEnum):
    """Kind of a node: a question to search, a step, an agent's task, or a leaf of a tree."""

    QUERY = "query"
    STEP = "step"
    TASK = "task"
    LEAF = "leaf"


class NodeStatus(StrEnum):
    """A node ends completed, failed or skipped; whether it is answered depends on findings, not on this status."""

    PENDING = "pending"
    EXECUTING = "executing"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"


class GapStatus(StrEnum):
    """State of a gap."""

    OPEN = "open"
    ADDRESSED = "addressed"
    UNADDRESSABLE = "unaddressable"
    SUPERSEDED = "superseded"


class GapKind(StrEnum):
    """Kind of gap."""

    MISSING = "missing"
    QUESTION = "question"
    CONTRADICTION = "contradiction"
    WEAK_SUPPORT = "weak_support"
    LIMITATION = "limitation"


class Severity(StrEnum):
    """Severity of a gap."""

    CRITICAL = "critical"
    MODERATE = "moderate"
    MINOR = "minor"


class Action(StrEnum):
    """Supervisor's decision after a phase."""

    PROCEED = "proceed"
    RETRY = "retry"
    ITERATE = "iterate"
    COMPLETE = "complete"


class JudgeMode(StrEnum):
    """Judge of a draft: a model, rules alone, or none."""

    MODEL = "model"
    RULES = "rules"
    OFF = "off"


class ThinkMode(StrEnum):
    """Author of the reflection after a unit of work."""

    AUTO = "auto"
    """A model where a unit leaves something to decide; else the gate's rules."""
    MODEL = "model"
    """A model after every unit."""
    RULES = "rules"
    OFF = "off"


class GatePolicy(StrEnum):
    """Strict: a failed gate causes one retry with changed input. Advisory: it is only recorded."""

    STRICT = "strict"
    ADVISORY = "advisory"


class EngineKind(StrEnum):
    """Engine of the roles."""

    MODEL = "model"
    EXTRACTIVE = "extractive"


class Tier(StrEnum):
    """Demand that a role makes on its model; each tier maps to a model."""

    SIMPLE = "simple"
    ANALYTICAL = "analytical"
    COMPLEX = "complex"


class AgentStatus(StrEnum):
    """State of an agent of a run."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    """It returned its results, finished or not."""
    CUT_OFF = "cut_off"
    """The run ended or was stopped while it worked; a resumed run may retry its task."""
    FAILED = "failed"
    """It ended without a result."""
