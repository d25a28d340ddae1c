"""Resolution of a request against a worker's configuration, and the schema of its settings."""

import json
from dataclasses import replace
from typing import Any

import pytest

from activities.preparation import (
    ResearchConfiguration,
    RunRefused,
    described_strategy,
    resolve,
    resolve_again,
    settings_schema,
)
from contracts import strategies
from contracts.parse_request import parse_request
from contracts.presets import preset, with_choice
from contracts.request import Depth, ResearchRequest, Verify
from contracts.resolved import CorpusSnapshot, EffectiveSearch, ProviderChoice, ResolvedResearch
from contracts.strategies import declaration, list_selectable
from contracts.tokens import TokenSettings
from contracts.vocabulary import EngineKind, GatePolicy, StopReason, ThinkMode
from tests.toy.asker import ASKER, ASKING
from tests.toy.outlining import OUTLINING, outlining_declared

CORPUS = CorpusSnapshot(name="manual", files=3)
MODELS = ResearchConfiguration(
    models={"simple": ["small"], "analytical": ["big", "spare"], "complex": ["big"]}, model_host=lambda _: "host"
)
PREFERRED = {"simple": "small", "analytical": "big", "complex": "big"}
NO_MODEL = ResearchConfiguration()
EXTRACTIVE = (EngineKind.EXTRACTIVE, {}, None, "nothing leaves this machine")
HERE = ProviderChoice(name="searxng", available=True, reason="configured", host="s.test")
AWAY = ProviderChoice(name="brave", available=False, reason="set RESEARCH_BRAVE_API_KEY")
NOTHING = "there is nothing to search: name a folder with --corpus DIR, or set up a search provider"


def resolved(
    configuration: ResearchConfiguration = MODELS, corpus: CorpusSnapshot | None = CORPUS, **fields: Any
) -> ResolvedResearch:
    request = ResearchRequest.model_validate({"query": "x", **fields})
    return resolve("r-1", request, configuration, corpus, search_attributes=False)


def again(stored: ResolvedResearch, configuration: ResearchConfiguration = MODELS, **fields: Any) -> ResolvedResearch:
    return resolve_again(stored, ResearchRequest.model_validate({"query": "x", **fields}), configuration)


class Services:
    """A worker's search services, and what it was asked to choose by."""

    def __init__(self, *choices: ProviderChoice) -> None:
        self.asked: list[Any] = []
        self._choices = choices
        self.configuration = ResearchConfiguration(choose_providers=self._choose)

    def _choose(self, named: Any, types: Any) -> list[ProviderChoice]:
        self.asked.append((named, " ".join(types)))
        if named == ["nobody"]:
            raise ValueError("nobody is no provider")
        return list(self._choices)


def served(choice: ProviderChoice) -> ResearchConfiguration:
    return Services(choice).configuration


def summarized(first: str, *others: str) -> ResearchConfiguration:
    """A configuration with models, some of them to summarise."""
    return replace(MODELS, tokens=TokenSettings(summarization_provider=first, summarization_providers=list(others)))


UNKNOWN: dict[str, Any] = {"search": {"providers": ["nobody"]}}
OFFLINE: dict[str, Any] = {"web": False, "search": {"providers": ["corpus", "searxng"]}}


# --- engine and models ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("configuration", "fields", "expected"),
    [
        (MODELS, {}, (EngineKind.MODEL, PREFERRED, "host", "passages go to host")),
        (NO_MODEL, {}, EXTRACTIVE),
        (NO_MODEL, {"engine": "extractive", "models": {"simple": "mine"}}, EXTRACTIVE),
        (
            MODELS,
            {"models": {"complex": "mine"}},
            (EngineKind.MODEL, {**PREFERRED, "complex": "mine"}, "host", "passages go to host"),
        ),
    ],
)
def test_a_model_works_where_one_is_configured_and_wanted(
    configuration: ResearchConfiguration, fields: dict[str, Any], expected: Any
) -> None:
    """The explicit name, then the configured tier; the resolution says where text goes (S0-101)."""
    made = resolved(configuration, **fields)
    assert (made.engine, made.models, made.model_host, made.egress) == expected


