"""The schema of the settings of a strategy, with the defaults that are in force."""

import json
from typing import Any

from activities.preparation import ResearchConfiguration, described_strategy, settings_schema
from contracts.presets import preset
from contracts.request import Depth, ResearchRequest
from contracts.resolved import EffectiveSearch
from contracts.strategies import declaration, list_selectable
from tests.toy.outlining import OUTLINING, outlining_declared

MOST_BYTES = 16_000


def properties_of(schema: dict[str, Any], *path: str) -> dict[str, Any]:
    for name in path:
        schema = schema["properties"][name]
    return schema["properties"]


def test_every_schema_is_small_whole_and_without_references() -> None:
    """With a model and without one; what is said in it is valid in a request of the strategy (S2-006)."""
    for strategy in list_selectable():
        for configuration in (ResearchConfiguration(), ResearchConfiguration(models={"simple": ["small"]})):
            schema = settings_schema(strategy, configuration)
            text = json.dumps(schema)
            assert len(text.encode()) <= MOST_BYTES
            assert "$ref" not in text
            assert "$defs" not in text
            assert not {"query", "context", "tenant", "continue_from"} & set(schema["properties"])
            defaults = {
                name: {
                    key: each["default"] for key, each in part["properties"].items() if each.get("default") is not None
                }
                if "properties" in part
                else part.get("default")
                for name, part in schema["properties"].items()
            }
            given = {name: value for name, value in defaults.items() if value not in (None, {})}
            assert ResearchRequest.model_validate({"query": "x", **given}).strategy == strategy.name


def test_the_defaults_are_those_in_force() -> None:
    """Presets of the operator, searches as configured, gates of the strategy, the model that would work (S2-054)."""
    own = preset("reflective", Depth.MEDIUM).model_copy(update={"max_sources": 7})
    search = EffectiveSearch(max_results_per_query=5)
    models = {"simple": ["small", "spare"]}
    presets = {("reflective", Depth.MEDIUM): own}
    made = settings_schema(
        declaration("reflective"), ResearchConfiguration(search=search, models=models, presets=presets)
    )
    assert properties_of(made, "limits")["max_sources"]["default"] == 7
    assert properties_of(made, "limits")["max_steps"]["default"] == 6
    assert properties_of(made, "search")["max_results_per_query"]["default"] == 5
    assert properties_of(made, "models")["simple"]["default"] == "small"
    assert properties_of(made, "gates")["think"]["default"] == "model"
    assert made["properties"]["mode"]["enum"] == ["auto", "deep", "quick", "direct"]
    plain = settings_schema(declaration("supervisor"), ResearchConfiguration())
    assert "max_steps" not in properties_of(plain, "limits")
    assert properties_of(plain, "gates")["approve"]["default"] == "none"
    assert plain["properties"]["mode"]["enum"] == ["auto", "deep"]


def test_the_described_strategy_is_one_whose_plans_wait() -> None:
    """Where there is one; else that of a request which names none."""
    with outlining_declared():
        waiting = described_strategy()
        assert waiting.gates.requires_approval
        schema = settings_schema(OUTLINING, ResearchConfiguration())
        assert properties_of(schema, "gates")["approve"]["default"] == "plan"
