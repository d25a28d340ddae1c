"""The inbox: messages of people and the alarm of the clock, until the run takes them up."""

from dataclasses import dataclass, field

from contracts.plan import Plan
from contracts.vocabulary import StopReason


class Interrupted(Exception):
    """The work must end now and the report be written from the results so far. Never leaves the engine."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True)
class Answered:
    """Answers to the questions of a round, in their order; empty texts for unanswered ones."""

    answers: list[str]


@dataclass(frozen=True)
class Approved:
    """Approval of a version of the plan."""

    version: int


@dataclass(frozen=True)
class RejectedPlan:
    """Rejection of the plan: the run ends."""

    reason: str


@dataclass(frozen=True)
class Revised:
    """Demand for another plan: by guidance for the planner, or a plan as the person edited it."""

    guidance: str = ""
    plan: Plan | None = None


Reply = Answered | Approved | RejectedPlan | Revised


@dataclass
class Inbox:
    """Messages that the run has yet to take up."""

    interruption: StopReason | None = None
    steering: list[str] = field(default_factory=list)
    """Messages of people for the next unit."""
    replies: list[Reply] = field(default_factory=list)
    """Replies to the wait of the run."""
    closing: bool = False
    """True once the last report is being written: it is too late to steer."""

    @property
    def has_messages(self) -> bool:
        """True if the run has something to take up."""
        return self.interruption is not None or bool(self.steering) or bool(self.replies)

    def interrupt(self, reason: StopReason) -> None:
        """Ask for the end; the first reason counts."""
        self.interruption = self.interruption or reason

    def clear(self) -> None:
        """Drop the interruption, so that the report can be written."""
        self.interruption = None
