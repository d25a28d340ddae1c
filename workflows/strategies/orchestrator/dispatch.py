"""From the orchestrator's calls to agents, and from what these bring back to its answers."""

from collections.abc import Sequence
from typing import Final

from contracts.agents import AT_ONCE, AgentRecord, AgentTask, TaskResult
from contracts.orchestrator_roles import RESEARCH_AGENT, AgentArguments
from contracts.resolved import EffectiveLimits
from contracts.state import ResearchState
from contracts.tools import ToolAnswer, ToolCall
from contracts.vocabulary import AgentStatus, EngineKind, GapStatus, NodeStatus
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.agent_position import NAME as AGENT_STRATEGY
from workflows.strategies.orchestrator.agent_reports import collapse, report_of
from workflows.strategies.orchestrator.orchestrator_position import Dispatched, position_of
from workflows.strategies.orchestrator.report_evaluation import remarks_on
from workflows.strategies.orchestrator.task_checks import problem_of, repeated_by
from workflows.strategies.orchestrator.task_nodes import (
    served_steps,
    task_node,
    tasks_of,
    with_closed_gaps,
    with_steps_after,
)

DECIDER: Final = "orchestrator"
NOTES_SHOWN: Final = 3
QUESTIONS_SHOWN: Final = 5


def at_once(limits: EffectiveLimits) -> int:
    """Agents side by side: as the document has it, or fewer where the request says so; each of them reads."""
    return min(AT_ONCE, limits.max_parallel, limits.max_parallel_reads)


def take_calls(run: ResearchRun, calls: Sequence[ToolCall]) -> None:
    """Put down which calls for an agent get one, with their tasks in the plan, and why each of the others does not."""
    state, position = run.state, position_of(run.state)
    position.dispatched, position.refused = [], {}
    given = len(state.agents)
    for call in calls:
        asked = RESEARCH_AGENT.read(call)
        if problem := _refusal(run, asked):
            position.refused[call.id] = problem
            run.decide(DECIDER, "refuse_task", problem, {"task": asked.task[:200]})
            continue
        steps = served_steps(state.plan, asked.steps, asked.task)
        agent = f"agent-{given + len(position.dispatched) + 1}"
        task, continues = asked.task.strip(), asked.continue_agent.strip()
        state.plan = state.plan.with_nodes(task_node(agent, " ".join(task.split()), steps, state.iteration))
        served = [step.id for step in steps]
        made = Dispatched(call_id=call.id, agent=agent, task=task, steps=served, continues=continues)
        position.dispatched.append(made)


def _refusal(run: ResearchRun, asked: AgentArguments) -> str:
    """Why no agent is sent; empty where one is."""
    state, continues = run.state, asked.continue_agent.strip()
    # Tasks of rules are the question's own words, and nobody could word them better.
    by_rules = run.resolved.engine is not EngineKind.MODEL or position_of(state).by_rules
    if not by_rules and (problem := problem_of(asked.task)):
        return problem
    done = [record.task.id for record in state.agents if record.status is AgentStatus.DONE]
    if continues and continues not in done:
        known = f"agents that have reported: {', '.join(done)}" if done else "no agent has reported yet"
        return f"continue_agent: {continues[:40]} cannot go on; {known}"
    tasks = {task.id: task.text for task in state.plan.nodes if task.id in _counted(state)}
    if not continues and (earlier := repeated_by(asked.task, list(tasks.items()))):
        return (
            f"task: {earlier} had this task already. Ask for what is still missing, or let {earlier} go on with "
            "continue_agent"
        )
    return ""


def _counted(state: ResearchState) -> set[str]:
    """Agents whose task is not to be given to another one: those that did not fail."""
    return {task.id for task in tasks_of(state.plan) if task.status is not NodeStatus.FAILED}


