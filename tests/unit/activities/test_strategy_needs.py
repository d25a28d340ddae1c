"""What a strategy cannot do without: refused before any work, with what would mend it and who could do instead."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from activities.configuration import ResearchConfiguration
from activities.preparation import RunRefused, resolve, resolve_again
from contracts import strategies
from contracts.request import EngineChoice, Models, ResearchRequest
from contracts.resolved import CorpusSnapshot, ResolvedResearch
from contracts.strategies import Needs
from contracts.vocabulary import EngineKind, StopReason
from tests.toy.asker import ASKER, ASKING

MODELS = ResearchConfiguration(
    models={"simple": "small", "analytical": "big", "complex": "big"},
    candidates={"analytical": ["big", "spare"]},
    model_host=lambda _: "host",
)
CORPUS = CorpusSnapshot(name="manual", files=3)


@pytest.fixture(autouse=True)
def _nothing_stays_declared() -> Iterator[None]:
    before = dict(strategies.declared_strategies._declared)
    yield
    strategies.declared_strategies._declared.clear()
    strategies.declared_strategies._declared.update(before)


def declare(needs: Needs, *, scripted: bool = True) -> None:
    strategies.declare(replace(ASKING, needs=needs, roles=(replace(ASKER, has_fallback=scripted),)))


def resolved(configuration: ResearchConfiguration = MODELS, **fields: Any) -> ResolvedResearch:
    request = ResearchRequest(query="x", strategy="asking", **fields)
    return resolve("r-1", request, configuration, CORPUS, search_attributes=False)


def refusal(configuration: ResearchConfiguration = MODELS, **fields: Any) -> str:
    with pytest.raises(RunRefused) as caught:
        resolved(configuration, **fields)
    assert caught.value.reason is StopReason.INVALID_INPUT
    return str(caught.value)


def test_models_that_take_no_tools_are_told_before_any_work() -> None:
    """The refusal names the models, what to set, and the strategies that need no tools."""
    declare(Needs(tools=True))
    deaf = replace(MODELS, takes_tools=lambda name: name == "small")
    assert refusal(deaf) == (
        "strategy: asking calls tools, and none can be called with big, spare: name a model that takes tools "
        "(models.analytical) or none (engine extractive), or ask with strategy supervisor or reflective"
    )


def test_doing_without_a_model_is_no_remedy_where_a_role_needs_one() -> None:
    """It is offered only where every role that calls tools has a script."""
    declare(Needs(tools=True), scripted=False)
    assert "extractive" not in refusal(replace(MODELS, takes_tools=lambda _: False))


def test_one_model_of_the_tier_that_takes_tools_is_enough() -> None:
    """The others are passed over in each call; other tiers do not matter."""
    declare(Needs(tools=True))
    assert resolved(replace(MODELS, takes_tools=lambda name: name == "spare")).engine is EngineKind.MODEL
    named = Models(analytical="mine")
    assert (
        resolved(replace(MODELS, takes_tools=lambda name: name == "mine"), models=named).models["analytical"] == "mine"
    )


def test_a_strategy_that_can_do_without_tools_is_not_refused() -> None:
    """Only what a strategy declares as a need is asked of the models."""
    declare(Needs())
    assert resolved(replace(MODELS, takes_tools=lambda _: False)).strategy == "asking"


def test_without_a_model_scripts_do() -> None:
    """Roles that have a script need no model, and no tools of one."""
    declare(Needs(tools=True))
    assert resolved(engine=EngineChoice.EXTRACTIVE).engine is EngineKind.EXTRACTIVE


def test_a_role_without_a_script_needs_a_model() -> None:
    """The refusal names the role, how to configure a model, and who can do without."""
    declare(Needs(tools=True), scripted=False)
    told = refusal(engine=EngineChoice.EXTRACTIVE)
    assert told.startswith(
        "strategy: asking needs a model for the role asker: configure a model (RESEARCH_MODEL together"
    )
    assert ", or ask with strategy supervisor or reflective" in told


def test_other_needs_are_held_to_as_well() -> None:
    """A model where there is none, the web where a folder alone is searched."""
    declare(Needs(model=True))
    assert refusal(engine=EngineChoice.EXTRACTIVE).startswith("strategy: asking needs a model: configure a model")
    strategies.declared_strategies._declared.pop("asking")
    declare(Needs(web=True))
    assert refusal(corpus="manual").startswith("strategy: asking needs the web, which this run does not search")


def test_a_resumed_run_cannot_change_to_models_without_tools() -> None:
    """It is refused by name; without a word it keeps its own."""
    declare(Needs(tools=True))
    stored = resolved()
    deaf = replace(MODELS, takes_tools=lambda name: name != "deaf", candidates={})
    kept = resolve_again(stored, ResearchRequest(query="x"), deaf)
    assert kept.models == stored.models
    with pytest.raises(RunRefused, match="none can be called with deaf"):
        resolve_again(stored, ResearchRequest(query="x", models=Models(analytical="deaf")), deaf)
