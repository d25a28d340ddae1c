"""The contract between the driver and a strategy."""

from dataclasses import dataclass
from typing import Protocol

from contracts.agents import AgentReport
from contracts.outcome import Pause, Progress
from contracts.state import OpenPause, ResearchState, Unit
from contracts.vocabulary import StopReason
from workflows.run.research_run import ResearchRun


@dataclass(frozen=True)
class Finished:
    """The strategy has nothing more to do."""

    reason: StopReason


class Strategy(Protocol):
    """Decides what to do next; its position lives in `run.state.position`, never in the object.

    After each unit the driver has it evaluated, asks the model that reflects, concludes the pause, checks the limits
    and saves; a run may end between any two of these, and another process goes on from the stored state.
    """

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do one resumable unit. Nothing but the state survives until the next call."""
        ...

    def evaluate(self, run: ResearchRun, unit: Unit) -> OpenPause:
        """Open the unit's pause: check it by fixed rules, and say what a model is to be asked of it.

        Where what the model says cannot change the next unit, `meanwhile` is the decision that this unit goes by: it
        begins at once, and the pause is concluded after it. Nothing that `evaluate` leaves may depend on time.
        """
        ...

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Conclude a pause: hear the reflection, let the hook speak, decide, record.

        A pause that ran beside a unit may still say RETRY: then everything that was done since is void, and the
        strategy takes it back.
        """
        ...

    def resumed(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Move the position of a stored state to what is to be done again.

        `redo_analysis` says that sub-queries were analyzed in haste at the earlier end.
        """
        ...

    def plan_anew(self, state: ResearchState) -> None:
        """Move the position back to the unit that makes the plan: a person wants another one.

        It is called before anything was searched; what the person wants stands in the guidance.
        """
        ...

    def progress(self, state: ResearchState) -> Progress:
        """How far the run is. Pure."""
        ...


class ScopedStrategy(Strategy, Protocol):
    """Works on the task of an agent; its declaration says `scoped`. What it found is taken from the state."""

    async def conclude(self, run: ResearchRun, reason: StopReason) -> AgentReport:
        """Report what was found, however the work ended, within the reserve of the agent's time.

        It is not called where the agent is told to stop: no paid call may follow then. Raises `Interrupted` where time
        is over; then there is no report, and the findings count nevertheless.
        """
        ...
