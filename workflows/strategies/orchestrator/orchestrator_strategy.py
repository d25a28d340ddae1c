"""The strategy `orchestrator`: plan → cycles of agents in parallel → report."""

from collections.abc import Sequence
from typing import Any, Final

from contracts.agents import AT_ONCE, AgentRecord, AgentTask, TaskResult
from contracts.orchestrator_roles import (
    AGENT_TOOL,
    ORCHESTRATOR,
    OUTLINER,
    REPORT_TOOL,
    RESEARCH_AGENT,
    THINK_TOOL,
    AgentArguments,
    OrchestrateInput,
    OutlineInput,
)
from contracts.outcome import Pause, Progress
from contracts.plan import Plan, PlanNode
from contracts.resolved import EffectiveLimits, ResolvedResearch
from contracts.roles import RoleSpec
from contracts.state import OpenPause, ResearchState, Unit
from contracts.texts import plural
from contracts.tools import ToolAnswer, ToolCall, refusal_of
from contracts.vocabulary import (
    NATURAL_STOPS,
    Action,
    AgentRole,
    AgentStatus,
    EngineKind,
    GapStatus,
    NodeStatus,
    StopReason,
)
from workflows.phases.pause import call_hook
from workflows.phases.writing import write_report
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.agent_pages import AgentPosition
from workflows.strategies.orchestrator.agent_reports import IntermediateReport, collapse, remarks_on, report_of
from workflows.strategies.orchestrator.plan import (
    MOST_STEPS,
    CycleUnit,
    Dispatched,
    OrchestratorPosition,
    deciding_cycles,
    name_of_unit,
    problem_of,
    progress_of,
    repeated_by,
    resumed_plan,
    served_steps,
    spent_limit,
    step_node,
    summary_of_unit,
    task_node,
    tasks_of,
    unserved,
    with_closed_gaps,
    with_queries_as_steps,
    with_requested_step,
    with_steps_updated,
    without_steps,
)
from workflows.strategies.protocol import Finished, carry_out, judge_report, unplanned_requests

MOST_SILENT_TURNS: Final = 2
"""Turns of one cycle without a tool call: a reminder follows the first, the second ends the cycles."""
MOST_IDLE_CYCLES: Final = 2
"""Cycles in a row without result, while steps of the plan have no agent: rules take the next turn."""
USED_UP: Final = "the cycles are used up"
SENT_BY_RULES: Final = "the orchestrator sent nobody for steps of the plan, so rules sent an agent for each of them"
THOUGHT: Final = "Acknowledged, please continue."
THINK_ALONE: Final = "Only the thought was taken: a thought stands alone in its turn. Make this call again."
CALL_A_TOOL: Final = "Nothing was done, because no tool was called. Words alone have no effect: call a tool."
LOOK_FURTHER: Final = (
    "Before you ask for the report, hold every part of the question and every step of the plan against what the agents "
    "have found. Send agents for what is thin, missing or contradicted."
)
REPORTED: Final = "The report is being written."
DECIDER: Final = "orchestrator"
NOTES_SHOWN: Final = 3
QUESTIONS_SHOWN: Final = 5


