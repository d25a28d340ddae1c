"""Runs that wait for their turn, and what their calls tell the server: only its history shows both."""

import asyncio
import time
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowFailureError

from contracts import names
from contracts.outcome import ResearchResult
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, RunStatus, StopReason
from providers.shared.run_queue import KNOWN_KEY, QueueLimits, RunQueue
from providers.shared.shared_value import running
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start, until
from workers.composition import OpenRuns

pytestmark = pytest.mark.integration

WAITED = 1.0


class WithOneMore(OpenRuns):
    """The open runs of the server, and the one that has the place that others wait for."""

    async def is_open(self, research_id: str) -> bool:
        return research_id == "before" or await super().is_open(research_id)


async def test_a_run_waits_for_its_turn(client: Client, tmp_path: Path) -> None:
    """It shows its place, its clock starts when it begins, it gives its place back; its calls bear its tenant's key."""
    world = World(tmp_path)
    world.queue = RunQueue(world.shared, QueueLimits(at_once=1), WithOneMore(client))
    assert (await world.queue.take("before", "other")).place == 0
    asked = time.time()
    async with running_workers(client, world), running(world.queue.serve()), asyncio.timeout(60):
        while (await world.shared.get(KNOWN_KEY)).value is None:  # before that, open runs are asked to ask again
            await asyncio.sleep(0.05)
        handle = await start(client, {"query": QUESTION, "corpus": "manual", "tenant": "acme"})
        status = await until(handle, lambda shown: shown.status is RunStatus.QUEUED)
        assert (status.queue_place, status.queue_length, status.elapsed_seconds) == (1, 1, 0.0)
        assert status.query == QUESTION
        await asyncio.sleep(WAITED)
        await world.queue.release("before")
        result = await handle.result()
        assert result.outcome is Outcome.COMPLETED
        state = await handle.query(names.SESSION, result_type=ResearchState)
        assert (await world.queue.take("after", "other")).place == 0
    assert state.clock.clock_started_at > asked + WAITED
    scheduled = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    calls = [
        event.activity_task_scheduled_event_attributes
        async for event in handle.fetch_history_events()
        if event.event_type == scheduled
    ]
    assert {call.priority.fairness_key for call in calls} == {"acme"}
    first = [call.activity_type.name for call in calls if call.priority.priority_key == 1]
    assert first == ["render_report", "save_session"]
    assert "take_turn" not in {call.activity_type.name for call in calls}


async def test_a_resumed_run_that_waits_is_finished_at_once(client: Client, tmp_path: Path) -> None:
    """Cancelled, it gave its place back and its draft is kept; resumed and told to stop before its turn comes, it makes
    the report of the draft and pays nothing.
    """
    async with MessagesApi(scenario="gaps", by_role={"refiner": "slow"}) as api:
        world = model_world(tmp_path, api.base_url)
        world.queue = RunQueue(world.shared, QueueLimits(at_once=1), WithOneMore(client))
        async with running_workers(client, world), running(world.queue.serve()), asyncio.timeout(60):
            request = {"query": QUESTION, "corpus": "manual", "gates": {"think": "rules"}}
            handle = await start(client, request)
            # The gaps are judged beside the report.
            while not any(call.role == "synthesizer" and call.delivered for call in api.calls):
                await asyncio.sleep(0.05)
            await until(handle, lambda shown: shown.last_decision != "" and bool(api.counts()["refiner"]))
            while await handle.query(names.REPORT) is None:
                await asyncio.sleep(0.05)
            await handle.cancel()
            with pytest.raises(WorkflowFailureError):
                await handle.result()
            state = ResearchState.model_validate_json(await world.sessions.load(handle.id) or "")
            assert (await world.queue.take("before", "other")).place == 0
            calls = api.counts()
            again = await start(client, request | {"continue_from": handle.id}, id=handle.id)
            await until(again, lambda shown: shown.status is RunStatus.QUEUED)
            await again.execute_update(names.STOP_AND_REPORT)
            result = await again.result()
    assert state.work.result is None
    assert state.evidence.draft is not None
    assert (result.outcome, result.stop_reason) == (Outcome.PARTIAL, StopReason.USER_STOPPED)
    assert "[1]" in result.report
    assert api.counts() == calls


async def test_a_queued_run_moves_and_outlives_the_loss_of_the_list(client: Client, tmp_path: Path) -> None:
    """Asked to move before its work began, it continues as new with its place in line; the store loses the list, and the
    run asks again; it has done nothing twice when it ends.
    """
    world = World(tmp_path)
    world.queue = RunQueue(world.shared, QueueLimits(at_once=1), WithOneMore(client))
    await world.queue.take("before", "other")
    async with running_workers(client, world), asyncio.timeout(60):
        handle = await start(client, {"query": QUESTION, "corpus": "manual"})
        await until(handle, lambda shown: shown.status is RunStatus.QUEUED)
        first = (await handle.describe()).run_id
        await handle.signal(names.UPGRADE)
        while (moved := await client.get_workflow_handle(handle.id).describe()).run_id == first:
            await asyncio.sleep(0.02)
        handle = client.get_workflow_handle(handle.id, run_id=moved.run_id, result_type=ResearchResult)
        status = await until(handle, lambda shown: shown.status is RunStatus.QUEUED)
        assert status.queue_place == 1
        await world.shared.remove("runs/queue")
        async with running(world.queue.serve()):
            result = await handle.result()
    assert result.outcome is Outcome.COMPLETED
    calls = [
        event.activity_task_scheduled_event_attributes.activity_type.name
        async for event in handle.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]
    assert calls[:2] == ["prepare_research", "take_turn"]
    assert calls.count("prepare_research") == calls.count("render_report") == 1
