"""The inbox where messages and the clock's alarm are put down for the run to find."""

from dataclasses import dataclass, field

from contracts.plan import Plan
from contracts.vocabulary import StopReason


class Interrupted(Exception):
    """The work must end now and the report be written from what is there. Never leaves the engine."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True)
class Answered:
    """What a person says to the questions of a round; empty texts where nothing is said."""

    answers: list[str]


@dataclass(frozen=True)
class Approved:
    """A person agrees with a version of the plan."""

    version: int


@dataclass(frozen=True)
class RejectedPlan:
    """A person wants no research by this plan."""

    reason: str


@dataclass(frozen=True)
class Revised:
    """A person wants another plan: made by the planner, or as it is here."""

    guidance: str = ""
    plan: Plan | None = None


Said = Answered | Approved | RejectedPlan | Revised


@dataclass
class Inbox:
    """What people and the clock have asked for."""

    interruption: StopReason | None = None
    steering: list[str] = field(default_factory=list)
    """Messages of people that no unit has taken up."""
    said: list[Said] = field(default_factory=list)
    """What was said while the run waited for a person."""
    closing: bool = False
    """The last report is being written: it is too late to steer."""

    @property
    def holds_something(self) -> bool:
        """Whether somebody asked for something that the run has not taken up yet."""
        return self.interruption is not None or bool(self.steering) or bool(self.said)

    def interrupt(self, reason: StopReason) -> None:
        """Ask for the end; the first reason counts."""
        self.interruption = self.interruption or reason

    def clear(self) -> None:
        """Forget the interruption, so that the report can be written."""
        self.interruption = None
