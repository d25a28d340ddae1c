"""The contract between the driver and a strategy."""

from dataclasses import dataclass
from typing import Protocol

from contracts.agents import NodeSummary
from contracts.outcome import Pause, Progress
from contracts.state import OpenPause, ResearchState, Unit
from contracts.vocabulary import EngineKind, StopReason
from workflows.phases.closing import write_early
from workflows.run.research_run import ResearchRun


@dataclass(frozen=True)
class Finished:
    """The strategy has no further unit."""

    reason: StopReason


class Strategy(Protocol):
    """Decides what to do next; its position lives in `run.state.position`, never in the object.

    After each unit the driver calls `evaluate`, the reflecting model and `pause`, checks the limits and saves.
    A run may end between any two of these, and another process continues from the stored state.
    """

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do one resumable unit. Only the state survives until the next call."""
        ...

    def evaluate(self, run: ResearchRun, unit: Unit) -> OpenPause:
        """Open the pause of a unit: check the unit by fixed rules, and name the question to a reflecting model.

        The result must not depend on time. A strategy without gates does neither.
        """
        del run
        return OpenPause(unit=unit)

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Conclude a pause: apply the reflection, call the hook, decide, record."""
        ...

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Move the position of a stored state to the first unit that has to be done again.

        `redo_analysis` is true if sub-queries were analyzed without their model when the earlier run ended.
        """
        ...

    def replan(self, state: ResearchState) -> None:
        """Move the position back to the unit that makes the plan, because a person demands another one.

        Called before any search; the guidance has the person's message.
        """
        ...

    def progress(self, state: ResearchState) -> Progress:
        """Return the units with their marks. Pure."""
        ...

    async def write_early(
        self, run: ResearchRun, reason: StopReason, *, changed: bool, engine: EngineKind | None
    ) -> None:
        """Write the report of a run that is cut short (`workflows.phases.closing.write_early`).

        By default the synthesizer writes it; a strategy whose report grows while it works adds the missing parts.
        """
        await write_early(run, reason, changed=changed, engine=engine)


class ScopedStrategy(Strategy, Protocol):
    """Works on the task of an agent; its declaration has `scoped`. Its findings are taken from the state.

    It is neither resumed nor planned again by itself: its run gives its task again.
    """

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """No effect."""

    def replan(self, state: ResearchState) -> None:
        """No effect."""

    async def conclude(self, run: ResearchRun) -> str:
        """Finish the findings, however the work ended, within the reserve of the agent's time, and sum them up.

        Not called for a cancelled agent: no paid call may follow then. Raises `Interrupted` when the time is over; then
        there is no summary, and the findings count nevertheless.
        """
        ...

    def describe_node(self, state: ResearchState) -> NodeSummary | None:
        """Return the part of a tree that the agent worked on, however its work ended; None for one without a tree.

        Its usage and the nodes below it are added to what this returns. Pure.
        """
        del state
        return None
