"""Stop, steer, cancel and resume on the real development server, and hooks that guide: also what nobody declared."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import CancelledError
from temporalio.worker import Worker

from activities.preparation import ResearchConfiguration
from client.handle import ResearchClient
from contracts import names
from contracts.resolved import Hook
from contracts.state import ResearchState
from contracts.vocabulary import Outcome, RunStatus
from tests.architecture.repository import ROOT, load_script
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.integration.conftest import running_workers
from tests.integration.runs import BUILD_ID, QUESTION, start, until

pytestmark = pytest.mark.integration

REQUEST = {"query": QUESTION, "corpus": "manual", "gates": {"think": "rules"}}


async def test_cancel_saves_the_state_and_resume_continues(client: Client, tmp_path: Path) -> None:
    """Canceled for Temporal, the session kept, and a resumed run repeats no completed call; front ends see a cancelled
    run that can be resumed (S0-012, S0-021, S0-031, S0-123, S0-124, S0-128 to S0-131, S2-052, C2-4).
    """
    async with MessagesApi(plan=["good", "slow", "slow", "slow", "slow", "slow"]) as api:
        world = model_world(tmp_path, api.base_url)
        async with running_workers(client, world):
            handle = await start(client, REQUEST)
            await asyncio.wait_for(api.waiting.wait(), 60)
            await handle.cancel()
            with pytest.raises(WorkflowFailureError) as failed:
                await handle.result()
            description = await handle.describe()
            *_, end = [event async for event in ResearchClient(client).handle(handle.id).agent_events()]
            calls = len(api.calls)
            state = ResearchState.model_validate_json(await world.sessions.load(handle.id) or "")
            searches, reads = list(world.corpus.searches), list(world.corpus.reads)
            again = await start(client, REQUEST | {"continue_from": handle.id}, id=handle.id)
            api.plan.sequence = ()
            result = await again.result()
    assert isinstance(failed.value.cause, CancelledError)
    assert description.status is WorkflowExecutionStatus.CANCELED
    assert (state.work.status, state.work.phase, state.work.iteration) == (RunStatus.CANCELLED, "analysis", 1)
    assert (end.type, end.research_id, end.resumable) == ("WorkflowCancelledEvent", handle.id, True)
    assert 0 < state.accounts.usage.active_seconds < result.usage.active_seconds
    assert calls > 1
    assert result.outcome is Outcome.COMPLETED
    assert api.counts()["planner"] == 1
    assert world.corpus.searches == searches
    assert world.corpus.reads == reads


@pytest.mark.parametrize("ended", ["cancelled", pytest.param("stopped", marks=pytest.mark.soak)])
async def test_accepted_words_outlive_the_end(client: Client, tmp_path: Path, ended: str) -> None:
    """Words that a run has accepted are in its stored state, although it ends before its next phase (S0-081)."""
    async with MessagesApi(plan=["good", "slow"]) as api:
        world = model_world(tmp_path, api.base_url)
        async with running_workers(client, world):
            handle = await start(client, REQUEST)
            await asyncio.wait_for(api.waiting.wait(), 60)
            await handle.execute_update(names.STEER, "look at the zebra setting", result_type=str)
            if ended == "cancelled":
                await handle.cancel()
            else:
                await handle.execute_update(names.STOP_AND_REPORT, result_type=str)
            with suppress(WorkflowFailureError):
                await handle.result()
            state = ResearchState.model_validate_json(await world.sessions.load(handle.id) or "")
    assert [each.text for each in state.people.guidance] == ["look at the zebra setting"]
    assert any("zebra" in gap.description for gap in state.evidence.gaps)


async def test_a_run_accepts_guidance_and_refuses_what_is_none(client: Client, tmp_path: Path) -> None:
    """Bytes, numbers and lists in place of words are refused before they come into the run; words reach the next call
    of the model, and the run completes (S0-081).
    """
    async with MessagesApi(latency=0.3) as api:
        async with running_workers(client, model_world(tmp_path, api.base_url)):
            handle = await start(client, REQUEST)
            await until(handle, lambda status: status.phase is not None)
            for words in (b"\xff\x00 no text", 5, ["look"], None, "  "):
                with pytest.raises(WorkflowUpdateFailedError):
                    await handle.execute_update(names.STEER, words)
            await handle.execute_update(names.STEER, "look at the zebra setting", result_type=str)
            result = await handle.result()
    assert result.outcome is Outcome.COMPLETED
    assert any("zebra" in request.prompt for request in api.requests)


async def test_the_example_of_a_hook_guides_a_run(client: Client, tmp_path: Path) -> None:
    """The hook of the examples is called after each phase, and its guidance is in the record (S0-081, S0-172)."""
    example = load_script(ROOT / "examples" / "think_pause_hook.py")
    hook = Hook(name="house-rules", activity="house_rules", task_queue="house-rules")
    configuration = ResearchConfiguration(hooks={hook.name: hook}, product_version="0.1.0")
    request = {"query": QUESTION, "corpus": "manual", "gates": {"hook": hook.name}, "limits": {"max_sub_queries": 2}}
    async with running_workers(client, World(tmp_path, configuration=configuration)):
        async with Worker(client, task_queue=hook.task_queue, activities=[example.house_rules], build_id=BUILD_ID):
            handle = await start(client, request)
            await handle.result()
            session = await handle.query(names.SESSION)
    assert [item["text"] for item in session["guidance"] if item["origin"] == "hook"] == ["Look at how it fails, too."]
    assert sum(item["action"] == "think_pause_hook" for item in session["decisions"]) >= 4
