"""One cycle: the orchestrator decides, agents work side by side, and every call is answered before the next one."""

from collections.abc import Sequence
from typing import Final

from contracts.orchestrator_roles import AGENT_TOOL, ORCHESTRATOR, REPORT_TOOL, THINK_TOOL, OrchestrateInput
from contracts.plan import PlanNode
from contracts.state import ResearchState
from contracts.tools import ToolAnswer, ToolCall, refusal_of
from contracts.vocabulary import EngineKind, StopReason
from workflows.run.inbox import Interrupted
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.cycle_rules import (
    ENOUGH_THOUGHT,
    LOOK_AT_RESULTS,
    MOST_FRUITLESS_CYCLES,
    MOST_SILENT_TURNS,
    NOTHING_FOUND,
    THINK_ALONE,
    THOUGHT,
    deciding_cycles,
    offered_tools,
    reminder_of,
)
from workflows.strategies.orchestrator.dispatch import (
    DECIDER,
    answers_of,
    at_once,
    has_results,
    send_agents,
    take_calls,
)
from workflows.strategies.orchestrator.model_kind import reasons
from workflows.strategies.orchestrator.orchestrator_position import OrchestratorPosition, position_of
from workflows.strategies.orchestrator.task_nodes import steps_of, unserved, without_steps

REPORTED: Final = "The report is being written."
SILENT: Final = "the orchestrator called no tool"
ASKED_FOR_REPORT: Final = "the orchestrator asked for the report"
USED_UP: Final = "the cycles are used up"
SENT_BY_RULES: Final = "the orchestrator sent nobody for steps of the plan, so rules sent an agent for each of them"


async def work_cycle(run: ResearchRun) -> None:
    """Decide and carry out, or finish the cycle that was interrupted. Raises `Interrupted`."""
    position = position_of(run.state)
    if not position.is_under_way and not await _decide(run, position):
        return
    if not position.is_sorted:
        _sort(run, position)
    results = await send_agents(run) if position.dispatched else []
    answers = answers_of(run, results)
    answers |= {
        name: ToolAnswer(call_id=name, text=why, is_error=why not in (THOUGHT, REPORTED))
        for name, why in position.refused.items()
    }
    position.answers = [answers.get(call.id) or refusal_of(call) for call in position.calls]
    position.must_think = bool(results) or (position.must_think and not position.thought)
    _end_cycle(run, position)


def _end_cycle(run: ResearchRun, position: OrchestratorPosition) -> None:
    if position.dispatched:
        position.fruitless = 0
    elif not position.thought:
        position.fruitless += 1
    position.is_under_way, position.is_sorted = False, False
    position.dispatched, position.refused = [], {}
    position.cycle += 1
    if not position.ended and position.cycle >= deciding_cycles(run.resolved.limits):
        position.ended = USED_UP
        run.decide(DECIDER, "end_cycles", USED_UP, {"cycles": position.cycle})


async def _decide(run: ResearchRun, position: OrchestratorPosition) -> bool:
    """Have the orchestrator take its turn; whether it called anything. Raises `Interrupted`."""
    position.by_rules = _rules_decide(run, position)
    engine = EngineKind.EXTRACTIVE if position.by_rules else None
    for silent in range(MOST_SILENT_TURNS):
        output = await run.turn(ORCHESTRATOR, "orchestrate", _request(run, position, silent), engine)
        position.transcript, position.answers = output.transcript, []
        if output.calls:
            position.calls, position.is_under_way = output.calls, True
            position.reminded = position.reminded or position.cycle == 1
            for call in output.calls:
                _tell(run, call)
            return True
    number = position.cycle + 1
    run.branch_failed(f"{SILENT} in cycle {number}")
    run.decide(DECIDER, "end_cycles", SILENT, {"cycle": number})
    if not has_results(run.state):
        # There is nothing that a report could be written from.
        raise Interrupted(StopReason.PROVIDER_OUTAGE)
    position.ended = f"{SILENT} in cycle {number}"
    return False


def _rules_decide(run: ResearchRun, position: OrchestratorPosition) -> bool:
    """Whether rules send the agents that a model does not get sent: a question is not given up for its wording."""
    is_fruitless = position.fruitless >= MOST_FRUITLESS_CYCLES and run.resolved.engine is EngineKind.MODEL
    if not (is_fruitless and _indispensable(run.state)):
        return False
    run.degrade(SENT_BY_RULES)
    return True


def _indispensable(state: ResearchState) -> list[PlanNode]:
    """Steps that an agent must be sent for: all of them where nothing was found yet, else what a person asked for."""
    return [step for step in unserved(state.plan) if step.gap_id or not has_results(state)]


