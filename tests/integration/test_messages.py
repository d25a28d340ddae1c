"""Stop, steer, cancel and resume on the real development server."""

import asyncio
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError, CancelledError

from contracts import names
from contracts.outcome import ResearchResult
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, Phase, RunStatus, StopReason
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start, until

pytestmark = pytest.mark.integration

REQUEST = {"query": QUESTION, "corpus": "manual", "gates": {"think": "rules"}}


async def test_stop_writes_the_report_at_once(client: Client, tmp_path: Path) -> None:
    """A stopped run is partial, says so, and its report stands on what was there; stopping twice is answered (X-4)."""
    async with MessagesApi(by_role={"analyzer": "slow"}) as api:
        world = model_world(tmp_path, api.base_url)
        async with running_workers(client, world):
            handle = await start(client, REQUEST)
            await until(handle, lambda status: status.phase == Phase.ANALYSIS)
            first = await handle.execute_update(names.STOP_AND_REPORT, result_type=str)
            second = await handle.execute_update(names.STOP_AND_REPORT, result_type=str)
            result = await handle.result()
    assert first.startswith("stopping")
    assert second.startswith("already stopping")
    assert (result.outcome, result.stop_reason) == (Outcome.PARTIAL, StopReason.USER_STOPPED)
    assert "[1]" in result.report


async def test_cancel_keeps_the_state_and_resume_goes_on(client: Client, tmp_path: Path) -> None:
    """Canceled for Temporal, the session kept, and a resumed run repeats no completed call (S0-012, S0-021, S0-031, S0-123, S0-124, S0-128 to S0-131)."""
    async with MessagesApi(plan=["good", "slow", "slow", "slow", "slow", "slow"]) as api:
        world = model_world(tmp_path, api.base_url)
        async with running_workers(client, world):
            handle = await start(client, REQUEST)
            await asyncio.wait_for(api.waiting.wait(), 60)
            await handle.cancel()
            with pytest.raises(WorkflowFailureError) as failed:
                await handle.result()
            description = await handle.describe()
            calls = len(api.calls)
            state = ResearchState.model_validate_json(await world.sessions.load(handle.id) or "")
            searches, reads = list(world.corpus.searches), list(world.corpus.reads)
            again = await start(client, REQUEST | {"continue_from": handle.id}, id=handle.id)
            api.plan.sequence = ()
            result = await again.result()
    assert isinstance(failed.value.cause, CancelledError)
    assert description.status is WorkflowExecutionStatus.CANCELED
    assert (state.status, state.phase, state.iteration) == (RunStatus.CANCELLED, "analysis", 1)
    assert calls > 1
    assert result.outcome is Outcome.COMPLETED
    assert api.counts()["planner"] == 1
    assert world.corpus.searches == searches
    assert world.corpus.reads == reads


async def test_a_cancelled_run_with_a_draft_is_finished_at_once(client: Client, tmp_path: Path) -> None:
    """The draft is kept; a resumed run that is told to stop before it begins makes the report of it, and pays nothing."""
    async with MessagesApi(scenario="gaps", by_role={"refiner": "slow"}) as api:
        world = model_world(tmp_path, api.base_url)
        async with running_workers(client, world):
            handle = await start(client, REQUEST)
            await until(handle, lambda status: status.phase == Phase.REFINEMENT)
            await handle.cancel()
            with pytest.raises(WorkflowFailureError):
                await handle.result()
            state = ResearchState.model_validate_json(await world.sessions.load(handle.id) or "")
        calls = api.counts()
        again = await start(client, REQUEST | {"continue_from": handle.id}, id=handle.id)
        stop = asyncio.create_task(again.execute_update(names.STOP_AND_REPORT, result_type=str))
        await asyncio.sleep(0.5)
        async with running_workers(client, model_world(tmp_path, api.base_url)):
            await stop
            result = await again.result()
    assert state.result is None
    assert state.draft is not None
    assert (result.outcome, result.stop_reason) == (Outcome.PARTIAL, StopReason.USER_STOPPED)
    assert "[1]" in result.report
    assert api.counts() == calls


async def test_a_steered_run_hears_it(client: Client, tmp_path: Path) -> None:
    """Steering reaches the next model call; nonsense is refused with a reason (S0-081)."""
    async with MessagesApi(latency=0.3) as api:
        world = model_world(tmp_path, api.base_url)
        async with running_workers(client, world):
            handle = await start(client, REQUEST)
            await until(handle, lambda status: status.phase == Phase.PLANNING)
            with pytest.raises(WorkflowUpdateFailedError) as refused:
                await handle.execute_update(names.STEER, "  ")
            await handle.execute_update(names.STEER, "look at the zebra setting", result_type=str)
            await handle.result()
    assert isinstance(refused.value.cause, ApplicationError)
    assert any("zebra" in request.prompt for request in api.requests)


async def test_resume_of_a_completed_run_gives_the_stored_report(client: Client, tmp_path: Path) -> None:
    """Completed never runs again: the same report, no new call (C0-14)."""
    world = World(tmp_path)
    async with running_workers(client, world):
        first = await (await start(client, REQUEST, id="r-completed")).result()
        searches = len(world.corpus.searches)
        second = await (await start(client, REQUEST | {"continue_from": "r-completed"}, id="r-completed")).result()
    assert second == first
    assert len(world.corpus.searches) == searches


async def test_nothing_to_search_is_refused_before_any_work(client: Client, tmp_path: Path) -> None:
    """Without a corpus there is nothing to search: refused, with what to do (C0-13)."""
    async with running_workers(client, World(tmp_path)):
        with pytest.raises(WorkflowFailureError) as failed:
            await (await start(client, {"query": QUESTION})).result()
    assert isinstance(failed.value.cause, ApplicationError)
    assert "--corpus" in failed.value.cause.message
    assert ResearchResult.model_validate(failed.value.cause.details[0]).stop_reason is StopReason.NO_PROVIDERS
