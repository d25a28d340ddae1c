"""What an orchestrator may do in each of its cycles, and what it is reminded of. Pure."""

from collections.abc import Sequence
from typing import Final

from contracts.orchestrator_roles import AGENT_TOOL, REPORT_TOOL, THINK_TOOL
from contracts.resolved import EffectiveLimits

FORCED_CYCLES: Final = 1
"""Of the cycles that a limit names: the last one writes the report, whatever the orchestrator would decide."""
MOST_SILENT_TURNS: Final = 2
"""Turns of one cycle in which no tool is called: the first is answered with a reminder, the second ends the cycles."""
MOST_FRUITLESS_CYCLES: Final = 2
"""Cycles in a row that bring nothing, while steps of the plan have no agent: rules take the next turn."""
THOUGHT: Final = "Acknowledged, please continue."
THINK_ALONE: Final = "Only the thought was taken: a thought stands alone in its turn. Make this call again."
ENOUGH_THOUGHT: Final = "A thought follows a round of agents, and never another thought: call one of the other tools."
CALL_A_TOOL: Final = "Nothing was done, because no tool was called. Words alone have no effect: call a tool."
LOOK_FURTHER: Final = (
    "Before you ask for the report, hold every part of the question and every step of the plan against what the agents "
    "have found. Send agents for what is thin, missing or contradicted."
)
LOOK_AT_RESULTS: Final = "The agents of this turn are not back yet: look at what they found, then ask for the report."
NOTHING_FOUND: Final = "Nothing has been researched yet, so there is nothing to report: send an agent first."


def deciding_cycles(limits: EffectiveLimits) -> int:
    """Cycles in which the orchestrator decides; at least one."""
    return max(1, limits.max_iterations - FORCED_CYCLES)


def offered_tools(*, reasons: bool, has_results: bool, thought: bool, must_think: bool) -> list[str]:
    """The tools of a turn.

    A model that does not reason by itself thinks between two rounds of agents, and never twice in a row.
    """
    if must_think and not reasons:
        return [THINK_TOOL, REPORT_TOOL]
    tools = [AGENT_TOOL]
    if has_results:
        tools.append(REPORT_TOOL)
    if not reasons and not thought:
        tools.append(THINK_TOOL)
    return tools


def reminder_of(cycle: int, *, silent: int, reminded: bool, told: Sequence[str] = ()) -> str:
    """What is said to the orchestrator beside the answers; `cycle` counts from 0, `told` is what people said since."""
    lines = list(told)
    if silent:
        lines.append(CALL_A_TOOL)
    if cycle == 1 and not reminded:
        lines.append(LOOK_FURTHER)
    return "\n\n".join(lines)
