"""Versions of the workflow code: each run keeps to its own, runs that wait for a person move, the rest is shown."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError

from contracts import names
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome, RunStatus
from tests.fakes.world import World
from tests.integration.conftest import Server, pools_of, running_workers
from tests.integration.runs import QUESTION, start, until
from tests.unit.client.cli.command_line import research
from workers.pools import build_worker
from workers.setup import ensure_namespace
from workers.temporal import DATA_CONVERTER
from workers.versions import ensure_current, list_versions, pollers_by_version, unserved_runs

pytestmark = [pytest.mark.integration, pytest.mark.soak]

OTHERS = ("models", "search", "reading", "records")


@asynccontextmanager
async def version(client: Client, world: World, build_id: str) -> AsyncIterator[None]:
    """A worker of the pool `workflows` under a build id, once the server knows it."""
    contents = replace(pools_of(world), build_id=build_id)
    async with build_worker("workflows", client, contents, grace=timedelta()):
        while build_id not in await pollers_by_version(client):
            await asyncio.sleep(0.05)
        yield


async def version_of(handle: WorkflowHandle[Any, Any]) -> str:
    described = await handle.describe()
    return described.raw_description.workflow_execution_info.versioning_info.deployment_version.build_id


async def at_command_line(server: Server, namespace: str, home: Path, *words: str) -> tuple[int, str]:
    """Run `research` against the namespace: exit code and output."""
    variables = {"TEMPORAL_ADDRESS": server.address, "TEMPORAL_NAMESPACE": namespace, "RESEARCH_HOME": str(home)}
    done = await asyncio.to_thread(research, *words, **variables)
    return done.exit_code, done.stdout


async def test_a_waiting_run_moves_to_the_promoted_version_and_the_old_one_empties(
    server: Server, tmp_path: Path
) -> None:
    """Without a current version the first one becomes it. A promoted version gets new runs and the run that waits for
    approval; another promotion rolls back. A version without workers is shown with its runs.
    """
    namespace = f"versions-{uuid.uuid4().hex[:6]}"
    client = await Client.connect(server.address, namespace=namespace, data_converter=DATA_CONVERTER)
    await ensure_namespace(client, timedelta(days=1))
    world = World(tmp_path)

    async def command(*words: str) -> tuple[int, str]:
        return await at_command_line(server, namespace, tmp_path, "workers", *words)

    async with asyncio.timeout(120):
        while True:
            try:
                assert await ensure_current(client, "one") == "one"
                break
            except RPCError:  # the namespace is not everywhere yet
                await asyncio.sleep(0.2)
        async with running_workers(client, world, OTHERS):
            async with version(client, world, "one"):
                waits = await start(client, {"query": QUESTION, "corpus": "manual", "gates": {"approve": "plan"}})
                stays = await start(client, {"query": QUESTION, "corpus": "manual", "gates": {"approve": "plan"}})
                for handle in (waits, stays):
                    await until(handle, lambda known: known.status is RunStatus.AWAITING_APPROVAL)
                assert await ensure_current(client, "two") == "one"
                assert (await command("promote", "two"))[0] == 2  # without workers
                async with version(client, world, "two"):
                    code, printed = await command("promote", "two", "--json")
                    assert (code, json.loads(printed)) == (0, {"current": "two", "asked_to_move": 2})
                    while await version_of(client.get_workflow_handle(waits.id)) != "two":
                        await asyncio.sleep(0.05)
                    code, printed = await command("drain", "one", "--wait", "1", "--json")
                    assert (code, json.loads(printed)["open_runs"]) == (0, 0)
                    assert (await command("drain", "two"))[0] == 2  # new runs go there

                    # Rollback: the run goes back, and is served there to its end.
                    assert (await command("promote", "one"))[0] == 0
                    while await version_of(client.get_workflow_handle(waits.id)) != "one":
                        await asyncio.sleep(0.05)
                moved = client.get_workflow_handle(waits.id)
                await moved.execute_update(names.APPROVE_PLAN, args=[1])
                result = ResearchResult.model_validate(await moved.result())
                assert result.outcome is Outcome.COMPLETED
                while any(each.open_runs for each in await list_versions(client) if each.build_id == "two"):
                    await asyncio.sleep(0.05)
                known = await list_versions(client)
                assert {each.build_id: each.open_runs for each in known}["one"] == 1
                lost = [replace(each, workers=0) for each in known]
                assert await unserved_runs(client, lost, 5) == {"one": [stays.id]}
