"""The `orchestrator` strategy: plan → cycles of agents in parallel → report."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from contracts.agents import AT_ONCE, AgentRecord, AgentTask
from contracts.evidence import DocumentRef
from contracts.gaps import SettledGap
from contracts.orchestrator_roles import (
    ORCHESTRATOR,
    ORCHESTRATOR_REPORT,
    OUTLINER,
    RESEARCH_AGENT,
    THINK,
    AgentArguments,
    AnsweredPoint,
    OrchestrateInput,
    OutlineInput,
)
from contracts.outcome import Mark, Pause, Progress, UnitProgress
from contracts.plan import PlanNode
from contracts.resolved import EffectiveLimits, ResolvedResearch
from contracts.roles import RoleSpec
from contracts.sentences import Message, counted
from contracts.state import ResearchState, Unit
from contracts.texts import plural, shorten
from contracts.tools import ToolAnswer, ToolCall, refuse_call
from contracts.vocabulary import Action, AgentRole, AgentStatus, EngineKind, GapStatus, NodeKind, NodeStatus, StopReason
from workflows.phases.drafts import supersede_draft
from workflows.phases.last_look import write_last_draft
from workflows.phases.role_inputs import findings_to_report
from workflows.rules.duplicates import hits_to_protect
from workflows.rules.sub_queries import same_query
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.agent_tasks import (
    agent_tasks,
    assess_findings,
    build_report,
    list_steps,
    report_text,
    served_steps,
    task_problem,
    unserved_steps,
    with_step_statuses,
)
from workflows.strategies.protocol import Finished
from workflows.strategies.units import (
    CALL_A_TOOL,
    UnitName,
    UnitPosition,
    UnitStrategy,
    carry_out,
    is_unfinished,
    reason_without_findings,
    skip_steps,
    step_node,
    unit_progress,
    unplanned_requests,
)

AGENT_STRATEGY: Final = "agent"
CYCLES_USED_UP: Final = "the cycles are used up"
THOUGHT_ANSWER: Final = "Acknowledged, please continue."
THINK_ALONE: Final = "Only the thought was taken: a thought stands alone in its turn. Make this call again."
LOOK_FURTHER: Final = (
    "Before you ask for the report, compare every part of the question and every step of the plan with the agents' "
    "findings. Send agents for what is thin, missing or contradicted."
)
THINK_FURTHER: Final = (
    "Think now with `think_tool`: compare every part of the question and every step of the plan with the agents' "
    "findings. The turn after it offers `research_agent`, for what is thin, missing or contradicted."
)
"""Takes the place of `LOOK_FURTHER` in a turn in which no agent can be sent."""
DECIDER: Final = "orchestrator"
MAX_SHOWN_GAPS: Final = 15
"""Open points of one report; the others are counted."""
MAX_STEPS: Final = 6
"""Steps of a plan."""
SPENT_LIMITS: Final = (StopReason.BUDGET_CALLS, StopReason.BUDGET_TOKENS, StopReason.BUDGET_COST)
"""Limits of the run that end an agent early, as opposed to its own time limit."""


class CycleUnit(UnitName):
    """The units of work, in order of first occurrence."""

    PLANNING = "planning", "plan"
    CYCLE = "cycle"
    SYNTHESIS = "synthesis", "write"


class OrchestratorPosition(UnitPosition):
    """The next unit, the current turn, and values passed between turns."""

    NAME: ClassVar[str] = "orchestrator"

    next_unit: CycleUnit = CycleUnit.PLANNING
    cycle: int = 0
    """Number of finished cycles, which is the index of the next one."""
    first_cycle: int = 0
    """Cycles finished when the run was resumed with work left; the limit of cycles counts from here."""
    unfinished: list[str] = []
    """Agents of earlier cycles that were cut short before the run was resumed; their tasks are retried."""
    news: str = ""
    """Results of these agents, for the next turn."""
    transcript: DocumentRef | None = None
    calls: list[ToolCall] = []
    """Calls of the current turn; empty between turns."""
    dispatched: dict[str, AgentTask] = {}
    """Tasks of the calls that became agents, by call id."""
    direct_answers: dict[str, ToolAnswer] = {}
    """Answers to the other calls, by call id."""
    answers: list[ToolAnswer] = []
    """Answers to the previous turn's calls."""
    thought: bool = False
    """True if the previous turn was a thought."""
    must_think: bool = False
    """True if agents have reported since the last thought."""
    ended: str = ""
    """Reason why there are no more cycles; empty while there are."""
    ended_by: StopReason | None = None
    """The limit that left nothing for another agent, if that is the reason."""
    documents: list[str] = []
    """Ids of the sources in agents' reports; the number of a document is its position, from 1."""
    open_points: list[str] = []
    """Ids of the gaps in agents' reports; the number of an open point is its position, from 1."""
    served: dict[str, list[str]] = {}
    """Agent → ids of the steps it serves."""


