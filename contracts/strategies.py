"""Strategies as data: declarations that can be read before a strategy's code is loaded, and those of the product.

External packages declare strategies under the entry point group `durable_research.strategies`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, Final

from contracts import living_roles as living
from contracts import orchestrator_roles as orchestrating
from contracts import recursive_roles as recursive
from contracts import reflective_roles as reflective
from contracts.agents import AT_ONCE
from contracts.call_sizes import CLAIMS_PER_CALL, LONG_REPORT_WORDS, MAX_REPORT_SECTIONS, MIN_REPORT_SECTIONS
from contracts.checking_roles import CHECKER, CORRECTOR, REVIEWER
from contracts.names import MODULE_PREFIX
from contracts.outcome import Usage
from contracts.outlines import MAX_HEADINGS
from contracts.packages import REMEDY, PackageFault, load_declaration, note_package, package_of
from contracts.plan import MAX_ROUNDS
from contracts.report_updates import ARRANGER, REPORTER
from contracts.request import Approve, Depth, Gates, Mode, Verify
from contracts.research_trees import MAX_LEVELS
from contracts.resolved import EffectiveLimits, ResolvedResearch
from contracts.roles import ANALYZER, CLARIFIER, PLANNER, SYNTHESIZER, RoleSpec
from contracts.summaries import SUMMARIZER
from contracts.supervisor_roles import REFINER, SUPERVISOR
from contracts.thread_roles import ARCHIVIST
from contracts.tokens import TokenShare
from contracts.tree_sizes import tree_calls
from contracts.vocabulary import EngineKind, JudgeMode, ReportSection, ThinkMode, Tier

ENTRY_POINTS: Final = "durable_research.strategies"
MAX_GAPS: Final = 30
"""Default limit of the gaps of a run."""


@dataclass(frozen=True)
class StrategyDeclaration:
    """The declaration of one strategy."""

    name: str
    implementation: str
    """`module:Class` of the `Strategy` to load in workflows."""
    roles: tuple[RoleSpec[Any, Any], ...]
    presets: Mapping[Depth, EffectiveLimits]
    """Limits by depth: light, medium, extended."""
    expected_calls: Callable[[EffectiveLimits, bool], Mapping[str, tuple[int, int]]]
    """Maps limits, and whether a model reflects, to the fewest and most calls by role; for the estimate."""
    modes: Mapping[Mode, EffectiveLimits] = field(default_factory=dict)
    """Limits of the modes it supports besides `deep`, at any depth."""
    scoped: bool = False
    """True if it works on agents' tasks (`ScopedStrategy`); requests cannot select it."""
    decides: bool = False
    """True if a run chooses mode or depth itself when they are `auto`."""
    clarifier: RoleSpec[Any, Any] = CLARIFIER
    """Role that clarifies the question if the request enables it; a role with tools asks through a call."""
    gates: Gates = field(default_factory=Gates)
    """Default questions to a person: clarification, approval of the plan."""
    reasoning_limits: Mapping[Tier, Mapping[str, int]] = field(default_factory=dict)
    """By tier: limits that differ if the tier's model reasons on its own."""
    judges_edits: bool = False
    """True if its planning unit also judges a plan edited by a person, before it can be approved."""
    live_report: bool = False
    """True if the report grows by bounded updates and is complete at any time (`workflows.phases.drafts`)."""
    report_sections: tuple[ReportSection, ...] = ()
    """Sections appended to its reports, generated from the run's gaps."""
    most_gaps: int = MAX_GAPS
    caller: str = ""
    """Role that calls the report's writer, if the strategy restricts calls between roles."""


CLOSING_ROLES: Final[tuple[RoleSpec[Any, Any], ...]] = (REVIEWER, CHECKER, CORRECTOR)
"""Roles that work on every strategy's report if the request enables checks by a model."""

_declared: dict[str, StrategyDeclaration] = {}
_packages: dict[str, str] = {}
"""Name of a strategy of a package → name and version of the package."""


def declare(strategy: StrategyDeclaration) -> None:
    """Register a strategy in this process. Raises ValueError if another one has its name."""
    registered = _declared.setdefault(strategy.name, strategy)
    if registered != strategy:
        raise ValueError(f"two strategies are named {strategy.name}")


