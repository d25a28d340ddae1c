"""Position, progress, steps and tasks of the strategy `orchestrator`. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, Final

from pydantic import BaseModel

from contracts.agents import AgentRecord
from contracts.evidence import DocumentRef
from contracts.outcome import Mark, Progress, UnitProgress
from contracts.plan import Plan, PlanNode
from contracts.resolved import EffectiveLimits
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.tools import ToolAnswer, ToolCall
from contracts.vocabulary import AgentStatus, NodeKind, NodeStatus, StopReason
from workflows.rules.query_matching import normalized_query
from workflows.strategies.units import UnitPosition, unit_progress

MOST_STEPS: Final = 6
"""Steps of a plan, by the document of this strategy."""
FEWEST_CHARACTERS: Final = 12
FEWEST_WORDS: Final = 3
REFERENCES: Final = re.compile(
    r"\bthe (?:user|asker)\b|\b(?:the|this|our) (?:original|overall|main|research) (?:question|query|plan|request)\b"
    r"|\b(?:step|part|item|point) \d+\b(?! of (?!(?:the|this|our) (?:plan|research|question)\b))"
    r"|\b(?:previous|earlier|other|last|first) (?:agent|task|report|finding)s?\b(?! (?:about|by|for|from|in|of|on)\b)"
    r"|\bagent-\d+|\b(?:mentioned|listed|described|discussed) above|\bthe above\b",
    re.IGNORECASE,
)
"""Words that refer to something outside the task."""
SPENT_LIMITS: Final = (StopReason.BUDGET_CALLS, StopReason.BUDGET_TOKENS, StopReason.BUDGET_COST)
"""Limits of the run that end an agent early; its own time is none of them."""


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


class OrchestratorPosition(UnitPosition):
    """The unit that comes next, the turn under way, and values that turns pass to later ones."""

    NAME: ClassVar[str] = "orchestrator"

    next_unit: CycleUnit = CycleUnit.PLANNING
    cycle: int = 0
    """Finished cycles: the number, from 0, of the one that comes next."""
    first_cycle: int = 0
    """Cycles that were finished when the run was resumed with work left: it has as many again as at first."""
    unfinished: list[str] = []
    """Agents of earlier cycles that were cut short before the run was resumed: their tasks are given again."""
    news: str = ""
    """What these brought, for the next turn."""
    transcript: DocumentRef | None = None
    calls: list[ToolCall] = []
    """Calls of the turn under way; empty between two turns."""
    dispatched: list[Dispatched] = []
    """Those of them that became agents."""
    direct_answers: dict[str, ToolAnswer] = {}
    """Answers to the others, by call."""
    answers: list[ToolAnswer] = []
    """Answers to the calls of the turn before."""
    thought: bool = False
    """True if the turn before was a thought."""
    must_think: bool = False
    """True if agents have reported since the last thought."""
    ended: str = ""
    """Reason for which there is no further cycle; empty while there is one."""
    documents: list[str] = []
    """Ids of the sources in agents' reports: the number of a document is its place, from 1."""
    served: dict[str, list[str]] = {}
    """Agent → ids of the steps that it serves."""


def deciding_cycles(limits: EffectiveLimits) -> int:
    """Return the number of cycles in which the orchestrator decides: all but the last one, and at least one."""
    return max(1, limits.max_iterations - 1)


def cycles_left(position: OrchestratorPosition, limits: EffectiveLimits) -> int:
    """Return the number of cycles in which the orchestrator may still decide."""
    return max(0, position.first_cycle + deciding_cycles(limits) - position.cycle)