class OrchestratorStrategy(UnitStrategy):
    """One unit per call: the plan, one cycle, the report."""

    position = OrchestratorPosition
    planning = CycleUnit.PLANNING

    async def advance(self, run: ResearchRun) -> Unit | Finished:
        """Do the next unit."""
        position = OrchestratorPosition.of(run.state)
        _plan_requested_steps(run, position)
        if position.finished:
            return Finished(_stop_reason(run.state, position))
        unit = position.next_unit
        work = {CycleUnit.PLANNING: _plan, CycleUnit.CYCLE: _cycle, CycleUnit.SYNTHESIS: write_last_draft}[unit]
        name = unit.value
        label = unit.label
        if unit is CycleUnit.CYCLE:
            name = f"{name}-{position.cycle + 1}"
            label = f"{label} {position.cycle + 1}"
        await carry_out(run, name, work, lambda: _describe_unit(run.state, unit), label=label)
        return Unit(name=name, iteration_ended=unit is CycleUnit.CYCLE)

    async def move_on(self, run: ResearchRun, name: str) -> Pause:
        """Move from the plan to the cycles, and from the last cycle to the report."""
        position = OrchestratorPosition.of(run.state)
        if position.next_unit is CycleUnit.PLANNING:
            position.next_unit = CycleUnit.CYCLE
        elif position.ended:
            position.next_unit = CycleUnit.SYNTHESIS
        else:
            run.state.work.iteration += 1
            return Pause(phase=name, action=Action.ITERATE)
        return Pause(phase=name, action=Action.PROCEED, rationale=position.ended)

    def resume(self, state: ResearchState, *, redo_analysis: bool) -> None:
        """Retry the tasks of unfinished agents, and let the orchestrator decide about steps without an agent."""
        del redo_analysis  # agents analyze the pages that they read
        position = OrchestratorPosition.of(state)
        unfinished = {record.task.id for record in state.work.agents if is_unfinished(record)}
        dispatched = {task.id for task in position.dispatched.values()}
        position.unfinished = [
            record.task.id for record in state.work.agents if record.task.id in unfinished - dispatched
        ]
        state.work.agents = [
            _retry(state, record) if record.task.id in unfinished else record for record in state.work.agents
        ]
        tasks = (
            task.with_fields(status=NodeStatus.EXECUTING if task.id in unfinished else NodeStatus.COMPLETED)
            for task in agent_tasks(state.work.plan)
        )
        state.work.plan = state.work.plan.with_nodes(*tasks)
        skip_steps(state, position)
        state.work.plan = with_step_statuses(state.work.plan, position.served)
        if state.work.open_pause and not state.work.open_pause.unit.iteration_ended:
            state.work.open_pause = None
        has_tasks = bool(unserved_steps(state.work.plan) or unfinished)
        if has_tasks:
            position.first_cycle = position.cycle
        is_cut_short = position.ended == CYCLES_USED_UP or position.ended_by is not None
        has_work = has_tasks or state.work.open_pause or is_cut_short
        is_planned = position.next_unit is not CycleUnit.PLANNING
        if is_planned and has_work and _cycles_left(position, state.resolution.limits):
            position.next_unit = CycleUnit.CYCLE
            position.ended = ""
            position.ended_by = None
        position.finished = False
        position.rewritten = False

    def progress(self, state: ResearchState) -> Progress:
        """Return the plan, each cycle with its agents, and the report."""
        position = OrchestratorPosition.read(state)
        is_cycle = position.next_unit is CycleUnit.CYCLE
        last = position.cycle + (is_cycle and not position.ended)
        cycles = [
            UnitProgress(
                name=f"{CycleUnit.CYCLE}-{number}",
                label=f"{CycleUnit.CYCLE} {number}",
                mark=Mark.DONE if number <= position.cycle else Mark.RUNNING,
                detail=_describe_cycle(state, number),
            )
            for number in range(1, last + 1)
        ]
        plan, report = (
            unit_progress(state, position, unit, _describe_unit(state, unit))
            for unit in (CycleUnit.PLANNING, CycleUnit.SYNTHESIS)
        )
        summary = ""
        if is_cycle:
            working = sum(record.status is AgentStatus.RUNNING for record in state.work.agents)
            agents = f", {plural(working, 'agent')} at work" if working else ""
            maximum = position.cycle + max(1, _cycles_left(position, state.resolution.limits))
            summary = f"cycle {position.cycle + 1} of at most {maximum}{agents}"
        return Progress(summary=summary, units=[plan, *cycles, report])


