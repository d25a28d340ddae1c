"""Ways that few runs go, for the script that records histories: refused, queued, resumed, broken, begun anew."""

import asyncio
import importlib.util
from functools import partial
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.worker import Worker

from activities.configuration import ResearchConfiguration
from contracts import names
from contracts.resolved import Hook
from contracts.vocabulary import Phase, RunStatus
from providers.errors import NotConfigured
from providers.shared.run_queue import QueueLimits, SharedRunQueue
from tests.fakes.failing_strategy import FAILS, failing_strategy
from tests.fakes.messages_api import MessagesApi
from tests.fakes.web_world import WebWorld
from tests.fakes.world import World, model_world
from tests.integration.conftest import running_workers
from tests.integration.runs import QUESTION, start, until
from tests.integration.web_pools import over_the_web, web_workers
from workers.temporal import has_search_attributes, register_search_attributes

REQUEST = {"query": QUESTION, "corpus": "manual"}
RULES = REQUEST | {"gates": {"think": "rules"}}
SHORT = ("--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=60")
"""How a server is started that wants histories to start anew soon."""
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "think_pause_hook.py"

Handle = WorkflowHandle[Any, Any]


async def ended(handle: Handle) -> Handle:
    """The run, when it is over, whatever it ended with."""
    try:
        await handle.result()
    except WorkflowFailureError:
        return handle
    return handle


async def refused(client: Client, folder: Path) -> Handle:
    """A request that makes no sense."""
    async with running_workers(client, World(folder)):
        return await ended(await start(client, {"query": "", "depth": "abyss"}))


async def nothing_to_search(client: Client, folder: Path) -> Handle:
    """No corpus, and no provider that is configured."""
    async with running_workers(client, World(folder)):
        return await ended(await start(client, {"query": QUESTION}))


async def another_question(client: Client, folder: Path) -> Handle:
    """The id of a session of another question."""
    async with running_workers(client, World(folder)):
        first = await ended(await start(client, RULES))
        other = {"query": "Something else entirely?", "corpus": "manual", "continue_from": first.id}
        return await ended(await start(client, other, id=first.id))


async def completed_before(client: Client, folder: Path) -> Handle:
    """A resumed run that was completed already."""
    async with running_workers(client, World(folder)):
        first = await ended(await start(client, RULES))
        return await ended(await start(client, RULES | {"continue_from": first.id}, id=first.id))


async def queued(client: Client, folder: Path) -> Handle:
    """It waits for its turn, in a namespace that knows the search attributes."""
    await register_search_attributes(client)
    configuration = ResearchConfiguration(
        search_attributes=partial(has_search_attributes, client), product_version="0.1.0"
    )
    world = World(folder, configuration=configuration)
    world.queue = SharedRunQueue(world.shared, QueueLimits(at_once=1))
    await world.queue.take("before", "other")
    async with running_workers(client, world):
        handle = await start(client, REQUEST | {"tenant": "acme", "priority": 2})
        await until(handle, lambda shown: shown.status is RunStatus.QUEUED)
        await asyncio.sleep(1)
        await world.queue.leave("before")
        return await ended(handle)


async def stopped_in_the_queue(client: Client, folder: Path) -> Handle:
    """It is stopped before its turn."""
    world = World(folder)
    world.queue = SharedRunQueue(world.shared, QueueLimits(at_once=1))
    await world.queue.take("before", "other")
    async with running_workers(client, world):
        handle = await start(client, REQUEST)
        await until(handle, lambda shown: shown.status is RunStatus.QUEUED)
        await handle.execute_update(names.STOP_AND_REPORT)
        return await ended(handle)


async def finished_at_once(client: Client, folder: Path) -> Handle:
    """Cancelled while it refines, then resumed and stopped before it began: the report is made of the draft."""
    async with MessagesApi(scenario="gaps", by_role={"refiner": "slow"}) as api:
        world = model_world(folder, api.base_url)
        async with running_workers(client, world):
            handle = await start(client, RULES)
            await until(handle, lambda status: status.phase == Phase.REFINEMENT)
            await handle.cancel()
            await ended(handle)
        again = await start(client, RULES | {"continue_from": handle.id}, id=handle.id)
        stop = asyncio.create_task(again.execute_update(names.STOP_AND_REPORT, result_type=str))
        await asyncio.sleep(0.5)
        async with running_workers(client, world):
            await stop
            return await ended(again)


async def resumed(client: Client, folder: Path) -> Handle:
    """Cancelled while it analyzes, then resumed to its end."""
    async with MessagesApi(plan=["good", "slow", "slow", "slow", "slow", "slow"]) as api:
        world = model_world(folder, api.base_url)
        async with running_workers(client, world):
            handle = await start(client, RULES)
            await asyncio.wait_for(api.waiting.wait(), 60)
            await handle.cancel()
            await ended(handle)
            api.plan.sequence = ()
            return await ended(await start(client, RULES | {"continue_from": handle.id}, id=handle.id))


