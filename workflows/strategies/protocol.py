"""The contract between the driver and a strategy."""

from dataclasses import dataclass
from typing import Protocol

from contracts.decisions import Pause
from contracts.progress import Progress
from contracts.state import ResearchState, Unit
from contracts.vocabulary import StopReason
from workflows.run.research_run import ResearchRun


@dataclass(frozen=True)
class Finished:
    """The strategy has nothing more to do."""

    reason: StopReason


class Strategy(Protocol):
    """Decides what to do next; its position lives in `run.state.position`, never in the object.

    After each unit the driver asks for the pause, checks the limits and saves; a run may end between any two of these
    calls, and another process goes on from the stored state.
    """

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do one resumable unit. Nothing but the state survives until the next call."""
        ...

    async def pause(self, run: ResearchRun, unit: Unit) -> Pause:
        """Evaluate the unit, reflect, let the hook speak, decide, record."""
        ...

    def resumed(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Move the position of a stored state to what is to be done again.

        `redo_analysis` says that sub-queries were analyzed in haste at the earlier end.
        """
        ...

    def progress(self, state: ResearchState) -> Progress:
        """How far the run is. Pure."""
        ...