def _describe_unit(state: ResearchState, unit: CycleUnit) -> str:
    """Return the results of a unit (for cycles: of the last one) in a few words."""
    match unit:
        case CycleUnit.PLANNING:
            return plural(len(state.work.plan.steps), "step")
        case CycleUnit.CYCLE:
            return _describe_cycle(state, OrchestratorPosition.read(state).cycle)
        case CycleUnit.SYNTHESIS:
            return plural(state.evidence.draft_words, "word")


def _describe_cycle(state: ResearchState, number: int) -> str:
    """Return the results of a cycle, counted from 1, in a few words; empty for a cycle without agents."""
    tasks = [task for task in agent_tasks(state.work.plan) if task.iteration == number]
    if not tasks:
        return ""
    findings = sum(task.finding_count for task in tasks)
    failed = sum(task.status is NodeStatus.FAILED for task in tasks)
    return f"{plural(len(tasks), 'agent')}, {plural(findings, 'finding')}" + (f", {failed} failed" if failed else "")


def _deciding_cycles(limits: EffectiveLimits) -> int:
    """Return the number of cycles in which the orchestrator decides: all but the last one, and at least one."""
    return max(1, limits.max_iterations - 1)


def _cycles_left(position: OrchestratorPosition, limits: EffectiveLimits) -> int:
    """Return the number of cycles in which the orchestrator may still decide."""
    return max(0, position.first_cycle + _deciding_cycles(limits) - position.cycle)


def _retry(state: ResearchState, record: AgentRecord) -> AgentRecord:
    """Return the record for a retried task, with all current queries and pages of the run in its ledger.

    An agent whose share was spent has another one now, so that its calls differ: it goes on from what it had read.
    """
    limits = state.resolution.limits
    lost = record.result.lost if record.result else record.task.lost
    is_spent = record.result is not None and record.result.stop_reason in SPENT_LIMITS
    pages_read = record.result.pages_read if record.result is not None and is_spent else {}
    return record.with_fields(
        status=AgentStatus.CUT_OFF,
        task=record.task.with_fields(
            seconds=limits.agent_seconds or None,
            most_seconds=limits.agent_wait_seconds or None,
            lost=lost,
            pages_read=pages_read,
        ),
        # Of an agent that begins anew the journal knows the answers, as long as it asks the same.
        known_findings=len(state.evidence.findings) if is_spent else record.known_findings,
        known_queries=len(state.evidence.query_ledger),
        known_sources=len(state.evidence.sources),
        share=None if is_spent else record.share,
    )


def _plan_requested_steps(run: ResearchRun, position: OrchestratorPosition) -> None:
    """Add a step for each new request of a person, while cycles are left."""
    state = run.state
    is_planned = position.next_unit is not CycleUnit.PLANNING
    if not is_planned or position.finished or not _cycles_left(position, run.resolved.limits):
        return
    for gap in unplanned_requests(state):
        step = step_node(gap.suggested_queries[0], request=gap)
        state.work.plan = state.work.plan.with_nodes(step).with_fields(version=state.work.plan.version + 1)
        run.decide(AgentRole.SUPERVISOR, "step_added", gap.description, {"gap_id": gap.id})
        position.next_unit = CycleUnit.CYCLE
        position.ended = ""
        position.ended_by = None