class OrchestratorStrategy:
    """One unit per call: the plan, one cycle, the report."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the unit that comes next."""
        position = OrchestratorPosition.of(run.state)
        _plan_requested_steps(run, position)
        if position.finished:
            return Finished(_stop_reason(run.state, position))
        kind = position.next_unit
        work = {CycleUnit.PLANNING: self._plan, CycleUnit.CYCLE: self._cycle, CycleUnit.SYNTHESIS: self._write}[kind]
        name, label = name_of_unit(position)
        await carry_out(run, name, label, work, lambda: summary_of_unit(run.state, kind))
        return Unit(name=name, iteration_ended=kind is CycleUnit.CYCLE)

    def evaluate(self, run: ResearchRun, unit: Unit) -> OpenPause:
        """Open a pause without a gate: reports of agents are judged as they come, the draft in `pause`."""
        return OpenPause(unit=unit, moment=run.moment())

    async def pause(self, run: ResearchRun, opened: OpenPause) -> Pause:
        """Call the hook, and move on."""
        position, name = OrchestratorPosition.of(run.state), opened.unit.name
        await call_hook(run, name, f"The unit {name} is done: {progress_of(run.state).summary}")
        pause = Pause(phase=name, action=Action.PROCEED)
        match position.next_unit:
            case CycleUnit.PLANNING:
                position.next_unit = CycleUnit.CYCLE
            case CycleUnit.CYCLE if position.ended:
                position.next_unit = CycleUnit.SYNTHESIS
                pause = Pause(phase=name, action=Action.PROCEED, rationale=position.ended)
            case CycleUnit.CYCLE:
                run.state.start_new_iteration()
                pause = Pause(phase=name, action=Action.ITERATE)
            case CycleUnit.SYNTHESIS:
                pause = judge_report(run, position, name)
        run.state.pause = pause
        return pause

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Give tasks that were cut off again, and leave steps whose agents failed to other agents."""
        del redo_analysis  # agents analyze the pages that they read
        position = OrchestratorPosition.of(state)
        state.plan = resumed_plan(state, position.skipped)
        if state.open_pause and not state.open_pause.unit.iteration_ended:
            state.open_pause = None
        has_cycles = state.resolved is not None and position.cycle < deciding_cycles(state.resolved.limits)
        has_work = unserved(state.plan) or state.open_pause or position.ended == USED_UP
        if position.next_unit is not CycleUnit.PLANNING and has_cycles and has_work:
            position.next_unit, position.ended = CycleUnit.CYCLE, ""
            position.resumes = position.transcript is not None and not position.is_under_way
        position.finished, position.rewritten = False, False

    def replan(self, state: ResearchState) -> None:
        """Plan once more, with the person's message as guidance."""
        OrchestratorPosition.of(state).next_unit = CycleUnit.PLANNING

    def progress(self, state: ResearchState) -> Progress:
        """Return the plan, each cycle and the report."""
        return progress_of(state)

    # --- units -----------------------------------------------------------------------------------------------------
    async def _plan(self, run: ResearchRun) -> None:
        resolved, state = run.resolved, run.state
        request = OutlineInput(
            system_prompt=resolved.system_prompt,
            context=resolved.earlier_turns,
            corpus=resolved.corpus,
            most=min(MOST_STEPS, resolved.limits.max_steps or MOST_STEPS),
            previous=[step.text for step in state.plan.steps],
        )
        output = await run.ask(OUTLINER, "plan", request)
        steps = [step_node(step) for step in output.steps]
        state.plan = Plan(version=state.plan.version + 1, brief=output.approach, nodes=steps)
        run.note("plan.drafted", plural(len(steps), "step"), count=len(steps), version=state.plan.version)

    async def _cycle(self, run: ResearchRun) -> None:
        run.state.plan = with_queries_as_steps(run.state.plan)
        run.state.draft = None  # it lacks the findings of these agents
        await work_cycle(run)

    async def _write(self, run: ResearchRun) -> None:
        run.state.draft = draft = await write_report(run, run.issues(CycleUnit.SYNTHESIS))
        run.note("report.updated", f"{draft.characters} characters", characters=draft.characters)


def _plan_requested_steps(run: ResearchRun, position: OrchestratorPosition) -> None:
    """Add a step for each request of a person since the plan, while cycles are left."""
    state, is_planned = run.state, position.next_unit is not CycleUnit.PLANNING
    if not is_planned or position.finished or position.cycle >= deciding_cycles(run.resolved.limits):
        return
    for gap in unplanned_requests(state):
        state.plan = with_requested_step(state.plan, gap)
        run.decide(AgentRole.SUPERVISOR, "step_added", gap.description, {"gap_id": gap.id})
        position.next_unit, position.ended = CycleUnit.CYCLE, ""


def _stop_reason(state: ResearchState, position: OrchestratorPosition) -> StopReason:
    if not state.findings:
        # Agents that ended early prove nothing about what can be found.
        reasons = [record.result.stop_reason for record in state.agents if record.result is not None]
        return next((reason for reason in reasons if reason not in NATURAL_STOPS), StopReason.NO_ACTIONABLE_GAPS)
    if (spent := spent_limit(state)) is not None:
        return spent
    if position.ended == USED_UP:
        return StopReason.MAX_ITERATIONS
    return StopReason.COVERAGE_SUFFICIENT if state.has_unresolved_gaps() else StopReason.NO_OPEN_GAPS


# Answers and reminders for the orchestrator and the agents.


