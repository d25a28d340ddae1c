"""How far a run of the strategy `reflective` is. Pure."""

from typing import Final

from contracts.progress import Mark, Progress, UnitProgress
from contracts.state import ResearchState
from contracts.vocabulary import NodeStatus
from workflows.strategies.reflective.reflective_position import UnitKind, position_of
from workflows.strategies.reflective.steps import completed_steps, observations_of, steps_of

LABELS: Final = {
    UnitKind.COORDINATION: "classify",
    UnitKind.BACKGROUND: "explore",
    UnitKind.PLANNING: "plan",
    UnitKind.SYNTHESIS: "write",
    UnitKind.ANSWER: "answer",
}
STEP_MARKS: Final = {
    NodeStatus.EXECUTING: Mark.RUNNING,
    NodeStatus.COMPLETED: Mark.DONE,
    NodeStatus.FAILED: Mark.FAILED,
}


def progress_of(state: ResearchState) -> Progress:
    """Coordination, background, plan, each step, report; a direct answer has no steps."""
    position, steps = position_of(state), steps_of(state.plan)
    units = [_unit(state, kind) for kind in (UnitKind.COORDINATION, UnitKind.BACKGROUND, UnitKind.PLANNING)]
    if position.next_unit is UnitKind.ANSWER:
        units = [_unit(state, UnitKind.COORDINATION), _unit(state, UnitKind.ANSWER)]
        return Progress(summary="a direct answer", units=units)
    units += [
        UnitProgress(
            name=f"{UnitKind.STEP}-{number}",
            label=f"step {number}",
            mark=STEP_MARKS.get(step.status, Mark.WAITING),
            detail=f"{len(observations_of(state, step))} findings: {step.text}"
            if step.status is NodeStatus.COMPLETED
            else step.text + (" (skipped)" if step.status is NodeStatus.SKIPPED else ""),
        )
        for number, step in enumerate(steps, start=1)
    ]
    units.append(_unit(state, UnitKind.SYNTHESIS))
    done, planned = len(completed_steps(state.plan)), len(steps)
    last = state.resolved.limits.max_iterations if state.resolved else 1
    of_plan = f", plan {state.iteration} of at most {last}" if state.iteration > 1 else ""
    return Progress(summary=f"step {min(done + 1, planned)} of {planned}{of_plan}" if planned else "", units=units)


def _unit(state: ResearchState, kind: UnitKind) -> UnitProgress:
    order = list(UnitKind)
    position = position_of(state)
    here, own = order.index(position.next_unit), order.index(kind)
    done = position.finished or own < here
    running = own == here and not done and state.phase is not None
    mark = Mark.DONE if done else Mark.RUNNING if running else Mark.WAITING
    return UnitProgress(name=kind, label=LABELS[kind], mark=mark, detail=unit_summary(state, kind) if done else "")


def unit_summary(state: ResearchState, kind: UnitKind) -> str:
    """What a unit has brought, in a few words."""
    position = position_of(state)
    return {
        UnitKind.COORDINATION: f"{position.route}{f', {position.choice}' if position.choice else ''}",
        UnitKind.BACKGROUND: f"{len(position.background)} titles",
        UnitKind.PLANNING: f"{len(steps_of(state.plan))} steps",
        UnitKind.SYNTHESIS: f"{state.draft.word_count if state.draft else 0} words",
        UnitKind.ANSWER: f"{state.draft.word_count if state.draft else 0} words",
    }[kind]
