"""Histories, as the server counts them: they stay small, and one that grows too long starts anew without a trace."""

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
from contracts.vocabulary import Outcome
from tests.fakes import many_pages
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import model_world
from tests.integration.conftest import FAST, running_workers
from tests.integration.runs import QUESTION, start
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
