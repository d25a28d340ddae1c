"""One cycle: the orchestrator decides, agents work in parallel, and every call is answered before the next one."""

from collections.abc import Sequence
from typing import Any, Final

from contracts.orchestrator_roles import AGENT_TOOL, ORCHESTRATOR, REPORT_TOOL, THINK_TOOL, OrchestrateInput
from contracts.plan import PlanNode
from contracts.resolved import ResolvedResearch
from contracts.roles import RoleSpec
from contracts.state import ResearchState
from contracts.tools import ToolAnswer, ToolCall, refusal_of
from contracts.vocabulary import EngineKind, StopReason
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.dispatch import (
    DECIDER,
    answers_of,
    at_once,
    has_results,
    send_agents,
    take_calls,
)
from workflows.strategies.orchestrator.orchestrator_position import OrchestratorPosition, deciding_cycles
from workflows.strategies.orchestrator.tasks import unserved, without_steps

MOST_SILENT_TURNS: Final = 2
"""Turns of one cycle without a tool call: a reminder follows the first, the second ends the cycles."""
MOST_IDLE_CYCLES: Final = 2
"""Cycles in a row without result, while steps of the plan have no agent: rules take the next turn."""
USED_UP: Final = "the cycles are used up"
SENT_BY_RULES: Final = "the orchestrator sent nobody for steps of the plan, so rules sent an agent for each of them"

# Answers and reminders for the orchestrator and the agents.
THOUGHT: Final = "Acknowledged, please continue."
THINK_ALONE: Final = "Only the thought was taken: a thought stands alone in its turn. Make this call again."
CALL_A_TOOL: Final = "Nothing was done, because no tool was called. Words alone have no effect: call a tool."
LOOK_FURTHER: Final = (
    "Before you ask for the report, hold every part of the question and every step of the plan against what the agents "
    "have found. Send agents for what is thin, missing or contradicted."
)
REPORTED: Final = "The report is being written."


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
