"""The inbox where messages and the clock's alarm are put down for the run to find."""

from dataclasses import dataclass, field

from contracts.decisions import Guidance
from contracts.vocabulary import StopReason


class Interrupted(Exception):
    """The work must end now and the report be written from what is there. Never leaves the engine."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass
class Inbox:
    """What people and the clock have asked for."""

    interruption: StopReason | None = None
    steering: list[Guidance] = field(default_factory=list)
    """What people asked for and no unit has taken up; what it leaves out is left out at once."""
    closing: bool = False
    """The last report is being written: it is too late to steer."""

    @property
    def holds_something(self) -> bool:
        """Whether somebody asked for something that the run has not taken up yet."""
        return self.interruption is not None or bool(self.steering)

    def interrupt(self, reason: StopReason) -> None:
        """Ask for the end; the first reason counts."""
        self.interruption = self.interruption or reason

    def clear(self) -> None:
        """Forget the interruption, so that the report can be written."""
        self.interruption = None
