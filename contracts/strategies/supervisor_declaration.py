"""The strategy `supervisor`: limits by depth, and how many calls they allow."""

from typing import Final

from contracts.request import Depth
from contracts.resolved import EffectiveLimits
from contracts.roles import ANALYZER, PLANNER, REFINER, SUPERVISOR, SYNTHESIZER
from contracts.strategies.declared_strategies import StrategyDeclaration

REFLECTIONS_PER_ITERATION: Final = 4
"""One after each phase but the first of a follow-up iteration, when the supervisor thinks with a model."""
FEWEST_SUB_QUERIES: Final = 2


def _supervisor_calls(limits: EffectiveLimits, reflects: bool) -> dict[str, tuple[int, int]]:
    rounds, questions = limits.max_iterations, limits.max_sub_queries
    reflections = REFLECTIONS_PER_ITERATION if reflects else 0
    return {
        PLANNER.name: (1, 1),
        ANALYZER.name: (min(FEWEST_SUB_QUERIES, questions), rounds * questions),
        SYNTHESIZER.name: (1, rounds),
        REFINER.name: (0, rounds - 1),
        SUPERVISOR.name: (reflections, rounds * reflections),
    }


SUPERVISOR_STRATEGY: Final = StrategyDeclaration(
    name="supervisor",
    implementation="workflows.strategies.supervisor.supervisor_strategy:SupervisorStrategy",
    roles=(PLANNER, ANALYZER, SYNTHESIZER, REFINER, SUPERVISOR),
    presets={
        Depth.LIGHT: EffectiveLimits(
            max_iterations=1,
            max_sub_queries=3,
            max_sources=15,
            max_new_sources=15,
            max_sources_per_query=5,
            deadline_seconds=300,
            reserve_seconds=60,
        ),
        Depth.MEDIUM: EffectiveLimits(
            max_iterations=3,
            max_sub_queries=5,
            max_sources=60,
            max_new_sources=20,
            max_sources_per_query=5,
            deadline_seconds=900,
            reserve_seconds=150,
        ),
        Depth.EXTENDED: EffectiveLimits(
            max_iterations=3,
            max_sub_queries=5,
            max_sources=100,
            max_new_sources=35,
            max_sources_per_query=8,
            deadline_seconds=1_800,
            reserve_seconds=240,
        ),
    },
    expected_calls=_supervisor_calls,
)
