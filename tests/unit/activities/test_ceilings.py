"""What an operator allows at most, and what becomes of a request for more."""

from dataclasses import replace
from typing import Any

import pytest

from activities.preparation import ResearchConfiguration, RunRefused, resolve, resolve_again, settings_schema
from contracts.ceilings import Ceilings
from contracts.parse_request import InvalidRequest, parse_request
from contracts.request import ResearchRequest
from contracts.resolved import CorpusSnapshot, ResolvedResearch
from contracts.strategies import declaration

CORPUS = CorpusSnapshot(name="manual", files=3)
MODELS = ResearchConfiguration(
    models={"simple": ["small"], "analytical": ["big", "spare"], "complex": ["big"]}, model_host=lambda _: "host"
)


def allowing(beyond: str = "refuse", tenants: dict[str, Any] | None = None, **ceiling: Any) -> ResearchConfiguration:
    """Make the configuration of an operator who allows no more than a ceiling."""
    values = {"beyond": beyond, "ceiling": ceiling, "tenants": tenants or {}}
    return replace(MODELS, ceilings=Ceilings.model_validate(values))


def resolved(configuration: ResearchConfiguration, **fields: Any) -> ResolvedResearch:
    request = ResearchRequest.model_validate({"query": "x", **fields})
    return resolve("r-1", request, configuration, CORPUS, search_attributes=False)


def refusal(configuration: ResearchConfiguration, **fields: Any) -> str:
    with pytest.raises(RunRefused) as refused:
        resolved(configuration, **fields)
    return str(refused.value)


@pytest.mark.parametrize(
    ("ceiling", "fields", "line"),
    [
        (
            {"max_cost_usd": 0.5},
            {"limits": {"max_cost_usd": 5}},
            (
                "limits.max_cost_usd: 5.00 is more than the 0.50 allowed (the operator's limits.ceiling.max_cost_usd): "
                "name less, or leave it out"
            ),
        ),
        (
            {"max_tokens": 1_000},
            {"limits": {"max_tokens": 1_001}},
            (
                "limits.max_tokens: 1,001 is more than the 1,000 allowed (the operator's limits.ceiling.max_tokens): "
                "name less, or leave it out"
            ),
        ),
        (
            {"max_sources": 1},
            {"protected_sources": ["a.txt", "b.txt"], "corpus": "manual"},
            (
                "protected_sources: 2 sources are named, and a run may read 1 (the operator's limits.ceiling.max_sources): "
                "name fewer"
            ),
        ),
        (
            {"depth": "light"},
            {"depth": "extended"},
            "depth: extended is deeper than light (the operator's limits.ceiling.depth): name less, or leave it out",
        ),
        (
            {"strategies": ["living", "reflective"]},
            {},
            (
                "strategy: supervisor is not allowed (the operator's limits.ceiling.strategies): "
                "choose living or reflective"
            ),
        ),
        (
            {"engines": ["extractive"]},
            {"engine": "model"},
            "engine: model is not allowed (the operator's limits.ceiling.engines): choose extractive",
        ),
        (
            {"models": ["big", "small"]},
            {"models": {"complex": "dear"}},
            "models.complex: dear is not allowed (the operator's limits.ceiling.models): choose big or small",
        ),
        (
            {"models": ["other"]},
            {},
            "models.simple: no allowed model (the operator's limits.ceiling.models): name one of other",
        ),
    ],
)
def test_a_request_beyond_a_ceiling_is_refused_in_one_line(
    ceiling: dict[str, Any], fields: dict[str, Any], line: str
) -> None:
    """The line names the setting, its value, what is allowed, where that is set, and what to do."""
    assert refusal(allowing(**ceiling), **fields) == line


def test_what_is_cut_is_listed_with_both_values() -> None:
    """Named values and those of the preset are lowered, with what depends on them, and the report lists each."""
    ceiling = {"max_cost_usd": 0.5, "depth": "light", "max_sources": 4, "deadline_seconds": 60, "models": ["big"]}
    made = resolved(allowing("cut", **ceiling), depth="extended", limits={"max_cost_usd": 7})
    limits = made.limits
    assert (limits.max_cost_usd, limits.max_sources, limits.max_new_sources, limits.reserve_seconds) == (0.5, 4, 4, 10)
    assert made.models == {"simple": "big", "analytical": "big", "complex": "big"}
    assert made.ceiling_lines == [
        "ceiling: 0.50 US dollars, 4 sources, 1 min, depth light, models big",
        "limits.max_cost_usd: 0.50 in place of 7.00, as the operator allows no more",
        "depth: light in place of extended, as the operator allows no more",
        "limits.max_sources: 4 in place of 15, as the operator allows no more",
        "limits.deadline_seconds: 60.00 in place of 300.00, as the operator allows no more",
    ]
    assert made.requested["limits"] == {"max_cost_usd": 7.0}


