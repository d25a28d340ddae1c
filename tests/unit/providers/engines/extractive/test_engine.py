"""`ExtractiveEngine` as the activities use it."""

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from contracts.evidence import Gap
from contracts.roles import ANALYZER, PLANNER, REFINER, SYNTHESIZER, AnalysisDraft, PlanDraft, ReportTextDraft
from contracts.vocabulary import EngineKind
from providers.engines.extractive import ExtractiveEngine
from providers.errors import InvalidCall
from providers.interfaces import Engine, EngineTask
from tests.unit.providers.engines.extractive.samples import (
    analyze_input,
    documents,
    plan_input,
    refine_input,
    write_input,
)


class HerePool:
    """A pool that runs functions at once and remembers them."""

    def __init__(self) -> None:
        self.called: list[str] = []

    async def call(self, function: str, *arguments: Any) -> Any:
        self.called.append(function)
        module, _, name = function.partition(":")
        found: Callable[..., Any] = getattr(import_module(module), name)
        return found(*arguments)


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
    assert isinstance(planned.draft, PlanDraft)
    assert isinstance(analyzed.draft, AnalysisDraft)
    written = await engine.answer(task(SYNTHESIZER, write_input([("mechanism", analyzed.draft)]), documents()))
    assert isinstance(written.draft, ReportTextDraft)
    assert written.model is None
    assert written.usage.cost_usd == 0
    refined = await engine.answer(task(REFINER, refine_input([Gap(id="gap-1", description="x")])))
    assert isinstance(refined.draft, REFINER.draft)
    await engine.close()


async def test_heavy_roles_run_in_the_pool_with_the_same_result() -> None:
    """The pool is asked by name for the heavy roles, and the answer is the same as without one."""
    pool = HerePool()
    inside = await ExtractiveEngine(pool).answer(task(ANALYZER, analyze_input(), documents()))
    outside = await ExtractiveEngine().answer(task(ANALYZER, analyze_input(), documents()))
    assert pool.called == ["providers.engines.extractive.engine:analyze_json"]
    assert inside.draft == outside.draft


async def test_unknown_input_is_refused() -> None:
    """A role that the engine does not know is refused, not answered with nothing."""
    with pytest.raises(InvalidCall):
        await ExtractiveEngine().answer(task(PLANNER, object()))
    assert threading.active_count() >= 1
