"""Position, units and steps of the strategy `reflective`. Pure."""

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar, Final

from pydantic import BaseModel

from contracts.addresses import short_hash, sub_query_id
from contracts.evidence import Gap, SearchHit
from contracts.outcome import Mark, Progress, UnitProgress
from contracts.plan import Plan, PlanNode
from contracts.reflective_roles import ProposedStep, ReflectionDecision, Route, StepKind, StepSummary
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import NodeKind, NodeStatus, SourceStatus
from workflows.strategies.protocol import UnitPosition, mark_of

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
    return steps[int(number) - 1] if number.isdecimal() and 0 < int(number) <= len(steps) else None


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
    words, is_deep = f"{state.draft.word_count if state.draft else 0} words", position.route is Route.DEEP
    step = named_step(state, name) if kind is UnitKind.STEP else None
    return {
        UnitKind.COORDINATION: position.route.value + (f", {state.resolution.depth.value}" if is_deep else ""),
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


# --- nodes ---------------------------------------------------------------------------------------------------------
def step_node(step: ProposedStep, iteration: int) -> PlanNode:
    """Return a planner's step as a node that searches nothing itself."""
    return PlanNode(
        id="step-" + short_hash(iteration, step.title),
        text=step.title,
        kind=NodeKind.STEP,
        needs_search=False,
        facet=step.step_type,
        expected_contribution=step.description,
        iteration=iteration,
    )


def only_step(question: str) -> PlanNode:
    """Return the one step of a quick run: the question itself."""
    return PlanNode(
        id="step-" + short_hash("quick", question),
        text=question[:500],
        kind=NodeKind.STEP,
        needs_search=False,
        facet=StepKind.RESEARCH.value,
        expected_contribution=question[:500],
    )


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


def is_analysis(step: PlanNode) -> bool:
    """Return true for a step that thinks about the findings, without a search."""
    return step.facet == StepKind.ANALYSIS.value


def is_requested(step: PlanNode) -> bool:
    """Return true if a person asked for the step during the run: no plan and no reflection skips it."""
    return step.gap_id is not None


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


def room_for_steps(plan: Plan, most: int) -> int:
    """Return the number of steps that a planner may still add: started and requested ones count against the limit."""
    started = with_status(plan, NodeStatus.EXECUTING, NodeStatus.COMPLETED, NodeStatus.FAILED)
    requested = [step for step in with_status(plan, NodeStatus.PENDING) if is_requested(step)]
    return max(0, most - len(started) - len(requested))


def open_queries(state: ResearchState, step: PlanNode) -> list[PlanNode]:
    """Return the searches of a step that have yet to be made."""
    unfinished = (NodeStatus.PENDING, NodeStatus.EXECUTING)
    return [node for node in state.plan.children(step) if node.status in unfinished]


# --- changes of the plan -------------------------------------------------------------------------------------------
def with_new_steps(plan: Plan, title: str, thought: str, fresh: Sequence[PlanNode]) -> Plan:
    """Return the plan with new steps in place of those that may be replaced."""
    fixed = [node for node in plan.nodes if not _is_replaceable(node)]
    known = {node.id for node in fixed}
    brief = thought or plan.brief or title
    return Plan(version=plan.version + 1, brief=brief, nodes=[*fixed, *(s for s in fresh if s.id not in known)])


def with_requested_step(plan: Plan, gap: Gap, iteration: int, most: int) -> tuple[Plan, PlanNode | None]:
    """Return the plan with a step for a person's request before all replaceable ones, and the step that it displaces.

    The same plan if all steps within the limit were started or requested.
    """
    if not room_for_steps(plan, most):
        return plan, None
    text = (gap.suggested_queries or [gap.description])[0]
    step = step_node(ProposedStep(title=text[:500], description=text[:500]), iteration)
    step = step.model_copy(update={"origin": f"gap:{gap.id}", "rationale": gap.description[:300]})
    fixed = [node for node in plan.nodes if not _is_replaceable(node)]
    later = [node for node in plan.nodes if _is_replaceable(node)]
    counted = [node for node in fixed if node.kind is NodeKind.STEP and node.status is not NodeStatus.SKIPPED]
    displaced = later.pop() if later and len(counted) + len(later) >= most else None
    return Plan(version=plan.version + 1, brief=plan.brief, nodes=[*fixed, step, *later]), displaced


def without_pending_steps(plan: Plan, reason: str) -> tuple[Plan, list[str]]:
    """Return the plan with its pending steps skipped, but for requested ones, and the ids of the skipped ones."""
    skipped = [step for step in pending_steps(plan) if not is_requested(step)]
    update = {"status": NodeStatus.SKIPPED, "status_reason": reason}
    return plan.with_nodes(*(step.model_copy(update=update) for step in skipped)), [step.id for step in skipped]


def _is_replaceable(node: PlanNode) -> bool:
    return node.kind is NodeKind.STEP and node.status is NodeStatus.PENDING and not is_requested(node)


# --- results of a step ---------------------------------------------------------------------------------------------
def observations_of(state: ResearchState, step: PlanNode) -> list[str]:
    """Return the statements of the findings of a step, in their order."""
    names = {node.id for node in state.plan.children(step)}
    return [finding.statement for finding in state.findings if finding.sub_query_id in names]


def titles_of(state: ResearchState, step: PlanNode) -> list[str]:
    """Return the titles of the sources that a step has read."""
    names = {node.id for node in state.plan.children(step)}
    return [source.title for source in state.readable_sources() if names.intersection(source.sub_query_ids)]


def reads_left(state: ResearchState, step: PlanNode, most: int) -> int:
    """Return the number of sources that a step may still read; unreadable ones count."""
    names = {node.id for node in state.plan.children(step)}
    read = [
        source
        for source in state.sources.values()
        if source.status is not SourceStatus.NOT_FETCHED and source.sub_query_ids and source.sub_query_ids[0] in names
    ]
    return max(0, most - len(read))


def summaries_of(state: ResearchState, *statuses: NodeStatus) -> list[StepSummary]:
    """Return the steps as planner and reflector see them: those of the statuses, or all if none is named."""
    return [
        StepSummary(
            title=step.text,
            status=step.status,
            observations=observations_of(state, step)[:SHOWN_OBSERVATIONS],
            finding_count=step.finding_count,
        )
        for step in (with_status(state.plan, *statuses) if statuses else state.plan.steps)
    ]
