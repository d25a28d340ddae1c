"""The strategy `orchestrator`: plan → cycles of agents in parallel → report."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from contracts.agents import AT_ONCE, AgentRecord, AgentTask, TaskResult
from contracts.call_sizes import BYTES_PER_TOKEN
from contracts.evidence import Finding
from contracts.orchestrator_roles import (
    ORCHESTRATOR,
    ORCHESTRATOR_REPORT,
    OUTLINER,
    RESEARCH_AGENT,
    THINK,
    AgentArguments,
    OrchestrateInput,
    OutlineInput,
)
from contracts.outcome import Pause, Progress
from contracts.plan import PlanNode
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
    Confidence,
    EngineKind,
    GapStatus,
    NodeKind,
    NodeStatus,
    StopReason,
)
from workflows.phases.drafts import take_draft
from workflows.phases.pause import call_hook
from workflows.rules.duplicates import hits_to_protect
from workflows.rules.query_matching import same_query
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.plan import (
    LABELS,
    MOST_STEPS,
    SPENT_LIMITS,
    CycleUnit,
    Dispatched,
    OrchestratorPosition,
    cycles_left,
    deciding_cycles,
    is_unfinished,
    numbered,
    problem_of,
    progress_of,
    served_steps,
    spent_limit,
    summary_of_unit,
    tasks_of,
    unserved,
    with_step_statuses,
)
from workflows.strategies.protocol import Finished, Strategy
from workflows.strategies.units import (
    carry_out,
    judge_report,
    step_node,
    unplanned_requests,
    without_steps,
    write_draft,
)

AGENT_STRATEGY: Final = "agent"
USED_UP: Final = "the cycles are used up"
THOUGHT: Final = "Acknowledged, please continue."
THINK_ALONE: Final = "Only the thought was taken: a thought stands alone in its turn. Make this call again."
CALL_A_TOOL: Final = "Nothing was done, because no tool was called. Words alone have no effect: call a tool."
LOOK_FURTHER: Final = (
    "Before you ask for the report, hold every part of the question and every step of the plan against what the agents "
    "have found. Send agents for what is thin, missing or contradicted."
)
DECIDER: Final = "orchestrator"
QUESTIONS_SHOWN: Final = 5
MOST_TOKENS: Final = 10_000
"""Size of one report."""
UNSURE: Final = (Confidence.LOW, Confidence.SPECULATION)
FEWEST_FINDINGS: Final = 3
FEWEST_SOURCES: Final = 2


@dataclass(frozen=True)
class IntermediateReport:
    """The report of one agent."""

    text: str
    """One statement a line."""
    documents: list[str]
    """Ids of the sources of all reports so far: the number of a document is its place, from 1."""
    numbers: list[int]
    """Numbers of the documents in this report."""
    omitted: int = 0
    """Findings without room in it."""


class OrchestratorStrategy(Strategy):
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
        """Give the tasks of unfinished agents again, and have steps without an agent decided about."""
        del redo_analysis  # agents analyze the pages that they read
        position, limits = OrchestratorPosition.of(state), state.resolution.limits
        unfinished = [record.task.id for record in state.agents if is_unfinished(record)]
        dispatched = {each.agent for each in position.dispatched}
        position.unfinished = [agent for agent in unfinished if agent not in dispatched]
        state.agents = [_again(state, record) if record.task.id in unfinished else record for record in state.agents]
        tasks = (
            task.model_copy(update={"status": NodeStatus.EXECUTING if task.id in unfinished else NodeStatus.COMPLETED})
            for task in tasks_of(state.plan)
        )
        plan = without_steps(state.plan, [step for step in state.plan.steps if step.id in position.skipped])
        state.plan = with_step_statuses(plan.with_nodes(*tasks), position.served)
        if state.open_pause and not state.open_pause.unit.iteration_ended:
            state.open_pause = None
        has_tasks = bool(unserved(state.plan) or unfinished)
        if has_tasks:
            position.first_cycle = position.cycle
        has_work = has_tasks or state.open_pause or position.ended == USED_UP
        if position.next_unit is not CycleUnit.PLANNING and has_work and cycles_left(position, limits):
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
        await take_draft(run, None)  # it lacks the findings of these agents
        position = OrchestratorPosition.of(run.state)
        if position.unfinished:
            await _finish_earlier_tasks(run, position)
        if not position.calls and not await _decide(run, position):
            return
        if not (position.dispatched or position.direct_answers):
            _sort_calls(run, position)
        reports = await _send_agents(run, position) if position.dispatched else {}
        answers = position.direct_answers | {each.call_id: reports[each.agent] for each in position.dispatched}
        position.answers = [answers.get(call.id) or refusal_of(call) for call in position.calls]
        run.note_answers(ORCHESTRATOR, "orchestrate", position.calls, position.answers)
        position.must_think = bool(reports) or (position.must_think and not position.thought)
        position.calls, position.dispatched, position.direct_answers = [], [], {}
        position.cycle += 1
        if not position.ended and not cycles_left(position, run.resolved.limits):
            position.ended = USED_UP
            run.decide(DECIDER, "end_cycles", USED_UP, {"cycles": position.cycle})
            if not has_results(run.state):
                run.branch_failed(f"the orchestrator sent no agent in {plural(position.cycle, 'cycle')}")


def _again(state: ResearchState, record: AgentRecord) -> AgentRecord:
    """Return the record of an agent whose task is given again; it knows by now what its run has read."""
    limits = state.resolution.limits
    lost = record.result.lost if record.result else record.task.lost
    times = {"seconds": limits.agent_seconds or None, "most_seconds": limits.agent_wait_seconds or None}
    is_spent = record.result is not None and record.result.stop_reason in SPENT_LIMITS
    update = {
        "status": AgentStatus.CUT_OFF,
        "task": record.task.model_copy(update=times | {"lost": lost}),
        "known_queries": len(state.query_ledger),
        "known_sources": len(state.sources),
    }
    return record.model_copy(update=update | ({"share": None} if is_spent else {}))


def _plan_requested_steps(run: ResearchRun, position: OrchestratorPosition) -> None:
    """Add a step for each request of a person since the plan, while cycles are left."""
    state, is_planned = run.state, position.next_unit is not CycleUnit.PLANNING
    if not is_planned or position.finished or not cycles_left(position, run.resolved.limits):
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
    return StopReason.COVERAGE_SUFFICIENT if state.unaddressed_gaps() else StopReason.NO_OPEN_GAPS


# --- the orchestrator's turn ---------------------------------------------------------------------------------------
async def _decide(run: ResearchRun, position: OrchestratorPosition) -> bool:
    """Have the orchestrator take its turn; false if it called no tool, though reminded. Raises `Interrupted`."""
    for is_silent in (False, True):
        output = await run.turn(ORCHESTRATOR, "orchestrate", _request(run, position, is_silent))
        position.transcript, position.answers, position.news = output.transcript, [], ""
        if output.calls:
            position.calls = output.calls
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
    reminders = [CALL_A_TOOL] if is_silent else [position.news] if position.news else []
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
        return [THINK.name, ORCHESTRATOR_REPORT.name]
    tools = [RESEARCH_AGENT.name]
    if has_results:
        tools.append(ORCHESTRATOR_REPORT.name)
    if not reasons and not position.thought:
        tools.append(THINK.name)
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


# --- its calls -----------------------------------------------------------------------------------------------------
def _sort_calls(run: ResearchRun, position: OrchestratorPosition) -> None:
    """Decide about each call: a thought excludes other calls, agents go before the report."""
    usable = [call for call in position.calls if not call.problem]
    thought = next((call for call in usable if call.name == THINK.name), None)
    position.thought = thought is not None
    if thought is not None:
        position.direct_answers = answers_to_thought(thought, usable)
        reasoning = str(thought.arguments.get("reasoning", ""))
        run.decide(DECIDER, "think", reasoning, {"cycle": position.cycle + 1})
        return
    for call in sorted(usable, key=lambda call: call.name != RESEARCH_AGENT.name):
        if call.name == ORCHESTRATOR_REPORT.name:
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
    if requested and cycles_left(position, run.resolved.limits) > 1:
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
    first = steps[0] if steps else None
    node = PlanNode(
        id=agent,
        text=" ".join(task.split())[:500],
        kind=NodeKind.TASK,
        status=NodeStatus.EXECUTING,
        parent=first.id if first else None,
        depth=1 if first else 0,
        facet=first.facet if first else "",
        iteration=state.iteration,
    )
    state.plan = state.plan.with_nodes(node)
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
async def _send_agents(run: ResearchRun, position: OrchestratorPosition) -> dict[str, ToolAnswer]:
    """Send the agents of the turn under way; their reports as answers to their calls.

    Raises `Interrupted` after their results so far are in the state.
    """
    limits, protected = run.resolved.limits, len(hits_to_protect(run.state))
    tasks = [
        AgentTask(
            id=each.agent,
            text=each.task,
            strategy=AGENT_STRATEGY,
            seconds=limits.agent_seconds or None,
            most_seconds=limits.agent_wait_seconds or None,
            given={"turn": run.state.iteration, "branch": branch},
            protects=0 if branch else protected,
        )
        for branch, each in enumerate(position.dispatched)
    ]
    texts = await _spawn(run, position, tasks)
    stubs = {record.task.id for record in run.state.agents if record.result and record.result.is_stub}
    return {
        each.agent: ToolAnswer(call_id=each.call_id, text=texts[each.agent], is_error=each.agent in stubs)
        for each in position.dispatched
    }


async def _finish_earlier_tasks(run: ResearchRun, position: OrchestratorPosition) -> None:
    """Give tasks again whose agents were cut short before the run was resumed; the next turn has their reports."""
    tasks = [record.task for record in run.state.agents if record.task.id in position.unfinished]
    texts = await _spawn(run, position, tasks)
    position.news = "\n\n".join(["Earlier agents have gone on with their tasks.", *texts.values()])
    position.unfinished, position.must_think = [], True


async def _spawn(run: ResearchRun, position: OrchestratorPosition, tasks: list[AgentTask]) -> dict[str, str]:
    """Have agents work on tasks; their reports, by agent. Raises `Interrupted` with the results so far in the state."""
    names = [task.id for task in tasks]
    try:
        results = await run.spawn(tasks, at_once(run.resolved.limits))
    finally:
        run.state.plan = with_step_statuses(run.state.plan, position.served)
        for agent in names:
            _close_gaps(run.state, position, agent, names)
    by_id = {finding.id: finding for finding in run.state.findings}
    texts = {}
    for agent, result in zip(names, results, strict=True):
        found = [by_id[name] for name in result.finding_ids if name in by_id]
        report = report_of(found, position.documents)
        position.documents = report.documents
        remarks = [] if result.is_stub else remarks_on(found, report.omitted)
        if remarks:
            inputs = {"agent": agent, "findings": len(found)}
            run.decide(DECIDER, "evaluate_report", "; ".join(remarks), inputs, {"remarks": remarks})
        texts[agent] = _report_text(run.state, agent, result, report, remarks)
    return texts


def _close_gaps(state: ResearchState, position: OrchestratorPosition, agent: str, together: Sequence[str]) -> None:
    """Close gaps of earlier agents for the same steps by what this one found and none of them."""
    results = {record.task.id: record.result for record in state.agents if record.result is not None}
    result, steps = results.get(agent), set(position.served[agent])
    if result is None:
        return
    earlier = {other for other, served in position.served.items() if steps.intersection(served)} - set(together)
    known = {name for other in earlier if other in results for name in results[other].finding_ids}
    found, origins = [name for name in result.finding_ids if name not in known], {f"sub_query:{one}" for one in earlier}
    for place, gap in enumerate(state.gaps):
        if found and gap.origin in origins and gap.status is GapStatus.OPEN and gap.id not in result.gap_ids:
            update = {"status": GapStatus.ADDRESSED, "resolved_by": found}
            state.gaps[place] = gap.model_copy(update=update)


def _report_text(
    state: ResearchState, agent: str, result: TaskResult, report: IntermediateReport, remarks: Sequence[str]
) -> str:
    if result.is_stub:
        return f"{agent} brought nothing: {result.problem or result.stop_reason.value}."
    lines = [f"{agent} reports:", report.text or "(no statement)"]
    sources = {number: state.sources[report.documents[number - 1]] for number in report.numbers}
    titles = [f"[{number}] {source.title[:150] or 'without a title'}" for number, source in sources.items()]
    lines += ["Documents:", *titles] if titles else []
    open_gaps = [gap for gap in state.gaps if gap.id in set(result.gap_ids) and gap.status is GapStatus.OPEN]
    lines += [f"Left open: {gap.description}" for gap in open_gaps[:QUESTIONS_SHOWN]]
    if result.problem:
        lines.append(f"Cut short: {result.problem}")
    lines += [f"Remark: {remark}" for remark in remarks]
    return "\n".join(lines)


# --- the report of one agent: statements with numbers of documents, which stay the same over all agents of a run -----
def tokens_of(text: str) -> int:
    """Return an upper bound for the tokens of a text."""
    return math.ceil(len(text.encode()) / BYTES_PER_TOKEN)


def report_of(
    findings: Sequence[Finding], known: Sequence[str] = (), most_tokens: int = MOST_TOKENS
) -> IntermediateReport:
    """Return the report of one agent; `known` are the documents of earlier reports, whose numbers never change.

    Where room is short the best-supported findings remain, in their order; the others are counted.
    """
    documents = list(dict.fromkeys([*known, *(source for finding in findings for source in finding.source_ids)]))
    numbers = {source: number for number, source in enumerate(documents, start=1)}
    lines = [_line(finding, numbers) for finding in findings]
    room, chosen = most_tokens, list[int]()
    for place in sorted(range(len(lines)), key=lambda place: (findings[place].confidence in UNSURE, place)):
        size = tokens_of(lines[place] + "\n")
        if size <= room:
            chosen.append(place)
            room -= size
    chosen.sort()
    return IntermediateReport(
        text="\n".join(lines[place] for place in chosen),
        documents=documents,
        numbers=sorted({numbers[source] for place in chosen for source in findings[place].source_ids}),
        omitted=len(lines) - len(chosen),
    )


def _line(finding: Finding, numbers: dict[str, int]) -> str:
    marks = "".join(f"[{numbers[source]}]" for source in dict.fromkeys(finding.source_ids))
    doubt = " (weakly supported)" if finding.confidence in UNSURE else ""
    return f"{finding.statement.rstrip()}{doubt} {marks}".rstrip()


def remarks_on(findings: Sequence[Finding], omitted: int = 0) -> list[str]:
    """Return the weaknesses of a report that the orchestrator should know; empty for a thorough one."""
    if not findings:
        return ["nothing was found"]
    sources = {source for finding in findings for source in finding.source_ids}
    uncited = sum(not finding.evidence_ids for finding in findings)
    weak = sum(finding.confidence in UNSURE for finding in findings)
    contested = sum(bool(finding.contradicts) for finding in findings)
    remarks = {
        f"shallow: {plural(len(findings), 'finding')}": len(findings) < FEWEST_FINDINGS,
        "one source alone says all of it": len(sources) < FEWEST_SOURCES,
        f"uncited: {plural(uncited, 'statement')}": uncited,
        f"weakly supported: {weak} of {len(findings)} findings": 2 * weak > len(findings),
        f"sources disagree about {plural(contested, 'finding')}": contested,
        f"{plural(omitted, 'finding')} had no room in this report; the final report has them": omitted,
    }
    return [remark for remark, applies in remarks.items() if applies]
