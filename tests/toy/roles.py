"""The two roles of the toy strategy, and its declaration."""

from durable_research.contracts.request import Depth
from durable_research.contracts.resolved import EffectiveLimits
from durable_research.contracts.roles import (
    ANALYZER,
    RoleAnswer,
    RoleInput,
    RoleSpec,
    SubQuery,
    SynthesizerAnswer,
    SynthesizerResult,
    WriteInput,
)
from durable_research.contracts.strategies import StrategyDeclaration
from durable_research.contracts.vocabulary import Tier


class ScoutInput(RoleInput):
    """What the scout is told besides the question."""

    most_queries: int = 2


class ScoutAnswer(RoleAnswer):
    """Where the scout would look."""

    sub_queries: list[SubQuery]


SCOUT = RoleSpec(
    "scout", "scout_ahead", Tier.SIMPLE, ScoutInput, ScoutAnswer, ScoutAnswer,
    output_tokens=1_000, expected_output_tokens=300, module="tests.toy.scout",
)  # fmt: skip
SCRIBE = RoleSpec(
    "scribe", "tell_story", Tier.COMPLEX, WriteInput, SynthesizerAnswer, SynthesizerResult,
    output_tokens=4_000, plain_text=True, expected_output_tokens=2_000, module="tests.toy.scribe",
)  # fmt: skip

LIMITS = EffectiveLimits(
    max_iterations=1,
    max_sub_queries=2,
    max_sources=20,
    max_new_sources=20,
    max_sources_per_query=3,
    deadline_seconds=120,
    reserve_seconds=20,
)

TOY = StrategyDeclaration(
    name="toy",
    implementation="tests.toy.strategy:ToyStrategy",
    roles=(SCOUT, ANALYZER, SCRIBE),
    presets=dict.fromkeys((Depth.LIGHT, Depth.MEDIUM, Depth.EXTENDED), LIMITS),
    expected_calls=lambda limits, _: {"scout": (1, 1), "analyzer": (1, limits.max_sub_queries), "scribe": (1, 1)},
)
