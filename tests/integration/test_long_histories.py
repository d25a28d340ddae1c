"""Histories, as the server counts them: they stay small, and one that grows too long starts anew without a trace."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from benchmarks.histories import measure_run
from benchmarks.many_sources import LARGE_RUNS
from contracts import names
from contracts.outcome import ResearchResult, ResearchStatus
from contracts.vocabulary import Outcome, RunStatus
from tests.fakes import many_pages
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.integration.conftest import FAST, running_workers
from tests.integration.runs import QUESTION, start, until
from workers.dev_server import find_binary
from workers.temporal import DATA_CONVERTER

pytestmark = pytest.mark.integration

LARGE = "28 sources, one iteration"
MOST_OF_LARGE, MOST_OF_RUN, MOST_OF_AGENT = 152_000, 300_000, 200_000
"""Bytes."""
MOST_EVENTS = 3_000
WORKFLOW_TASKS = 335
"""Bytes of the three events of a workflow task. How many completions one task takes depends on the load."""
TASKS_PER_ACTIVITY = 0.55
"""As measured on a machine with nothing else to do: each completion mostly comes with others."""
WORDS = "leave version 9 out"
REQUEST = {"query": QUESTION, "corpus": "manual", "gates": {"think": "rules"}}


@asynccontextmanager
async def short_histories(events: int = 30) -> AsyncIterator[Client]:
    """A server that wants histories to start anew after so many events."""
    short = ["--dynamic-config-value", f"limit.historyCount.suggestContinueAsNew={events}"]
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(find_binary()), dev_server_extra_args=[*FAST, *short]
    ) as environment:
        yield await Client.connect(environment.client.service_client.config.target_host, data_converter=DATA_CONVERTER)


async def test_continue_as_new_repeats_nothing(client: Client, tmp_path: Path) -> None:
    """Same calls, same report as in one history; decisions and usage go on counting (S0-026, invariants 1, 12)."""
    async with MessagesApi("gaps") as api:
        world = model_world(tmp_path / "one", api.base_url)
        async with running_workers(client, world):
            whole = await (await start(client, REQUEST, id="r-long")).result()
        needed = len(api.calls)
    async with short_histories() as other:
        async with MessagesApi("gaps") as api:
            world = model_world(tmp_path / "many", api.base_url)
            async with running_workers(other, world):
                handle = await start(other, REQUEST, id="r-long")
                result = await handle.result()
                first = other.get_workflow_handle("r-long", run_id=handle.first_execution_run_id)
                description = await first.describe()
                decisions = await handle.query(names.DECISIONS)
            calls = len(api.calls)
    assert description.status is not None
    assert description.status.name == "CONTINUED_AS_NEW"
    assert calls == needed
    assert result.outcome is whole.outcome is Outcome.COMPLETED
    assert result.usage.model_calls == needed
    assert [item["seq"] for item in decisions] == list(range(1, len(decisions) + 1))
    assert result.counts == whole.counts


async def test_messages_during_a_new_history_are_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that was acknowledged between the last save and the new history is not lost with the old one (S0-081)."""
    async with short_histories() as client, MessagesApi("gaps") as api:
        world = model_world(tmp_path, api.base_url)
        save, answers = world.sessions.save, list[str]()

        async def saved(research_id: str, state_json: str, *, closed: bool) -> None:
            await save(research_id, state_json, closed=closed)
            is_before_new_history = "events" in json.loads(state_json)
            if is_before_new_history and not answers:
                answers.append(await client.get_workflow_handle(research_id).execute_update(names.STEER, WORDS))

        monkeypatch.setattr(world.sessions, "save", saved)
        async with running_workers(client, world):
            handle = await start(client, REQUEST)
            await handle.result()
            session = await client.get_workflow_handle(handle.id).query(names.SESSION)
    assert answers
    assert WORDS in [item["text"] for item in session["guidance"] if item["origin"] == "person"]


async def test_a_new_history_shows_the_status_of_the_one_before_until_its_state_is_loaded(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that waits for approval and moves to another version never looks as if it had just been made."""
    world = World(tmp_path)
    load, may_load = world.sessions.load, asyncio.Event()

    async def loaded(research_id: str, *, as_written: bool = False) -> str | None:
        if not as_written:  # to be gone on with, not to be changed
            await may_load.wait()
        return await load(research_id, as_written=as_written)

    async with running_workers(client, world), asyncio.timeout(60):
        handle = await start(client, REQUEST | {"gates": {"approve": "plan"}})
        await until(handle, lambda shown: shown.status is RunStatus.AWAITING_APPROVAL)
        monkeypatch.setattr(world.sessions, "load", loaded)
        first = (await handle.describe()).run_id
        await handle.signal(names.UPGRADE)
        while (moved := await client.get_workflow_handle(handle.id).describe()).run_id == first:
            await asyncio.sleep(0.02)
        handle = client.get_workflow_handle(handle.id, run_id=moved.run_id, result_type=ResearchResult)
        shown = await handle.query(names.STATUS, result_type=ResearchStatus)
        may_load.set()
        await until(handle, lambda shown: shown.waiting is not None)
        await handle.cancel()
    assert (shown.status, shown.waiting) == (RunStatus.AWAITING_APPROVAL, None)


async def test_a_history_stays_small(client: Client, tmp_path: Path) -> None:
    """Details lie in notebooks: the history of a large run holds ids, labels and references."""
    run = await measure_run(client, tmp_path, LARGE_RUNS[LARGE])
    activities, tasks = run.count("activity_task_scheduled"), run.count("workflow_task_completed")
    more = max(0.0, tasks - TASKS_PER_ACTIVITY * activities) * WORKFLOW_TASKS
    assert run.result.outcome is Outcome.COMPLETED, run.result.failed_branches
    assert run.result.counts.sources == 28
    assert run.bytes - more <= MOST_OF_LARGE, (run.bytes, more)
    assert run.events <= MOST_EVENTS


@pytest.mark.soak
async def test_histories_of_the_orchestrator_and_its_agents_stay_small(client: Client, tmp_path: Path) -> None:
    """The strategy itself: three agents that search and open pages turn by turn, and a report from what they found."""
    run = await measure_run(
        client, tmp_path, {"query": many_pages.QUESTION, "strategy": "orchestrator", "depth": "extended"}
    )
    assert run.result.counts.findings
    assert run.bytes <= MOST_OF_RUN, run.bytes
    assert len(run.agents) == 3
    assert max(run.agents) <= MOST_OF_AGENT, run.agents
