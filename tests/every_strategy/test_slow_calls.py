"""Whatever calls take, a run ends within its deadline: shown with a clock that moves while an activity is under way."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from contracts.request import Mode
from contracts.vocabulary import EngineKind, Outcome, StopReason
from tests.every_strategy.joined import MODES, SMALL, world_of
from tests.fakes.host import TimedHost
from tests.fakes.world import World
from tests.unit.workflows.test_supervisor_strategy import begin
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import strategy_of

OUTSIDE = 0.5
"""Seconds that a search, a read and everything else takes that asks no model."""


async def timed(world: World, name: str, call: float, search: float = OUTSIDE, **fields: Any) -> ResearchRun:
    """A run to its end, whose model calls and searches take so many seconds."""

    def takes(activity: str, argument: Any) -> float:
        if activity == "search":
            return search
        return call if getattr(argument, "engine", None) is EngineKind.MODEL else OUTSIDE

    state = await begin(world, strategy=name, **(SMALL | fields))
    host = TimedHost(world.host().implementations, takes)
    run = ResearchRun(state, Inbox(), host)
    conducted = asyncio.ensure_future(Driver(run, strategy_of(name)).conduct())
    await host.pass_time(conducted)
    await conducted
    return run


@pytest.mark.parametrize("call", [5.0, 60.0, 1_000.0])
@pytest.mark.parametrize(("name", "mode"), [(name, mode) for name, engine, mode in MODES if engine == "model"])
async def test_slow_calls_never_pass_the_deadline(tmp_path: Path, name: str, mode: str, call: float) -> None:
    """The reserve is enough to lay out a report, also where the model is too slow to write it; the outcome says so."""
    async with world_of(tmp_path, EngineKind.MODEL.value) as (world, _):
        run = await timed(world, name, call, **({} if mode == "deep" else {"mode": mode}))
    result = run.state.result
    assert run.clock.elapsed_seconds() <= run.resolved.limits.deadline_seconds
    if result.outcome is not Outcome.COMPLETED:
        assert result.stop_reason is StopReason.BUDGET_TIME
        answered = run.state.findings or run.resolved.mode is Mode.QUICK
        assert result.outcome is (Outcome.PARTIAL if answered else Outcome.TIMED_OUT)
        assert bool(run.state.citations) is bool(run.state.findings)


async def test_a_quick_run_has_time_for_two_calls_of_five_seconds(tmp_path: Path) -> None:
    """Within its 15 s a quick run searches, reads, and has a model analyze and write (S1-053, S1-066)."""
    async with world_of(tmp_path, EngineKind.MODEL.value) as (world, api):
        run = await timed(world, "reflective", 5.0, mode="quick")
    assert run.state.result.outcome is Outcome.COMPLETED, run.state.result.limitations
    assert api.counts() == {"analyzer": 1, "synthesizer": 1}
    assert run.clock.elapsed_seconds() <= 15
    async with world_of(tmp_path / "slow", EngineKind.MODEL.value) as (world, api):
        await timed(world, "reflective", 60.0, mode="quick")
    assert api.counts()["synthesizer"] == 0, "in the seconds that are left no model could write"


async def test_a_quick_run_that_finds_nothing_in_time_says_so(tmp_path: Path) -> None:
    """A person who asked for a quick answer gets a report, also where no search answered in time (S1-066)."""
    async with world_of(tmp_path, EngineKind.MODEL.value) as (world, _):
        run = await timed(world, "reflective", 1.0, search=60.0, mode="quick")
        assert run.state.result.outcome is Outcome.PARTIAL
        report = await world.content.get_text(run.state.result.files.markdown)
    assert "the time limit was reached" in report
    assert "Nothing was read" in report
    assert "No passage matches" not in report
    assert run.clock.elapsed_seconds() <= 15
