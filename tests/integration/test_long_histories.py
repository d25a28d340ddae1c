"""A history that grows too long starts anew at an iteration boundary, and nobody notices."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from contracts import names
from contracts.vocabulary import Outcome, StopReason
from tests.fakes.messages_api import MessagesApi
from tests.fakes.processes import FAST
from tests.fakes.world import model_world
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start
from workers.dev_server import find_binary

pytestmark = pytest.mark.integration

SHORT = ["--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=60"]
SAVE_BEFORE_NEW_HISTORY = 3
"""One when the run begins, one in the background at the end of the iteration, and the one that the new history needs."""
REQUEST = {"query": QUESTION, "corpus": "manual", "gates": {"think": "rules"}}


@asynccontextmanager
async def short_histories() -> AsyncIterator[Client]:
    """A server that wants histories to start anew soon."""
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(find_binary()), dev_server_extra_args=[*FAST, *SHORT]
    ) as environment:
        yield await Client.connect(
            environment.client.service_client.config.target_host, data_converter=pydantic_data_converter
        )


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


@pytest.mark.parametrize(
    ("update", "words"),
    [
        pytest.param(names.STOP_AND_REPORT, [], marks=pytest.mark.soak),
        (names.STEER, ["leave version 9 out"]),
    ],
)
async def test_what_is_asked_while_the_history_starts_anew_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, update: str, words: list[str]
) -> None:
    """A message that was acknowledged between the last save and the new history is not lost with the old one (S0-081, X-4)."""
    async with short_histories() as client, MessagesApi("gaps") as api:
        world = model_world(tmp_path, api.base_url)
        save, saves = world.sessions.save, list[bool]()

        async def saved(research_id: str, state_json: str, *, closed: bool) -> None:
            await save(research_id, state_json, closed=closed)
            saves.append(closed)
            if len(saves) == SAVE_BEFORE_NEW_HISTORY:
                await client.get_workflow_handle(research_id).execute_update(update, args=words)

        monkeypatch.setattr(world.sessions, "save", saved)
        async with running_workers(client, world):
            handle = await start(client, REQUEST)
            result = await handle.result()
            session = await client.get_workflow_handle(handle.id).query(names.SESSION)
    assert saves[SAVE_BEFORE_NEW_HISTORY - 1] is False
    if update == names.STOP_AND_REPORT:
        assert result.stop_reason is StopReason.USER_STOPPED
    else:
        assert words[0] in [item["text"] for item in session["guidance"] if item["origin"] == "person"]
