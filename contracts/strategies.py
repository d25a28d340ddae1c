"""Strategies as data: what the product knows of each one before any of its code is loaded.

A strategy from outside the product is declared by a package whose metadata names it under the entry point group
`durable_research.strategies`; no file of the product mentions it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Final

from contracts import orchestrator_roles as orchestrating
from contracts import reflective_roles as reflective
from contracts.agents import AT_ONCE
from contracts.expected_calls import CLAIMS_PER_CALL, FEWEST_REPORT_SECTIONS, LONG_REPORT_WORDS, MOST_REPORT_SECTIONS
from contracts.request import Depth, Mode, Review, Verify
from contracts.resolved import EffectiveLimits, ResolvedResearch
from contracts.roles import (
    ANALYZER,
    CHECKER,
    CLARIFIER,
    CORRECTOR,
    PLANNER,
    REFINER,
    REVIEWER,
    SUPERVISOR,
    SYNTHESIZER,
    RoleSpec,
)
from contracts.vocabulary import EngineKind

ENTRY_POINTS: Final = "durable_research.strategies"
PLANNED: Final = ("living", "recursive")
"""Names that requests may come to use: refused with `not available yet` until they are declared."""


@dataclass(frozen=True)
class Needs:
    """What a strategy cannot do without; a run that lacks it is refused, naming an alternative."""

    model: bool = False
    web: bool = False
    tools: bool = False
    """Models that call tools, where a model does its roles."""


@dataclass(frozen=True)
class StrategyDeclaration:
    """One strategy."""

    name: str
    implementation: str
    """`module:Class` of the `Strategy` that workflows load."""
    roles: tuple[RoleSpec[Any, Any], ...]
    presets: Mapping[Depth, EffectiveLimits]
    """Limits by depth: light, medium, extended."""
    expected_calls: Callable[[EffectiveLimits, bool], Mapping[str, tuple[int, int]]]
    """Fewest and most calls of each role under these limits, and whether a model reflects; for the estimate."""
    needs: Needs = field(default_factory=Needs)
    modes: Mapping[Mode, EffectiveLimits] = field(default_factory=dict)
    """Limits of the modes that it knows besides `deep`, whatever the depth."""
    scoped: bool = False
    """Whether it works on the tasks of agents (`ScopedStrategy`): no request can name it."""
    decides: bool = False
    """Whether a run decides for itself where mode or depth are `auto`."""
    clarifier: RoleSpec[Any, Any] = CLARIFIER
    """Who finds out what the question means, where the request wants it; one with tools says by words what it asks."""
    reasoning_limits: Mapping[str, int] = field(default_factory=dict)
    """Limits that differ where the models of its roles with tools reason by themselves."""


CLOSING_ROLES: Final[tuple[RoleSpec[Any, Any], ...]] = (REVIEWER, CHECKER, CORRECTOR)
"""What works on the report of every strategy, where the request wants it checked by a model."""

_declared: dict[str, StrategyDeclaration] = {}


def declare(strategy: StrategyDeclaration) -> None:
    """Make a strategy known to this process. Raises ValueError if another one has its name."""
    known = _declared.setdefault(strategy.name, strategy)
    if known != strategy:
        raise ValueError(f"two strategies are named {strategy.name}")


def declare_installed() -> None:
    """Declare the strategies of installed packages; every process does so as it starts.

    Raises ValueError if one cannot be loaded, or has the name of another one.
    """
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            declare(entry.load())
        except (ImportError, AttributeError) as error:
            message = f"the strategy {entry.name} of an installed package cannot be loaded: {type(error).__name__}"
            raise ValueError(f"{message}; mend or remove the package") from None


def declaration(name: str) -> StrategyDeclaration:
    """The strategy of a name. Raises KeyError for one that is not declared."""
    return _declared[name]


def list_declared() -> tuple[StrategyDeclaration, ...]:
    """Every strategy, in the order of declaration."""
    return tuple(_declared.values())


def list_selectable() -> tuple[StrategyDeclaration, ...]:
    """Those that a request may name, in the order of declaration."""
    return tuple(strategy for strategy in list_declared() if not strategy.scoped)


def declared_roles() -> tuple[RoleSpec[Any, Any], ...]:
    """The roles of all strategies, each once, and those that work before and after any of them."""
    declared = list_declared()
    roles = [*(role for strategy in declared for role in strategy.roles), *(each.clarifier for each in declared)]
    roles += [CLARIFIER, *CLOSING_ROLES]
    return tuple({role.name: role for role in roles}.values())


def writers() -> frozenset[str]:
    """The names of all roles that write a report."""
    return frozenset(role.name for role in (SYNTHESIZER, *declared_roles()) if role.writes_report)


def writer_engine(engine_by_role: Mapping[str, str]) -> EngineKind | None:
    """Which engine wrote the report of a run, whatever its strategy calls the writer; None if nothing was written."""
    known = writers()
    return next((EngineKind(engine) for role, engine in engine_by_role.items() if role in known), None)


MOST_CLAIMS_PER_SUB_QUERY: Final = 5
"""Statements that a report makes of one sub-query's findings, usually."""