def _request(run: ResearchRun, position: OrchestratorPosition, silent: int) -> OrchestrateInput:
    state, thinks = run.state, reasons(run.resolved, ORCHESTRATOR)
    steps = steps_of(state.plan)
    offered = offered_tools(
        reasons=thinks,
        has_results=has_results(state),
        thought=position.thought,
        must_think=position.must_think,
    )
    opening = position.transcript is None
    return OrchestrateInput(
        transcript=position.transcript,
        answers=position.answers,
        offered=offered,
        reminder=reminder_of(
            position.cycle, silent=silent, reminded=position.reminded, told=[] if opening else _news(state, position)
        ),
        approach=state.plan.brief if opening else "",
        steps=[step.text for step in steps],
        at_once=at_once(run.resolved.limits),
        cycles=deciding_cycles(run.resolved.limits),
        reasons=thinks,
        unserved=_numbers(state, _indispensable(state) if position.by_rules else unserved(state.plan)),
    )


def _news(state: ResearchState, position: OrchestratorPosition) -> list[str]:
    """What has changed since its last turn: that the research goes on, steps that came into the plan."""
    told = []
    if position.goes_on:
        position.goes_on = False
        numbers = ", ".join(str(number) for number in _numbers(state, unserved(state.plan))) or "none"
        told.append(f"The research goes on instead. Steps of the plan that no agent has finished: {numbers}.")
    fresh = [step for step in steps_of(state.plan) if step.gap_id and step.id not in position.told_steps]
    position.told_steps += [step.id for step in fresh]
    told += [
        f"The plan has a step more, as the person who asked wants it: {number}. {step.text}"
        for number, step in zip(_numbers(state, fresh), fresh, strict=True)
    ]
    return told


def _sort(run: ResearchRun, position: OrchestratorPosition) -> None:
    """Decide what becomes of each call: a thought stands alone, agents go before the report."""
    usable = [call for call in position.calls if not call.problem]
    thoughts = [call for call in usable if call.name == THINK_TOOL]
    was_thought, position.thought = position.thought, bool(thoughts)
    position.is_sorted = True
    if thoughts:
        position.dispatched = []
        position.refused = {
            call.id: (ENOUGH_THOUGHT if was_thought else THOUGHT) if call is thoughts[0] else THINK_ALONE
            for call in usable
        }
        run.decide(DECIDER, "think", str(thoughts[0].arguments.get("reasoning", "")), {"cycle": position.cycle + 1})
        return
    take_calls(run, [call for call in usable if call.name == AGENT_TOOL])
    for call in usable:
        if call.name == REPORT_TOOL:
            position.refused[call.id] = _report_now(run, position)


def _report_now(run: ResearchRun, position: OrchestratorPosition) -> str:
    """What the orchestrator is answered when it asks for the report: that it is written, or why not yet."""
    state, left = run.state, unserved(run.state.plan)
    if position.dispatched:
        return LOOK_AT_RESULTS
    if not has_results(state):
        return NOTHING_FOUND
    wished = [step for step in left if step.gap_id]
    last = position.cycle + 1 >= deciding_cycles(run.resolved.limits)
    if left and not last and (wished or not position.objected):
        position.objected = True
        numbers = ", ".join(str(number) for number in _numbers(state, left))
        run.decide(DECIDER, "object_to_report", f"no agent was sent for steps {numbers}", {"steps": numbers})
        wanted = ", ".join(str(number) for number in _numbers(state, wished))
        rest = f" The person who asked wants these, so send an agent for each: {wanted}." if wished else ""
        return (
            f"No agent was sent for these steps of the plan: {numbers}.{rest} Send agents for what the answer needs, "
            "or call generate_report again to leave the others out."
        )
    position.ended = USED_UP if wished else ASKED_FOR_REPORT
    leave_out(run, position, [step for step in left if not step.gap_id])
    return REPORTED


def leave_out(run: ResearchRun, position: OrchestratorPosition, steps: Sequence[PlanNode]) -> None:
    """Steps that the orchestrator judged not to be needed."""
    if not steps:
        return
    run.decide(DECIDER, "leave_out_steps", "; ".join(step.text for step in steps), {"steps": len(steps)})
    position.skipped += [step.id for step in steps]
    run.state.plan = without_steps(run.state.plan, steps)


def _numbers(state: ResearchState, steps: Sequence[PlanNode]) -> list[int]:
    """The numbers of steps in the plan, from 1."""
    every = [step.id for step in steps_of(state.plan)]
    return [every.index(step.id) + 1 for step in steps]


def _tell(run: ResearchRun, call: ToolCall) -> None:
    """One event for each call of a turn, with its place."""
    about = call.problem or " ".join(str(value) for value in call.arguments.values() if isinstance(value, str))
    run.note(
        "orchestrator.turn", f"{call.name}: {about}".removesuffix(": ")[:300], tool=call.name, turn=run.state.iteration
    )
