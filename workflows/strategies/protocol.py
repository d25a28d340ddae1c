"""The contract between the engine and a strategy."""

from dataclasses import dataclass
from typing import Protocol

from contracts.state import UnitDone
from contracts.vocabulary import Phase, StopReason
from workflows.run.research_run import ResearchRun


@dataclass(frozen=True)
class Next:
    """What a call of `advance` did: a unit, or the news that there is nothing more to do."""

    unit: UnitDone | None = None
    finished: StopReason | None = None

    @classmethod
    def after(cls, phase: Phase, *, can_change: bool, iteration_ended: bool = False) -> "Next":
        """A phase was done.

        `can_change`: whether doing it again would have a different input (C0-27). `iteration_ended`: whether this is a
        boundary where the session is saved and the history may start anew.
        """
        return cls(UnitDone(phase=phase, can_change=can_change, iteration_ended=iteration_ended))


class Strategy(Protocol):
    """Decides what to do next; its position lives in `run.state.strategy`, never in the object."""

    async def advance(self, run: ResearchRun) -> Next:
        """Do one resumable unit. Nothing but the state survives until the next call."""
        ...
