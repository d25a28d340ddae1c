"""A history that grows too long starts anew at an iteration boundary, and nobody notices."""

from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from contracts import names
from contracts.vocabulary import Outcome
from tests.fakes.messages_api import MessagesApi
from tests.fakes.temporal_server import FAST
from tests.fakes.world import model_world
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start
from workers.engine_server import find_binary

pytestmark = pytest.mark.integration

SHORT = ["--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=60"]
REQUEST = {"query": QUESTION, "corpus": "manual", "gates": {"think": "rules"}}


async def test_continue_as_new_repeats_nothing(client: Client, tmp_path: Path) -> None:
    """Same calls, same report as in one history; decisions and usage go on counting (S0-026, invariants 1, 12)."""
    async with MessagesApi("gaps") as api:
        world = model_world(tmp_path / "one", api.base_url)
        async with running_workers(client, world):
            whole = await (await start(client, REQUEST, id="r-long")).result()
        needed = len(api.calls)
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(find_binary()), dev_server_extra_args=[*FAST, *SHORT]
    ) as environment:
        other = await Client.connect(
            environment.client.service_client.config.target_host, data_converter=pydantic_data_converter
        )
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