@pytest.mark.parametrize(
    ("configuration", "corpus", "fields", "reason", "words"),
    [
        (NO_MODEL, CORPUS, {"engine": "model"}, "no_providers", "RESEARCH_MODEL"),
        (NO_MODEL, CORPUS, {"models": {"simple": "mine"}}, "no_providers", r"models\.simple.*ANTHROPIC_BASE_URL"),
        (NO_MODEL, CORPUS, {"strategy": "reflective", "mode": "direct"}, "invalid_input", "mode: .* needs a model"),
        (MODELS, None, {}, "no_providers", NOTHING),
        (MODELS, CorpusSnapshot(name="empty", files=0, skipped=4), {}, "no_providers", "no readable document"),
        (NO_MODEL, CORPUS, {"gates": {"hook": "ours"}}, "invalid_input", r"gates\.hook: .*none is configured"),
        (served(AWAY), None, {}, "no_providers", f"{NOTHING}\nbrave: set RESEARCH_BRAVE_API_KEY"),
        (
            summarized("strange"),
            CORPUS,
            {},
            "invalid_input",
            r"tokens\.summarization_provider: no model called strange",
        ),
        (
            summarized("small", "odd"),
            CORPUS,
            {},
            "invalid_input",
            r"tokens\.summarization_providers: no model called odd",
        ),
        (served(HERE), None, UNKNOWN, "invalid_input", "search.providers: nobody is no provider"),
        (
            served(HERE),
            CORPUS,
            OFFLINE,
            "invalid_input",
            "searxng searches the web, but web is false: change one of the two",
        ),
    ],
)
def test_a_run_that_cannot_work_is_refused(
    configuration: ResearchConfiguration, corpus: CorpusSnapshot | None, fields: Any, reason: str, words: str
) -> None:
    """No model for what needs one, nothing to search, an unknown hook or summarizer: each names what to do (C0-13, S0-101)."""
    with pytest.raises(RunRefused, match=words) as refused:
        resolved(configuration, corpus, **fields)
    assert refused.value.reason is StopReason(reason)


# --- needs of a strategy ----------------------------------------------------------------------------------------------
@pytest.fixture
def _asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "_declared", dict(strategies._declared))


TOOLS = "calls tools, which big, spare cannot call: choose a model that can call tools (models.analytical)"
NEEDS_MODEL = "needs a model for the role asker: configure a model (RESEARCH_MODEL together with ANTHROPIC_API_KEY)"


@pytest.mark.usefixtures("_asking")
@pytest.mark.parametrize(
    ("scripted", "fields", "lacks"),
    [
        (True, {}, f"{TOOLS}, or engine extractive"),
        (False, {}, TOOLS),
        (False, {"engine": "extractive"}, f"{NEEDS_MODEL}, or choose another strategy"),
        (True, {"models": {"analytical": "small"}}, None),
        (True, {"engine": "extractive"}, None),
    ],
)
def test_a_strategy_is_refused_what_it_cannot_do_without(scripted: bool, fields: Any, lacks: str | None) -> None:
    """The refusal names what is lacking and the remedy; a resumed run cannot change to models without tools either."""
    strategies.declare(replace(ASKING, roles=(replace(ASKER, has_fallback=scripted),)))
    configuration = replace(MODELS, takes_tools=lambda name: name == "small")
    if lacks is None:
        stored = resolved(configuration, strategy="asking", **fields)
        assert again(stored, configuration).models == stored.models
        with pytest.raises(RunRefused, match="which deaf, big, spare cannot call"):
            again(stored, configuration, engine="model", models={"analytical": "deaf"})
        return
    with pytest.raises(RunRefused) as refused:
        resolved(configuration, strategy="asking", **fields)
    assert (refused.value.reason, str(refused.value)) == (StopReason.INVALID_INPUT, f"strategy: asking {lacks}")


# --- search providers -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fields", "corpus", "names", "asked"),
    [
        ({}, None, ["searxng", "brave"], [None]),
        ({"web": True}, CORPUS, ["corpus", "searxng", "brave"], [None]),
        ({"search": {"providers": ["corpus", "searxng"]}}, CORPUS, ["corpus", "searxng", "brave"], [["searxng"]]),
        ({"web": False}, CORPUS, ["corpus"], []),
        ({"search": {"providers": ["corpus"]}}, CORPUS, ["corpus"], []),
    ],
)
def test_the_web_is_searched_where_it_is_requested(fields: Any, corpus: Any, names: list[str], asked: Any) -> None:
    """Without a corpus, on request, or when a provider of it is named; the corpus comes first."""
    services = Services(HERE, AWAY)
    made = resolved(services.configuration, corpus, **fields)
    assert [choice.name for choice in made.providers] == names
    assert services.asked == [(one, "web academic") for one in asked]
    assert made.web is bool(asked)


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({"constraints": {"language": "de"}}, [(None, "web academic")]),
        ({"web": False}, []),
        ({"search": {"source_types": ["news"]}}, [(None, "news")]),
        ({"search": {"providers": ["searxng"]}}, [(["searxng"], "web academic")]),
    ],
)
def test_a_resumed_run_searches_as_both_requests_say(fields: Any, asked: Any) -> None:
    """What the new request names comes over what the first one named; the providers are chosen from both."""
    services = Services(HERE)
    stored = resolved(services.configuration, web=True)
    services.asked.clear()
    made = again(stored, services.configuration, **fields)
    assert [choice.name for choice in made.providers] == (["corpus", "searxng"] if asked else ["corpus"])
    assert services.asked == asked