def _stop_reason(state: ResearchState, position: OrchestratorPosition) -> StopReason:
    if not state.evidence.findings:
        return reason_without_findings(state)
    done = {task.id for task in agent_tasks(state.work.plan) if task.status is NodeStatus.COMPLETED}
    reasons = [record.result.stop_reason for record in state.work.agents if record.result and record.task.id in done]
    if spent := [reason for reason in reasons if reason in SPENT_LIMITS]:
        return spent[0]  # the limit that ended an agent whose task was not repeated
    if position.ended == CYCLES_USED_UP:
        return StopReason.MAX_ITERATIONS
    if not state.evidence.unaddressed_gaps():
        return StopReason.NO_OPEN_GAPS
    if position.ended_by is not None:
        return position.ended_by
    is_judged = state.resolution.engine is EngineKind.MODEL  # rules send one agent for each step and judge nothing
    if is_judged:
        return StopReason.COVERAGE_SUFFICIENT
    return StopReason.NO_ACTIONABLE_GAPS


# --- units ---------------------------------------------------------------------------------------------------------
async def _plan(run: ResearchRun) -> None:
    resolved = run.resolved
    request = OutlineInput(
        most=min(MAX_STEPS, resolved.limits.max_steps or MAX_STEPS),
        previous=[step.text for step in run.state.work.plan.steps],
    )
    output = await run.ask(OUTLINER, "plan", request)
    run.draft_plan(output.approach, [step_node(step.step, facet=step.facet) for step in output.steps])


async def _cycle(run: ResearchRun) -> None:
    """Do one cycle: decide and execute, or finish an interrupted cycle. Raises `Interrupted`."""
    supersede_draft(run)  # it lacks the findings of these agents
    position = OrchestratorPosition.of(run.state)
    if position.unfinished:
        tasks = [record.task for record in run.state.work.agents if record.task.id in position.unfinished]
        retried = await _spawn(run, position, tasks)
        position.news = "\n\n".join(["Earlier agents have gone on with their tasks.", *retried.values()])
        position.unfinished = []
        position.must_think = True
    if not position.calls and not await _decide(run, position):
        return
    if not (position.dispatched or position.direct_answers):
        _sort_calls(run, position)
    answers = dict(position.direct_answers)
    texts: dict[str, str] = {}
    if position.dispatched:
        texts = await _spawn(run, position, list(position.dispatched.values()))
        stubs = {record.task.id for record in run.state.work.agents if record.result and record.result.is_stub}
        for call_id, task in position.dispatched.items():
            answers[call_id] = ToolAnswer(call_id=call_id, text=texts[task.id], is_error=task.id in stubs)
    position.answers = [answers.get(call.id) or refuse_call(call) for call in position.calls]
    run.note_answers(ORCHESTRATOR, "orchestrate", position.calls, position.answers)
    position.must_think = bool(texts) or (position.must_think and not position.thought)
    position.calls = []
    position.dispatched = {}
    position.direct_answers = {}
    position.cycle += 1
    if not position.ended and not _cycles_left(position, run.resolved.limits):
        position.ended = CYCLES_USED_UP
        run.decide(DECIDER, "end_cycles", CYCLES_USED_UP, {"cycles": position.cycle})
        if not _has_results(run.state):
            run.branch_failed(Message("no_agent_sent", cycles=counted("cycle", position.cycle)))
    elif not position.ended:
        _end_without_choice(run, position)


# --- the orchestrator's turn ---------------------------------------------------------------------------------------
async def _decide(run: ResearchRun, position: OrchestratorPosition) -> bool:
    """Have the orchestrator take its turn; return false if it calls no tool, even reminded, or has nothing to decide.

    Raises `Interrupted`.
    """
    if _end_without_choice(run, position):
        return False
    for is_silent in (False, True):
        output = await run.turn(ORCHESTRATOR, "orchestrate", _request(run, position, is_silent))
        position.transcript = output.transcript
        position.answers = []
        position.news = ""
        if output.calls:
            position.calls = output.calls
            return True
    position.ended = Message("no_tool_called", count=position.cycle + 1)
    run.branch_failed(position.ended)
    run.decide(DECIDER, "end_cycles", position.ended, {"cycle": position.cycle + 1})
    if not _has_results(run.state):
        raise Interrupted(StopReason.PROVIDER_OUTAGE)  # there is nothing to report
    return False


