"""Steps of the plan and the tasks of agents below them, as nodes, and the check of a task. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from contracts.addresses import normalized_text, short_hash
from contracts.agents import AgentRecord
from contracts.evidence import Gap
from contracts.orchestrator_roles import OutlinedStep
from contracts.plan import Plan, PlanNode
from contracts.state import ResearchState
from contracts.vocabulary import AgentStatus, GapStatus, NodeKind, NodeStatus, StopReason
from workflows.rules.query_matching import WORD, normalized_query, same_query
from workflows.rules.sub_queries import ENOUGH

MOST_STEPS: Final = 6
"""Steps of a plan, by the document of this strategy."""
FEWEST_CHARACTERS: Final = 12
FEWEST_WORDS: Final = 3
MOST_CHARACTERS: Final = 4_000
REFERENCES: Final = re.compile(
    r"\bthe (?:user|asker)\b|\b(?:the|this|our) (?:original|overall|main|research) (?:question|query|plan|request)\b"
    r"|\b(?:step|part|item|point) \d+|\b(?:previous|earlier|other|last|first) (?:agents?|tasks?|reports?|findings?)\b"
    r"|\bagent-\d+|\b(?:mentioned|listed|described|discussed) above|\bthe above\b",
    re.IGNORECASE,
)
"""Words that refer to something outside the task."""
SPENT_LIMITS: Final = (StopReason.BUDGET_CALLS, StopReason.BUDGET_TOKENS, StopReason.BUDGET_COST)
"""Limits of the run that end an agent early; its own time is none of them."""
STATUS_OF: Final = {
    AgentStatus.QUEUED: NodeStatus.PENDING,
    AgentStatus.RUNNING: NodeStatus.EXECUTING,
    AgentStatus.DONE: NodeStatus.COMPLETED,
    AgentStatus.CUT_OFF: NodeStatus.EXECUTING,
    AgentStatus.FAILED: NodeStatus.FAILED,
}


# --- checks of a task ----------------------------------------------------------------------------------------------
def problem_of(task: str) -> str:
    """Return why nobody who knows only the task could understand it, and the remedy; empty if there is no problem."""
    text = " ".join(task.split())
    words = WORD.findall(text)
    # A script without spaces expresses much in few characters.
    if not words or (text.isascii() and (len(text) < FEWEST_CHARACTERS or len(words) < FEWEST_WORDS)):
        return "task: too short to be understood; name the subject and what is to be found out about it"
    if len(text) > MOST_CHARACTERS:
        return f"task: longer than {MOST_CHARACTERS} characters; send several agents with a part each"
    if reference := REFERENCES.search(text):
        return (
            f"task: “{reference[0]}” means nothing to an agent, which knows only its task; "
            "write what it stands for in its place"
        )
    return ""


def repeated_by(task: str, earlier: Mapping[str, str]) -> str:
    """Return the id of the first of earlier agents (id → task) with the same task; empty if there is none."""
    for agent, text in earlier.items():
        if normalized_text(text) == normalized_text(task) or same_query(text, task):
            return agent
    return ""


# --- nodes ---------------------------------------------------------------------------------------------------------
def step_node(step: OutlinedStep, origin: str = "plan") -> PlanNode:
    """Return a step as a node that searches nothing itself."""
    return PlanNode(
        id="step-" + short_hash(step.step),
        text=step.step[:500],
        kind=NodeKind.STEP,
        needs_search=False,
        facet=step.facet,
        origin=origin,
    )


def task_node(agent: str, task: str, steps: Sequence[PlanNode], iteration: int) -> PlanNode:
    """Return an agent's task as a node below the first step that it serves."""
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


def tasks_of(plan: Plan) -> list[PlanNode]:
    """Return the tasks of agents, in their order."""
    return [node for node in plan.nodes if node.kind is NodeKind.TASK]


def unserved(plan: Plan) -> list[PlanNode]:
    """Return the steps without an agent, or whose agents all failed."""
    return [step for step in plan.steps if step.status is NodeStatus.PENDING]


def served_steps(plan: Plan, numbers: Sequence[int], task: str) -> list[PlanNode]:
    """Return the steps that a task serves: those with the numbers (from 1), else the one with most words in common."""
    named = [plan.steps[number - 1] for number in dict.fromkeys(numbers) if 0 < number <= len(plan.steps)]
    if named:
        return named
    words = set(normalized_query(task).split())
    shared = [(len(words & set(normalized_query(step.text).split())), -place) for place, step in enumerate(plan.steps)]
    most, place = max(shared, default=(0, 0))
    return [plan.steps[-place]] if most > 1 else []


