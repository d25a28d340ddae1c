"""Twice as many runs as fit: `python -m benchmarks.overload [--runs 40] [--at-once 6]`.

The models pool has eight slots and each call takes a second, so that not even half of the runs could end in time if
all began at once. Shown for runs without and with a bound: how they ended, and how many model calls were paid.
"""

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment

from contracts.names import POOLS
from contracts.outcome import ResearchResult
from providers.shared.run_queue import QueueLimits, RunQueue
from providers.shared.shared_value import running
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import model_world
from tests.integration.conftest import pools_of
from tests.integration.runs import QUESTION, start
from workers.composition import OpenRuns
from workers.dev_server import find_binary
from workers.own_process import exit_process, run_to_end
from workers.pools import build_worker

SLOTS: Final = 8
CALL_SECONDS: Final = 1.0
DEADLINE_SECONDS: Final = 30
UNBOUNDED: Final = 10_000


async def ending(handle: WorkflowHandle[object, ResearchResult]) -> str:
    """The outcome, and whether there is a report."""
    try:
        result = await handle.result()
    except WorkflowFailureError as error:
        details = error.cause.details if isinstance(error.cause, ApplicationError) else ()
        result = ResearchResult.model_validate(details[0])
    return f"{result.outcome.value}, {'a report' if result.report else 'NO report'}"


async def measured(client: Client, runs: int, at_once: int) -> None:
    """One round."""
    request = {
        "query": QUESTION,
        "corpus": "manual",
        "depth": "light",
        "gates": {"think": "rules"},
        "limits": {"deadline_seconds": DEADLINE_SECONDS},
    }
    with tempfile.TemporaryDirectory() as folder:
        async with MessagesApi(latency=CALL_SECONDS) as api, AsyncExitStack() as stack:
            world = model_world(Path(folder), api.base_url)
            world.queue = RunQueue(world.shared, QueueLimits(at_once=at_once), OpenRuns(client))
            stack.push_async_callback(world.close)
            contents = replace(pools_of(world), slots={"models": SLOTS})
            for pool in POOLS:
                await stack.enter_async_context(build_worker(pool, client, contents))
            await stack.enter_async_context(running(world.queue.serve()))
            began = time.monotonic()
            handles = [await start(client, request) for _ in range(runs)]
            endings = Counter(await asyncio.gather(*map(ending, handles)))
            seconds = time.monotonic() - began
    told = "; ".join(f"{number} {how}" for how, number in endings.most_common())
    bound = "all at once" if at_once == UNBOUNDED else f"{at_once} at once"
    print(f"{runs} runs, {bound}: {told}; {len(api.calls)} model calls, {seconds:.0f} s", flush=True)


async def main() -> None:
    """Both rounds, against a development server in memory."""
    parser = argparse.ArgumentParser(description="Twice as many runs as fit.")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--at-once", type=int, default=6)
    given = parser.parse_args()
    environment = await WorkflowEnvironment.start_local(dev_server_existing_path=str(find_binary()))
    async with environment:
        address = environment.client.service_client.config.target_host
        client = await Client.connect(address, data_converter=pydantic_data_converter)
        for at_once in (UNBOUNDED, given.at_once):
            await measured(client, given.runs, at_once)


if __name__ == "__main__":
    exit_process(run_to_end(main()) or 0)
