"""The strategy `orchestrator`: plan → cycles of agents in parallel → report."""

from collections.abc import Sequence
from typing import Any, Final

from contracts.agents import AT_ONCE, AgentTask, TaskResult
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
from contracts.plan import PlanNode
from contracts.resolved import EffectiveLimits, ResolvedResearch
from contracts.roles import RoleSpec
from contracts.state import OpenPause, ResearchState, Unit
from contracts.tools import ToolAnswer, ToolCall, refusal_of
from contracts.vocabulary import (
    NATURAL_STOPS,
    Action,
    AgentRole,
    EngineKind,
    GapStatus,
    NodeStatus,
    StopReason,
)
from workflows.phases.pause import call_hook
from workflows.rules.query_matching import same_query
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.agent_pages import AgentPosition
from workflows.strategies.orchestrator.agent_reports import IntermediateReport, remarks_on, report_of
from workflows.strategies.orchestrator.plan import (
    LABELS,
    MOST_STEPS,
    CycleUnit,
    Dispatched,
    OrchestratorPosition,
    deciding_cycles,
    numbered,
    problem_of,
    progress_of,
    resumed_plan,
    served_steps,
    spent_limit,
    summary_of_unit,
    task_node,
    tasks_of,
    unserved,
    with_step_statuses,
)
from workflows.strategies.protocol import Finished
from workflows.strategies.units import (
    UngatedStrategy,
    carry_out,
    judge_report,
    step_node,
    unplanned_requests,
    without_steps,
    write_draft,
)

USED_UP: Final = "the cycles are used up"
THOUGHT: Final = "Acknowledged, please continue."
THINK_ALONE: Final = "Only the thought was taken: a thought stands alone in its turn. Make this call again."
TURN_WORDS: Final = {AGENT_TOOL: "new agent", THINK_TOOL: "thinks", REPORT_TOOL: "the research is done"}
"""Calls of the orchestrator for a person who watches."""
CALL_A_TOOL: Final = "Nothing was done, because no tool was called. Words alone have no effect: call a tool."
LOOK_FURTHER: Final = (
    "Before you ask for the report, hold every part of the question and every step of the plan against what the agents "
    "have found. Send agents for what is thin, missing or contradicted."
)
DECIDER: Final = "orchestrator"
QUESTIONS_SHOWN: Final = 5


class OrchestratorStrategy(UngatedStrategy):
    """One unit per call: the plan, one cycle, the report."""

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the unit that comes next."""
        position = OrchestratorPosition.of(run.state)
        _plan_requested_steps(run, position)
        if position.finished:
            return Finished(_stop_reason(run.state, position))
        kind = position.next_unit
        work = {CycleUnit.PLANNING: self._plan, CycleUnit.CYCLE: self._cycle, CycleUnit.SYNTHESIS: write_draft}[kind]
        name, label = kind.value, LABELS[kind]
        if kind is CycleUnit.CYCLE:
            name, label = f"{name}-{position.cycle + 1}", f"{label} {position.cycle + 1}"
        await carry_out(run, name, label, work, lambda: summary_of_unit(run.state, kind))
        return Unit(name=name, iteration_ended=kind is CycleUnit.CYCLE)

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
        state.plan = resumed_plan(state, position)
        if state.open_pause and not state.open_pause.unit.iteration_ended:
            state.open_pause = None
        has_cycles = position.cycle < deciding_cycles(state.resolution.limits)
        has_work = unserved(state.plan) or state.open_pause or position.ended == USED_UP
        if position.next_unit is not CycleUnit.PLANNING and has_cycles and has_work:
            position.next_unit, position.ended = CycleUnit.CYCLE, ""
        position.finished, position.rewritten = False, False

    def replan(self, state: ResearchState) -> None:
        """Plan once more, with the person's message as guidance."""
        OrchestratorPosition.of(state).next_unit = CycleUnit.PLANNING

    def progress(self, state: ResearchState) -> Progress:
        """Return the plan, each cycle and the report."""
        return progress_of(state)

    async def _plan(self, run: ResearchRun) -> None:
        resolved = run.resolved
        request = OutlineInput(
            system_prompt=resolved.system_prompt,
            context=resolved.earlier_turns,
            corpus=resolved.corpus,
            most=min(MOST_STEPS, resolved.limits.max_steps or MOST_STEPS),
            previous=[step.text for step in run.state.plan.steps],
        )
        output = await run.ask(OUTLINER, "plan", request)
        run.draft_plan(output.approach, [step_node(step.step, facet=step.facet) for step in output.steps])

    async def _cycle(self, run: ResearchRun) -> None:
        """Decide and carry out, or finish the cycle that was interrupted. Raises `Interrupted`."""
        run.state.draft = None  # it lacks the findings of these agents
        position = OrchestratorPosition.of(run.state)
        if not position.calls and not await _decide(run, position):
            return
        if not (position.dispatched or position.direct_answers):
            _sort_calls(run, position)
        results = await _send_agents(run, position) if position.dispatched else []
        answers = _answers_with_reports(run, position, results) | position.direct_answers
        position.answers = [answers.get(call.id) or refusal_of(call) for call in position.calls]
        position.must_think = bool(results) or (position.must_think and not position.thought)
        position.calls, position.dispatched, position.direct_answers = [], [], {}
        position.cycle += 1
        if not position.ended and position.cycle >= deciding_cycles(run.resolved.limits):
            position.ended = USED_UP
            run.decide(DECIDER, "end_cycles", USED_UP, {"cycles": position.cycle})