# --- a resumed run ----------------------------------------------------------------------------------------------------
def test_a_resumed_run_takes_what_its_request_names() -> None:
    """Depth, models, gates and form come over what it has; everything else stays, whatever is configured by now."""
    protected = ["https://example.org/a"]
    form = {"language": "de", "sections": ["Kurz"]}
    stored = resolved(strategy="supervisor", output=form, protected_sources=protected)
    form, gates = {"language": "fr"}, {"policy": "advisory"}
    changed = again(stored, depth="light", models={"complex": "mine"}, gates=gates, output=form)
    assert (changed.depth, changed.limits) == (Depth.LIGHT, preset("supervisor", Depth.LIGHT))
    assert changed.models == {"simple": "small", "analytical": "big", "complex": "mine"}
    assert changed.protected_sources == protected
    assert (changed.gates.policy, changed.gates.think) == (GatePolicy.ADVISORY, stored.gates.think)
    assert (changed.report_language, changed.output.sections) == ("fr", ["Kurz"])
    assert again(changed) == changed
    assert "refresh" not in again(stored, continue_from="r-1", refresh=True).requested  # nor in its next resumption
    more = again(stored, limits={"max_iterations": 7})
    assert (more.limits.max_iterations, more.limits.max_sources) == (7, stored.limits.max_sources)
    without = again(stored, engine="extractive")
    assert (without.engine, without.models, without.model_host, without.egress) == EXTRACTIVE
    assert without.gates.think is ThinkMode.RULES
    assert again(without) == without
    assert again(without, models={"simple": "mine"}).engine is EngineKind.MODEL
    limits = stored.limits.model_copy(update={"deadline_seconds": 77})
    chosen = stored.model_copy(update={"limits": limits, "choices": {}, "canary": "8fbddb3160f16a89af97bab4"})
    resumed = again(chosen)
    assert resumed.estimate is not None
    assert resumed.estimate.cap_minutes == pytest.approx(1.3)
    assert resumed.model_copy(update={"estimate": chosen.estimate}) == chosen
    with pytest.raises(RunRefused, match="another question"):
        again(stored, query="y")


def test_limits_of_a_resumed_run_are_those_that_its_own_strategy_knows() -> None:
    """A run in steps takes more of them from a request that names no strategy; one without steps refuses them."""
    more = parse_request('{"query": "x", "limits": {"max_steps": 7}, "continue_from": "r"}')
    in_steps = resolved(strategy="reflective")
    assert resolve_again(in_steps, more, MODELS).limits.max_steps == 7
    with pytest.raises(RunRefused, match=r"^limits\.max_steps: the strategy supervisor has no steps"):
        resolve_again(resolved(), more, MODELS)
    with pytest.raises(RunRefused, match="no installed package declares it"):
        again(in_steps.model_copy(update={"strategy": "scout"}))


CHANGES = {
    "depth": "light",
    "engine": "extractive",
    "models": {"complex": "mine"},
    "search": {"max_results_per_query": 3},
    "constraints": {"audience": "nurses"},
    "limits": {"max_iterations": 1},
    "gates": {"think": "off"},
    "verify": "off",
    "checks": {"correct": False},
    "output": {"target_words": 900},
    "on_deadline": "abort",
    "exclude": ["locks"],
    "protected_sources": ["https://example.org/a"],
    "metadata": {"ticket": 1},
    "priority": 1,
}
REFUSED = {
    "strategy": "reflective",
    "mode": "direct",
    "corpus": "another",
    "system_prompt": "Look twice.",
    "context": [{"question": "Why?", "answer": "So."}],
    "follow_up_of": "r-0",
}


