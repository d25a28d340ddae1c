"""Steps of the plan and the searches below them, as nodes. Pure."""

from collections.abc import Sequence
from typing import Final

from contracts.addresses import short_hash, sub_query_id
from contracts.evidence import Gap
from contracts.plan import Plan, PlanNode
from contracts.reflective_roles import ProposedStep, StepKind, StepSummary
from contracts.state import ResearchState
from contracts.vocabulary import NodeKind, NodeStatus, SourceStatus

SHOWN_OBSERVATIONS: Final = 6
"""Statements of a step that planner and reflector see."""


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
