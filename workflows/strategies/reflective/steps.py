"""Steps as nodes of the plan, and the searches below them. Pure."""

from collections.abc import Sequence
from typing import Final

from contracts.addresses import short_hash, sub_query_id
from contracts.evidence import Gap
from contracts.plan import Plan, PlanNode
from contracts.reflective_roles import ProposedStep, StepKind, StepSummary
from contracts.state import ResearchState
from contracts.vocabulary import NodeKind, NodeStatus, SourceStatus

SHOWN_OBSERVATIONS: Final = 6
"""Statements of a step that planner and reflector are told."""
BEGUN: Final = (NodeStatus.EXECUTING, NodeStatus.COMPLETED, NodeStatus.FAILED)


def steps_of(plan: Plan) -> list[PlanNode]:
    """The steps in their order."""
    return [node for node in plan.nodes if node.kind is NodeKind.STEP]


def with_status(plan: Plan, *wanted: NodeStatus) -> list[PlanNode]:
    """The steps of these statuses."""
    return [step for step in steps_of(plan) if step.status in wanted]


def completed_steps(plan: Plan) -> list[PlanNode]:
    """Steps that are done: no later plan changes one of them."""
    return with_status(plan, NodeStatus.COMPLETED)


def ended_steps(plan: Plan) -> list[PlanNode]:
    """Steps that were carried out, those included whose every search failed: each counts against the limit."""
    return with_status(plan, NodeStatus.COMPLETED, NodeStatus.FAILED)


def asked_for(step: PlanNode) -> bool:
    """Whether a person asked for the step while the run went on: no plan and no reflection leaves it out."""
    return step.gap_id is not None


def room_for_steps(plan: Plan, most: int) -> int:
    """How many steps a planner may still add: what was begun and what a person asked for has its place."""
    taken = [
        step for step in steps_of(plan) if step.status in BEGUN or (asked_for(step) and step in pending_steps(plan))
    ]
    return max(0, most - len(taken))


def pending_steps(plan: Plan) -> list[PlanNode]:
    """Steps that have yet to be done, the one under way first."""
    return [*with_status(plan, NodeStatus.EXECUTING), *with_status(plan, NodeStatus.PENDING)]


def step_node(draft: ProposedStep, iteration: int) -> PlanNode:
    """A step of a planner as a node that searches nothing itself."""
    return PlanNode(
        id="step-" + short_hash(iteration, draft.title),
        text=draft.title,
        kind=NodeKind.STEP,
        needs_search=False,
        facet=draft.step_type,
        expected_contribution=draft.description,
        iteration=iteration,
    )


def query_nodes(step: PlanNode, queries: Sequence[str], iteration: int) -> list[PlanNode]:
    """The searches of a step, below it."""
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


def with_new_steps(plan: Plan, title: str, thought: str, fresh: Sequence[PlanNode]) -> Plan:
    """The plan with new steps in place of those that were not begun; what was done or asked for stays as it is."""
    kept = [node for node in plan.nodes if not _may_go(node)]
    known = {node.id for node in kept}
    brief = thought or plan.brief or title
    return Plan(version=plan.version + 1, brief=brief, nodes=[*kept, *(s for s in fresh if s.id not in known)])


def with_wish(plan: Plan, gap: Gap, iteration: int, most: int) -> tuple[Plan, PlanNode | None]:
    """The plan with a step for what a person asked for before all that were not begun, and the one that gave way.

    The same plan if every step of the limit was begun or asked for.
    """
    if not room_for_steps(plan, most):
        return plan, None
    text = (gap.suggested_queries or [gap.description])[0]
    wish = step_node(ProposedStep(title=text[:500], description=text[:500]), iteration)
    wish = wish.model_copy(update={"origin": f"gap:{gap.id}", "rationale": gap.description[:300]})
    held = [node for node in plan.nodes if not _may_go(node)]
    later = [node for node in plan.nodes if _may_go(node)]
    counted = [node for node in held if node.kind is NodeKind.STEP and node.status is not NodeStatus.SKIPPED]
    gone = later.pop() if later and len(counted) + len(later) >= most else None
    return Plan(version=plan.version + 1, brief=plan.brief, nodes=[*held, wish, *later]), gone


def _may_go(node: PlanNode) -> bool:
    return node.kind is NodeKind.STEP and node.status is NodeStatus.PENDING and not asked_for(node)


def without_steps(plan: Plan, why: str) -> tuple[Plan, list[str]]:
    """The plan whose steps that are left are skipped, and their ids; what a person asked for is done all the same."""
    left = [step for step in pending_steps(plan) if not asked_for(step)]
    update = {"status": NodeStatus.SKIPPED, "status_reason": why}
    return plan.with_nodes(*(step.model_copy(update=update) for step in left)), [step.id for step in left]


def is_analysis(step: PlanNode) -> bool:
    """Whether a step thinks about what was found, without a search."""
    return step.facet == StepKind.ANALYSIS.value


def observations_of(state: ResearchState, step: PlanNode) -> list[str]:
    """Statements of the findings of a step, in their order."""
    names = {node.id for node in state.plan.children(step)}
    return [finding.statement for finding in state.findings if finding.sub_query_id in names]


def titles_of(state: ResearchState, step: PlanNode) -> list[str]:
    """Titles of what a step has read."""
    names = {node.id for node in state.plan.children(step)}
    return [source.title for source in state.readable_sources() if names.intersection(source.sub_query_ids)]


def reads_left(state: ResearchState, step: PlanNode, most: int) -> int:
    """How many more sources a step may read; one that could not be read counts."""
    names = {node.id for node in state.plan.children(step)}
    read = [
        source
        for source in state.sources.values()
        if source.status is not SourceStatus.NOT_FETCHED and source.sub_query_ids and source.sub_query_ids[0] in names
    ]
    return max(0, most - len(read))


def summaries_of(state: ResearchState, *wanted: NodeStatus) -> list[StepSummary]:
    """Steps as planner and reflector are told of them; all of them where no status is named."""
    return [
        StepSummary(
            title=step.text,
            status=step.status,
            observations=observations_of(state, step)[:SHOWN_OBSERVATIONS],
            finding_count=step.finding_count,
        )
        for step in steps_of(state.plan)
        if not wanted or step.status in wanted
    ]
