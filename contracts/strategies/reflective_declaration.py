"""The strategy `reflective`: limits by depth and mode, and how many calls they allow."""

from typing import Final

from contracts import reflective_roles as reflective
from contracts.request import Depth, Mode
from contracts.resolved import EffectiveLimits
from contracts.roles import ANALYZER, SYNTHESIZER
from contracts.strategies.declared_strategies import StrategyDeclaration

STEP_LIMITS: Final = {
    Depth.LIGHT: EffectiveLimits(
        max_iterations=3,
        max_sub_queries=3,
        max_sources=15,
        max_new_sources=15,
        max_sources_per_query=3,
        deadline_seconds=300,
        reserve_seconds=60,
        min_steps=1,
        max_steps=3,
        max_searches_per_step=2,
        max_reads_per_step=3,
    ),
    Depth.MEDIUM: EffectiveLimits(
        max_iterations=3,
        max_sub_queries=6,
        max_sources=40,
        max_new_sources=40,
        max_sources_per_query=5,
        deadline_seconds=900,
        reserve_seconds=150,
        min_steps=3,
        max_steps=6,
        max_searches_per_step=3,
        max_reads_per_step=5,
    ),
    Depth.EXTENDED: EffectiveLimits(
        max_iterations=3,
        max_sub_queries=10,
        max_sources=100,
        max_new_sources=100,
        max_sources_per_query=8,
        deadline_seconds=1_800,
        reserve_seconds=240,
        min_steps=5,
        max_steps=10,
        max_searches_per_step=4,
        max_reads_per_step=8,
    ),
}
"""Steps, searches and reads per step as the design of five agents with reflection gives them."""
QUICK: Final = STEP_LIMITS[Depth.LIGHT].model_copy(
    update={"max_iterations": 1, "max_steps": 1, "deadline_seconds": 15.0, "reserve_seconds": 3.0}
)
"""One step, an answer after 15 s: what was found by then is written down."""


def _reflective_calls(limits: EffectiveLimits, reflects: bool) -> dict[str, tuple[int, int]]:
    steps, searches = limits.max_steps, limits.max_searches_per_step
    return {
        reflective.COORDINATOR.name: (0, 1),
        reflective.INVESTIGATOR.name: (0, 1),
        reflective.STEP_PLANNER.name: (0, limits.max_iterations),
        reflective.RESEARCHER.name: (min(limits.min_steps, steps), steps * searches),
        ANALYZER.name: (min(limits.min_steps, steps), steps * searches),
        reflective.REFLECTOR.name: (min(limits.min_steps, steps) if reflects else 0, steps if reflects else 0),
        SYNTHESIZER.name: (1, 2),
        reflective.RESPONDER.name: (0, 1),
    }


REFLECTIVE_STRATEGY: Final = StrategyDeclaration(
    name="reflective",
    implementation="workflows.strategies.reflective.reflective_strategy:ReflectiveStrategy",
    roles=(*reflective.ROLES, ANALYZER, SYNTHESIZER),
    presets=STEP_LIMITS,
    expected_calls=_reflective_calls,
    modes={Mode.QUICK: QUICK, Mode.DIRECT: QUICK.model_copy(update={"deadline_seconds": 60.0})},
    decides=True,
)
