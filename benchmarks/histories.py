"""How large the histories of runs are, and what makes them so: `python -m benchmarks.histories [--parts 25]`.

Whole runs within this process over hundreds of made-up pages, with a model on loopback and the dev server in memory.
The size is the server's own count (`history_size_bytes`), read before any query. Below it stand the events by type,
activity and part, as they are encoded: their sum is what the server counts.
"""

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from benchmarks.many_sources import LARGE_RUNS, SCENARIO, large_world
from contracts import names
from contracts.outcome import ResearchResult, ResearchStatus
from tests.fakes.messages_api import MessagesApi
from tests.integration.conftest import FAST, pools_of
from tests.integration.runs import start
from workers.dev_server import find_binary
from workers.pools import run_pools
from workers.temporal import DATA_CONVERTER

ATTRIBUTES: Final = "attributes"
PAYLOAD, EVENT = "payload", "event"


@dataclass(frozen=True)
class Measured:
    """The history of one run."""

    result: ResearchResult
    bytes: int
    """As the server counts."""
    events: int
    agents: list[int]
    """Bytes of the history of each of its agents."""
    parts: dict[tuple[str, str, str], tuple[int, int]]
    """Event, activity and part → how many there are and their bytes."""

    def count(self, event: str) -> int:
        """How many events of a type there are."""
        return sum(number for (kind, _, part), (number, _) in self.parts.items() if (kind, part) == (event, EVENT))


async def measure_run(client: Client, folder: Path, request: dict[str, Any]) -> Measured:
    """Do one run, and look at its history. Raises `WorkflowFailureError`."""
    async with MessagesApi(SCENARIO) as api:
        world = large_world(folder, api.base_url)
        contents = pools_of(world)
        try:
            async with run_pools(client, contents, ("workflows", *contents.activities)):
                handle = await start(client, request)
                result = await handle.result()
                description = await handle.describe()
                history = await handle.fetch_history()
                agents = await _agents(client, handle)
        finally:
            await world.close()
    return Measured(result, _size(description), len(history.events), agents, split(list(history.events)))


async def _agents(client: Client, handle: WorkflowHandle[Any, Any]) -> list[int]:
    shown: ResearchStatus = await handle.query(names.STATUS, result_type=ResearchStatus)
    described = [await client.get_workflow_handle(agent.workflow_id).describe() for agent in shown.agents]
    return [_size(each) for each in described]


def _size(description: WorkflowExecutionDescription) -> int:
    return int(description.raw_description.workflow_execution_info.history_size_bytes)


def split(events: list[HistoryEvent]) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Bytes by event, activity and part: `payload` is what we wrote, `event` is all around it."""
    kinds: dict[int, str] = {}
    bytes_of: Counter[tuple[str, str, str]] = Counter()
    count_of: Counter[tuple[str, str, str]] = Counter()
    for event in events:
        kind = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_").lower()
        activity = _activity(event, kinds)
        payloads = sum(payload.ByteSize() for payload in _payloads(event))
        for part, size in ((PAYLOAD, payloads), (EVENT, event.ByteSize() - payloads)):
            bytes_of[kind, activity, part] += size
            count_of[kind, activity, part] += bool(size)
    return {key: (count_of[key], size) for key, size in bytes_of.items() if size}


def _activity(event: HistoryEvent, kinds: dict[int, str]) -> str:
    attributes = getattr(event, str(event.WhichOneof(ATTRIBUTES)))
    if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
        kinds[event.event_id] = attributes.activity_type.name
        return str(attributes.activity_type.name)
    return kinds.get(getattr(attributes, "scheduled_event_id", 0), "")


def _payloads(event: HistoryEvent) -> Iterator[Any]:
    attributes = getattr(event, str(event.WhichOneof(ATTRIBUTES)))
    for name in ("input", "result"):
        if name in attributes.DESCRIPTOR.fields_by_name:
            yield from getattr(attributes, name).payloads


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", type=int, default=0, help="show so many of the largest parts of each run")
    given = parser.parse_args()
    print("| run | sources | model calls | events | history kB |\n|---|---|---|---|---|")
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(find_binary()), dev_server_extra_args=FAST
    ) as environment:
        address = environment.client.service_client.config.target_host
        client = await Client.connect(address, data_converter=DATA_CONVERTER)
        for what, request in LARGE_RUNS.items():
            with tempfile.TemporaryDirectory() as folder:
                run = await measure_run(client, Path(folder), request)
            counts = run.result.counts
            print(
                f"| {what} | {counts.sources} | {run.result.usage.model_calls} | {run.events} "
                f"| {run.bytes / 1000:.1f} |" + "".join(f" {size / 1000:.1f} |" for size in run.agents),
                flush=True,
            )
            for key, (count, size) in sorted(run.parts.items(), key=lambda item: -item[1][1])[: given.parts]:
                print(f"    {size:8d}  {count:4d} × {size // count:6d}  {' · '.join(key)}")


if __name__ == "__main__":
    asyncio.run(main())