def _request(run: ResearchRun, position: OrchestratorPosition, is_silent: bool) -> OrchestrateInput:
    """Return the request of a turn, with what is left for agents after it."""
    request = _turn(run, position, is_silent)
    readings = run.agents.room_for_reading(ORCHESTRATOR, request, _turns_before_agents(run, position)).readings
    if position.transcript is None:
        return request.with_fields(readings_left=readings)
    turns = max(1, _cycles_left(position, run.resolved.limits))
    left = f"Left: {plural(turns, 'turn')}, this one included"
    if readings is not None:
        left += f", and room for about {plural(readings, 'reading')} of a page by all agents together"
    pages = run.resolved.limits.max_reads_per_step
    most = pages if readings is None else min(pages, readings)
    reminders = [request.reminder, f"{left}. An agent opens at most {plural(most, 'page')}."]
    return request.with_fields(reminder="\n\n".join(filter(None, reminders)))


def _turn(run: ResearchRun, position: OrchestratorPosition, is_silent: bool) -> OrchestrateInput:
    """Return the request of a turn without what is left."""
    state = run.state
    thinks = thinks_by_itself(run.resolved, ORCHESTRATOR)
    opening = position.transcript is None
    waiting = unserved_steps(state.work.plan)
    reminders = []
    if is_silent:
        reminders.append(CALL_A_TOOL)
    elif position.news:
        reminders.append(position.news)
    if waiting and not opening:
        reminders.append(f"Steps of the plan that no agent has finished: {list_steps(state.work.plan, waiting)}")
    must_think = position.must_think and not thinks
    if position.cycle == 1 and not is_silent:
        reminders.append(THINK_FURTHER if must_think else LOOK_FURTHER)
    # A model that does not reason on its own thinks between rounds of agents, but never twice in a row.
    offered = [THINK.name if must_think else RESEARCH_AGENT.name]
    if _has_results(state):
        offered.append(ORCHESTRATOR_REPORT.name)
    if not (must_think or thinks or position.thought):
        offered.append(THINK.name)
    return OrchestrateInput(
        transcript=position.transcript,
        answers=position.answers,
        offered=offered,
        reminder="\n\n".join(reminders),
        approach=state.work.plan.brief if opening else "",
        steps=[step.text for step in state.work.plan.steps],
        at_once=_max_parallel_agents(run.resolved.limits),
        cycles=_deciding_cycles(run.resolved.limits),
        searches_of_agent=run.resolved.limits.max_searches_per_step,
        pages_of_agent=run.resolved.limits.max_reads_per_step,
        reasons=thinks,
        unserved=[state.work.plan.steps.index(step) + 1 for step in waiting],
    )


def _turns_before_agents(run: ResearchRun, position: OrchestratorPosition) -> int:
    """Return the number of turns up to the first one that can send agents, that one included."""
    return 2 if position.must_think and not thinks_by_itself(run.resolved, ORCHESTRATOR) else 1


def _end_without_choice(run: ResearchRun, position: OrchestratorPosition) -> bool:
    """End the cycles if agents have reported and no other one can be sent, so that only the report is left to choose.

    Returns true if they ended.
    """
    if not _has_results(run.state):
        return False
    turns = _turns_before_agents(run, position)
    if _cycles_left(position, run.resolved.limits) < turns:
        position.ended = CYCLES_USED_UP
    else:
        room = run.agents.room_for_reading(ORCHESTRATOR, _turn(run, position, is_silent=False), turns)
        if room.readings != 0 or room.limit is None:
            return False
        position.ended = room.limit.text
        position.ended_by = room.limit
    run.decide(DECIDER, "end_cycles", position.ended, {"cycles": position.cycle})
    return True


def thinks_by_itself(resolved: ResolvedResearch, role: RoleSpec[Any, Any]) -> bool:
    """Return true if a role needs no think tool: its model reasons on its own, or it runs without a model."""
    return resolved.engine is EngineKind.EXTRACTIVE or role.tier.value in resolved.reasoning_tiers


