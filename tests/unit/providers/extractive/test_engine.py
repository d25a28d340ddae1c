"""`ExtractiveEngine` as the activities use it."""

import threading
from typing import Any

import pytest

from contracts.evidence import Gap
from contracts.roles import ANALYZER, PLANNER, REFINER, SYNTHESIZER, AnalyzerAnswer, PlannerAnswer, SynthesizerAnswer
from contracts.vocabulary import EngineKind
from providers.errors import InvalidCall
from providers.extractive import ExtractiveEngine
from providers.extractive.engine import MAKE_DRAFT
from providers.interfaces import Engine, EngineTask
from tests.fakes.isolation import HereCalls
from tests.unit.providers.extractive.samples import (
    analyze_input,
    documents,
    plan_input,
    refine_input,
    write_input,
)


def task(role: Any, given: Any, texts: dict[str, str] | None = None) -> EngineTask:
    """A task of the engine."""
    return EngineTask(role=role, input=given, documents=texts or {}, system="", prompt="", prompt_version="1")


async def test_does_all_roles_free_of_charge() -> None:
    """Each role's draft is of the role's schema; nothing is paid and no model is named."""
    engine: Engine = ExtractiveEngine()
    assert engine.kind is EngineKind.EXTRACTIVE
    assert not engine.paid
    planned = await engine.answer(task(PLANNER, plan_input()))
    analyzed = await engine.answer(task(ANALYZER, analyze_input(), documents()))
    assert isinstance(planned.content, PlannerAnswer)
    assert isinstance(analyzed.content, AnalyzerAnswer)
    written = await engine.answer(task(SYNTHESIZER, write_input([("mechanism", analyzed.content)]), documents()))
    assert isinstance(written.content, SynthesizerAnswer)
    assert written.model is None
    assert written.usage.cost_usd == 0
    refined = await engine.answer(task(REFINER, refine_input([Gap(id="gap-1", description="x")])))
    assert isinstance(refined.content, REFINER.answer)
    await engine.close()


async def test_every_role_runs_in_a_child_with_the_same_result() -> None:
    """A question is outside text as a page is: each role is asked for by name, and answers as it does in a thread."""
    children = HereCalls()
    for role, given, texts in (
        (PLANNER, plan_input(), {}),
        (ANALYZER, analyze_input(), documents()),
        (REFINER, refine_input([Gap(id="gap-1", description="x")]), {}),
    ):
        inside = await ExtractiveEngine(children).answer(task(role, given, texts))
        outside = await ExtractiveEngine().answer(task(role, given, texts))
        assert inside.content == outside.content
    assert children.called == [MAKE_DRAFT] * 3


async def test_unknown_input_is_refused() -> None:
    """A role that the engine does not know is refused, not answered with nothing."""
    with pytest.raises(InvalidCall):
        await ExtractiveEngine().answer(task(PLANNER, object()))
    assert threading.active_count() >= 1
