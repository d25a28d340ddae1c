"""Position, units, steps and tasks of the strategy `orchestrator`. Pure."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, Final

from pydantic import BaseModel

from contracts.addresses import normalized_text, short_hash
from contracts.agents import AgentRecord
from contracts.evidence import DocumentRef, Gap
from contracts.orchestrator_roles import OutlinedStep
from contracts.outcome import Mark, Progress, UnitProgress
from contracts.plan import Plan, PlanNode
from contracts.resolved import EffectiveLimits
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.tools import ToolAnswer, ToolCall
from contracts.vocabulary import AgentStatus, GapStatus, NodeKind, NodeStatus, StopReason
from workflows.rules.query_matching import normalized_query, same_query
from workflows.rules.sub_queries import ENOUGH
from workflows.strategies.protocol import UnitPosition, mark_of

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


class CycleUnit(StrEnum):
    """The units of work, in the order in which they first come."""

    PLANNING = "planning"
    CYCLE = "cycle"
    SYNTHESIS = "synthesis"


LABELS: Final = {CycleUnit.PLANNING: "plan", CycleUnit.CYCLE: "cycle", CycleUnit.SYNTHESIS: "write"}


class Dispatched(BaseModel):
    """A call that became an agent."""

    call_id: str
    agent: str
    task: str
    steps: list[str] = []
    """Ids of the steps that it serves."""
    continues: str = ""
    """Id of the agent that it continues; empty for none."""


class OrchestratorPosition(UnitPosition):
    """The unit that comes next, the turn under way, and values that turns pass to later ones."""

    NAME: ClassVar[str] = "orchestrator"

    next_unit: CycleUnit = CycleUnit.PLANNING
    cycle: int = 0
    """Finished cycles: the number, from 0, of the one that comes next."""
    transcript: DocumentRef | None = None
    is_under_way: bool = False
    """True while the calls of the turn have no answers yet."""
    calls: list[ToolCall] = []
    is_sorted: bool = False
    """True once it is decided which calls become agents."""
    dispatched: list[Dispatched] = []
    """Calls of the turn under way that became agents."""
    direct_answers: dict[str, str] = {}
    """Answers to the other calls of the turn, by id."""
    answers: list[ToolAnswer] = []
    """Answers to the calls of the turn before."""
    thought: bool = False
    """True if the turn before was a thought."""
    must_think: bool = False
    """True if agents have reported since the last thought."""
    idle_cycles: int = 0
    """Cycles in a row without an agent, a thought or an end."""
    by_rules: bool = False
    """True if rules take the turn under way, because the model's turns were idle."""
    reminded: bool = False
    """True once the orchestrator was reminded to look further."""
    objected: bool = False
    """True once it was pointed to steps without an agent when it asked for the report."""
    ended: str = ""
    """Reason for which there is no further cycle; empty while there is one."""
    numbers: dict[int, str] = {}
    """Numbers in agents' reports, over all agents → id of a source."""
    announced_steps: list[str] = []
    """Ids of steps that came into the plan later and that the orchestrator knows."""
    resumes: bool = False
    """True if a resumed run has yet to announce that the research continues."""


def deciding_cycles(limits: EffectiveLimits) -> int:
    """Return the number of cycles in which the orchestrator decides: all but the last one, and at least one."""
    return max(1, limits.max_iterations - 1)


def name_of_unit(position: OrchestratorPosition) -> tuple[str, str]:
    """Return name and label of the unit that comes next; cycles are numbered from 1."""
    kind = position.next_unit
    if kind is not CycleUnit.CYCLE:
        return kind.value, LABELS[kind]
    return f"{kind.value}-{position.cycle + 1}", f"{LABELS[kind]} {position.cycle + 1}"


