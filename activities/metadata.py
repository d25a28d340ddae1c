"""Metadata for front ends: a JSON Schema of the settings of a request, with the defaults that are in force. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from activities.configuration import ResearchConfiguration
from contracts import presets
from contracts.parse_request import SPECIAL_LIMITS
from contracts.request import Approve, Depth, Gates, Mode, ResearchRequest
from contracts.strategies import StrategyDeclaration, declaration, list_selectable
from contracts.vocabulary import EngineKind

NO_SETTINGS: Final = frozenset(
    {"query", "context", "metadata", "protected_sources", "exclude", "follow_up_of", "continue_from", "tenant"}
)
"""Fields of a request that belong to one question or to one client."""


def described_strategy() -> StrategyDeclaration:
    """Return the strategy whose plans wait for a yes, else the default of requests."""
    waiting = (each for each in list_selectable() if each.gates.approve is Approve.PLAN)
    return next(waiting, declaration(ResearchRequest.model_fields["strategy"].default))


def settings_schema(strategy: StrategyDeclaration, configuration: ResearchConfiguration) -> dict[str, Any]:
    """Return the schema of the settings that a strategy knows, each with the value in force where it is not named."""
    schema = ResearchRequest.model_json_schema()
    whole = _resolved(schema, schema["$defs"])
    properties = {name: part for name, part in whole["properties"].items() if name not in NO_SETTINGS}
    lacking = {
        name
        for names in SPECIAL_LIMITS.values()
        for name in names
        if not any(getattr(limits, names[-1]) for limits in strategy.presets.values())
    }
    limits = properties["limits"]["properties"]
    properties["limits"]["properties"] = {name: part for name, part in limits.items() if name not in lacking}
    properties["strategy"] = {"const": strategy.name}
    properties["mode"]["enum"] = [Mode.AUTO.value, Mode.DEEP.value, *(mode.value for mode in strategy.modes)]
    return {"type": "object", "properties": _with_defaults(properties, _defaults(strategy, configuration))}


def _defaults(strategy: StrategyDeclaration, configuration: ResearchConfiguration) -> dict[str, Any]:
    """Return the values in force: presets, the operator's search, models and gates."""
    depth = presets.depth_of(Depth.AUTO)
    limits = configuration.presets.get((strategy.name, depth)) or presets.preset(strategy.name, depth)
    engine = EngineKind.MODEL if configuration.models else EngineKind.EXTRACTIVE
    verify = presets.effective_verify(None, engine, depth)
    request = ResearchRequest(query="?", strategy=strategy.name)
    return {
        "strategy": strategy.name,
        "depth": depth.value,
        "limits": limits.model_dump(mode="json"),
        "gates": presets.effective_gates(strategy.gates, Gates(), engine).model_dump(mode="json"),
        "search": configuration.web_search.defaults.model_dump(mode="json"),
        "models": {tier: names[0] for tier, names in configuration.models.items() if names},
        "verify": verify.value,
        "checks": presets.effective_checks(request.checks, verify, engine).model_dump(mode="json"),
    }


def _with_defaults(properties: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties with these values as their defaults, nested ones included."""
    changed = {}
    for name, part in properties.items():
        value = values.get(name)
        if "properties" in part:
            inner = _with_defaults(part["properties"], value if isinstance(value, dict) else {})
            changed[name] = {key: each for key, each in part.items() if key != "default"} | {"properties": inner}
        else:
            changed[name] = part if value is None else {**part, "default": value}
    return changed


def _resolved(part: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a part of a schema with its references resolved, without titles and without `null` for "not named"."""
    if isinstance(part, list):
        return [_resolved(each, definitions) for each in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        named = definitions[part["$ref"].rpartition("/")[2]]
        return _resolved({**named, **{key: value for key, value in part.items() if key != "$ref"}}, definitions)
    kinds = [each for each in part.get("anyOf", ()) if each != {"type": "null"}]
    if len(kinds) == 1:
        others = {key: value for key, value in part.items() if key != "anyOf" and value is not None}
        return _resolved({**kinds[0], **others}, definitions)
    # A property may be called `title`: its schema is no text.
    return {
        key: _resolved(value, definitions)
        for key, value in part.items()
        if key != "$defs" and not (key == "title" and isinstance(value, str))
    }
