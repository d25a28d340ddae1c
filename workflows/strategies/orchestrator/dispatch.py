"""From the orchestrator's calls to agents, and from the results of these to the answers."""

from collections.abc import Sequence
from typing import Final

from contracts.agents import AT_ONCE, AgentRecord, AgentTask, TaskResult
from contracts.orchestrator_roles import RESEARCH_AGENT, AgentArguments
from contracts.resolved import EffectiveLimits
from contracts.state import ResearchState
from contracts.tools import ToolAnswer, ToolCall
from contracts.vocabulary import AgentStatus, EngineKind, GapStatus, NodeStatus
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.agent_position import AgentPosition
from workflows.strategies.orchestrator.agent_reports import IntermediateReport, collapse, remarks_on, report_of
from workflows.strategies.orchestrator.orchestrator_position import Dispatched, OrchestratorPosition
from workflows.strategies.orchestrator.tasks import (
    problem_of,
    repeated_by,
    served_steps,
    task_node,
    tasks_of,
    with_closed_gaps,
    with_steps_updated,
)

DECIDER: Final = "orchestrator"
NOTES_SHOWN: Final = 3
QUESTIONS_SHOWN: Final = 5


def at_once(limits: EffectiveLimits) -> int:
    """Return the number of parallel agents: by the document, or fewer if the request says so; each of them reads."""
    return min(AT_ONCE, limits.max_parallel, limits.max_parallel_reads)


def has_results(state: ResearchState) -> bool:
    """Return true once an agent has reported."""
    return any(record.result is not None and not record.result.is_stub for record in state.agents)


# --- from calls to agents ------------------------------------------------------------------------------------------
def take_calls(run: ResearchRun, calls: Sequence[ToolCall]) -> None:
    """Turn calls into agents with their tasks in the plan, and store the reasons against the others as answers."""
    state, position = run.state, OrchestratorPosition.of(run.state)
    position.dispatched, position.direct_answers = [], {}
    for call in calls:
        arguments = RESEARCH_AGENT.read(call)
        if problem := _reason_against(run, arguments):
            position.direct_answers[call.id] = problem
            run.decide(DECIDER, "refuse_task", problem, {"task": arguments.task[:200]})
            continue
        steps = served_steps(state.plan, arguments.steps, arguments.task)
        agent = f"agent-{len(state.agents) + len(position.dispatched) + 1}"
        task = arguments.task.strip()
        state.plan = state.plan.with_nodes(task_node(agent, " ".join(task.split()), steps, state.iteration))
        position.dispatched.append(
            Dispatched(
                call_id=call.id,
                agent=agent,
                task=task,
                steps=[step.id for step in steps],
                continues=arguments.continue_agent.strip(),
            )
        )


def _reason_against(run: ResearchRun, arguments: AgentArguments) -> str:
    """Return the reason for which no agent is sent; empty if one is."""
    state, continues = run.state, arguments.continue_agent.strip()
    # Rules use the words of the question, which nobody could improve.
    by_rules = run.resolved.engine is not EngineKind.MODEL or OrchestratorPosition.read(state).by_rules
    if not by_rules and (problem := problem_of(arguments.task)):
        return problem
    done = [record.task.id for record in state.agents if record.status is AgentStatus.DONE]
    if continues and continues not in done:
        known = f"agents that have reported: {', '.join(done)}" if done else "no agent has reported yet"
        return f"continue_agent: {continues[:40]} cannot go on; {known}"
    earlier_tasks = {task.id: task.text for task in tasks_of(state.plan) if task.status is not NodeStatus.FAILED}
    if not continues and (earlier := repeated_by(arguments.task, earlier_tasks)):
        return (
            f"task: {earlier} had this task already. Ask for what is still missing, or let {earlier} go on with "
            "continue_agent"
        )
    return ""


async def send_agents(run: ResearchRun) -> list[TaskResult]:
    """Send the agents of the turn under way. Raises `Interrupted` after their results so far are in the state."""
    position, limits = OrchestratorPosition.of(run.state), run.resolved.limits
    tasks = [
        AgentTask(
            id=each.agent,
            text=each.task,
            strategy=AgentPosition.NAME,
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
        _update_plan_and_gaps(run.state, position)


def _update_plan_and_gaps(state: ResearchState, position: OrchestratorPosition) -> None:
    """Update steps and gaps by the results of the agents, finished or not."""
    served = {each.agent: each.steps for each in position.dispatched}
    state.plan = with_steps_updated(state.plan, served)
    for each in position.dispatched:
        record = _record(state, each.agent)
        if record is None or record.result is None or record.status is not AgentStatus.DONE:
            continue
        siblings = [task.id for task in state.plan.nodes if task.parent in each.steps and task.id not in served]
        earlier = [*siblings, *([each.continues] if each.continues else [])]
        state.gaps = with_closed_gaps(state.gaps, earlier, record.result.finding_ids, record.result.gap_ids)


# --- from results to answers ---------------------------------------------------------------------------------------
def answers_of(run: ResearchRun, results: Sequence[TaskResult]) -> dict[str, ToolAnswer]:
    """Return the answers with the agents' reports, by call, under one numbering for all agents of the run."""
    state, position = run.state, OrchestratorPosition.of(run.state)
    by_id = {finding.id: finding for finding in state.findings}
    new_findings = []
    for each, result in zip(position.dispatched, results, strict=True):
        earlier = _record(state, each.continues)
        known = set(earlier.result.finding_ids) if earlier and earlier.result else set()
        new_findings.append([by_id[name] for name in result.finding_ids if name in by_id and name not in known])
    reports, position.numbers = collapse(map(report_of, new_findings), position.numbers)
    answers: dict[str, ToolAnswer] = {}
    for each, result, found, report in zip(position.dispatched, results, new_findings, reports, strict=True):
        remarks = [] if result.is_stub else remarks_on(found, report.omitted)
        if remarks:
            inputs = {"agent": each.agent, "findings": len(found)}
            run.decide(DECIDER, "evaluate_report", "; ".join(remarks), inputs, {"remarks": remarks})
        text = _answer_text(state, each, result, report, remarks)
        answers[each.call_id] = ToolAnswer(call_id=each.call_id, text=text, is_error=result.is_stub)
    return answers


def _answer_text(
    state: ResearchState, each: Dispatched, result: TaskResult, report: IntermediateReport, remarks: Sequence[str]
) -> str:
    if result.is_stub:
        return f"{each.agent} brought nothing: {result.problem or result.stop_reason.value}."
    continued = f", which went on from {each.continues}," if each.continues else ""
    lines = [f"{each.agent}{continued} reports:", report.text() or "(no statement)"]
    titles = [f"[{number}] {_title(state, source)}" for number, source in sorted(report.documents.items())]
    lines += ["Documents:", *titles] if titles else []
    open_gaps = [gap for gap in state.gaps if gap.id in set(result.gap_ids) and gap.status is GapStatus.OPEN]
    lines += [f"Left open: {gap.description}" for gap in open_gaps[:QUESTIONS_SHOWN]]
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
