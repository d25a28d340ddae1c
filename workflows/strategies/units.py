"""Shapes that strategies share: a unit with its events, its mark, the wishes of people, the one retry of a report."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from contracts.evidence import ASKED_BY_PERSON, Gap
from contracts.outcome import Mark, Pause
from contracts.state import Position, ResearchState
from contracts.vocabulary import Action, EngineKind
from workflows.rules.endings import report_issues
from workflows.run.research_run import ResearchRun

T = TypeVar("T")


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
    await run.watchers.enter_phase(run)
    run.note("phase.started", title or name, phase=name, label=label, iteration=run.state.iteration, **data)
    result = await work(run)
    run.note("phase.finished", summary() or name, phase=name, summary=summary())
    return result


def mark_of(place: int, current: int, *, finished: bool, started: bool) -> Mark:
    """Return the mark of the unit at `place` while the one at `current` comes next."""
    if finished or place < current:
        return Mark.DONE
    return Mark.RUNNING if place == current and started else Mark.WAITING


def unplanned_wishes(state: ResearchState) -> list[Gap]:
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
