"""Steps of the plan, and the tasks of agents below them, as nodes. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from contracts.addresses import short_hash
from contracts.agents import AgentRecord
from contracts.evidence import Gap
from contracts.orchestrator_roles import OutlinedStep
from contracts.plan import Plan, PlanNode
from contracts.state import ResearchState
from contracts.vocabulary import AgentStatus, GapStatus, NodeKind, NodeStatus, StopReason
from workflows.rules.query_matching import normalized_query
from workflows.rules.sub_queries import ENOUGH

MOST_STEPS: Final = 6
"""Of a plan, as the document of this strategy has it."""
SPENT: Final = (StopReason.BUDGET_CALLS, StopReason.BUDGET_TOKENS, StopReason.BUDGET_COST)
"""Limits of the run that end an agent before it is done; its own time is none of them."""
STATUS_OF: Final = {
    AgentStatus.QUEUED: NodeStatus.PENDING,
    AgentStatus.RUNNING: NodeStatus.EXECUTING,
    AgentStatus.DONE: NodeStatus.COMPLETED,
    AgentStatus.CUT_OFF: NodeStatus.EXECUTING,
    AgentStatus.FAILED: NodeStatus.FAILED,
}


def steps_of(plan: Plan) -> list[PlanNode]:
    """The steps in their order."""
    return [node for node in plan.nodes if node.kind is NodeKind.STEP]


def tasks_of(plan: Plan) -> list[PlanNode]:
    """The tasks that agents were given, in their order."""
    return [node for node in plan.nodes if node.kind is NodeKind.TASK]


def unserved(plan: Plan) -> list[PlanNode]:
    """Steps that no agent was sent for, or whose agents all failed."""
    return [step for step in steps_of(plan) if step.status is NodeStatus.PENDING]


def step_node(step: OutlinedStep, origin: str = "plan") -> PlanNode:
    """A step that searches nothing itself."""
    return PlanNode(
        id="step-" + short_hash(step.step),
        text=step.step[:500],
        kind=NodeKind.STEP,
        needs_search=False,
        facet=step.facet,
        origin=origin,
    )


def with_queries_as_steps(plan: Plan) -> Plan:
    """The plan with steps in place of searches: a person may have written a list of these, and agents make them."""
    nodes = [
        step_node(OutlinedStep(step=node.text, facet=node.facet))
        if node.parent is None and node.kind is NodeKind.QUERY
        else node
        for node in plan.nodes
    ]
    return plan.model_copy(update={"nodes": list({node.id: node for node in nodes}.values())})


def with_wish(plan: Plan, gap: Gap) -> Plan:
    """The plan with a step more for what a person asked for on the way."""
    text = (gap.suggested_queries or [gap.description])[0]
    wish = step_node(OutlinedStep(step=text), f"gap:{gap.id}")
    nodes = [*plan.nodes, wish.model_copy(update={"rationale": gap.description[:300]})]
    return Plan(version=plan.version + 1, brief=plan.brief, nodes=nodes)


def served_steps(plan: Plan, numbers: Sequence[int], task: str) -> list[PlanNode]:
    """The steps that a task serves: those that are named, else the one whose words it has most of."""
    steps = steps_of(plan)
    named = [steps[number - 1] for number in dict.fromkeys(numbers) if 0 < number <= len(steps)]
    if named:
        return named
    words = set(normalized_query(task).split())
    shared = [(len(words & set(normalized_query(step.text).split())), -place) for place, step in enumerate(steps)]
    best = max(shared, default=(0, 0))
    return [steps[-best[1]]] if best[0] > 1 else []


def task_node(agent: str, task: str, steps: Sequence[PlanNode], iteration: int) -> PlanNode:
    """An agent's task below the first step that it serves."""
    return PlanNode(
        id=agent,
        text=task[:500],
        kind=NodeKind.TASK,
        status=NodeStatus.EXECUTING,
        parent=steps[0].id if steps else None,
        depth=1 if steps else 0,
        facet=steps[0].facet if steps else "",
        iteration=iteration,
    )


def with_steps_after(plan: Plan, served: Mapping[str, Sequence[str]]) -> Plan:
    """The plan with its steps as their agents have left them; `served` are further steps by agent.

    A step is done when one of its agents is, and waits for another one when all of them failed.
    """
    of_step: dict[str, list[PlanNode]] = {}
    for task in tasks_of(plan):
        for step in dict.fromkeys([*served.get(task.id, ()), *([task.parent] if task.parent else [])]):
            of_step.setdefault(step, []).append(task)
    steps = [step for step in steps_of(plan) if step.id in of_step and step.status is not NodeStatus.SKIPPED]
    return plan.with_nodes(*(_step_after(step, of_step[step.id]) for step in steps))


def _step_after(step: PlanNode, tasks: Sequence[PlanNode]) -> PlanNode:
    statuses = {task.status for task in tasks}
    if NodeStatus.COMPLETED in statuses or step.status is NodeStatus.COMPLETED:
        status = NodeStatus.COMPLETED
    elif statuses == {NodeStatus.FAILED}:
        status = NodeStatus.PENDING
    else:
        status = NodeStatus.EXECUTING
    found = max([step.finding_count, *(task.finding_count for task in tasks)])
    return step.model_copy(update={"status": status, "finding_count": found, "status_reason": ""})


def without_steps(plan: Plan, steps: Sequence[PlanNode]) -> Plan:
    """The plan without these steps, as judged from what was found."""
    update = {"status": NodeStatus.SKIPPED, "status_reason": ENOUGH}
    return plan.with_nodes(*(step.model_copy(update=update) for step in steps))


def as_resumed(state: ResearchState, skipped: Sequence[str]) -> Plan:
    """The plan of a run that goes on: agents that ended stay as they are.

    Steps whose agents failed, or were cut short by a limit that may be higher now, wait for others.
    """
    plan = without_steps(state.plan, [step for step in steps_of(state.plan) if step.id in set(skipped)])
    by_agent = {record.task.plan_node: record for record in state.agents}
    plan = plan.with_nodes(
        *(
            task.model_copy(update={"status": NodeStatus.FAILED if _is_spent(record) else STATUS_OF[record.status]})
            for task in tasks_of(plan)
            if (record := by_agent.get(task.id))
        )
    )
    return with_steps_after(plan, {})


def _is_spent(record: AgentRecord) -> bool:
    return record.result is not None and record.is_over and record.result.stop_reason in SPENT


def spent_limit(state: ResearchState) -> StopReason | None:
    """The limit that cut an agent short whose task nobody else has done; None where none did."""
    open_tasks = {task.id for task in tasks_of(state.plan) if task.status is NodeStatus.COMPLETED}
    records = [record for record in state.agents if record.task.plan_node in open_tasks and _is_spent(record)]
    return next((record.result.stop_reason for record in records if record.result), None)


def with_closed_gaps(
    gaps: Sequence[Gap], earlier: Sequence[str], found: Sequence[str], stated: Sequence[str]
) -> list[Gap]:
    """What earlier agents left open and a later one, sent for the same, found something on and does not state again."""
    origins = {f"sub_query:{agent}" for agent in earlier}
    return [
        gap.model_copy(update={"status": GapStatus.ADDRESSED, "resolved_by": list(found)})
        if found and gap.origin in origins and gap.status is GapStatus.OPEN and gap.id not in set(stated)
        else gap
        for gap in gaps
    ]