def closing_calls(resolved: ResolvedResearch) -> dict[str, tuple[int, int]]:
    """Fewest and most calls of a model by each role that works on the report of any strategy; for the estimate."""
    checks, full = resolved.checks, resolved.verify is Verify.FULL
    claims = MOST_CLAIMS_PER_SUB_QUERY * resolved.limits.max_sub_queries * resolved.limits.max_iterations
    batches, rounds = -(-claims // CLAIMS_PER_CALL), checks.correct * (1 + checks.strict)
    by_model = checks.review is Review.MODEL
    fewest_parts, most_parts = _section_calls(resolved)
    return {
        REVIEWER.name: (int(by_model), 2 * by_model),
        CHECKER.name: (int(full), full * (batches + 2 * rounds)),
        CORRECTOR.name: (0, full * 2 * rounds),
        SYNTHESIZER.name: (fewest_parts, most_parts + int(checks.review is not Review.OFF)),
    }


def _section_calls(resolved: ResolvedResearch) -> tuple[int, int]:
    """Calls for the sections of a long report, besides the one for its frame, each time that it is written."""
    if (resolved.target_words or 0) < LONG_REPORT_WORDS:
        return 0, 0
    asked = min(len(resolved.sections), MOST_REPORT_SECTIONS)
    fewest = asked or FEWEST_REPORT_SECTIONS
    most = asked or min(MOST_REPORT_SECTIONS, resolved.limits.max_sub_queries * resolved.limits.max_iterations)
    if most < FEWEST_REPORT_SECTIONS:
        return 0, 0
    _, times = declaration(resolved.strategy).expected_calls(resolved.limits, False).get(SYNTHESIZER.name, (1, 1))
    return fewest, most * times


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


declare(
    StrategyDeclaration(
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
)


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


declare(
    StrategyDeclaration(
        name="reflective",
        implementation="workflows.strategies.reflective.reflective_strategy:ReflectiveStrategy",
        roles=(*reflective.ROLES, ANALYZER, SYNTHESIZER),
        presets=STEP_LIMITS,
        expected_calls=_reflective_calls,
        modes={Mode.QUICK: QUICK, Mode.DIRECT: QUICK.model_copy(update={"deadline_seconds": 60.0})},
        decides=True,
    )
)


AGENT_LIMITS: Final = {
    Depth.LIGHT: EffectiveLimits(
        max_iterations=8,
        max_sub_queries=6,
        max_sources=30,
        max_new_sources=30,
        max_sources_per_query=10,
        deadline_seconds=1_800,
        reserve_seconds=300,
        min_steps=1,
        max_steps=3,
        max_searches_per_step=2,
        max_reads_per_step=3,
        agent_seconds=720,
        agent_wait_seconds=1_800,
    ),
    Depth.MEDIUM: EffectiveLimits(
        max_iterations=8,
        max_sub_queries=6,
        max_sources=60,
        max_new_sources=60,
        max_sources_per_query=10,
        deadline_seconds=1_800,
        reserve_seconds=300,
        min_steps=1,
        max_steps=6,
        max_searches_per_step=3,
        max_reads_per_step=5,
        agent_seconds=720,
        agent_wait_seconds=1_800,
    ),
    Depth.EXTENDED: EffectiveLimits(
        max_iterations=8,
        max_sub_queries=6,
        max_sources=100,
        max_new_sources=100,
        max_sources_per_query=10,
        deadline_seconds=1_800,
        reserve_seconds=300,
        min_steps=1,
        max_steps=6,
        max_searches_per_step=4,
        max_reads_per_step=8,
        agent_seconds=720,
        agent_wait_seconds=1_800,
    ),
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


declare(
    StrategyDeclaration(
        name="orchestrator",
        implementation="workflows.strategies.orchestrator.orchestrator_strategy:OrchestratorStrategy",
        roles=(*orchestrating.ROLES, orchestrating.AGENT, ANALYZER, SYNTHESIZER),
        presets=AGENT_LIMITS,
        expected_calls=_orchestrator_calls,
        needs=Needs(tools=True),
        clarifier=orchestrating.INTAKE,
        reasoning_limits={"max_iterations": REASONING_CYCLES},
    )
)
declare(
    StrategyDeclaration(
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
)
