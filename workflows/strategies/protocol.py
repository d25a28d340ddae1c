"""The contract between the driver and a strategy."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from contracts.agents import AgentReport
from contracts.evidence import ASKED_BY_PERSON, Gap
from contracts.outcome import Mark, Pause, Progress
from contracts.state import OpenPause, Position, ResearchState, Unit
from contracts.vocabulary import Action, EngineKind, StopReason
from workflows.rules.endings import report_issues
from workflows.run.research_run import ResearchRun

T = TypeVar("T")


@dataclass(frozen=True)
class Finished:
    """The strategy has no further unit."""

    reason: StopReason


class Strategy(Protocol):
    """Decides what to do next; its position lives in `run.state.position`, never in the object.

    After each unit the driver calls `evaluate`, asks the reflecting model, calls `pause`, checks the limits and saves.
    A run may end between any two of these, and another process continues from the stored state.
    """

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do one resumable unit. Only the state survives until the next call."""
        ...

    def evaluate(self, run: ResearchRun, unit: Unit) -> OpenPause:
        """Open the pause of a unit: check the unit by fixed rules, and name the question to a reflecting model.

        The result must not depend on time.
        """
        ...

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


class ScopedStrategy(Strategy, Protocol):
    """Works on the task of an agent; its declaration has `scoped`. Its findings are taken from the state."""

    async def conclude(self, run: ResearchRun, reason: StopReason) -> AgentReport:
        """Report the findings, however the work ended, within the reserve of the agent's time.

        Not called for a cancelled agent: no paid call may follow then. Raises `Interrupted` when the time is over; then
        there is no report, and the findings count nevertheless.
        """
        ...


class UnitPosition(Position):
    """Fields of every position whose strategy carries out a plan of steps."""

    finished: bool = False
    rewritten: bool = False
    """True once the report had its one retry."""
    skipped: list[str] = []
    """Ids of steps that were judged unnecessary: a resumed run skips them, too."""


async def carry_out(
    run: ResearchRun,
    name: str,
    label: str,
    work: Callable[[ResearchRun], Awaitable[T]],
    summary: Callable[[], str],
    *,
    title: str = "",
    **data: Any,
) -> T:
    """Do one unit between its two events, and return the result of `work`. Raises `Interrupted`.

    `label` is the short name for live views, `title` the text of the first event (default: the name), `data` further
    fields of it.
    """
    run.state.phase = name
    run.hooks.enter_phase()
    run.note("phase.started", title or name, phase=name, label=label, iteration=run.state.iteration, **data)
    result = await work(run)
    run.note("phase.finished", summary() or name, phase=name, summary=summary())
    return result


def mark_of(place: int, current: int, *, finished: bool, started: bool) -> Mark:
    """Return the mark of the unit at `place` while the one at `current` comes next."""
    if finished or place < current:
        return Mark.DONE
    return Mark.RUNNING if place == current and started else Mark.WAITING


def unplanned_requests(state: ResearchState) -> list[Gap]:
    """Return the open gaps that a person asked for and that no step of the plan pursues yet."""
    pursued = {node.gap_id for node in state.plan.nodes}
    return [gap for gap in state.unaddressed_gaps() if gap.origin == ASKED_BY_PERSON and gap.id not in pursued]


def judge_report(run: ResearchRun, position: UnitPosition, unit: str) -> Pause:
    """Finish the run, or have a model write a report with issues once more."""
    issues = report_issues(run.state)
    if issues and not position.rewritten and run.resolved.engine is EngineKind.MODEL:
        position.rewritten = True
        reasons = "; ".join(issue.message for issue in issues)
        return Pause(phase=unit, action=Action.RETRY, rationale=reasons[:500])
    position.finished = True
    return Pause(phase=unit, action=Action.COMPLETE)