# --- changes of the plan -------------------------------------------------------------------------------------------
def with_queries_as_steps(plan: Plan) -> Plan:
    """Return the plan with steps in place of searches: a person may have written searches, but agents make these."""
    nodes = [
        step_node(OutlinedStep(step=node.text, facet=node.facet))
        if node.parent is None and node.kind is NodeKind.QUERY
        else node
        for node in plan.nodes
    ]
    return plan.model_copy(update={"nodes": list({node.id: node for node in nodes}.values())})


def with_requested_step(plan: Plan, gap: Gap) -> Plan:
    """Return the plan with one more step, for a request of a person during the run."""
    text = (gap.suggested_queries or [gap.description])[0]
    step = step_node(OutlinedStep(step=text), f"gap:{gap.id}")
    nodes = [*plan.nodes, step.model_copy(update={"rationale": gap.description[:300]})]
    return Plan(version=plan.version + 1, brief=plan.brief, nodes=nodes)


def with_steps_updated(plan: Plan, served: Mapping[str, Sequence[str]]) -> Plan:
    """Return the plan with the status of its steps by their agents; `served` maps agents to further steps.

    A step is done when one of its agents is, and waits for another one when all of them failed.
    """
    of_step: dict[str, list[PlanNode]] = {}
    for task in tasks_of(plan):
        for step in dict.fromkeys([*served.get(task.id, ()), *([task.parent] if task.parent else [])]):
            of_step.setdefault(step, []).append(task)
    steps = [step for step in plan.steps if step.id in of_step and step.status is not NodeStatus.SKIPPED]
    return plan.with_nodes(*(_updated_step(step, of_step[step.id]) for step in steps))


def _updated_step(step: PlanNode, tasks: Sequence[PlanNode]) -> PlanNode:
    statuses = {task.status for task in tasks}
    if NodeStatus.COMPLETED in statuses or step.status is NodeStatus.COMPLETED:
        status = NodeStatus.COMPLETED
    else:
        status = NodeStatus.PENDING if statuses == {NodeStatus.FAILED} else NodeStatus.EXECUTING
    found = max([step.finding_count, *(task.finding_count for task in tasks)])
    return step.model_copy(update={"status": status, "finding_count": found, "status_reason": ""})


def without_steps(plan: Plan, steps: Sequence[PlanNode]) -> Plan:
    """Return the plan with these steps skipped, because the findings answer the question."""
    update = {"status": NodeStatus.SKIPPED, "status_reason": ENOUGH}
    return plan.with_nodes(*(step.model_copy(update=update) for step in steps))


def resumed_plan(state: ResearchState, skipped: Sequence[str]) -> Plan:
    """Return the plan of a resumed run: ended agents remain ended, skipped steps remain skipped.

    Steps whose agents failed, or ended early by a limit that may be higher now, wait for others.
    """
    plan = without_steps(state.plan, [step for step in state.plan.steps if step.id in set(skipped)])
    by_agent = {record.task.plan_node: record for record in state.agents}
    plan = plan.with_nodes(
        *(
            task.model_copy(update={"status": NodeStatus.FAILED if _is_spent(record) else STATUS_OF[record.status]})
            for task in tasks_of(plan)
            if (record := by_agent.get(task.id))
        )
    )
    return with_steps_updated(plan, {})


def spent_limit(state: ResearchState) -> StopReason | None:
    """Return the limit that ended an agent early, if its task was not done again."""
    ended = {task.id for task in tasks_of(state.plan) if task.status is NodeStatus.COMPLETED}
    records = [record for record in state.agents if record.task.plan_node in ended and _is_spent(record)]
    return next((record.result.stop_reason for record in records if record.result), None)


def _is_spent(record: AgentRecord) -> bool:
    return record.result is not None and record.is_over and record.result.stop_reason in SPENT_LIMITS


def with_closed_gaps(
    gaps: Sequence[Gap], earlier: Sequence[str], found: Sequence[str], stated: Sequence[str]
) -> list[Gap]:
    """Close the gaps of `earlier` agents that a later agent with the same purpose does not state again.

    Only if the later one has findings (`found`); `stated` are the ids of its own gaps.
    """
    origins = {f"sub_query:{agent}" for agent in earlier}
    return [
        gap.model_copy(update={"status": GapStatus.ADDRESSED, "resolved_by": list(found)})
        if found and gap.origin in origins and gap.status is GapStatus.OPEN and gap.id not in set(stated)
        else gap
        for gap in gaps
    ]
