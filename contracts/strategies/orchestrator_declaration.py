"""The strategy `orchestrator` and the one of its agents: limits by depth, and how many calls they allow."""

from typing import Final

from contracts import orchestrator_roles as orchestrating
from contracts.agents import AT_ONCE
from contracts.request import Depth
from contracts.resolved import EffectiveLimits
from contracts.roles import ANALYZER, SYNTHESIZER
from contracts.strategies.declared_strategies import Needs, StrategyDeclaration


def _agent_limits(*, sources: int, steps: int, searches: int, reads: int) -> EffectiveLimits:
    return EffectiveLimits(
        max_iterations=8,
        max_sub_queries=6,
        max_sources=sources,
        max_new_sources=sources,
        max_sources_per_query=10,
        deadline_seconds=1_800,
        reserve_seconds=300,
        min_steps=1,
        max_steps=steps,
        max_searches_per_step=searches,
        max_reads_per_step=reads,
        agent_seconds=720,
        agent_wait_seconds=1_800,
    )


AGENT_LIMITS: Final = {
    Depth.LIGHT: _agent_limits(sources=30, steps=3, searches=2, reads=3),
    Depth.MEDIUM: _agent_limits(sources=60, steps=6, searches=3, reads=5),
    Depth.EXTENDED: _agent_limits(sources=100, steps=6, searches=4, reads=8),
}
"""Cycles, steps and the cascade of time limits as the design with an orchestrator gives them, within one deadline.

The reserve is the time for the report. The depth says how much each agent may search and read.
"""
REASONING_CYCLES: Final = 4
AGENT_TURNS: Final = 3
"""Of an agent beside its searches, usually: it opens pages twice and reports."""


def _orchestrator_calls(limits: EffectiveLimits, _: bool) -> dict[str, tuple[int, int]]:
    cycles = max(1, limits.max_iterations - 1)
    agents, searches = -(-cycles // 2) * AT_ONCE, limits.max_searches_per_step
    return {
        orchestrating.OUTLINER.name: (1, 1),
        orchestrating.ORCHESTRATOR.name: (min(2, cycles), cycles),
        orchestrating.AGENT.name: (AGENT_TURNS, agents * (searches + AGENT_TURNS)),
        ANALYZER.name: (1, agents * searches),
        SYNTHESIZER.name: (1, 2),
    }


ORCHESTRATOR_STRATEGY: Final = StrategyDeclaration(
    name="orchestrator",
    implementation="workflows.strategies.orchestrator.orchestrator_strategy:OrchestratorStrategy",
    roles=(*orchestrating.ROLES, orchestrating.AGENT, ANALYZER, SYNTHESIZER),
    presets=AGENT_LIMITS,
    expected_calls=_orchestrator_calls,
    needs=Needs(tools=True),
    clarifier=orchestrating.INTAKE,
    reasoning_limits={"max_iterations": REASONING_CYCLES},
)
AGENT_STRATEGY: Final = StrategyDeclaration(
    name="agent",
    implementation="workflows.strategies.orchestrator.agent_strategy:AgentStrategy",
    roles=(orchestrating.AGENT, ANALYZER),
    presets={
        depth: limits.model_copy(update={"max_iterations": 1, "reserve_seconds": 60.0})
        for depth, limits in AGENT_LIMITS.items()
    },
    expected_calls=lambda limits, _: {
        orchestrating.AGENT.name: (AGENT_TURNS, limits.max_searches_per_step + AGENT_TURNS),
        ANALYZER.name: (1, limits.max_searches_per_step),
    },
    needs=Needs(tools=True),
    scoped=True,
)
