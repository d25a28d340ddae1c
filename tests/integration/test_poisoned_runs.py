"""Whole runs over texts that end whoever works on them: each ends, says what it lacks, and claims nothing else."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.reporting.render import RENDER
from contracts import failures
from contracts.messages import PrepareRequest
from contracts.request import ResearchRequest
from contracts.roles import PLANNER, SYNTHESIZER, PlanInput
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, Outcome, StopReason
from providers.isolation.pool import SubprocessPool
from tests.fakes.host import InProcessHost
from tests.fakes.killers import WALL_SECONDS, PoisonedCalls
from tests.fakes.pauses import pause_after
from tests.fakes.world import World
from workflows.driver import Driver
from workflows.phases.closing import close
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import Finished
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

pytestmark = pytest.mark.integration

QUESTION = "How does the engine prevent transaction ID wraparound?"
POISON = "Poisoned words."

IsPoison = Callable[[str, tuple[Any, ...]], bool]


@pytest.fixture
async def pool() -> AsyncIterator[SubprocessPool]:
    """One child, for what kills it."""
    async with SubprocessPool(1, wall_seconds=WALL_SECONDS) as started:
        yield started


async def begun(
    folder: Path, pool: SubprocessPool, is_poison: IsPoison, **changes: Any
) -> tuple[World, InProcessHost, ResearchState]:
    """A world in which some calls are deadly, and a run in it that has not begun."""
    world = World(folder)
    world.isolated = PoisonedCalls(pool, is_poison)
    request = ResearchRequest(query=QUESTION, corpus="manual")
    host = world.host()
    prepared = await host.implementations["prepare_research"](
        PrepareRequest(research_id="r-unit", request_json=request.model_dump_json())
    )
    resolved = prepared.resolved.model_copy(update=changes)
    state = ResearchState(resolved=resolved, resolved_entry=prepared.resolved_entry, started_at=host.now().isoformat())
    state.clock_started_at = host.now().timestamp()
    state.deadline_at = state.clock_started_at + resolved.limits.deadline_seconds
    return world, host, state


async def report_of(world: World, state: ResearchState) -> str:
    """The stored report."""
    assert state.result is not None
    assert state.result.files is not None
    return await world.content.get_text(state.result.files.markdown)


async def test_without_a_text_that_anybody_survives_the_run_says_so(tmp_path: Path, pool: SubprocessPool) -> None:
    """What cannot be laid out is left out: a failed run with its reason, and no text that claims more."""
    once: list[str] = []

    def poison(function: str, arguments: tuple[Any, ...]) -> bool:
        # The layout is poisoned by the text alone: without it there is a report.
        deadly = function == RENDER and arguments[1] is not None
        once.extend([function] if deadly else [])
        return deadly

    world, host, state = await begun(tmp_path, pool, poison)
    outcome = await Driver(ResearchRun(state, Inbox(), host), SupervisorStrategy()).conduct()
    assert once
    assert (outcome, state.draft) == (Outcome.FAILED, None)
    assert state.result is not None
    assert state.result.stop_reason is StopReason.INTERNAL_ERROR
    assert any("crash" in branch for branch in state.failed_branches)
    assert "No report text was written." in await report_of(world, state)


async def test_a_text_of_the_model_that_cannot_be_laid_out_is_written_anew(
    tmp_path: Path, pool: SubprocessPool
) -> None:
    """The findings are set out without the model, and the report says that it is not what the model wrote."""

    def is_poison(function: str, arguments: tuple[Any, ...]) -> bool:
        return function == RENDER and arguments[1] is not None and POISON in arguments[1]

    world, host, state = await begun(tmp_path, pool, is_poison)
    run, strategy = ResearchRun(state, Inbox(), host), SupervisorStrategy()
    while not isinstance(step := await strategy.advance(run), Finished):
        await pause_after(run, step.name, can_change=step.can_change)
    assert state.draft is not None
    state.draft = state.draft.model_copy(update={"document": await world.content.put_text(POISON, "text/markdown")})
    state.engine_by_role[SYNTHESIZER.name] = EngineKind.MODEL.value
    outcome = await close(run, step.reason)
    report = await report_of(world, state)
    assert outcome is Outcome.PARTIAL
    assert POISON not in report
    assert "[1]" in report
    assert "cut short" not in report
    assert any("could not be laid out (crash)" in branch for branch in state.failed_branches)
    assert any("written anew without the model" in note for note in state.degraded)


@pytest.mark.parametrize("failure", [failures.INPUT_UNPROCESSABLE, failures.WORKER_LOST])
async def test_a_model_whose_work_kills_makes_room_for_the_fallback(
    tmp_path: Path, pool: SubprocessPool, failure: str
) -> None:
    """The first of all roles, too: its poison is no outage of a provider, and the run goes on."""
    world, host, state = await begun(tmp_path, pool, lambda *_: False)
    plan = host.implementations[PLANNER.activity]

    async def deadly(request: Any) -> Any:
        if request.engine is EngineKind.MODEL:
            raise ApplicationError("given up", {"kind": "timeout"}, type=failure, non_retryable=True)
        return await plan(request)

    host.implementations[PLANNER.activity] = deadly
    assert state.resolved is not None
    run = ResearchRun(state, Inbox(), host)
    output = await run.ask(PLANNER, "plan", PlanInput(max_sub_queries=3), EngineKind.MODEL)
    assert output.sub_queries
    assert state.fallbacks == {PLANNER.name: 1}
    assert any("ended the processes that worked on it (timeout)" in note for note in state.degraded)
    await world.close()