def _plan_requested_steps(run: ResearchRun, position: OrchestratorPosition) -> None:
    """Add a step for each request of a person since the plan, while cycles are left."""
    state, is_planned = run.state, position.next_unit is not CycleUnit.PLANNING
    if not is_planned or position.finished or position.cycle >= deciding_cycles(run.resolved.limits):
        return
    for gap in unplanned_requests(state):
        step = step_node((gap.suggested_queries or [gap.description])[0], request=gap)
        state.plan = state.plan.with_nodes(step).model_copy(update={"version": state.plan.version + 1})
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


# --- the orchestrator's turn ---------------------------------------------------------------------------------------
async def _decide(run: ResearchRun, position: OrchestratorPosition) -> bool:
    """Have the orchestrator take its turn; false if it called no tool, though reminded. Raises `Interrupted`."""
    for is_silent in (False, True):
        output = await run.turn(ORCHESTRATOR, "orchestrate", _request(run, position, is_silent))
        position.transcript, position.answers = output.transcript, []
        if output.calls:
            position.calls = output.calls
            for call in output.calls:
                _note_call(run, call)
            return True
    position.ended = f"the orchestrator called no tool in cycle {position.cycle + 1}"
    run.branch_failed(position.ended)
    run.decide(DECIDER, "end_cycles", position.ended, {"cycle": position.cycle + 1})
    if not has_results(run.state):
        raise Interrupted(StopReason.PROVIDER_OUTAGE)  # a report would have nothing to rest on
    return False


def _request(run: ResearchRun, position: OrchestratorPosition, is_silent: bool) -> OrchestrateInput:
    state, thinks = run.state, thinks_by_itself(run.resolved, ORCHESTRATOR)
    opening, waiting = position.transcript is None, numbered(state.plan, unserved(state.plan))
    reminders = [CALL_A_TOOL] if is_silent else []
    if waiting and not opening:
        reminders.append(f"Steps of the plan that no agent has finished: {_listed(waiting)}")
    if position.cycle == 1 and not is_silent:
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
        unserved=list(waiting),
    )


def _listed(steps: dict[int, PlanNode]) -> str:
    asked = " (the person who asked wants this)"
    return "; ".join(f"{number}. {step.text}{asked if step.gap_id else ''}" for number, step in steps.items())


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


def at_once(limits: EffectiveLimits) -> int:
    """Return the number of parallel agents: by the document, or fewer if the request reports it; each of them reads."""
    return min(AT_ONCE, limits.max_parallel, limits.max_parallel_reads)