# --- progress ------------------------------------------------------------------------------------------------------
def progress_of(state: ResearchState) -> Progress:
    """Return the plan, each cycle with its agents, and the report."""
    position = OrchestratorPosition.read(state)
    is_working = position.next_unit is CycleUnit.CYCLE and not position.ended
    cycles = [
        UnitProgress(
            name=f"{CycleUnit.CYCLE}-{number}",
            label=f"{LABELS[CycleUnit.CYCLE]} {number}",
            mark=Mark.DONE if number <= position.cycle else Mark.RUNNING,
            detail=summary_of_cycle(state, number),
        )
        for number in range(1, position.cycle + is_working + 1)
    ]
    plan, report = (
        unit_progress(state, position, kind, LABELS, summary_of_unit(state, kind))
        for kind in (CycleUnit.PLANNING, CycleUnit.SYNTHESIS)
    )
    summary = ""
    if position.next_unit is CycleUnit.CYCLE:
        working = sum(record.status is AgentStatus.RUNNING for record in state.agents)
        agents = f", {plural(working, 'agent')} at work" if working else ""
        most = position.cycle + cycles_left(position, state.resolution.limits)
        summary = f"cycle {position.cycle + 1} of at most {max(most, position.cycle + 1)}{agents}"
    return Progress(summary=summary, units=[plan, *cycles, report])


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


# --- tasks ---------------------------------------------------------------------------------------------------------
def problem_of(task: str) -> str:
    """Return why no one who knows only the task could understand it, and the remedy; empty if there is no problem."""
    words = normalized_query(task).split()
    # A script without spaces expresses much in few characters.
    if not words or (task.isascii() and (len(task) < FEWEST_CHARACTERS or len(words) < FEWEST_WORDS)):
        return "task: too short to be understood; name the subject and what is to be found out about it"
    if reference := REFERENCES.search(task):
        return (
            f"task: “{reference[0]}” means nothing to an agent, which knows only its task; "
            "write what it stands for in its place"
        )
    return ""


def tasks_of(plan: Plan) -> list[PlanNode]:
    """Return the tasks of agents, in their order."""
    return [node for node in plan.nodes if node.kind is NodeKind.TASK]


# --- steps ---------------------------------------------------------------------------------------------------------
def unserved(plan: Plan) -> list[PlanNode]:
    """Return the steps without an agent, or whose agents all failed."""
    return [step for step in plan.steps if step.status is NodeStatus.PENDING]


def numbered(plan: Plan, steps: Iterable[PlanNode]) -> dict[int, PlanNode]:
    """Return steps by their number in the plan, from 1."""
    wanted = {step.id for step in steps}
    return {number: step for number, step in enumerate(plan.steps, start=1) if step.id in wanted}


def served_steps(plan: Plan, numbers: Sequence[int], task: str) -> list[PlanNode]:
    """Return the steps that a task serves: those with the numbers (from 1), else the one with most words in common."""
    named = [plan.steps[number - 1] for number in dict.fromkeys(numbers) if 0 < number <= len(plan.steps)]
    if named:
        return named
    words = set(normalized_query(task).split())
    shared = [(len(words & set(normalized_query(step.text).split())), -place) for place, step in enumerate(plan.steps)]
    most, place = max(shared, default=(0, 0))
    return [plan.steps[-place]] if most > 1 else []


def with_step_statuses(plan: Plan, served: Mapping[str, Sequence[str]]) -> Plan:
    """Return the plan with the status of its steps by that of their agents; `served` maps agents to steps.

    A step is done when one of its agents is, and waits for another one when all of them failed.
    """
    updated = []
    for step in plan.steps:
        tasks = [task for task in tasks_of(plan) if step.id in served.get(task.id, ())]
        statuses = {task.status for task in tasks}
        if not tasks or step.status is NodeStatus.SKIPPED:
            continue
        status = NodeStatus.PENDING if statuses == {NodeStatus.FAILED} else NodeStatus.EXECUTING
        if NodeStatus.COMPLETED in statuses:
            status = NodeStatus.COMPLETED
        found = max(task.finding_count for task in tasks)
        updated.append(step.model_copy(update={"status": status, "finding_count": found, "status_reason": ""}))
    return plan.with_nodes(*updated)


def is_unfinished(record: AgentRecord) -> bool:
    """Return true for an agent that did not do all of its task: it failed, was cut short, or something in it failed."""
    result = record.result
    return not record.is_over or result is None or bool(result.is_stub or result.problem or result.failed_branches)


def spent_limit(state: ResearchState) -> StopReason | None:
    """Return the limit that ended an agent early, if its task was not done again."""
    done = {task.id for task in tasks_of(state.plan) if task.status is NodeStatus.COMPLETED}
    reasons = [record.result.stop_reason for record in state.agents if record.result and record.task.id in done]
    return next((reason for reason in reasons if reason in SPENT_LIMITS), None)
