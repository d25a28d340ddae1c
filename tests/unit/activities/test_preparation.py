"""Resolution of a request against a worker's configuration."""

import pytest

from activities.configuration import ResearchConfiguration
from activities.preparation import RunRefused, resolve, resolve_again
from contracts.parse_request import parse_request
from contracts.presets import preset
from contracts.request import (
    Constraints,
    Depth,
    EngineChoice,
    Gates,
    Limits,
    Models,
    OnDeadline,
    Output,
    ResearchRequest,
    SearchOptions,
)
from contracts.resolved import CorpusSnapshot, Hook
from contracts.vocabulary import EngineKind, GatePolicy, StopReason, ThinkMode

CORPUS = CorpusSnapshot(name="manual", files=3)
MODELS = ResearchConfiguration(
    models={"simple": "small", "analytical": "big", "complex": "big"}, model_host=lambda _: "host"
)


def resolved(request: ResearchRequest, configuration: ResearchConfiguration = MODELS, corpus=CORPUS):
    return resolve("r-1", request, configuration, corpus, search_attributes=False)


def test_auto_means_a_model_where_one_is_configured() -> None:
    """And the extractive engine elsewhere; the first line says where text goes."""
    with_model = resolved(ResearchRequest(query="x"))
    without = resolved(ResearchRequest(query="x"), ResearchConfiguration())
    assert (with_model.engine, with_model.egress) == (EngineKind.MODEL, "passages go to host")
    assert (without.engine, without.egress) == (EngineKind.EXTRACTIVE, "nothing leaves this machine")


def test_extractive_stays_extractive_whatever_is_configured() -> None:
    """A request for no model is honoured with a key in the environment."""
    made = resolved(ResearchRequest(query="x", engine=EngineChoice.EXTRACTIVE))
    assert (made.engine, made.models, made.model_host) == (EngineKind.EXTRACTIVE, {}, None)


def test_the_requests_model_comes_before_the_configured_one() -> None:
    """Explicit name, then the configured tier (S0-101)."""
    made = resolved(ResearchRequest(query="x", models=Models(complex="mine")))
    assert made.models == {"simple": "small", "analytical": "big", "complex": "mine"}


def test_a_model_that_nobody_configured_is_refused() -> None:
    """With the names of what to set."""
    with pytest.raises(RunRefused, match="RESEARCH_MODEL") as refused:
        resolved(ResearchRequest(query="x", engine=EngineChoice.MODEL), ResearchConfiguration())
    assert refused.value.reason is StopReason.NO_PROVIDERS


def test_a_model_is_not_named_in_vain() -> None:
    """Who names a model where none is configured is told what to set, and gets no extracts instead (S0-101)."""
    named = ResearchRequest(query="x", models=Models(simple="mine"))
    with pytest.raises(RunRefused, match=r"models\.simple.*RESEARCH_MODEL.*ANTHROPIC_API_KEY.*ANTHROPIC_BASE_URL"):
        resolved(named, ResearchConfiguration())
    asked = named.model_copy(update={"engine": EngineChoice.EXTRACTIVE})
    assert resolved(asked, ResearchConfiguration()).engine is EngineKind.EXTRACTIVE


@pytest.mark.parametrize("corpus", [None, CorpusSnapshot(name="empty", files=0, skipped=4)])
def test_nothing_to_search_is_refused(corpus: CorpusSnapshot | None) -> None:
    """No corpus, or one without a readable document (C0-13)."""
    with pytest.raises(RunRefused) as refused:
        resolved(ResearchRequest(query="x"), corpus=corpus)
    assert refused.value.reason is StopReason.NO_PROVIDERS


def test_a_hook_is_named_never_given() -> None:
    """A request can only name a hook of the configuration (S0-172)."""
    hook = Hook(name="ours", activity="a", task_queue="q")
    asked = ResearchRequest(query="x", gates=Gates(hook="ours"))
    assert resolved(asked, ResearchConfiguration(hooks={"ours": hook})).hook == hook
    with pytest.raises(RunRefused, match=r"gates\.hook"):
        resolved(asked, ResearchConfiguration())


def test_a_resumed_run_keeps_its_resolution_under_new_limits() -> None:
    """Only explicit limits change; another question is refused."""
    stored = resolved(ResearchRequest(query="x"))
    again = resolve_again(stored, ResearchRequest(query="x", limits=Limits(max_iterations=7)), MODELS)
    assert again.limits.max_iterations == 7
    assert again.limits.max_sources == stored.limits.max_sources
    assert again.engine is stored.engine
    with pytest.raises(RunRefused):
        resolve_again(stored, ResearchRequest(query="y"), MODELS)