def declare_installed() -> None:
    """Declare the strategies of installed packages.

    Raises `PackageFault` for one that cannot be loaded, has another name than its entry point, or lacks a module, and
    ValueError for a name already taken.
    """
    for entry in entry_points(group=ENTRY_POINTS):
        what = f"the strategy {entry.name}"
        strategy = load_declaration(what, entry, StrategyDeclaration)
        modules = [
            strategy.implementation.partition(":")[0],
            *filter(None, (role.module for role in strategy.roles)),
        ]
        if missing := [module for module in modules if not _is_installed(module)]:
            problem = f"{what} of {package_of(entry)} cannot be loaded"
            raise PackageFault(f"{problem}: it has no module {missing[0]}; {REMEDY}")
        declare(strategy)
        _packages[strategy.name] = package_of(entry)
        note_package(modules, package_of(entry))


def packages_of_strategies() -> Mapping[str, str]:
    """Return the name and the version of the package by strategy, for those that are not of the product."""
    return _packages


def _is_installed(module: str) -> bool:
    """Return whether a module is there, without loading it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its package is not there
        return False


def declaration(name: str) -> StrategyDeclaration:
    """Return the strategy with a name. Raises KeyError if it is not declared."""
    return _declared[name]


def list_declared() -> tuple[StrategyDeclaration, ...]:
    """Return every strategy, in declaration order."""
    return tuple(_declared.values())


def list_selectable() -> tuple[StrategyDeclaration, ...]:
    """Return the strategies that a request may select, in declaration order."""
    return tuple(strategy for strategy in list_declared() if not strategy.scoped)


def declared_roles() -> tuple[RoleSpec[Any, Any], ...]:
    """Return the distinct roles of all strategies, and those shared by every strategy."""
    declared = list_declared()
    roles = [*(role for strategy in declared for role in strategy.roles), *(each.clarifier for each in declared)]
    roles += [CLARIFIER, ARCHIVIST, *CLOSING_ROLES, SUMMARIZER]
    return tuple({role.name: role for role in roles}.values())


def usage_by_share(usage_by_role: Mapping[str, Usage]) -> dict[TokenShare, int]:
    """Return the tokens used by the roles of each share."""
    shares = {role.name: role.share for role in declared_roles()}
    used = dict.fromkeys(TokenShare, 0)
    for name, usage in usage_by_role.items():
        used[shares.get(name, TokenShare.ANALYSIS)] += usage.tokens
    return used


def writers() -> frozenset[str]:
    """Return the names of all roles that write a report."""
    return frozenset(role.name for role in (SYNTHESIZER, *declared_roles()) if role.writes_report)


def writer_engine(engine_by_role: Mapping[str, str]) -> EngineKind | None:
    """Return the engine that wrote a run's report, whichever role wrote it; None if nothing was written."""
    known = writers()
    return next((EngineKind(engine) for role, engine in engine_by_role.items() if role in known), None)


# --- limits and calls of the strategies of the product ---------------------------------------------------------------
TIMES: Final = {Depth.LIGHT: (300, 60), Depth.MEDIUM: (900, 150), Depth.EXTENDED: (1_800, 240)}
"""Deadline of a run and its reserve for writing, both in seconds."""
MAX_TREE_GAPS: Final = 10_000
"""High enough that no gap stated by a leaf is lost."""
READING: Final = {Depth.LIGHT: (12_000, 40_000), Depth.MEDIUM: (24_000, 80_000), Depth.EXTENDED: (40_000, 400_000)}
"""Tokens of sources' texts shown to one analysis, and to all of an iteration (`python -m benchmarks.shown`)."""


def _limits(depth: Depth, sub_queries: int, sources: int, sources_per_query: int, **extra: float) -> EffectiveLimits:
    deadline, reserve = TIMES[depth]
    analysis_tokens, reading_tokens = READING[depth]
    defaults = {
        "max_iterations": 3,
        "max_new_sources": sources,
        "analysis_tokens": analysis_tokens,
        "reading_tokens": reading_tokens,
        "deadline_seconds": deadline,
        "reserve_seconds": reserve,
    }
    counts = {"max_sub_queries": sub_queries, "max_sources": sources, "max_sources_per_query": sources_per_query}
    return EffectiveLimits.model_validate(defaults | counts | extra)


def _steps(minimum: int, maximum: int, searches: int, reads: int) -> dict[str, int]:
    return {"min_steps": minimum, "max_steps": maximum, "max_searches_per_step": searches, "max_reads_per_step": reads}


LAST_LOOKS: Final = 1
"""Calls that look at open gaps in all pages read, before a report states them."""

# --- supervisor ----------------------------------------------------------------------------------------------------
REFLECTIONS_PER_ITERATION: Final = 4
"""One after each phase but the first of a follow-up iteration, if a model reflects after every phase."""
MIN_SUB_QUERIES: Final = 2