@pytest.mark.parametrize("field", [*CHANGES, *REFUSED])
def test_nothing_that_a_resumed_run_is_given_is_ignored(field: str) -> None:
    """Each field of its request changes the resolution, or is refused by name."""
    stored = again(resolved(), corpus="manual")
    assert {*CHANGES, *REFUSED, "query", "tenant", "continue_from", "refresh", "web"} == set(
        ResearchRequest.model_fields
    )
    if field in CHANGES:
        changed = again(stored, **{field: CHANGES[field]})
        assert changed.model_copy(update={"requested": {}}) != stored.model_copy(update={"requested": {}})
        return
    with pytest.raises(RunRefused, match=f"^{field}: ") as refused:
        again(stored, **{field: REFUSED[field]})
    assert refused.value.reason is StopReason.INVALID_INPUT


# --- limits ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("reasons", "cycles"), [({"big"}, 4), ({"small"}, 8), ({"small", "big", "spare"}, 4)])
def test_cycles_follow_the_tier_that_decides(reasons: set[str], cycles: int) -> None:
    """The orchestrator's model decides about them, whatever the models of intake and agents do (S3-017)."""
    configuration = replace(MODELS, reasons=lambda name: name in reasons)
    assert resolved(configuration, strategy="orchestrator").limits.max_iterations == cycles


@pytest.mark.parametrize(
    ("fields", "verify"), [({}, Verify.FULL), ({"verify": "light"}, Verify.LIGHT), ({"verify": "off"}, Verify.OFF)]
)
def test_a_chosen_depth_means_its_checks(fields: dict[str, Any], verify: Verify) -> None:
    """Extended checks in full, as if it was named; what the request says about checks stays (S1-011, S1-063)."""
    made = resolved(strategy="reflective", **fields)
    chosen = with_choice(made, "extended")
    assert (chosen.depth, chosen.verify, chosen.limits.max_steps) == (Depth.EXTENDED, verify, 10)
    assert chosen.checks.correct is (verify is Verify.FULL)
    assert with_choice(chosen, "light") == chosen


# --- the schema of the settings of a strategy -----------------------------------------------------------------------
MOST_BYTES = 16_000


def properties_of(schema: dict[str, Any], part: str) -> dict[str, Any]:
    properties: dict[str, Any] = schema["properties"][part]["properties"]
    return properties


def defaults_of(part: dict[str, Any]) -> Any:
    """The default of a field, or those of its own fields that have one."""
    if "properties" not in part:
        return part.get("default")
    return {key: each["default"] for key, each in part["properties"].items() if each.get("default") is not None}


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
            given = {name: defaults_of(part) for name, part in schema["properties"].items()}
            given = {name: value for name, value in given.items() if value not in (None, {})}
            assert ResearchRequest.model_validate({"query": "x", **given}).strategy == strategy.name


def test_the_defaults_are_those_in_force() -> None:
    """Presets of the operator, searches as configured, gates of the strategy, the model that would work (S2-054)."""
    own = preset("reflective", Depth.MEDIUM).model_copy(update={"max_sources": 7})
    configuration = ResearchConfiguration(
        search=EffectiveSearch(max_results_per_query=5),
        models={"simple": ["small", "spare"]},
        presets={("reflective", Depth.MEDIUM): own},
    )
    made = settings_schema(declaration("reflective"), configuration)
    for part, name, value in (
        ("limits", "max_sources", 7),
        ("limits", "max_steps", 6),
        ("search", "max_results_per_query", 5),
        ("models", "simple", "small"),
        ("gates", "think", "auto"),
    ):
        assert properties_of(made, part)[name]["default"] == value
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


def test_a_resumed_run_ranks_as_it_began() -> None:
    """The first resolution decides by its question; another worker's setting changes no run that has begun."""
    by_meaning = replace(NO_MODEL, semantic=lambda question: question == "x")
    first = resolved(by_meaning)
    assert first.semantic
    assert not resolved(by_meaning, query="y").semantic
    assert again(first, NO_MODEL).semantic
    assert not again(resolved(NO_MODEL), by_meaning).semantic


def test_the_line_about_egress_names_the_service_with_browsers() -> None:
    """Where a run reads pages; a run over documents alone gives it nothing. It stays when a provider is out of reach."""
    services = Services(HERE)
    web = resolved(replace(services.configuration, browser_host="browser.test"), None)
    assert web.egress.endswith("pages are read from the web; addresses of pages that need a browser go to browser.test")
    assert resolved(replace(NO_MODEL, browser_host="browser.test")).egress == EXTRACTIVE[3]
    named = web.without_providers({"searxng": "gone"})
    assert "browser.test" not in named.egress
