"""The contract between the engine and a strategy."""

from dataclasses import dataclass
from typing import Protocol

from contracts.vocabulary import Phase, StopReason
from workflows.run import ResearchRun


@dataclass(frozen=True)
class Next:
    """What a unit did, and what the engine should know of it."""

    phase: Phase | None = None
    """The phase that was done; null when the strategy only stops."""
    finished: StopReason | None = None
    """Set when there is nothing more to do."""
    can_change: bool = True
    """Whether doing the phase again would have a different input (C0-27)."""
    iteration_ended: bool = False
    """Whether this is a boundary where the session is saved and the history may start anew."""


class Strategy(Protocol):
    """Decides what to do next; its position lives in `run.state.strategy`, never in the object."""

    async def advance(self, run: ResearchRun) -> Next:
        """Do one resumable unit. Nothing but the state survives until the next call."""
        ...