def _supervisor_calls(limits: EffectiveLimits, reflects: bool) -> dict[str, tuple[int, int]]:
    rounds = limits.max_iterations
    questions = limits.max_sub_queries
    return {
        PLANNER.name: (1, 1),
        ANALYZER.name: (min(MIN_SUB_QUERIES, questions), rounds * questions + LAST_LOOKS),
        SYNTHESIZER.name: (1, rounds),
        REFINER.name: (0, rounds - 1),
        SUPERVISOR.name: (1, rounds * REFLECTIONS_PER_ITERATION) if reflects else (0, 0),
    }


SUPERVISOR_STRATEGY: Final = StrategyDeclaration(
    name="supervisor",
    implementation=f"{MODULE_PREFIX}workflows.strategies.supervisor.supervisor_strategy:SupervisorStrategy",
    roles=(PLANNER, ANALYZER, SYNTHESIZER, REFINER, SUPERVISOR),
    presets={
        Depth.LIGHT: _limits(Depth.LIGHT, 3, 15, 5, max_iterations=1),
        Depth.MEDIUM: _limits(Depth.MEDIUM, 5, 60, 5, max_new_sources=20),
        Depth.EXTENDED: _limits(Depth.EXTENDED, 5, 100, 8, max_new_sources=35),
    },
    expected_calls=_supervisor_calls,
)

# --- reflective ----------------------------------------------------------------------------------------------------
STEP_LIMITS: Final = {
    Depth.LIGHT: _limits(Depth.LIGHT, 3, 15, 3, **_steps(1, 3, 2, 3)),
    Depth.MEDIUM: _limits(Depth.MEDIUM, 6, 40, 5, **_steps(3, 6, 3, 5)),
    Depth.EXTENDED: _limits(Depth.EXTENDED, 10, 100, 8, **_steps(5, 10, 4, 8)),
}
"""A deeper run has more steps, and each of them more searches and reads."""
QUICK_LIMITS: Final = STEP_LIMITS[Depth.LIGHT].with_fields(
    max_iterations=1, max_steps=1, deadline_seconds=15.0, reserve_seconds=3.0
)
"""One step, and a report of the findings so far after 15 s."""


def _reflective_calls(limits: EffectiveLimits, reflects: bool) -> dict[str, tuple[int, int]]:
    steps = limits.max_steps
    searches = limits.max_searches_per_step
    min_steps = min(limits.min_steps, steps)
    return {
        reflective.COORDINATOR.name: (0, 1),
        reflective.INVESTIGATOR.name: (0, 1),
        reflective.STEP_PLANNER.name: (0, limits.max_iterations),
        reflective.RESEARCHER.name: (min_steps, steps * searches),
        ANALYZER.name: (min_steps, steps * searches + LAST_LOOKS),
        reflective.REFLECTOR.name: (min_steps, steps) if reflects else (0, 0),
        SYNTHESIZER.name: (1, 2),
        reflective.RESPONDER.name: (0, 1),
    }


REFLECTIVE_STRATEGY: Final = StrategyDeclaration(
    name="reflective",
    implementation=f"{MODULE_PREFIX}workflows.strategies.reflective.reflective_strategy:ReflectiveStrategy",
    roles=(*reflective.ROLES, ANALYZER, SYNTHESIZER),
    presets=STEP_LIMITS,
    expected_calls=_reflective_calls,
    clarifier=reflective.COORDINATOR,
    modes={Mode.QUICK: QUICK_LIMITS, Mode.DIRECT: QUICK_LIMITS.with_fields(deadline_seconds=60.0)},
    decides=True,
)


# --- orchestrator and its agents -----------------------------------------------------------------------------------
AGENT_TIMES: Final = {
    "deadline_seconds": 1_800, "reserve_seconds": 300, "agent_seconds": 720, "agent_wait_seconds": 1_800
}  # fmt: skip
"""Times in seconds; the reserve is for writing the report."""
AGENT_LIMITS: Final = {
    depth: _limits(depth, 6, sources, 10, max_iterations=8, **AGENT_TIMES, **_steps(1, *steps))
    for depth, sources, steps in (
        (Depth.LIGHT, 30, (3, 2, 3)),
        (Depth.MEDIUM, 60, (6, 3, 5)),
        (Depth.EXTENDED, 100, (6, 4, 8)),
    )
}
"""An agent has two fifths of the time of its run; its searches and reads vary by depth."""
REASONING_CYCLES: Final = 4
AGENT_TURNS: Final = 3
"""Typical turns of an agent besides its searches: it opens pages twice and reports."""