async def work_cycle(run: ResearchRun) -> None:
    """Decide and carry out, or finish the cycle that was interrupted. Raises `Interrupted`."""
    position = OrchestratorPosition.of(run.state)
    if not position.is_under_way and not await _decide(run, position):
        return
    if not position.is_sorted:
        _sort_calls(run, position)
    results = await send_agents(run) if position.dispatched else []
    answers = answers_of(run, results)
    answers |= {
        call: ToolAnswer(call_id=call, text=text, is_error=text not in (THOUGHT, REPORTED))
        for call, text in position.direct_answers.items()
    }
    position.answers = [answers.get(call.id) or refusal_of(call) for call in position.calls]
    position.must_think = bool(results) or (position.must_think and not position.thought)
    _end_cycle(run, position)


def _end_cycle(run: ResearchRun, position: OrchestratorPosition) -> None:
    if position.dispatched:
        position.idle_cycles = 0
    elif not position.thought:
        position.idle_cycles += 1
    position.is_under_way, position.is_sorted = False, False
    position.dispatched, position.direct_answers = [], {}
    position.cycle += 1
    if not position.ended and position.cycle >= deciding_cycles(run.resolved.limits):
        position.ended = USED_UP
        run.decide(DECIDER, "end_cycles", USED_UP, {"cycles": position.cycle})


# --- the orchestrator's turn ---------------------------------------------------------------------------------------
async def _decide(run: ResearchRun, position: OrchestratorPosition) -> bool:
    """Have the orchestrator take its turn; false if it called no tool. Raises `Interrupted`."""
    position.by_rules = _rules_take_turn(run, position)
    engine = EngineKind.EXTRACTIVE if position.by_rules else None
    for silent_turns in range(MOST_SILENT_TURNS):
        output = await run.turn(ORCHESTRATOR, "orchestrate", _request(run, position, silent_turns), engine)
        position.transcript, position.answers = output.transcript, []
        if output.calls:
            position.calls, position.is_under_way = output.calls, True
            position.reminded = position.reminded or position.cycle == 1
            for call in output.calls:
                _note_call(run, call)
            return True
    number = position.cycle + 1
    silent = "the orchestrator called no tool"
    run.branch_failed(f"{silent} in cycle {number}")
    run.decide(DECIDER, "end_cycles", silent, {"cycle": number})
    if not has_results(run.state):
        raise Interrupted(StopReason.PROVIDER_OUTAGE)  # a report would have nothing to rest on
    position.ended = f"{silent} in cycle {number}"
    return False


def _rules_take_turn(run: ResearchRun, position: OrchestratorPosition) -> bool:
    """Return true if rules send the agents that a model repeatedly failed to send."""
    is_idle = position.idle_cycles >= MOST_IDLE_CYCLES and run.resolved.engine is EngineKind.MODEL
    if not (is_idle and _indispensable(run.state)):
        return False
    run.degrade(SENT_BY_RULES)
    return True


def _indispensable(state: ResearchState) -> list[PlanNode]:
    """Return the steps that need an agent: all if nothing was found yet, else those that a person asked for."""
    return [step for step in unserved(state.plan) if step.gap_id or not has_results(state)]


def _request(run: ResearchRun, position: OrchestratorPosition, silent_turns: int) -> OrchestrateInput:
    state, thinks = run.state, thinks_by_itself(run.resolved, ORCHESTRATOR)
    opening = position.transcript is None
    reminders = [] if opening else _news(state, position)
    if silent_turns:
        reminders.append(CALL_A_TOOL)
    if position.cycle == 1 and not position.reminded:
        reminders.append(LOOK_FURTHER)
    return OrchestrateInput(
        transcript=position.transcript,
        answers=position.answers,
        offered=offered_tools(position, reasons=thinks, has_results=has_results(state)),
        reminder="\n\n".join(reminders),
        approach=state.plan.brief if opening else "",
        steps=[step.text for step in state.plan.steps],
        at_once=at_once(run.resolved.limits),
        cycles=deciding_cycles(run.resolved.limits),
        reasons=thinks,
        unserved=_numbers(state, _indispensable(state) if position.by_rules else unserved(state.plan)),
    )


def offered_tools(position: OrchestratorPosition, *, reasons: bool, has_results: bool) -> list[str]:
    """Return the tools of a turn.

    A model that does not reason by itself thinks between two rounds of agents, and never twice in a row.
    """
    if position.must_think and not reasons:
        return [THINK_TOOL, REPORT_TOOL]
    tools = [AGENT_TOOL]
    if has_results:
        tools.append(REPORT_TOOL)
    if not reasons and not position.thought:
        tools.append(THINK_TOOL)
    return tools


