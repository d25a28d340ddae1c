"""Shared by strategies that go from unit to unit: events, marks, steps of a plan, and the report."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from contracts.addresses import short_hash
from contracts.evidence import ASKED_BY_PERSON, Gap
from contracts.outcome import Mark, Pause, UnitProgress
from contracts.plan import Plan, PlanNode
from contracts.state import Position, ResearchState
from contracts.vocabulary import Action, EngineKind, NodeKind, NodeStatus, Phase
from workflows.phases.drafts import has_live_report, take_draft
from workflows.phases.writing import write_report
from workflows.rules.endings import report_issues
from workflows.rules.sub_queries import ENOUGH
from workflows.run.research_run import ResearchRun

T = TypeVar("T")


class UnitPosition(Position):
    """Fields of every position whose strategy carries out a plan of steps."""

    next_unit: str = ""
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
    run.note("phase.finished", f"{name} done: {summary()}".removesuffix(": "), phase=name, summary=summary())
    return result


def mark_of(place: int, current: int, *, finished: bool, started: bool) -> Mark:
    """Return the mark of the unit at `place` while the one at `current` comes next."""
    if finished or place < current:
        return Mark.DONE
    return Mark.RUNNING if place == current and started else Mark.WAITING


def unit_progress(
    state: ResearchState, position: UnitPosition, kind: str, labels: Mapping[Any, str], summary: str
) -> UnitProgress:
    """Return the progress of a unit that comes once, with its summary when it is done; `labels` has all in order."""
    order: list[str] = list(labels)
    place, current = order.index(kind), order.index(position.next_unit)
    mark = mark_of(place, current, finished=position.finished, started=state.phase is not None)
    return UnitProgress(name=kind, label=labels[kind], mark=mark, detail=summary if mark is Mark.DONE else "")


# --- steps ---------------------------------------------------------------------------------------------------------
def step_node(
    text: str, *, facet: str = "", description: str = "", iteration: int = 1, request: Gap | None = None
) -> PlanNode:
    """Return a step as a node without a search of its own; `request` is a person's one that it serves."""
    return PlanNode(
        id="step-" + short_hash(iteration, text),
        text=text[:500],
        kind=NodeKind.STEP,
        needs_search=False,
        facet=facet,
        expected_contribution=description[:500],
        iteration=iteration,
        origin=f"gap:{request.id}" if request else "plan",
        rationale=request.description[:300] if request else "",
    )


def unplanned_requests(state: ResearchState) -> list[Gap]:
    """Return the open gaps that a person requested and that no step of the plan pursues yet."""
    pursued = {node.gap_id for node in state.plan.nodes}
    return [gap for gap in state.unaddressed_gaps() if gap.origin == ASKED_BY_PERSON and gap.id not in pursued]


def without_steps(plan: Plan, steps: Sequence[PlanNode]) -> Plan:
    """Return the plan with these steps skipped, because the findings answer the question."""
    update = {"status": NodeStatus.SKIPPED, "status_reason": ENOUGH}
    return plan.with_nodes(*(step.model_copy(update=update) for step in steps))


# --- the report ----------------------------------------------------------------------------------------------------
async def write_draft(run: ResearchRun) -> None:
    """Write the report with the issues of an earlier attempt. Raises `Interrupted`."""
    draft = await write_report(run, run.issues(Phase.SYNTHESIS))
    await take_draft(run, draft)
    if not has_live_report(run):  # else each step has its event
        run.note("report.updated", f"{draft.characters} characters", characters=draft.characters)


def judge_report(run: ResearchRun, position: UnitPosition, unit: str) -> Pause:
    """Finish the run, or have a model write a report with issues once more."""
    issues = report_issues(run.state)
    if issues and not position.rewritten and run.resolved.engine is EngineKind.MODEL:
        position.rewritten = True
        reasons = "; ".join(issue.message for issue in issues)
        return Pause(phase=unit, action=Action.RETRY, rationale=reasons[:500])
    position.finished = True
    return Pause(phase=unit, action=Action.COMPLETE)