def test_a_preset_beyond_a_ceiling_is_lowered_and_never_refused() -> None:
    """Whoever asks for nothing gets what is allowed; a limit that the preset lacks is then one."""
    made = resolved(allowing(max_cost_usd=0.5, max_tokens=9_000, engines=["extractive"]))
    assert (made.limits.max_cost_usd, made.limits.max_tokens, made.engine) == (0.5, 9_000, "extractive")
    assert made.cuts == ["limits.max_cost_usd: 0.50 in place of 2.00, as the operator allows no more"]


def test_a_run_chooses_only_what_is_allowed() -> None:
    """Limits that a run may choose for itself are bound, and depths beyond the ceiling are no choice."""
    free = resolved(MODELS, strategy="reflective")
    bound = resolved(allowing(depth="medium", max_cost_usd=0.5), strategy="reflective")
    assert free.choices.keys() - bound.choices.keys() == {"extended"}
    assert {limits.max_cost_usd for limits in (bound.limits, *bound.choices.values())} == {0.5}


def test_a_tenants_table_replaces_what_it_names() -> None:
    """A tenant may have more or less than everybody; what its table leaves out is that of everybody."""
    tenants = {"lab": {"max_cost_usd": 3.0, "domains_deny": ["b.test"]}}
    configuration = allowing(tenants=tenants, max_cost_usd=1.0, max_tokens=9_000, domains_deny=["a.test"])
    lab = resolved(configuration, tenant="lab", limits={"max_cost_usd": 3}, search={"domains_deny": ["c.test"]})
    assert (lab.limits.max_cost_usd, lab.limits.max_tokens) == (3.0, 9_000)
    assert lab.search.domains_deny == ["c.test", "a.test", "b.test"]
    assert resolved(configuration).search.domains_deny == ["a.test"]
    assert "limits.tenants.lab.max_cost_usd" in refusal(configuration, tenant="lab", limits={"max_cost_usd": 4})


def test_no_request_opens_a_denied_domain() -> None:
    """A page that a request names is refused where its host is denied to all requests."""
    line = refusal(allowing(domains_deny=["a.test"]), protected_sources=["https://www.a.test/page"])
    assert "its host is in search.domains_deny" in line


def test_a_resumed_run_is_bound_by_the_ceiling_of_today() -> None:
    """Raised limits are refused or cut as those of a new run, and limits of earlier are lowered."""
    stored = resolved(MODELS, limits={"max_tokens": 50_000})
    more = ResearchRequest.model_validate({"query": "x", "limits": {"max_cost_usd": 9}})
    with pytest.raises(RunRefused, match=r"9\.00 is more than the 1\.00 allowed"):
        resolve_again(stored, more, allowing(max_cost_usd=1.0))
    again = resolve_again(stored, more, allowing("cut", max_cost_usd=1.0, max_tokens=40_000))
    assert (again.limits.max_cost_usd, again.limits.max_tokens) == (1.0, 40_000)
    later = resolve_again(again, ResearchRequest(query="x"), allowing("cut", max_cost_usd=0.25, max_tokens=40_000))
    assert (later.limits.max_cost_usd, later.limits.max_tokens) == (0.25, 40_000)


@pytest.mark.parametrize("value", ["1e308", "1" + "0" * 400, "1e400", "NaN", "-Infinity"])
@pytest.mark.parametrize("name", ["max_cost_usd", "max_tokens", "deadline_seconds", "max_searches"])
def test_a_number_beyond_all_sense_is_refused_by_name(name: str, value: str) -> None:
    """No limit is endless, and the line says which one was meant, without its digits."""
    with pytest.raises(InvalidRequest) as refused:
        parse_request(f'{{"query": "x", "limits": {{"{name}": {value}}}}}')
    assert len(refused.value.lines) == 1
    assert refused.value.lines[0].startswith(f"limits.{name}: ")
    assert len(refused.value.lines[0]) < 100


def test_a_form_with_all_defaults_of_the_schema_is_not_refused() -> None:
    """Each default is within the ceiling of the tenant, and the greatest value is that of the ceiling."""
    ceiling = {"max_cost_usd": 0.5, "max_tokens": 9_000, "depth": "light", "models": ["big"], "deadline_seconds": 60}
    configuration = allowing(tenants={"lab": {"max_cost_usd": 0.2}}, **ceiling)
    for name, cost in (("default", 0.5), ("lab", 0.2)):
        schema = settings_schema(declaration("reflective"), configuration, name)["properties"]
        assert schema["limits"]["properties"]["max_cost_usd"]["maximum"] == cost
        assert schema["depth"]["enum"] == ["auto", "light"]
        limits = {key: part["default"] for key, part in schema["limits"]["properties"].items() if "default" in part}
        models = {key: part["default"] for key, part in schema["models"]["properties"].items() if "default" in part}
        named = {"strategy": "reflective", "depth": schema["depth"]["default"], "limits": limits, "models": models}
        assert resolved(configuration, tenant=name, **named).limits.max_cost_usd == cost
    alone = settings_schema(declaration("reflective"), allowing(engines=["extractive"]))["properties"]
    assert alone["verify"]["default"] == "light"
