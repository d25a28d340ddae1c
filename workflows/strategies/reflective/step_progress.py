"""How far a run of the strategy `reflective` is. Pure."""

from typing import Final

from contracts.outcome import Mark, Progress, UnitProgress
from contracts.plan import PlanNode
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import NodeStatus
from workflows.strategies.reflective.reflective_position import UnitKind, read_position
from workflows.strategies.reflective.steps import ended_steps, observations_of, steps_of

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
    position, steps = read_position(state), steps_of(state.plan)
    units = [_unit(state, kind) for kind in (UnitKind.COORDINATION, UnitKind.BACKGROUND, UnitKind.PLANNING)]
    if position.next_unit is UnitKind.ANSWER:
        units = [_unit(state, UnitKind.COORDINATION), _unit(state, UnitKind.ANSWER)]
        return Progress(summary="a direct answer", units=units)
    units += [
        UnitProgress(
            name=f"{UnitKind.STEP}-{number}",
            label=f"step {number}",
            mark=STEP_MARKS.get(step.status, Mark.WAITING),
            detail=_detail(state, step),
        )
        for number, step in enumerate(steps, start=1)
    ]
    units.append(_unit(state, UnitKind.SYNTHESIS))
    done, planned = len(ended_steps(state.plan)), len(steps)
    last = state.resolved.limits.max_iterations if state.resolved else 1
    of_plan = f", plan {state.iteration} of at most {last}" if state.iteration > 1 else ""
    return Progress(summary=f"step {min(done + 1, planned)} of {planned}{of_plan}" if planned else "", units=units)


def named_step(state: ResearchState, unit: str) -> PlanNode | None:
    """The step that a unit of this name carried out; None for a unit that only analyzed what was left over."""
    steps, number = steps_of(state.plan), unit.removeprefix(f"{UnitKind.STEP}-")
    return steps[int(number) - 1] if number.isdecimal() and 0 < int(number) <= len(steps) else None


def step_summary(state: ResearchState, unit: str) -> str:
    """What a step has brought, in a few words."""
    step = named_step(state, unit)
    return _detail(state, step) if step else ""


def _detail(state: ResearchState, step: PlanNode) -> str:
    match step.status:
        case NodeStatus.COMPLETED:
            found = len(observations_of(state, step))
            if not found and step.finding_count:
                return f"nothing that was not known before: {step.text}"
            return f"{plural(found, 'finding')}: {step.text}"
        case NodeStatus.FAILED:
            return f"failed ({step.error}): {step.text}"
        case NodeStatus.SKIPPED:
            return f"{step.text} (skipped)"
        case _:
            return step.text


def _unit(state: ResearchState, kind: UnitKind) -> UnitProgress:
    order = list(UnitKind)
    position = read_position(state)
    here, own = order.index(position.next_unit), order.index(kind)
    done = position.finished or own < here
    running = own == here and not done and state.phase is not None
    mark = Mark.DONE if done else Mark.RUNNING if running else Mark.WAITING
    return UnitProgress(name=kind, label=LABELS[kind], mark=mark, detail=unit_summary(state, kind) if done else "")


def unit_summary(state: ResearchState, kind: UnitKind) -> str:
    """What a unit has brought, in a few words."""
    position = read_position(state)
    return {
        UnitKind.COORDINATION: ", ".join(dict.fromkeys(filter(None, (position.route.value, position.choice)))),
        UnitKind.BACKGROUND: f"{len(position.background)} titles",
        UnitKind.PLANNING: plural(len(steps_of(state.plan)), "step"),
        UnitKind.SYNTHESIS: f"{state.draft.word_count if state.draft else 0} words",
        UnitKind.ANSWER: f"{state.draft.word_count if state.draft else 0} words",
    }[kind]
