"""How far a run of the strategy `orchestrator` is. Pure."""

from typing import Final

from contracts.outcome import Mark, Progress, UnitProgress
from contracts.state import ResearchState
from contracts.texts import plural
from contracts.vocabulary import AgentStatus, NodeStatus
from workflows.strategies.orchestrator.cycle_rules import deciding_cycles
from workflows.strategies.orchestrator.orchestrator_position import CycleUnit, read_position
from workflows.strategies.orchestrator.task_nodes import steps_of, tasks_of

LABELS: Final = {CycleUnit.PLANNING: "plan", CycleUnit.CYCLE: "cycle", CycleUnit.SYNTHESIS: "write"}


def progress_of(state: ResearchState) -> Progress:
    """The plan, each cycle with its agents, the report."""
    position = read_position(state)
    units = [_unit(state, CycleUnit.PLANNING)]
    begun = position.cycle + (position.next_unit is CycleUnit.CYCLE and not position.ended)
    units += [
        UnitProgress(
            name=f"{CycleUnit.CYCLE}-{number}",
            label=f"{LABELS[CycleUnit.CYCLE]} {number}",
            mark=Mark.DONE if number <= position.cycle else Mark.RUNNING,
            detail=cycle_summary(state, number),
        )
        for number in range(1, begun + 1)
    ]
    units.append(_unit(state, CycleUnit.SYNTHESIS))
    return Progress(summary=_summary(state), units=units)


def _summary(state: ResearchState) -> str:
    position = read_position(state)
    if position.next_unit is not CycleUnit.CYCLE or state.resolved is None:
        return ""
    working = sum(record.status is AgentStatus.RUNNING for record in state.agents)
    agents = f", {plural(working, 'agent')} at work" if working else ""
    return f"cycle {position.cycle + 1} of at most {deciding_cycles(state.resolved.limits)}{agents}"


def cycle_summary(state: ResearchState, number: int) -> str:
    """What a cycle, counted from 1, has brought, in a few words."""
    tasks = [task for task in tasks_of(state.plan) if task.iteration == number]
    if not tasks:
        return ""
    found = sum(task.finding_count for task in tasks)
    failed = sum(task.status is NodeStatus.FAILED for task in tasks)
    return f"{plural(len(tasks), 'agent')}, {plural(found, 'finding')}" + (f", {failed} failed" if failed else "")


def unit_summary(state: ResearchState, kind: CycleUnit) -> str:
    """What a unit has brought, in a few words."""
    if kind is CycleUnit.PLANNING:
        return plural(len(steps_of(state.plan)), "step")
    return plural(state.draft.word_count if state.draft else 0, "word")


def _unit(state: ResearchState, kind: CycleUnit) -> UnitProgress:
    position, order = read_position(state), list(CycleUnit)
    here, own = order.index(position.next_unit), order.index(kind)
    done = position.finished or own < here
    running = own == here and not done and state.phase is not None
    mark = Mark.DONE if done else Mark.RUNNING if running else Mark.WAITING
    return UnitProgress(name=kind, label=LABELS[kind], mark=mark, detail=unit_summary(state, kind) if done else "")