def _orchestrator_calls(limits: EffectiveLimits, _: bool) -> dict[str, tuple[int, int]]:
    cycles = max(1, limits.max_iterations - 1)
    agents = -(-cycles // 2) * AT_ONCE
    searches = limits.max_searches_per_step
    return {
        orchestrating.OUTLINER.name: (1, 1),
        orchestrating.ORCHESTRATOR.name: (min(2, cycles), cycles),
        orchestrating.AGENT.name: (AGENT_TURNS, agents * (searches + AGENT_TURNS)),
        ANALYZER.name: (1, agents * searches + LAST_LOOKS),
        SYNTHESIZER.name: (1, 2),
    }


ORCHESTRATOR_STRATEGY: Final = StrategyDeclaration(
    name="orchestrator",
    implementation=f"{MODULE_PREFIX}workflows.strategies.orchestrator.orchestrator_strategy:OrchestratorStrategy",
    roles=(*orchestrating.ROLES, orchestrating.AGENT, ANALYZER, SYNTHESIZER),
    presets=AGENT_LIMITS,
    expected_calls=_orchestrator_calls,
    clarifier=orchestrating.INTAKE,
    reasoning_limits={orchestrating.ORCHESTRATOR.tier: {"max_iterations": REASONING_CYCLES}},
)
AGENT_STRATEGY: Final = StrategyDeclaration(
    name="agent",
    implementation=f"{MODULE_PREFIX}workflows.strategies.orchestrator.agent_strategy:AgentStrategy",
    roles=(orchestrating.AGENT, ANALYZER),
    presets={
        depth: limits.with_fields(max_iterations=1, reserve_seconds=60.0) for depth, limits in AGENT_LIMITS.items()
    },
    expected_calls=lambda limits, _: {
        orchestrating.AGENT.name: (AGENT_TURNS, limits.max_searches_per_step + AGENT_TURNS),
        ANALYZER.name: (1, limits.max_searches_per_step),
    },
    scoped=True,
)

# --- living --------------------------------------------------------------------------------------------------------
UPDATE_CHARACTERS: Final = {Depth.LIGHT: 800, Depth.MEDIUM: 1_600, Depth.EXTENDED: 2_400}
"""Of one update of a live report: one to three paragraphs, so that about ten updates make a report of each depth."""
LIVING_LIMITS: Final = {
    depth: _limits(
        depth, 6, 20, 5, max_iterations=1, deadline_seconds=600, reserve_seconds=90,
        max_update_characters=UPDATE_CHARACTERS[depth],
    )
    for depth in TIMES
}  # fmt: skip
"""Ten minutes for twenty pages."""
LIVING_TURNS: Final = 16
"""Typical upper limit of the agent's turns: it searches once, then fetches, reads and reports in waves."""


def _living_calls(limits: EffectiveLimits, _: bool) -> dict[str, tuple[int, int]]:
    return {
        living.DECOMPOSER.name: (1, 1),
        living.LIVING_AGENT.name: (5, LIVING_TURNS),
        ANALYZER.name: (1, limits.max_sources),
        REPORTER.name: (1, limits.max_sources),
        ARRANGER.name: (0, 2),
        REFINER.name: (0, 1),
    }


LIVING_STRATEGY: Final = StrategyDeclaration(
    name="living",
    implementation=f"{MODULE_PREFIX}workflows.strategies.living.living_strategy:LivingStrategy",
    roles=(living.DECOMPOSER, living.LIVING_AGENT, ANALYZER, REPORTER, ARRANGER, REFINER),
    presets=LIVING_LIMITS,
    expected_calls=_living_calls,
    gates=Gates(approve=Approve.PLAN),
    live_report=True,
)


# --- recursive and its executors -----------------------------------------------------------------------------------
def _tree_limits(depth: Depth, deadline: float, *counts: int) -> EffectiveLimits:
    queries, nodes, leaves, sources, corrections = counts
    tree = {"max_nodes": nodes, "max_leaves": leaves, "max_corrections": corrections, "max_levels": MAX_LEVELS}
    times = dict.fromkeys(("deadline_seconds", "agent_seconds", "agent_wait_seconds"), deadline)
    return _limits(depth, queries, sources, 12, max_iterations=1, reserve_seconds=deadline / 6, **tree, **times)


TREE_LIMITS: Final = {
    Depth.LIGHT: _tree_limits(Depth.LIGHT, 1_800.0, 2, 4, 3, 15, 1),
    Depth.MEDIUM: _tree_limits(Depth.MEDIUM, 3_600.0, 3, 9, 5, 60, 2),
    Depth.EXTENDED: _tree_limits(Depth.EXTENDED, 3_600.0, 4, 13, 8, 120, 2),
}
"""Queries of the scope, executors per query, leaves per executor, sources, and corrections per executor."""


RECURSIVE_STRATEGY: Final = StrategyDeclaration(
    name="recursive",
    implementation=f"{MODULE_PREFIX}workflows.strategies.recursive.recursive_strategy:RecursiveStrategy",
    roles=(recursive.MANAGER, *recursive.TREE_ROLES, ANALYZER, SYNTHESIZER),
    presets=TREE_LIMITS,
    expected_calls=lambda limits, _: {**tree_calls(limits), ANALYZER.name: (0, LAST_LOOKS)},
    gates=Gates(approve=Approve.PHRASE),
    judges_edits=True,
    report_sections=tuple(ReportSection),
    most_gaps=MAX_TREE_GAPS,
    caller=recursive.MANAGER.name,
)
EXECUTOR_STRATEGY: Final = StrategyDeclaration(
    name="executor",
    implementation=f"{MODULE_PREFIX}workflows.strategies.recursive.executor_strategy:ExecutorStrategy",
    roles=(*recursive.TREE_ROLES, SYNTHESIZER),
    presets={depth: limits.with_fields(reserve_seconds=30.0) for depth, limits in TREE_LIMITS.items()},
    expected_calls=lambda limits, _: tree_calls(limits, 1),
    scoped=True,
    most_gaps=MAX_TREE_GAPS,
)

# --- work on every strategy's report -------------------------------------------------------------------------------
MAX_CLAIMS_PER_SUB_QUERY: Final = 5
"""Typical number of claims in a report per sub-query."""


def calls_by_role(
    resolved: ResolvedResearch, own: Mapping[str, tuple[int, int]] | None = None
) -> dict[RoleSpec[Any, Any], tuple[int, int]]:
    """Return the fewest and most model calls by role of a run; `own` replaces those of its strategy."""
    strategy = declaration(resolved.strategy)
    if own is None:
        reflects = resolved.gates.think in (ThinkMode.AUTO, ThinkMode.MODEL)
        own = strategy.expected_calls(resolved.limits, reflects)
    expected = dict(own)
    closing = closing_calls(resolved)
    low, high = (1, MAX_ROUNDS) if resolved.gates.clarifies else (0, 0)
    extra_low, extra_high = expected.get(strategy.clarifier.name, (0, 0))
    expected[strategy.clarifier.name] = low + extra_low, high + extra_high
    calls = {}
    for role in dict.fromkeys([strategy.clarifier, *strategy.roles, *CLOSING_ROLES]):
        low, high = expected.get(role.name, (0, 0))
        extra_low, extra_high = closing.get(role.name, (0, 0))
        calls[role] = (low + extra_low, high + extra_high)
    return calls


def closing_calls(resolved: ResolvedResearch) -> dict[str, tuple[int, int]]:
    """Return the fewest and most model calls by role for work on any strategy's report; for the estimate."""
    checks = resolved.checks
    full = resolved.verify is Verify.FULL
    claims = MAX_CLAIMS_PER_SUB_QUERY * resolved.limits.max_sub_queries * resolved.limits.max_iterations
    batches = -(-claims // CLAIMS_PER_CALL)
    by_model = checks.review is JudgeMode.MODEL
    min_parts, max_parts = _section_calls(resolved)
    reviewed = int(checks.review is not JudgeMode.OFF)
    # The reporter revises a live report by the review's notes, section by section.
    by_writer = {REPORTER.name: (0, MAX_HEADINGS * reviewed)}
    if not declaration(resolved.strategy).live_report:
        by_writer = {SYNTHESIZER.name: (min_parts, max_parts + reviewed)}
    return by_writer | {
        REVIEWER.name: (int(by_model), 2 * by_model),
        CHECKER.name: (int(full), full * (batches + 2 * bool(checks.correct))),
        CORRECTOR.name: (0, full * 2 * bool(checks.correct)),
    }


def _section_calls(resolved: ResolvedResearch) -> tuple[int, int]:
    """Return the calls for the sections of a long report, besides the one for its frame, over all its versions."""
    if (resolved.output.target_words or 0) < LONG_REPORT_WORDS:
        return 0, 0
    sections = min(len(resolved.output.sections or []) or MAX_REPORT_SECTIONS, MAX_REPORT_SECTIONS)
    _, times = declaration(resolved.strategy).expected_calls(resolved.limits, False).get(SYNTHESIZER.name, (1, 1))
    return min(sections, MIN_REPORT_SECTIONS), sections * times


BUILT_IN: Final = tuple(value for value in tuple(globals().values()) if isinstance(value, StrategyDeclaration))
for strategy in BUILT_IN:
    declare(strategy)