def has_results(state: ResearchState) -> bool:
    """Return true once an agent has reported."""
    return any(record.result is not None and not record.result.is_stub for record in state.agents)


def _note_call(run: ResearchRun, call: ToolCall) -> None:
    about = call.problem or " ".join(str(value) for value in call.arguments.values() if isinstance(value, str))
    text = f"orchestrator: {TURN_WORDS.get(call.name, call.name)}: {about}".removesuffix(": ")[:300]
    run.note("orchestrator.turn", text, tool=call.name, turn=run.state.iteration)


# --- its calls -----------------------------------------------------------------------------------------------------
def _sort_calls(run: ResearchRun, position: OrchestratorPosition) -> None:
    """Decide about each call: a thought excludes other calls, agents go before the report."""
    usable = [call for call in position.calls if not call.problem]
    thought = next((call for call in usable if call.name == THINK_TOOL), None)
    position.thought = thought is not None
    if thought is not None:
        position.direct_answers = answers_to_thought(thought, usable)
        reasoning = str(thought.arguments.get("reasoning", ""))
        run.decide(DECIDER, "think", reasoning, {"cycle": position.cycle + 1})
        return
    for call in sorted(usable, key=lambda call: call.name != AGENT_TOOL):
        if call.name == REPORT_TOOL:
            problem = _end_cycles(run, position)
            text = problem or "The report is being written."
            position.direct_answers[call.id] = ToolAnswer(call_id=call.id, text=text, is_error=bool(problem))
        elif problem := _dispatch(run, position, call.id, RESEARCH_AGENT.read(call)):
            position.direct_answers[call.id] = ToolAnswer(call_id=call.id, text=problem, is_error=True)


def answers_to_thought(thought: ToolCall, calls: Sequence[ToolCall]) -> dict[str, ToolAnswer]:
    """Return the answers of a turn with a thought, by call: such a turn has no other effect."""
    refused = {call.id: ToolAnswer(call_id=call.id, text=THINK_ALONE, is_error=True) for call in calls}
    return refused | {thought.id: ToolAnswer(call_id=thought.id, text=THOUGHT)}


def _end_cycles(run: ResearchRun, position: OrchestratorPosition) -> str:
    """End the cycles because the orchestrator asks for the report; else return the reason against it."""
    state, waiting = run.state, unserved(run.state.plan)
    requested = [step for step in waiting if step.gap_id]
    if position.dispatched:
        return "The agents of this turn are not back yet: look at what they found, then ask for the report."
    if not has_results(state):
        return "Nothing has been researched yet, so there is nothing to report: send an agent first."
    if requested and position.cycle + 1 < deciding_cycles(run.resolved.limits):
        wanted = _listed(numbered(state.plan, requested))
        return f"The person who asked wants more, so send an agent for each of these steps: {wanted}"
    position.ended = USED_UP if requested else "the orchestrator asked for the report"
    unneeded = [step for step in waiting if not step.gap_id]
    if unneeded:
        run.decide(DECIDER, "leave_out_steps", "; ".join(step.text for step in unneeded), {"steps": len(unneeded)})
        position.skipped += [step.id for step in unneeded]
        state.plan = without_steps(state.plan, unneeded)
    return ""


def _dispatch(run: ResearchRun, position: OrchestratorPosition, call_id: str, arguments: AgentArguments) -> str:
    """Turn a call into an agent with its task in the plan; else return the reason against it."""
    state, task = run.state, arguments.task.strip()
    if problem := _reason_against(run, position, task):
        run.decide(DECIDER, "refuse_task", problem, {"task": task[:200]})
        return problem
    agent = f"agent-{len(state.agents) + len(position.dispatched) + 1}"
    steps = served_steps(state.plan, arguments.steps, task)
    state.plan = state.plan.with_nodes(task_node(agent, " ".join(task.split()), steps, state.iteration))
    position.served[agent] = [step.id for step in steps]
    position.dispatched.append(Dispatched(call_id=call_id, agent=agent, task=task))
    return ""