async def send_agents(run: ResearchRun) -> list[TaskResult]:
    """Send the agents of the turn under way. Raises `Interrupted` after what they had was taken over."""
    position, limits = position_of(run.state), run.resolved.limits
    tasks = [
        AgentTask(
            id=each.agent,
            text=each.task,
            strategy=AGENT_STRATEGY,
            seconds=limits.agent_seconds or None,
            most_seconds=limits.agent_wait_seconds or None,
            continues=each.continues,
            given={
                "turn": run.state.iteration,
                "branch": branch,
                "searches": limits.max_searches_per_step,
                "pages": limits.max_reads_per_step,
            },
        )
        for branch, each in enumerate(position.dispatched)
    ]
    try:
        return await run.spawn(tasks, at_once(limits))
    finally:
        _note_results(run)


def _note_results(run: ResearchRun) -> None:
    """What the plan and the gaps become by what agents brought back, finished or not."""
    state, position = run.state, position_of(run.state)
    served = {each.agent: each.steps for each in position.dispatched}
    state.plan = with_steps_after(state.plan, served)
    for each in position.dispatched:
        record = _record(state, each.agent)
        if record is None or record.result is None or record.status is not AgentStatus.DONE:
            continue
        beside = [task.id for task in state.plan.nodes if task.parent in each.steps and task.id not in served]
        earlier = [*beside, *([each.continues] if each.continues else [])]
        result = record.result
        state.gaps = with_closed_gaps(state.gaps, earlier, result.finding_ids, result.gap_ids)


def answers_of(run: ResearchRun, results: Sequence[TaskResult]) -> dict[str, ToolAnswer]:
    """What the orchestrator is told of each agent's report, by call: one numbering for all agents of the run."""
    state, position = run.state, position_of(run.state)
    by_id = {finding.id: finding for finding in state.findings}
    earlier = {
        each.agent: set(record.result.finding_ids)
        for each in position.dispatched
        if (record := _record(state, each.continues)) and record.result
    }
    fresh = {
        result.agent_id: [
            by_id[name] for name in result.finding_ids if name in by_id and name not in earlier.get(result.agent_id, ())
        ]
        for result in results
    }
    reports, position.numbers = collapse([report_of(fresh[result.agent_id]) for result in results], position.numbers)
    answers: dict[str, ToolAnswer] = {}
    for each, result, report in zip(position.dispatched, results, reports, strict=True):
        remarks = [] if result.is_stub else remarks_on(each.task, fresh[each.agent], report.left_out)
        if remarks:
            told = {"agent": each.agent, "findings": len(fresh[each.agent])}
            run.decide(DECIDER, "evaluate_report", "; ".join(remarks), told, {"remarks": remarks})
        titles = [f"[{number}] {_title(state, source)}" for number, source in sorted(report.documents.items())]
        questions = [
            gap.description for gap in state.gaps if gap.id in set(result.gap_ids) and gap.status is GapStatus.OPEN
        ]
        text = _answer_text(each, result, report.text(), titles, questions, remarks)
        answers[each.call_id] = ToolAnswer(call_id=each.call_id, text=text, is_error=result.is_stub)
    return answers


def _answer_text(
    each: Dispatched,
    result: TaskResult,
    report: str,
    titles: Sequence[str],
    questions: Sequence[str],
    remarks: Sequence[str],
) -> str:
    if result.is_stub:
        return f"{each.agent} brought nothing: {result.problem or result.stop_reason.value}."
    goes_on = f", which went on from {each.continues}," if each.continues else ""
    lines = [f"{each.agent}{goes_on} reports:", report or "(no statement)"]
    lines += ["Documents:", *titles] if titles else []
    lines += [f"Left open: {question}" for question in questions[:QUESTIONS_SHOWN]]
    if result.problem:
        lines.append(f"Cut short: {result.problem}")
    lines += [f"Remark: {remark}" for remark in remarks]
    lines += [f"Note: {note}" for note in result.report.notes[:NOTES_SHOWN]]
    return "\n".join(lines)


def _record(state: ResearchState, agent: str) -> AgentRecord | None:
    return next((record for record in state.agents if record.task.id == agent), None)


def _title(state: ResearchState, source: str) -> str:
    known = state.sources.get(source)
    return (known.title if known else "")[:150] or "without a title"


def has_results(state: ResearchState) -> bool:
    """Whether an agent has reported."""
    return any(record.result is not None and not record.result.is_stub for record in state.agents)