def _max_parallel_agents(limits: EffectiveLimits) -> int:
    """Return the number of parallel agents, capped by the request's limits of calls and of reads."""
    return min(AT_ONCE, limits.max_parallel, limits.max_parallel_reads)


def _has_results(state: ResearchState) -> bool:
    """Return true once an agent has reported."""
    return any(record.result is not None and not record.result.is_stub for record in state.work.agents)


# --- its calls -----------------------------------------------------------------------------------------------------
def _sort_calls(run: ResearchRun, position: OrchestratorPosition) -> None:
    """Decide what to do with each call: a thought excludes other calls, and agents precede the report."""
    usable = [call for call in position.calls if not call.problem]
    position.direct_answers = answer_thought(run, DECIDER, usable, {"cycle": position.cycle + 1})
    position.thought = bool(position.direct_answers)
    if position.thought:
        return
    for call in usable:
        tool = RESEARCH_AGENT if call.name == RESEARCH_AGENT.name else ORCHESTRATOR_REPORT
        _settle_points(run, position, tool.read(call).answered)
    for call in sorted(usable, key=lambda call: call.name != RESEARCH_AGENT.name):
        if call.name == ORCHESTRATOR_REPORT.name:
            problem = _end_cycles(run, position)
            text = problem or "The report is being written."
            position.direct_answers[call.id] = ToolAnswer(call_id=call.id, text=text, is_error=bool(problem))
        elif problem := _dispatch(run, position, call.id, RESEARCH_AGENT.read(call)):
            position.direct_answers[call.id] = ToolAnswer(call_id=call.id, text=problem, is_error=True)


def answer_thought(
    run: ResearchRun, decider: str, calls: Sequence[ToolCall], inputs: dict[str, Any]
) -> dict[str, ToolAnswer]:
    """Record a thought and return the answers by call; a turn with a thought has no other effect.

    Empty for a turn without a thought.
    """
    thought = next((call for call in calls if call.name == THINK.name), None)
    if thought is None:
        return {}
    run.decide(decider, "think", str(thought.arguments.get("reasoning", "")), inputs)
    refused = {call.id: ToolAnswer(call_id=call.id, text=THINK_ALONE, is_error=True) for call in calls}
    return refused | {thought.id: ToolAnswer(call_id=thought.id, text=THOUGHT_ANSWER)}


def _end_cycles(run: ResearchRun, position: OrchestratorPosition) -> str:
    """End the cycles at the orchestrator's request, or return the reason for refusal."""
    state = run.state
    waiting = unserved_steps(state.work.plan)
    requested = [step for step in waiting if step.gap_id]
    must_think = position.must_think and not thinks_by_itself(run.resolved, ORCHESTRATOR)
    send = "think, then send" if must_think else "send"
    if position.dispatched:
        return "The agents of this turn are not back yet: look at what they found, then ask for the report."
    if not _has_results(state):
        return f"Nothing has been researched yet, so there is nothing to report: {send} an agent first."
    if requested and _cycles_left(position, run.resolved.limits) > 1:
        wanted = list_steps(state.work.plan, requested)
        return f"The person who asked wants more, so {send} an agent for each of these steps: {wanted}"
    position.ended = CYCLES_USED_UP if requested else "the orchestrator asked for the report"
    unneeded = [step for step in waiting if not step.gap_id]
    if unneeded:
        run.decide(DECIDER, "leave_out_steps", "; ".join(step.text for step in unneeded), {"steps": len(unneeded)})
        skip_steps(state, position, unneeded)
    return ""


