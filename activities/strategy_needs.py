"""What a strategy cannot do without, looked at before any work: a run that lacks it is refused, naming others. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from activities.configuration import ResearchConfiguration
from contracts.strategies import StrategyDeclaration, list_selectable
from contracts.vocabulary import EngineKind

ANOTHER_MODEL: Final = "name a model that takes tools (models.{tier})"
NO_MODEL: Final = " or none (engine extractive)"
A_MODEL: Final = "configure a model (RESEARCH_MODEL together with ANTHROPIC_API_KEY)"


def unmet_need(
    strategy: StrategyDeclaration,
    engine: EngineKind,
    asked: Mapping[str, Sequence[str]],
    configuration: ResearchConfiguration,
    *,
    web: bool,
) -> str | None:
    """What the strategy lacks in this run and what to do; None where it lacks nothing.

    `asked` are the models that may be asked, by tier.
    """
    problem = _problem(strategy, engine, asked, configuration, web=web)
    if problem is None:
        return None
    lacks, remedy = problem
    others = [
        each.name
        for each in list_selectable()
        if each.name != strategy.name and _problem(each, engine, asked, configuration, web=web) is None
    ]
    instead = f", or ask with strategy {' or '.join(others)}" if others else ""
    return f"strategy: {strategy.name} {lacks}: {remedy}{instead}"


def _problem(
    strategy: StrategyDeclaration,
    engine: EngineKind,
    asked: Mapping[str, Sequence[str]],
    configuration: ResearchConfiguration,
    *,
    web: bool,
) -> tuple[str, str] | None:
    """What is lacking, and what would mend it."""
    needs, calling = strategy.needs, [role for role in strategy.roles if role.tools]
    if needs.web and not web:
        return "needs the web, which this run does not search", "ask with --web"
    if engine is EngineKind.EXTRACTIVE:
        unscripted = [role.name for role in calling if not role.has_fallback]
        if needs.model or unscripted:
            return f"needs a model{f' for the role {unscripted[0]}' if unscripted else ''}", A_MODEL
        return None
    for role in calling if needs.tools else []:
        names = asked.get(role.tier.value, ())
        if names and not any(map(configuration.takes_tools, names)):
            scripted = NO_MODEL if not needs.model and all(each.has_fallback for each in calling) else ""
            remedy = ANOTHER_MODEL.format(tier=role.tier) + scripted
            return f"calls tools, and none can be called with {', '.join(names)}", remedy
    return None
