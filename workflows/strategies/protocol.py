"""The contract between the driver and a strategy."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol

from contracts.agents import NodeSummary, PageRead
from contracts.outcome import Pause, Progress
from contracts.state import OpenPause, ResearchState, Unit
from contracts.vocabulary import EngineKind, StopReason
from workflows.phases.closing import write_early
from workflows.run.research_run import ResearchRun


@dataclass(frozen=True)
class Finished:
    """The strategy has no more units."""

    reason: StopReason


class Strategy(Protocol):
    """Decides the next unit; its position is in `run.state.work.position`, never in the object.

    After each unit the driver calls `evaluate`, the reflecting model and `pause`, checks the limits and saves.
    A run may end between any two of these, and another process continues from the stored state.
    """

    @abstractmethod
    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do one resumable unit; only the state persists until the next call."""
        ...

    def evaluate(self, run: ResearchRun, unit: Unit) -> OpenPause:
        """Open the pause of a unit: check it by fixed rules, and prepare the question to a reflecting model.

        The result must not depend on time. A strategy without gates does neither.
        """
        del run
        return OpenPause(unit=unit)

    def take_reflection(self, run: ResearchRun, opened: OpenPause) -> Pause | None:
        """Apply a reflection once the unit made beside it is done; return a pause that undoes this unit, or None.

        Only for a strategy that opens pauses with `beside`.
        """
        del run, opened
        return None

    @abstractmethod
    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Conclude a pause: apply the reflection, call the hook, decide, record."""
        ...

    @abstractmethod
    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Move the position of a stored state to the first unit to repeat.

        `redo_analysis` is true if sub-queries were analyzed without their model when the earlier run ended.
        """
        ...

    @abstractmethod
    def replan(self, state: ResearchState) -> None:
        """Move the position back to the planning unit, because a person requires a new plan.

        Called before any search; the guidance has the person's message.
        """
        ...

    @abstractmethod
    def progress(self, state: ResearchState) -> Progress:
        """Return the units with their states. Pure."""
        ...

    async def write_early(
        self, run: ResearchRun, reason: StopReason, *, changed: bool, engine: EngineKind | None
    ) -> None:
        """Write the report of a run that is cut short (`workflows.phases.closing.write_early`).

        By default the synthesizer writes it; a strategy with a live report adds the missing parts.
        """
        await write_early(run, reason, changed=changed, engine=engine)


class ScopedStrategy(Strategy, Protocol):
    """Works on an agent's task, with `scoped` in its declaration; its findings are read from the state.

    It is never resumed or replanned on its own; its run retries the task.
    """

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """No effect."""

    def replan(self, state: ResearchState) -> None:
        """No effect."""

    @abstractmethod
    async def conclude(self, run: ResearchRun) -> str:
        """Complete the findings within the agent's reserve, even after an early end, and return their summary.

        Not called for a cancelled agent, which may make no more paid calls. Raises `Interrupted` if the time is up;
        the findings then count without a summary.
        """
        ...

    def list_read(self, state: ResearchState) -> dict[str, PageRead]:
        """Return what the agent has read, by id of source, for a later start; empty if that begins anew. Pure."""
        del state
        return {}

    def describe_node(self, state: ResearchState) -> NodeSummary | None:
        """Return the agent's part of a tree, even after an early end; None if its strategy builds no tree.

        The caller adds usage and descendants. Pure.
        """
        del state
        return None