def progress_of(state: ResearchState) -> Progress:
    """Return the plan, each cycle with its agents, and the report."""
    position = OrchestratorPosition.read(state)
    started = position.cycle + (position.next_unit is CycleUnit.CYCLE and not position.ended)
    cycles = [
        UnitProgress(
            name=f"{CycleUnit.CYCLE}-{number}",
            label=f"{LABELS[CycleUnit.CYCLE]} {number}",
            mark=Mark.DONE if number <= position.cycle else Mark.RUNNING,
            detail=summary_of_cycle(state, number),
        )
        for number in range(1, started + 1)
    ]
    summary = ""
    if position.next_unit is CycleUnit.CYCLE and state.resolved is not None:
        working = sum(record.status is AgentStatus.RUNNING for record in state.agents)
        agents = f", {plural(working, 'agent')} at work" if working else ""
        summary = f"cycle {position.cycle + 1} of at most {deciding_cycles(state.resolved.limits)}{agents}"
    return Progress(
        summary=summary, units=[_unit(state, CycleUnit.PLANNING), *cycles, _unit(state, CycleUnit.SYNTHESIS)]
    )


def summary_of_unit(state: ResearchState, kind: CycleUnit) -> str:
    """Return the results of a unit, of the last cycle for cycles, in a few words."""
    return {
        CycleUnit.PLANNING: plural(len(state.plan.steps), "step"),
        CycleUnit.CYCLE: summary_of_cycle(state, OrchestratorPosition.read(state).cycle),
        CycleUnit.SYNTHESIS: plural(state.draft.word_count if state.draft else 0, "word"),
    }[kind]


def summary_of_cycle(state: ResearchState, number: int) -> str:
    """Return the results of a cycle, counted from 1, in a few words; empty for a cycle without agents."""
    tasks = [task for task in tasks_of(state.plan) if task.iteration == number]
    if not tasks:
        return ""
    found = sum(task.finding_count for task in tasks)
    failed = sum(task.status is NodeStatus.FAILED for task in tasks)
    return f"{plural(len(tasks), 'agent')}, {plural(found, 'finding')}" + (f", {failed} failed" if failed else "")


def _unit(state: ResearchState, kind: CycleUnit) -> UnitProgress:
    position, order = OrchestratorPosition.read(state), list(CycleUnit)
    place, current = order.index(kind), order.index(position.next_unit)
    mark = mark_of(place, current, finished=position.finished, started=state.phase is not None)
    detail = summary_of_unit(state, kind) if mark is Mark.DONE else ""
    return UnitProgress(name=kind, label=LABELS[kind], mark=mark, detail=detail)


# --- checks of a task ----------------------------------------------------------------------------------------------
def problem_of(task: str) -> str:
    """Return why nobody who knows only the task could understand it, and the remedy; empty if there is no problem."""
    text = " ".join(task.split())
    words = normalized_query(text).split()
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

    Steps whose agents failed, ended early by a limit that may be higher now, or have searches that failed, wait for
    others.
    """
    plan = without_steps(state.plan, [step for step in state.plan.steps if step.id in set(skipped)])
    by_agent = {record.task.plan_node: record for record in state.agents}
    tasks = {
        task.id: task.model_copy(
            update={"status": NodeStatus.FAILED if _has_failures(record) else STATUS_OF[record.status]}
        )
        for task in tasks_of(plan)
        if (record := by_agent.get(task.id))
    }
    failed = {task.parent for task in tasks.values() if task.status is NodeStatus.FAILED}
    reopened = [step for step in plan.steps if step.id in failed and step.status is NodeStatus.COMPLETED]
    executing = (step.model_copy(update={"status": NodeStatus.EXECUTING}) for step in reopened)
    plan = plan.with_nodes(*tasks.values(), *executing)
    return with_steps_updated(plan, {})


def spent_limit(state: ResearchState) -> StopReason | None:
    """Return the limit that ended an agent early, if its task was not done again."""
    ended = {task.id for task in tasks_of(state.plan) if task.status is NodeStatus.COMPLETED}
    records = [record for record in state.agents if record.task.plan_node in ended and _is_spent(record)]
    return next((record.result.stop_reason for record in records if record.result), None)


def _is_spent(record: AgentRecord) -> bool:
    return record.result is not None and record.is_over and record.result.stop_reason in SPENT_LIMITS


def _has_failures(record: AgentRecord) -> bool:
    return _is_spent(record) or (record.is_over and record.result is not None and bool(record.result.failed_branches))


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