def _reason_against(run: ResearchRun, position: OrchestratorPosition, task: str) -> str:
    state = run.state
    # Rules use the words of the question, which nobody could improve.
    if run.resolved.engine is EngineKind.MODEL and (problem := problem_of(task)):
        return problem
    failed = {task.id for task in tasks_of(state.plan) if task.status is NodeStatus.FAILED}
    earlier = {record.task.id: record.task.text for record in state.agents if record.task.id not in failed}
    earlier |= {each.agent: each.task for each in position.dispatched}
    agent = next((agent for agent, text in earlier.items() if same_query(text, task)), None)
    if agent is not None:
        return f"task: {agent} had this task already. Ask for what is still missing"
    return ""


# --- agents and their reports --------------------------------------------------------------------------------------
async def _send_agents(run: ResearchRun, position: OrchestratorPosition) -> list[TaskResult]:
    """Send the agents of the turn under way. Raises `Interrupted` after their results so far are in the state."""
    limits = run.resolved.limits
    tasks = [
        AgentTask(
            id=each.agent,
            text=each.task,
            strategy=AgentPosition.NAME,
            seconds=limits.agent_seconds or None,
            most_seconds=limits.agent_wait_seconds or None,
            given={"turn": run.state.iteration, "branch": branch},
        )
        for branch, each in enumerate(position.dispatched)
    ]
    try:
        return await run.spawn(tasks, at_once(limits))
    finally:
        run.state.plan = with_step_statuses(run.state.plan, position.served)
        for each in position.dispatched:
            _close_gaps(run.state, position, each)


def _close_gaps(state: ResearchState, position: OrchestratorPosition, each: Dispatched) -> None:
    """Close gaps of earlier agents for the same steps by what this agent found and none of them."""
    results = {record.task.id: record.result for record in state.agents if record.result is not None}
    result, steps = results.get(each.agent), set(position.served[each.agent])
    if result is None:
        return
    earlier = {agent for agent, served in position.served.items() if steps.intersection(served)}
    earlier -= {other.agent for other in position.dispatched}
    known = {name for agent in earlier if agent in results for name in results[agent].finding_ids}
    found, origins = [name for name in result.finding_ids if name not in known], {f"sub_query:{one}" for one in earlier}
    for place, gap in enumerate(state.gaps):
        if found and gap.origin in origins and gap.status is GapStatus.OPEN and gap.id not in result.gap_ids:
            update = {"status": GapStatus.ADDRESSED, "resolved_by": found}
            state.gaps[place] = gap.model_copy(update=update)


def _answers_with_reports(
    run: ResearchRun, position: OrchestratorPosition, results: Sequence[TaskResult]
) -> dict[str, ToolAnswer]:
    """Return the answers with the agents' reports, by call, under one numbering for all agents of the run."""
    state, answers = run.state, dict[str, ToolAnswer]()
    by_id = {finding.id: finding for finding in state.findings}
    for each, result in zip(position.dispatched, results, strict=bool(results)):
        found = [by_id[name] for name in result.finding_ids if name in by_id]
        report = report_of(found, position.documents)
        position.documents = report.documents
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
    lines = [f"{each.agent} reports:", report.text or "(no statement)"]
    sources = {number: state.sources[report.documents[number - 1]] for number in report.numbers}
    titles = [f"[{number}] {source.title[:150] or 'without a title'}" for number, source in sources.items()]
    lines += ["Documents:", *titles] if titles else []
    open_gaps = [gap for gap in state.gaps if gap.id in set(result.gap_ids) and gap.status is GapStatus.OPEN]
    lines += [f"Left open: {gap.description}" for gap in open_gaps[:QUESTIONS_SHOWN]]
    if result.problem:
        lines.append(f"Cut short: {result.problem}")
    lines += [f"Remark: {remark}" for remark in remarks]
    return "\n".join(lines)
