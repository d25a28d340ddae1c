"""Position, units and steps of the strategy `reflective`. Pure."""

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar, Final

from pydantic import BaseModel

from contracts.addresses import sub_query_id
from contracts.evidence import Finding, Gap, SearchHit
from contracts.outcome import Mark, Progress, UnitProgress
from contracts.plan import Plan, PlanNode
from contracts.reflective_roles import ReflectionDecision, StepKind, StepSummary
from contracts.request import Mode
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import Confidence, NodeStatus
from workflows.strategies.units import UnitPosition, step_node, unit_progress

STEP_MARKS: Final = {
    NodeStatus.EXECUTING: Mark.RUNNING,
    NodeStatus.COMPLETED: Mark.DONE,
    NodeStatus.FAILED: Mark.FAILED,
}
SHOWN_OBSERVATIONS: Final = 6
"""Statements of a step that planner and reflector see."""


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
    route: Mode = Mode.DEEP
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


# --- progress ------------------------------------------------------------------------------------------------------
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
    return steps[int(number) - 1] if number.isdecimal() and 0 < int(number) <= len(steps) else None


def progress_of(state: ResearchState) -> Progress:
    """Return coordination, background, plan, each step and report; a direct answer has no steps."""
    position, steps = ReflectivePosition.read(state), state.plan.steps
    units = {
        kind: unit_progress(state, position, kind, LABELS, summary_of_unit(state, kind, kind))
        for kind in UnitKind
        if kind is not UnitKind.STEP
    }
    answer = units.pop(UnitKind.ANSWER)
    if position.next_unit is UnitKind.ANSWER:
        return Progress(summary="a direct answer", units=[units[UnitKind.COORDINATION], answer])
    report = units.pop(UnitKind.SYNTHESIS)
    of_steps = [
        UnitProgress(
            name=f"{UnitKind.STEP}-{number}",
            label=f"{LABELS[UnitKind.STEP]} {number}",
            mark=STEP_MARKS.get(step.status, Mark.WAITING),
            detail=_step_detail(state, step),
        )
        for number, step in enumerate(steps, start=1)
    ]
    ended = with_status(state.plan, NodeStatus.COMPLETED, NodeStatus.FAILED)
    place = f"step {min(len(ended) + 1, len(steps))} of {len(steps)}" if steps else ""
    if place and state.iteration > 1:
        place += f", plan {state.iteration} of at most {state.resolution.limits.max_iterations}"
    return Progress(summary=place, units=[*units.values(), *of_steps, report])


def summary_of_unit(state: ResearchState, kind: UnitKind, name: str) -> str:
    """Return the results of a unit in a few words."""
    position = ReflectivePosition.read(state)
    words, is_deep = plural(state.draft.word_count if state.draft else 0, "word"), position.route is Mode.DEEP
    step = named_step(state, name) if kind is UnitKind.STEP else None
    return {
        UnitKind.COORDINATION: position.route.value + (f", {state.resolution.depth.value}" if is_deep else ""),
        UnitKind.BACKGROUND: plural(len(position.background), "title"),
        UnitKind.PLANNING: plural(len(state.plan.steps), "step"),
        UnitKind.STEP: _step_detail(state, step) if step else "",
        UnitKind.SYNTHESIS: words,
        UnitKind.ANSWER: words,
    }[kind]


def _step_detail(state: ResearchState, step: PlanNode) -> str:
    match step.status:
        case NodeStatus.COMPLETED:
            found = len(findings_of(state, step))
            if not found and step.finding_count:
                return f"nothing that was not known before: {step.text}"
            return f"{plural(found, 'finding')}: {step.text}"
        case NodeStatus.FAILED:
            return f"failed ({step.error}): {step.text}"
        case NodeStatus.SKIPPED:
            return f"{step.text} (skipped)"
        case _:
            return step.text


