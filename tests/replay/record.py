"""Record histories of real runs: `make histories`. Until the first tag a changed workflow means recording anew."""

import asyncio
import gzip
import json
import logging
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from contracts import names
from contracts.vocabulary import Phase, RunStatus
from tests.every_strategy.joined import NAMES
from tests.fakes import library_work
from tests.fakes.messages_api import MessagesApi
from tests.fakes.web_world import Faults, WebWorld
from tests.fakes.world import World, model_world
from tests.integration.conftest import FAST, running_workers
from tests.integration.runs import QUESTION, start, until
from tests.integration.web_pools import over_the_web, web_workers
from tests.toy.party import party_declared
from tests.toy.roles import TOY
from workers.dev_server import find_binary
from workers.temporal import DATA_CONVERTER

recording_workers = partial(running_workers, replaying=True)
HISTORIES = Path(__file__).parent / "histories"
REQUEST = {"query": QUESTION, "corpus": "manual"}
TASKS = [QUESTION, "How does vacuum freeze old rows?", "What locks does the engine take?"]
AGENTS = REQUEST | {"strategy": "party", "gates": {"think": "rules"}, "metadata": {"tasks": TASKS}}


async def main(wanted: list[str]) -> None:
    """One history per way that a run can go; given names, those alone."""
    logging.getLogger("temporalio").setLevel(logging.CRITICAL)  # failed attempts belong to what is recorded
    HISTORIES.mkdir(exist_ok=True)
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(find_binary()), dev_server_extra_args=[*FAST]
    ) as environment:
        address = environment.client.service_client.config.target_host
        client = await Client.connect(address, data_converter=DATA_CONVERTER)
        for record in RECORDED:
            if not wanted or record.__name__ in wanted:
                with tempfile.TemporaryDirectory() as folder:
                    await _keep(record.__name__, await record(client, Path(folder)))
                print(record.__name__)  # noqa: T201 - a script that prints its progress


async def _keep(name: str, handle: WorkflowHandle[Any, Any]) -> None:
    history = _without_traces(json.loads((await handle.fetch_history()).to_json()))
    document = {"workflow_id": handle.id, "history": history}
    with gzip.GzipFile(HISTORIES / f"{name}.json.gz", "wb", mtime=0) as file:
        file.write(json.dumps(document, separators=(",", ":")).encode())


def _without_traces(value: Any) -> Any:
    """Stack traces name folders of the machine that recorded them."""
    if isinstance(value, dict):
        return {key: _without_traces(item) for key, item in value.items() if key != "stackTrace"}
    return [_without_traces(item) for item in value] if isinstance(value, list) else value


