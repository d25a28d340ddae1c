"""Metadata for front ends: a JSON Schema of the settings of a request, with the defaults that are in force. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from activities.preparation import ResearchConfiguration
from contracts import presets
from contracts.parse_request import SPECIAL_LIMITS
from contracts.request import Approve, Checks, Depth, Gates, Mode, ResearchRequest
from contracts.strategies import StrategyDeclaration, declaration, list_selectable
from contracts.vocabulary import EngineKind

NO_SETTINGS: Final = frozenset(
    {
        "query",
        "context",
        "metadata",
        "protected_sources",
        "exclude",
        "follow_up_of",
        "continue_from",
        "refresh",
        "tenant",
    }
)
"""Fields of a request that belong to one question or to one client."""


def described_strategy() -> StrategyDeclaration:
    """Return the strategy whose plans wait for a yes, else the default of requests."""
    waiting = (each for each in list_selectable() if each.gates.approve is Approve.PLAN)
    return next(waiting, declaration(ResearchRequest.model_fields["strategy"].default))


def settings_schema(strategy: StrategyDeclaration, configuration: ResearchConfiguration) -> dict[str, Any]:
    """Return the schema of the settings that a strategy knows, each with the value in force where it is not named."""
    schema = ResearchRequest.model_json_schema()
    known = _inlined(schema, schema["$defs"], _defaults(strategy, configuration))["properties"]
    for names in SPECIAL_LIMITS.values():
        if not any(getattr(limits, names[-1]) for limits in strategy.presets.values()):
            for name in names:
                del known["limits"]["properties"][name]
    known["strategy"] = {"const": strategy.name, "default": strategy.name}
    known["mode"]["enum"] = [Mode.AUTO.value, Mode.DEEP.value, *(mode.value for mode in strategy.modes)]
    return {"type": "object", "properties": {name: part for name, part in known.items() if name not in NO_SETTINGS}}


def _defaults(strategy: StrategyDeclaration, configuration: ResearchConfiguration) -> dict[str, Any]:
    """Return the values in force: presets, the operator's search, models and gates."""
    depth = presets.depth_of(Depth.AUTO)
    limits = configuration.presets.get((strategy.name, depth)) or presets.preset(strategy.name, depth)
    engine = EngineKind.MODEL if configuration.models else EngineKind.EXTRACTIVE
    verify = presets.effective_verify(None, engine, depth)
    parts = {
        "limits": limits,
        "gates": presets.effective_gates(strategy.gates, Gates(), engine),
        "search": configuration.search,
        "checks": presets.effective_checks(Checks(), verify, engine),
    }
    models = {tier: names[0] for tier, names in configuration.models.items() if names}
    whole = {name: part.model_dump(mode="json") for name, part in parts.items()}
    return whole | {"depth": depth.value, "models": models, "verify": verify.value}


def _inlined(part: Mapping[str, Any], definitions: Mapping[str, Any], value: Any = None) -> dict[str, Any]:
    """Return a schema with its references resolved and this default, without titles and alternatives to `null`."""
    kinds = [each for each in part.get("anyOf", ()) if each != {"type": "null"}]
    inner = definitions[part["$ref"].rpartition("/")[2]] if "$ref" in part else kinds[0] if len(kinds) == 1 else None
    if inner is not None:
        own = {key: each for key, each in part.items() if key not in ("$ref", "anyOf")}
        return _inlined({**inner, **own}, definitions, value)
    made = {key: each for key, each in part.items() if key not in ("$defs", "title", "default")}
    if "items" in part:
        made["items"] = _inlined(part["items"], definitions)
    if "properties" in part:
        values, inside = value or {}, part["properties"].items()
        return made | {"properties": {name: _inlined(each, definitions, values.get(name)) for name, each in inside}}
    default = part.get("default") if value is None else value
    return made if default is None else made | {"default": default}