# --- steps by status -----------------------------------------------------------------------------------------------
def with_status(plan: Plan, *statuses: NodeStatus) -> list[PlanNode]:
    """Return the steps of these statuses."""
    return [step for step in plan.steps if step.status in statuses]


def completed_steps(plan: Plan) -> list[PlanNode]:
    """Return the steps that are done: no later plan changes one of them."""
    return with_status(plan, NodeStatus.COMPLETED)


def pending_steps(plan: Plan) -> list[PlanNode]:
    """Return the steps that have yet to be done, the one under way first."""
    return [*with_status(plan, NodeStatus.EXECUTING), *with_status(plan, NodeStatus.PENDING)]


def replaceable_steps(plan: Plan) -> list[PlanNode]:
    """Return the steps that another plan may replace: not started, and not requested by a person during the run."""
    return [step for step in with_status(plan, NodeStatus.PENDING) if step.gap_id is None]


def room_for_steps(plan: Plan, most: int) -> int:
    """Return the number of steps that a planner may still add: started and requested ones count against the limit."""
    fixed = len(plan.steps) - len(with_status(plan, NodeStatus.SKIPPED)) - len(replaceable_steps(plan))
    return max(0, most - fixed)


def open_queries(state: ResearchState, step: PlanNode) -> list[PlanNode]:
    """Return the searches of a step that have yet to be made."""
    unfinished = (NodeStatus.PENDING, NodeStatus.EXECUTING)
    return [node for node in state.plan.children(step) if node.status in unfinished]


# --- changes of the plan -------------------------------------------------------------------------------------------
def with_new_steps(plan: Plan, brief: str, fresh: Sequence[PlanNode]) -> Plan:
    """Return the plan with new steps in place of those that may be replaced."""
    replaced = {step.id for step in replaceable_steps(plan)}
    nodes = {node.id: node for node in plan.nodes if node.id not in replaced}
    fresh = [step for step in fresh if step.id not in nodes]
    return Plan(version=plan.version + 1, brief=brief, nodes=[*nodes.values(), *fresh])


def with_requested_step(plan: Plan, gap: Gap, iteration: int, most: int) -> Plan:
    """Return the plan with a step for a person's request before all replaceable ones; the last of these may give way.

    The same plan if all steps within the limit were started or requested.
    """
    room = room_for_steps(plan, most)
    if not room:
        return plan
    text = (gap.suggested_queries or [gap.description])[0]
    facet = StepKind.RESEARCH.value
    step = step_node(text, facet=facet, description=text, iteration=iteration, request=gap)
    return with_new_steps(plan, plan.brief, [step, *replaceable_steps(plan)[: room - 1]])


def query_nodes(step: PlanNode, queries: Sequence[str], iteration: int) -> list[PlanNode]:
    """Return the searches of a step, as nodes below it."""
    return [
        PlanNode(
            id=sub_query_id(text),
            parent=step.id,
            depth=1,
            text=text,
            expected_contribution=step.expected_contribution[:300],
            iteration=iteration,
        )
        for text in queries
    ]


# --- results of a step ---------------------------------------------------------------------------------------------
def findings_of(state: ResearchState, step: PlanNode) -> list[Finding]:
    """Return the findings of a step, in their order."""
    names = {node.id for node in state.plan.children(step)}
    return [finding for finding in state.findings if finding.sub_query_id in names]


def summaries_of(state: ResearchState, *statuses: NodeStatus) -> list[StepSummary]:
    """Return the steps as planner and reflector see them: those of the statuses, or all if none is named."""
    return [
        StepSummary(
            title=step.text,
            status=step.status,
            # The best-supported ones first.
            observations=[
                finding.statement
                for finding in sorted(findings_of(state, step), key=lambda one: list(Confidence).index(one.confidence))
            ][:SHOWN_OBSERVATIONS],
            finding_count=step.finding_count,
        )
        for step in (with_status(state.plan, *statuses) if statuses else state.plan.steps)
    ]