async def extractive(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    """A completed run without a model."""
    return await _completed(client, World(folder))


async def two_iterations(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    """A model whose gaps lead to a second iteration, with reflections."""
    async with MessagesApi("gaps") as api:
        return await _completed(client, model_world(folder, api.base_url))


async def hopeless(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    """Repairs and fallbacks."""
    async with MessagesApi("hopeless") as api:
        return await _completed(client, model_world(folder, api.base_url))


async def _completed(client: Client, world: World, request: dict[str, Any] = REQUEST) -> WorkflowHandle[Any, Any]:
    async with recording_workers(client, world):
        handle = await start(client, request)
        await handle.result()
    return handle


async def stopped(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    """Steered, then stopped twice during the analysis."""
    async with MessagesApi(by_role={"analyzer": "slow"}) as api:
        async with recording_workers(client, model_world(folder, api.base_url)):
            handle = await start(client, REQUEST | {"gates": {"think": "rules"}})
            await until(handle, lambda status: status.phase == Phase.ANALYSIS)
            await handle.execute_update(names.STEER, "Leave locks out, and what about backups?")
            await handle.execute_update(names.STOP_AND_REPORT)
            await handle.execute_update(names.STOP_AND_REPORT)
            await handle.result()
    return handle


async def cancelled(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    async with MessagesApi(by_role={"analyzer": "slow"}) as api:
        async with recording_workers(client, model_world(folder, api.base_url)):
            handle = await start(client, REQUEST | {"gates": {"think": "rules"}})
            await asyncio.wait_for(api.waiting.wait(), 60)
            await handle.cancel()
            try:
                await handle.result()
            except WorkflowFailureError:
                return handle
    raise AssertionError("a cancelled run cannot succeed")


async def deadline(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    """Out of time during the analysis."""
    async with MessagesApi(by_role={"analyzer": "slow", "synthesizer": "slow"}) as api:
        async with recording_workers(client, model_world(folder, api.base_url)):
            limits = {"deadline_seconds": 6}
            handle = await start(client, REQUEST | {"gates": {"think": "rules"}, "limits": limits})
            await handle.result()
    return handle


async def web(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    """Over the web: one provider that cannot be reached, one that answers, pages that fail at first."""
    async with WebWorld(faults=Faults(too_many=0.1, server_error=0.1, retry_after="1", seed=3)) as world:
        async with web_workers(client, folder, world, TAVILY_API_KEY="k", TAVILY_BASE_URL="http://127.0.0.1:9"):
            handle = await start(client, over_the_web("tavily", "searxng"))
            await handle.result()
    return handle


def _of_agent(client: Client, run: WorkflowHandle[Any, Any]) -> WorkflowHandle[Any, Any]:
    return client.get_workflow_handle(f"{run.id}/agent-1")


async def agents(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    """Three agents, two at a time, of a strategy from outside."""
    return await _completed(client, World(folder), AGENTS | {"metadata": {"tasks": TASKS, "at_once": 2}})


async def agent(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    return _of_agent(client, await agents(client, folder))


async def agents_stopped(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    """Stopped while its agents wait for the model."""
    async with MessagesApi(by_role={"analyzer": "slow"}) as api:
        async with recording_workers(client, model_world(folder, api.base_url)):
            handle = await start(client, AGENTS)
            while len(api.calls) < len(TASKS):
                await asyncio.sleep(0.05)
            await handle.execute_update(names.STOP_AND_REPORT)
            await handle.result()
    return handle


async def agent_stopped(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    return _of_agent(client, await agents_stopped(client, folder))


async def agent_out_of_time(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    """An agent whose own time is over while the model thinks: it reports what it has."""
    told = {"tasks": TASKS, "task": {"seconds": 3.0, "most_seconds": 20.0}}
    async with MessagesApi(by_role={"analyzer": "slow"}) as api:
        async with recording_workers(client, model_world(folder, api.base_url)):
            handle = await start(client, AGENTS | {"metadata": told})
            await handle.result()
    return _of_agent(client, handle)


TREE = REQUEST | {"strategy": "recursive", "depth": "medium", "gates": {"approve": "none"}}


async def tree(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    """Executors on three levels, a leaf at each."""
    with patch.object(library_work, "tree", library_work.three_levels):
        async with MessagesApi() as api:
            return await _completed(client, model_world(folder, api.base_url), TREE)


async def tree_executor(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    """The executor of the first level, whose own executor has one."""
    return client.get_workflow_handle(f"{(await tree(client, folder)).id}/executor-1")


async def tree_stopped(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    """Stopped while the executor of the third level waits for the model."""
    with patch.object(library_work, "tree", library_work.three_levels):
        async with MessagesApi(latency=1.0) as api, recording_workers(client, model_world(folder, api.base_url)):
            handle = await start(client, TREE)
            while not any(asked.role == "extractor" and "(level 3)" in asked.prompt for asked in api.requests):
                await asyncio.sleep(0.05)
            await handle.execute_update(names.STOP_AND_REPORT)
            await handle.result()
    return handle


async def tree_executor_stopped(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    return client.get_workflow_handle(f"{(await tree_stopped(client, folder)).id}/executor-1")


Recording = Callable[[Client, Path], Awaitable[WorkflowHandle[Any, Any]]]


def of_strategy(name: str) -> Recording:
    """How a run of a declared strategy is recorded: with a model, approved, then steered, verified to its end."""

    async def record(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
        async with MessagesApi(latency=0.1) as api, recording_workers(client, model_world(folder, api.base_url)):
            request = {"strategy": name, "depth": "light", "verify": "full", "gates": {"approve": "plan"}}
            handle = await start(client, REQUEST | request)
            await until(handle, lambda status: status.status is RunStatus.AWAITING_APPROVAL)
            await handle.execute_update(names.APPROVE_PLAN, args=[1])
            await handle.execute_update(names.STEER, "what about locks?")
            await handle.result()
        return handle

    record.__name__ = f"strategy_{name}"
    return record


async def approved(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    """Asked what it means, then a plan that is made anew by a person's words, edited, and approved."""
    gates = {"clarify": "required", "approve": "plan", "think": "rules"}
    async with recording_workers(client, World(folder)):
        handle = await start(client, REQUEST | {"gates": gates})
        await until(handle, lambda status: status.status is RunStatus.AWAITING_CLARIFICATION)
        await handle.execute_update(names.ANSWER_CLARIFICATION, args=[["the freezing of rows"], 1])
        for version in (1, 2):
            await until(handle, lambda status, at=version: bool(status.waiting and status.waiting.plan_version == at))
            if version == 1:
                await handle.execute_update(names.STEER, "look at locks")
        await handle.execute_update(names.REVISE_PLAN, args=[{"sub_queries": [QUESTION]}, 2])
        await handle.execute_update(names.APPROVE_PLAN, args=[3])
        await handle.result()
    return handle


async def expired(client: Client, folder: Path) -> WorkflowHandle[Any, Any]:
    """Nobody approves the plan: one reminder, then the end."""
    async with recording_workers(client, World(folder)):
        handle = await start(client, REQUEST | {"gates": {"approve": "plan"}, "limits": {"max_wait_seconds": 2}})
        try:
            await handle.result()
        except WorkflowFailureError:
            return handle
    raise AssertionError("a plan that nobody approves cannot be researched")


RECORDED: tuple[Recording, ...] = (
    extractive,
    two_iterations,
    hopeless,
    stopped,
    cancelled,
    deadline,
    approved,
    expired,
    web,
    agents,
    agent,
    agents_stopped,
    agent_stopped,
    agent_out_of_time,
    tree,
    tree_executor,
    tree_stopped,
    tree_executor_stopped,
    *(of_strategy(name) for name in NAMES if name != TOY.name),
)

if __name__ == "__main__":
    with party_declared():
        asyncio.run(main(sys.argv[1:]))
