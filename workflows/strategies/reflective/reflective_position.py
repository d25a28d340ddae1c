"""The position of a run of the strategy `reflective`: the units and their progress. Pure."""

from enum import StrEnum
from typing import ClassVar, Final

from pydantic import BaseModel

from contracts.evidence import SearchHit
from contracts.outcome import Mark, Progress, UnitProgress
from contracts.plan import PlanNode
from contracts.reflective_roles import ReflectionDecision, Route
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import NodeStatus
from workflows.strategies.reflective.steps import observations_of, pending_steps, with_status
from workflows.strategies.units import UnitPosition, mark_of

STEP_MARKS: Final = {
    NodeStatus.EXECUTING: Mark.RUNNING,
    NodeStatus.COMPLETED: Mark.DONE,
    NodeStatus.FAILED: Mark.FAILED,
}


class UnitKind(StrEnum):
    """The units of work, in the order in which they first come."""

    COORDINATION = "coordination"
    BACKGROUND = "background"
    PLANNING = "planning"
    STEP = "step"
    SYNTHESIS = "synthesis"
    ANSWER = "answer"
    """Replaces all others for a question that needs no research."""


LABELS: Final = {
    UnitKind.COORDINATION: "classify",
    UnitKind.BACKGROUND: "explore",
    UnitKind.PLANNING: "plan",
    UnitKind.STEP: "step",
    UnitKind.SYNTHESIS: "write",
    UnitKind.ANSWER: "answer",
}


class StepReflection(BaseModel):
    """The decision after a step, and the reflector's own decision where limits changed it."""

    step: str
    decision: ReflectionDecision
    coerced_from: ReflectionDecision | None = None
    reasoning: str = ""


class ReflectivePosition(UnitPosition):
    """The unit that comes next, and values that units pass to later ones."""

    NAME: ClassVar[str] = "reflective"

    next_unit: UnitKind = UnitKind.COORDINATION
    route: Route = Route.DEEP
    choice: str = ""
    """The depth or mode that was chosen for a request which leaves it open."""
    brief: str = ""
    """The coordinator's summary of earlier turns and instructions."""
    assumption: str = ""
    """The note to the reader about a question with several meanings."""
    background: list[SearchHit] = []
    feedback: str = ""
    """Reason for which the plan is adjusted; empty for the first plan."""
    suggested_changes: list[str] = []
    turns: int = 0
    """Turns that the step under way has had."""
    reflections: list[StepReflection] = []


def name_of_unit(state: ResearchState, kind: UnitKind) -> tuple[str, str]:
    """Return name and label of the unit that comes next; steps are numbered from 1 by their place in the plan."""
    if kind is not UnitKind.STEP:
        return kind.value, LABELS[kind]
    pending = pending_steps(state.plan)
    number = state.plan.steps.index(pending[0]) + 1 if pending else len(state.plan.steps)
    return f"{kind}-{number}", f"{LABELS[kind]} {number}"


def named_step(state: ResearchState, unit: str) -> PlanNode | None:
    """Return the step that a unit of this name carried out; None for a unit that only analyzed leftovers."""
    steps, number = state.plan.steps, unit.removeprefix(f"{UnitKind.STEP}-")
    return steps[int(number) - 1] if number.isdigit() and 0 < int(number) <= len(steps) else None


def progress_of(state: ResearchState) -> Progress:
    """Return coordination, background, plan, each step and report; a direct answer has no steps."""
    position, steps = ReflectivePosition.read(state), state.plan.steps
    if position.next_unit is UnitKind.ANSWER:
        units = [_unit(state, UnitKind.COORDINATION), _unit(state, UnitKind.ANSWER)]
        return Progress(summary="a direct answer", units=units)
    units = [_unit(state, kind) for kind in (UnitKind.COORDINATION, UnitKind.BACKGROUND, UnitKind.PLANNING)]
    units += [
        UnitProgress(
            name=f"{UnitKind.STEP}-{number}",
            label=f"{LABELS[UnitKind.STEP]} {number}",
            mark=STEP_MARKS.get(step.status, Mark.WAITING),
            detail=_step_detail(state, step),
        )
        for number, step in enumerate(steps, start=1)
    ]
    units.append(_unit(state, UnitKind.SYNTHESIS))
    ended = with_status(state.plan, NodeStatus.COMPLETED, NodeStatus.FAILED)
    last = state.resolved.limits.max_iterations if state.resolved else 1
    of_plan = f", plan {state.iteration} of at most {last}" if state.iteration > 1 else ""
    place = f"step {min(len(ended) + 1, len(steps))} of {len(steps)}{of_plan}" if steps else ""
    return Progress(summary=place, units=units)


def summary_of_unit(state: ResearchState, kind: UnitKind, name: str) -> str:
    """Return the results of a unit in a few words."""
    position = ReflectivePosition.read(state)
    words = f"{state.draft.word_count if state.draft else 0} words"
    step = named_step(state, name) if kind is UnitKind.STEP else None
    return {
        UnitKind.COORDINATION: ", ".join(dict.fromkeys(filter(None, (position.route.value, position.choice)))),
        UnitKind.BACKGROUND: f"{len(position.background)} titles",
        UnitKind.PLANNING: plural(len(state.plan.steps), "step"),
        UnitKind.STEP: _step_detail(state, step) if step else "",
        UnitKind.SYNTHESIS: words,
        UnitKind.ANSWER: words,
    }[kind]


def _step_detail(state: ResearchState, step: PlanNode) -> str:
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
    position, order = ReflectivePosition.read(state), list(UnitKind)
    place, current = order.index(kind), order.index(position.next_unit)
    mark = mark_of(place, current, finished=position.finished, started=state.phase is not None)
    detail = summary_of_unit(state, kind, kind) if mark is Mark.DONE else ""
    return UnitProgress(name=kind, label=LABELS[kind], mark=mark, detail=detail)