def thinks_by_itself(resolved: ResolvedResearch, role: RoleSpec[Any, Any]) -> bool:
    """Return true if a role's model reasons without a tool; rules in place of a model need none either."""
    return resolved.engine is EngineKind.EXTRACTIVE or role.tier.value in resolved.reasoning_tiers


def _news(state: ResearchState, position: OrchestratorPosition) -> list[str]:
    """Return the changes since the orchestrator's last turn: the research was resumed, steps came into the plan."""
    news = []
    if position.resumes:
        position.resumes = False
        numbers = ", ".join(map(str, _numbers(state, unserved(state.plan)))) or "none"
        news.append(f"The research goes on instead. Steps of the plan that no agent has finished: {numbers}.")
    fresh = [step for step in state.plan.steps if step.gap_id and step.id not in position.announced_steps]
    position.announced_steps += [step.id for step in fresh]
    return news + [
        f"The plan has a step more, as the person who asked wants it: {number}. {step.text}"
        for number, step in zip(_numbers(state, fresh), fresh, strict=True)
    ]


def _note_call(run: ResearchRun, call: ToolCall) -> None:
    about = call.problem or " ".join(str(value) for value in call.arguments.values() if isinstance(value, str))
    text = f"{call.name}: {about}".removesuffix(": ")[:300]
    run.note("orchestrator.turn", text, tool=call.name, turn=run.state.iteration)


# --- its calls -----------------------------------------------------------------------------------------------------
def _sort_calls(run: ResearchRun, position: OrchestratorPosition) -> None:
    """Decide what becomes of each call: a thought stands alone, agents go before the report."""
    usable = [call for call in position.calls if not call.problem]
    thoughts = [call for call in usable if call.name == THINK_TOOL]
    thought_before, position.thought = position.thought, bool(thoughts)
    position.is_sorted = True
    if not thoughts:
        take_calls(run, [call for call in usable if call.name == AGENT_TOOL])
        for call in usable:
            if call.name == REPORT_TOOL:
                position.direct_answers[call.id] = _answer_report_call(run, position)
        return
    position.dispatched = []
    position.direct_answers = dict.fromkeys((call.id for call in usable), THINK_ALONE)
    position.direct_answers[thoughts[0].id] = (
        "A thought follows a round of agents, and never another thought: call one of the other tools."
        if thought_before
        else THOUGHT
    )
    run.decide(DECIDER, "think", str(thoughts[0].arguments.get("reasoning", "")), {"cycle": position.cycle + 1})


def _answer_report_call(run: ResearchRun, position: OrchestratorPosition) -> str:
    """End the cycles because the orchestrator asks for the report, or object; the answer to the call."""
    state, open_steps = run.state, unserved(run.state.plan)
    if position.dispatched:
        return "The agents of this turn are not back yet: look at what they found, then ask for the report."
    if not has_results(state):
        return "Nothing has been researched yet, so there is nothing to report: send an agent first."
    requested = [step for step in open_steps if step.gap_id]
    is_last = position.cycle + 1 >= deciding_cycles(run.resolved.limits)
    if open_steps and not is_last and (requested or not position.objected):
        position.objected = True
        return _object(run, open_steps, requested)
    position.ended = USED_UP if requested else "the orchestrator asked for the report"
    unneeded = [step for step in open_steps if not step.gap_id]
    if unneeded:
        run.decide(DECIDER, "leave_out_steps", "; ".join(step.text for step in unneeded), {"steps": len(unneeded)})
        position.skipped += [step.id for step in unneeded]
        state.plan = without_steps(state.plan, unneeded)
    return REPORTED


def _object(run: ResearchRun, open_steps: Sequence[PlanNode], requested: Sequence[PlanNode]) -> str:
    numbers = ", ".join(map(str, _numbers(run.state, open_steps)))
    run.decide(DECIDER, "object_to_report", f"no agent was sent for steps {numbers}", {"steps": numbers})
    indispensable = ", ".join(map(str, _numbers(run.state, requested)))
    demand = f" The person who asked wants these, so send an agent for each: {indispensable}." if requested else ""
    return (
        f"No agent was sent for these steps of the plan: {numbers}.{demand} Send agents for what the answer needs, "
        "or call generate_report again to leave the others out."
    )


def _numbers(state: ResearchState, steps: Sequence[PlanNode]) -> list[int]:
    """Return the numbers of steps in the plan, from 1."""
    every = [step.id for step in state.plan.steps]
    return [every.index(step.id) + 1 for step in steps]


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