def _dispatch(run: ResearchRun, position: OrchestratorPosition, call_id: str, arguments: AgentArguments) -> str:
    """Turn a call into an agent with its task in the plan, or return the reason for refusal."""
    state = run.state
    limits = run.resolved.limits
    task = arguments.task.strip()
    failed = {node.id for node in agent_tasks(state.work.plan) if node.status is NodeStatus.FAILED}
    earlier = {record.task.id: record.task.text for record in state.work.agents if record.task.id not in failed}
    earlier |= {assigned.id: assigned.text for assigned in position.dispatched.values()}
    # Rules reuse the text of the question, so rewording cannot be required.
    problem = ""
    if run.resolved.engine is EngineKind.MODEL:
        problem = task_problem(task)
    if not problem and (same := [agent for agent, text in earlier.items() if same_query(text, task)]):
        problem = f"task: {same[0]} had this task already. Ask for what is still missing"
    if problem:
        run.decide(DECIDER, "refuse_task", problem, {"task": task[:200]})
        return problem
    agent = f"agent-{len(state.work.agents) + len(position.dispatched) + 1}"
    steps = served_steps(state.work.plan, arguments.steps, task)
    first = steps[0] if steps else None
    node = PlanNode(
        id=agent,
        text=shorten(" ".join(task.split()), 500),
        kind=NodeKind.TASK,
        status=NodeStatus.EXECUTING,
        parent=first.id if first else None,
        depth=1 if first else 0,
        facet=first.facet if first else "",
        iteration=state.work.iteration,
    )
    state.work.plan = state.work.plan.with_nodes(node)
    position.served[agent] = [step.id for step in steps]
    branch = len(position.dispatched)
    protected = len(hits_to_protect(state))
    position.dispatched[call_id] = AgentTask(
        id=agent,
        text=task,
        strategy=AGENT_STRATEGY,
        seconds=limits.agent_seconds or None,
        most_seconds=limits.agent_wait_seconds or None,
        given={"turn": state.work.iteration, "branch": branch, "searches": arguments.searches},
        protects=0 if branch else protected,
    )
    return ""


# --- agents and their reports --------------------------------------------------------------------------------------
async def _spawn(run: ResearchRun, position: OrchestratorPosition, tasks: list[AgentTask]) -> dict[str, str]:
    """Run agents, and return their reports by agent. Raises `Interrupted` with the results so far in the state."""
    names = [task.id for task in tasks]
    reported = {record.task.id: record.result.finding_ids for record in run.state.work.agents if record.result}
    try:
        results = await run.spawn(tasks, _max_parallel_agents(run.resolved.limits))
    finally:
        run.state.work.plan = with_step_statuses(run.state.work.plan, position.served)
    by_id = {finding.id: finding for finding in findings_to_report(run.state.evidence.findings)}
    texts = {}
    for agent, result in zip(names, results, strict=True):
        known = reported.get(agent, [])
        findings = [by_id[name] for name in result.finding_ids if name in by_id and name not in known]
        report = build_report(findings, position.documents)
        position.documents = report.documents
        remarks = []
        if not result.is_stub:
            remarks = assess_findings([by_id[name] for name in result.finding_ids if name in by_id], report.omitted)
        if remarks:
            inputs = {"agent": agent, "findings": len(findings)}
            run.decide(DECIDER, "evaluate_report", "; ".join(remarks), inputs, {"remarks": remarks})
        stated = [gap for gap in run.state.evidence.gaps if gap.id in set(result.gap_ids)]
        gaps = [gap for gap in stated if gap.status is GapStatus.OPEN]
        fruitless = [gap.description for gap in stated if gap.status is GapStatus.UNADDRESSABLE][:MAX_SHOWN_GAPS]
        position.open_points = list(dict.fromkeys([*position.open_points, *(gap.id for gap in gaps[:MAX_SHOWN_GAPS])]))
        points = {name: number for number, name in enumerate(position.open_points, start=1)}
        left_open = {points[gap.id]: gap.description for gap in gaps[:MAX_SHOWN_GAPS]}
        texts[agent] = report_text(
            run.state, agent, result, report, remarks, left_open, len(known), len(gaps) - len(left_open), fruitless
        )
    return texts


def _settle_points(run: ResearchRun, position: OrchestratorPosition, answered: Sequence[AnsweredPoint]) -> None:
    """Close the gaps that the orchestrator calls answered by findings from the documents that it names."""
    points = dict(enumerate(position.open_points, 1))
    documents = dict(enumerate(position.documents, 1))
    settled = []
    for item in answered:
        named = {documents[number] for number in item.documents if number in documents}
        findings = [
            finding.id
            for finding in findings_to_report(run.state.evidence.findings)
            if named.intersection(finding.source_ids)
        ]
        if item.point in points:
            settled.append(SettledGap(gap_id=points[item.point], answered_by=findings))
    run.settle_gaps(settled, DECIDER)
