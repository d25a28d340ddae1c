"""The position of a run of the strategy `orchestrator`: the units, the cycle under way, and their progress. Pure."""

from enum import StrEnum
from typing import ClassVar, Final

from pydantic import BaseModel

from contracts.evidence import DocumentRef
from contracts.outcome import Mark, Progress, UnitProgress
from contracts.resolved import EffectiveLimits
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.tools import ToolAnswer, ToolCall
from contracts.vocabulary import AgentStatus, NodeStatus
from workflows.strategies.orchestrator.tasks import tasks_of
from workflows.strategies.units import UnitPosition, mark_of


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