async def hooked(client: Client, folder: Path) -> Handle:
    """The hook of the examples guides it."""
    specification = importlib.util.spec_from_file_location("think_pause_hook", EXAMPLE)
    assert specification is not None
    assert specification.loader is not None
    example = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(example)
    hook = Hook(name="house-rules", activity="house_rules", task_queue="house-rules")
    configuration = ResearchConfiguration(hooks={hook.name: hook}, product_version="0.1.0")
    request = REQUEST | {"gates": {"hook": hook.name}, "limits": {"max_sub_queries": 2}}
    async with running_workers(client, World(folder, configuration=configuration)):
        async with Worker(client, task_queue=hook.task_queue, activities=[example.house_rules]):
            return await ended(await start(client, request))


async def without_a_session(client: Client, folder: Path) -> Handle:
    """No session can be saved, not even the last: the run fails and says why."""
    world = World(folder)

    async def save(research_id: str, state_json: str, *, closed: bool) -> None:
        del research_id, state_json, closed
        raise NotConfigured("the folder cannot be written")

    world.sessions.save = save  # type: ignore[method-assign]
    async with running_workers(client, world):
        return await ended(await start(client, REQUEST))


async def unrendered(client: Client, folder: Path) -> Handle:
    """Its report cannot be rendered: it fails, and its session is kept."""
    world = World(folder)

    async def skipped(name: str) -> Any:
        raise NotConfigured(f"the list of {name} cannot be read")

    world.corpus.skipped = skipped  # type: ignore[method-assign]
    async with running_workers(client, world):
        return await ended(await start(client, REQUEST))


async def aborted(client: Client, folder: Path) -> Handle:
    """Out of time, and it was asked for no report then."""
    async with MessagesApi(by_role={"analyzer": "slow"}) as api:
        async with running_workers(client, model_world(folder, api.base_url)):
            return await ended(await start(client, RULES | {"on_deadline": "abort", "limits": {"deadline_seconds": 6}}))


async def broken(client: Client, folder: Path) -> Handle:
    """Its strategy raises what nobody foresaw."""
    with failing_strategy() as name:
        async with running_workers(client, World(folder)):
            request = REQUEST | {"strategy": name, "limits": {"max_parallel": FAILS}}
            return await ended(await start(client, request))


async def unsearchable(client: Client, folder: Path) -> Handle:
    """The only provider of the web cannot be reached."""
    async with WebWorld() as world:
        async with web_workers(client, folder, world, tavily_api_key="k", tavily_base_url="http://127.0.0.1:9"):
            return await ended(await start(client, over_the_web("tavily")))


async def begun_anew(client: Client, folder: Path) -> Handle:
    """A history that grew too long, on a server that wants short ones."""
    handle = await gone_on(client, folder)
    return client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)


async def gone_on(client: Client, folder: Path) -> Handle:
    """The history after one that grew too long, on a server that wants short ones."""
    async with MessagesApi("gaps") as api, running_workers(client, model_world(folder, api.base_url)):
        return await ended(await start(client, RULES))


async def unstarted(client: Client, folder: Path) -> Handle:
    """Nobody takes its first work before its deadline."""
    async with running_workers(client, World(folder), ("workflows",)):
        return await ended(await start(client, REQUEST | {"limits": {"deadline_seconds": 2}}))


async def document(client: Client, folder: Path) -> Handle:
    """The tiny workflow that serves a piece of a report."""
    async with running_workers(client, World(folder)):
        run = await ended(await start(client, RULES | {"tenant": "acme"}))
        asked = {"research_id": run.id, "name": "report.md", "tenant": "acme"}
        return await _document(client, asked)


async def no_document(client: Client, folder: Path) -> Handle:
    """A piece that nobody can mean."""
    async with running_workers(client, World(folder)):
        return await _document(client, {"research_id": 5, "name": []})


async def _document(client: Client, asked: dict[str, Any]) -> Handle:
    identity = f"document-{asked['research_id']}"
    queue = names.WORKFLOWS_QUEUE
    return await ended(await client.start_workflow(names.RESEARCH_DOCUMENT, asked, id=identity, task_queue=queue))


RARE = (refused, nothing_to_search, another_question, completed_before, queued, stopped_in_the_queue, finished_at_once,
        resumed, hooked, without_a_session, unstarted,
        unrendered, aborted, broken, unsearchable, document, no_document)  # fmt: skip
LONG = (begun_anew, gone_on)