def test_a_resumed_run_takes_what_its_request_names() -> None:
    """Models, engine, gates, depth, length and domains; nothing that is accepted is left aside without a word."""
    stored = resolved(ResearchRequest(query="x"))
    asked = ResearchRequest(
        query="x",
        depth=Depth.LIGHT,
        models=Models(complex="mine"),
        gates=Gates(policy=GatePolicy.ADVISORY, think=ThinkMode.OFF),
        search=SearchOptions(domains_deny=["example.com"], max_results_per_query=3),
        constraints=Constraints(timeframe="year"),
        output=Output(target_words=900),
        on_deadline=OnDeadline.ABORT,
    )
    again = resolve_again(stored, asked, MODELS)
    assert (again.depth, again.limits) == (Depth.LIGHT, preset("supervisor", Depth.LIGHT))
    assert again.models == {"simple": "small", "analytical": "big", "complex": "mine"}
    assert (again.gates.policy, again.gates.think) == (GatePolicy.ADVISORY, ThinkMode.OFF)
    assert (again.search.domains_deny, again.search.max_results_per_query) == (["example.com"], 3)
    assert (again.search.timeframe, again.target_words, again.on_deadline) == ("year", 900, OnDeadline.ABORT)
    without = resolve_again(stored, ResearchRequest(query="x", engine=EngineChoice.EXTRACTIVE), MODELS)
    assert (without.engine, without.models, without.egress) == (
        EngineKind.EXTRACTIVE,
        {},
        "nothing leaves this machine",
    )
    assert without.gates.think is ThinkMode.RULES
    assert resolve_again(without, ResearchRequest(query="x"), MODELS) == without


def test_the_form_that_is_asked_for_is_resolved() -> None:
    """Language, sections, readers and region; a resumed run takes new ones, and keeps those that are not named."""
    output, readers = Output(language="de", sections=["Kurz", "Lang"]), Constraints(audience="nurses", region="Austria")
    made = resolved(ResearchRequest(query="x", output=output, constraints=readers))
    form = (made.report_language, made.sections, made.audience, made.region)
    assert form == ("de", ["Kurz", "Lang"], "nurses", "Austria")
    assert resolved(ResearchRequest(query="x")).report_language is None
    again = resolve_again(made, ResearchRequest(query="x", output=Output(language="fr")), MODELS)
    assert (again.report_language, again.sections, again.audience) == ("fr", ["Kurz", "Lang"], "nurses")


def test_a_default_of_the_new_request_changes_nothing() -> None:
    """The strategy is that of the session, whatever a request without one would mean."""
    stored = resolved(ResearchRequest(query="x", strategy="reflective"))
    assert resolve_again(stored, ResearchRequest(query="x"), MODELS) == stored


def test_limits_of_a_resumed_run_are_those_that_its_own_strategy_knows() -> None:
    """A run in steps takes more of them from a request that names no strategy; one without steps refuses them."""
    more = parse_request('{"query": "x", "limits": {"max_steps": 7}, "continue_from": "r"}')
    in_steps = resolved(ResearchRequest(query="x", strategy="reflective"))
    assert resolve_again(in_steps, more, MODELS).limits.max_steps == 7
    with pytest.raises(RunRefused, match=r"^limits\.max_steps: the strategy supervisor has no steps") as refused:
        resolve_again(resolved(ResearchRequest(query="x")), more, MODELS)
    assert refused.value.reason is StopReason.INVALID_INPUT
    with pytest.raises(RunRefused, match="install the one that the run was begun with"):
        resolve_again(in_steps.model_copy(update={"strategy": "scout"}), ResearchRequest(query="x"), MODELS)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("strategy", "reflective"),
        ("mode", "direct"),
        ("corpus", "another"),
        ("system_prompt", "Look twice."),
        ("context", [{"question": "Why?", "answer": "So."}]),
    ],
)
def test_what_a_run_cannot_change_on_its_way_is_refused_by_name(field: str, value: object) -> None:
    """Its findings rest on it."""
    stored = resolved(ResearchRequest(query="x", corpus="manual"))
    assert resolve_again(stored, ResearchRequest(query="x", corpus="manual"), MODELS) == stored
    with pytest.raises(RunRefused, match=f"^{field}: a resumed run keeps its own") as refused:
        resolve_again(stored, ResearchRequest.model_validate({"query": "x", field: value}), MODELS)
    assert refused.value.reason is StopReason.INVALID_INPUT


CHANGES = {
    "strategy": "reflective",
    "mode": "direct",
    "depth": "light",
    "engine": "extractive",
    "models": {"complex": "mine"},
    "search": {"max_results_per_query": 3},
    "corpus": "another",
    "constraints": {"audience": "nurses"},
    "limits": {"max_iterations": 1},
    "gates": {"think": "off"},
    "verify": "off",
    "checks": {"strict": True},
    "output": {"target_words": 900},
    "on_deadline": "abort",
    "exclude": ["locks"],
    "system_prompt": "Look twice.",
    "context": [{"question": "Why?", "answer": "So."}],
    "follow_up_of": "r-0",
    "protected_sources": ["https://example.org/"],
    "metadata": {"ticket": 1},
    "priority": 1,
}


REFUSED = ("strategy", "mode", "corpus", "system_prompt", "context", "follow_up_of", "protected_sources")


@pytest.mark.parametrize("field", CHANGES)
def test_nothing_that_a_resumed_run_is_asked_is_left_aside(field: str) -> None:
    """Each field of its request comes over what is stored, or is refused by name."""
    stored = resolved(ResearchRequest(query="x", corpus="manual"))
    assert set(CHANGES) | {"query", "tenant", "continue_from", "web"} == set(ResearchRequest.model_fields)
    asked = ResearchRequest.model_validate({"query": "x", field: CHANGES[field]})
    if field in REFUSED:
        with pytest.raises(RunRefused, match=f"^{field}: "):
            resolve_again(stored, asked, MODELS)
    else:
        assert resolve_again(stored, asked, MODELS) != stored
