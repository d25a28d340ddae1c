"""Strategies as data: the declaration of each one, known before any of its code is loaded.

A strategy from outside the product is declared by a package whose metadata names it under the entry point group
`durable_research.strategies`; no file of the product mentions it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Final

from contracts.checking_roles import CHECKER, CORRECTOR, REVIEWER
from contracts.outcome import Usage
from contracts.request import Depth, Gates, Mode
from contracts.resolved import EffectiveLimits
from contracts.roles import CLARIFIER, SYNTHESIZER, RoleSpec
from contracts.summaries import SUMMARIZER
from contracts.tokens import TokenShare
from contracts.vocabulary import EngineKind, ReportSection, Tier

ENTRY_POINTS: Final = "durable_research.strategies"
MOST_GAPS: Final = 30
"""Gaps of a run, where its strategy needs no more."""


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
    modes: Mapping[Mode, EffectiveLimits] = field(default_factory=dict)
    """Limits of the modes that it knows besides `deep`, whatever the depth."""
    scoped: bool = False
    """True if it works on the tasks of agents (`ScopedStrategy`): no request can name it."""
    decides: bool = False
    """True if a run decides for itself where mode or depth are `auto`."""
    clarifier: RoleSpec[Any, Any] = CLARIFIER
    """Role that clarifies the question where the request wants it; one with tools calls one to ask."""
    gates: Gates = field(default_factory=Gates)
    """Questions to a person where the request names none: clarification, approval of the plan."""
    reasoning_limits: Mapping[Tier, Mapping[str, int]] = field(default_factory=dict)
    """Limits that differ where the model of a tier reasons by itself, by tier."""
    judges_edits: bool = False
    """True if its unit that makes the plan also judges a plan that a person edited, before anyone can approve it."""
    live_report: bool = False
    """True if the report grows by bounded updates and is whole at any time (`workflows.phases.drafts`)."""
    report_sections: tuple[ReportSection, ...] = ()
    """Sections behind the text of its reports, made from the gaps of the run."""
    most_gaps: int = MOST_GAPS
    """Gaps that one run of it may have."""


CLOSING_ROLES: Final[tuple[RoleSpec[Any, Any], ...]] = (REVIEWER, CHECKER, CORRECTOR)
"""Roles that work on the report of every strategy, where the request wants it checked by a model."""

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
    """Return those that a request may name, in the order of declaration."""
    return tuple(strategy for strategy in list_declared() if not strategy.scoped)


def declared_roles() -> tuple[RoleSpec[Any, Any], ...]:
    """The roles of all strategies, each once, and those that work before, within and after any of them."""
    declared = list_declared()
    roles = [*(role for strategy in declared for role in strategy.roles), *(each.clarifier for each in declared)]
    roles += [CLARIFIER, *CLOSING_ROLES, SUMMARIZER]
    return tuple({role.name: role for role in roles}.values())


def usage_by_share(usage_by_role: Mapping[str, Usage]) -> dict[TokenShare, int]:
    """Return the tokens that the roles of each share used."""
    shares = {role.name: role.share for role in declared_roles()}
    used = dict.fromkeys(TokenShare, 0)
    for name, usage in usage_by_role.items():
        used[shares.get(name, TokenShare.ANALYSIS)] += usage.tokens
    return used


def writers() -> frozenset[str]:
    """The names of all roles that write a report."""
    return frozenset(role.name for role in (SYNTHESIZER, *declared_roles()) if role.writes_report)


def writer_engine(engine_by_role: Mapping[str, str]) -> EngineKind | None:
    """Return the engine of the report of a run, under any name of the writer's role; None if nothing was written."""
    known = writers()
    return next((EngineKind(engine) for role, engine in engine_by_role.items() if role in known), None)
