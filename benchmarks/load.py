"""What runs cost, measured for the model of capacity: `python -m benchmarks.load --processes 2`, `… --footprint`.

A run is that of `benchmarks.engine_time`: seven role calls, three searches, twenty-six pages of its own. Model calls
take 2 to 5 s. With `--processes` so many worker processes, each with all pools, have 10, 20, 40 and 80 runs at once,
another beginning as soon as one ends. With `--footprint` each pool has a process of its own, and Valkey and an object
store are beside them. Either writes its part of `benchmarks/capacity.json`, which `benchmarks.capacity` reads.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from redis import Redis
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from benchmarks.engine_time import READS, Bench, machine, request
from benchmarks.fake_processes import FakeProcess
from benchmarks.processes import cpu_seconds, megabytes
from benchmarks.web_deployment import web_deployment
from contracts.names import POOLS
from tests.fakes.object_store import ObjectStoreServer
from tests.fakes.valkey import running_valkey
from tests.integration.runs import start

PLACE: Final = Path(__file__).with_name("capacity.json")
AT_ONCE: Final = (10, 20, 40, 80)
CALL_SECONDS: Final = (2.0, 5.0)
SUBJECTS: Final = 180
"""More hosts than those of their pages fit no variable of the environment; further runs read pages that are cached."""
RAMP_SECONDS: Final = 25.0
WINDOW_SECONDS: Final = 40.0
LEAST_RUNS: Final = 5
"""With fewer in the window a point says nothing, and is left out."""
FOOTPRINT_RUNS: Final = 12
FOOTPRINT_AT_ONCE: Final = 6
REST_SECONDS: Final = 15.0
ACTIONS: Final = {
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: "workflow started",
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED: "activity started",
    EventType.EVENT_TYPE_TIMER_STARTED: "timer started",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED: "signal received",
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED: "update received",
    EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES: "search attributes changed",
    EventType.EVENT_TYPE_MARKER_RECORDED: "marker recorded",
    EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: "child workflow started",
}
"""Events that are billable actions by Temporal's public list; retries and heartbeats are counted apart."""


def stored() -> dict[str, Any]:
    """What was measured so far."""
    return json.loads(PLACE.read_text(encoding="utf-8")) if PLACE.exists() else {"points": []}


def store(measured: dict[str, Any]) -> None:
    """Replace what was measured."""
    conditions = {"machine": machine(), "cores": os.cpu_count(), "call_seconds": CALL_SECONDS}
    PLACE.write_text(json.dumps(measured | conditions, indent=1) + "\n", encoding="utf-8")


def busy_seconds() -> float:
    """Processor time that the whole machine has used."""
    fields = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
    return sum(int(fields[place]) for place in (0, 1, 2, 5, 6)) / 100


class Crowd:
    """Runs at once; as one ends, another begins."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.ended: list[tuple[float, float]] = []
        """Time at which a run ended, and its seconds."""
        self._tasks: list[asyncio.Task[None]] = []

    async def grow(self, size: int, seconds: float) -> None:
        """Have so many runs at once, the further ones begun over these seconds."""
        further = size - len(self._tasks)
        for _ in range(further):
            self._tasks.append(asyncio.create_task(self._go_on()))
            await asyncio.sleep(seconds / further)

    async def _go_on(self) -> None:
        while True:
            self.bench.asked %= SUBJECTS
            seconds = await self.bench.run()
            self.ended.append((time.monotonic(), seconds))

    async def close(self) -> None:
        """End what is at work."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def points(processes: int, folder: Path, sizes: tuple[int, ...]) -> list[dict[str, float]]:
    """Runs a minute with so many worker processes, by runs at once."""
    world = FakeProcess("pages", "--subjects", str(SUBJECTS), "--count", str(READS))
    model = FakeProcess("model", "--latency", str(CALL_SECONDS[0]), "--longest", str(CALL_SECONDS[1]))
    found = []
    async with web_deployment(folder, world, model, temporal="file") as made:
        made.configure(at_once=2 * max(sizes))
        await made.start_workers(processes)
        crowd = Crowd(Bench(made, await made.client(), (world, model)))
        pids = [worker.running.pid for worker in made.workers]
        for size in sizes:
            ramp, window = max(RAMP_SECONDS, size), max(WINDOW_SECONDS, 1.5 * size)
            await crowd.grow(size, ramp)
            began, first = time.monotonic(), len(crowd.ended)
            before = (crowd.bench.cpu()["server"], sum(map(cpu_seconds, pids)), crowd.bench.cpu_of_fakes())
            busy = busy_seconds()
            await asyncio.sleep(window)
            seconds = time.monotonic() - began
            runs = crowd.ended[first:]
            if len(runs) < LEAST_RUNS:
                print(f"{processes} processes, {size} at once: {len(runs)} runs ended in {seconds:.0f} s, left out")
                continue
            after = (crowd.bench.cpu()["server"], sum(map(cpu_seconds, pids)), crowd.bench.cpu_of_fakes())
            used = [now - was for now, was in zip(after, before, strict=True)]
            point = {
                "processes": processes,
                "at_once": size,
                "runs": len(runs),
                "runs_a_minute": round(len(runs) / seconds * 60, 1),
                "run_seconds": round(statistics.mean(each for _, each in runs), 2),
                "server_cpu": round(used[0] / len(runs), 3),
                "worker_cpu": round(used[1] / len(runs), 3),
                "fakes_cpu": round(used[2] / len(runs), 3),
                "other_cores": round(max(0.0, busy_seconds() - busy - sum(used)) / seconds, 2),
                "worker_megabytes": round(sum(map(megabytes, pids)) / processes),
            }
            print(json.dumps(point), flush=True)
            found.append(point)
        await crowd.close()
    return found


async def history(client: Client, research_id: str) -> dict[str, Any]:
    """Activities in order of their ends, with what each of them waited for; actions, events and bytes."""
    handle = client.get_workflow_handle(research_id)
    kinds: Counter[str] = Counter()
    scheduled: dict[int, tuple[str, str, float]] = {}
    started: dict[int, float] = {}
    ended: list[tuple[str, str, float, float, float]] = []
    events = tasks = retries = 0
    async for event in handle.fetch_history_events():
        at = event.event_time.ToDatetime().timestamp()
        events += 1
        kinds[ACTIONS.get(event.event_type, "")] += 1
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            begun = event.activity_task_scheduled_event_attributes
            scheduled[event.event_id] = (begun.task_queue.name, begun.activity_type.name, at)
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
            taken = event.activity_task_started_event_attributes
            started[taken.scheduled_event_id] = at
            retries += taken.attempt - 1
        elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
            which = event.activity_task_completed_event_attributes.scheduled_event_id
            ended.append((*scheduled[which], started[which], at))
        elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            tasks += 1
    ends = sorted(each[-1] for each in ended)
    pools = {queue: pool for pool, queue in POOLS.items()}
    work = [
        {
            "pool": pools[queue],
            "name": name,
            "after": sum(end <= asked for end in ends),
            "seconds": round(end - taken, 3),
        }
        for queue, name, asked, taken, end in sorted(ended, key=lambda each: each[-1])
    ]
    size = (await handle.describe()).raw_description.workflow_execution_info.history_size_bytes
    del kinds[""]
    return {
        "activities": work,
        "actions": dict(kinds),
        "retries": retries,
        "events": events,
        "tasks": tasks,
        "bytes": size,
    }


async def footprint(folder: Path) -> dict[str, Any]:
    """What one run takes of each part of a deployment."""
    world = FakeProcess("pages", "--subjects", str(SUBJECTS), "--count", str(READS))
    model = FakeProcess("model", "--latency", str(CALL_SECONDS[0]), "--longest", str(CALL_SECONDS[1]))
    async with AsyncExitStack() as stack:
        valkey = stack.enter_context(running_valkey(folder))
        redis = Redis.from_url(valkey.url)
        stack.callback(redis.close)
        objects = await stack.enter_async_context(ObjectStoreServer())
        deployment = web_deployment(
            folder / "home", world, model, temporal="file", redis_url=valkey.url, content=objects.environment()
        )
        made = await stack.enter_async_context(deployment)
        pids = {}
        for pool in POOLS:
            pids[pool] = (await made.start_workers(pools=(pool,)))[0].running.pid
        bench = Bench(made, await made.client(), (world, model))
        await asyncio.sleep(REST_SECONDS)
        rest = {pool: round(megabytes(pid)) for pool, pid in pids.items()}
        idle = {pool: cpu_seconds(pid) for pool, pid in pids.items()}
        await asyncio.sleep(REST_SECONDS)
        idle = {pool: round((cpu_seconds(pid) - idle[pool]) / REST_SECONDS, 4) for pool, pid in pids.items()}
        await bench.at_once(FOOTPRINT_AT_ONCE)  # loads what is loaded once
        warm = {pool: megabytes(pid) for pool, pid in pids.items()}
        database = sum(each.stat().st_size for each in made.home.glob("engine/*.db*"))
        before = {pool: cpu_seconds(pid) for pool, pid in pids.items()} | {"server": bench.cpu()["server"]}
        keys, memory, asked = redis.dbsize(), redis.info("memory")["used_memory"], len(objects.requests)
        bytes_before = sum(map(len, objects.objects.values()))
        results, peaks = [], dict(warm)
        for _ in range(FOOTPRINT_RUNS // FOOTPRINT_AT_ONCE):
            numbers = range(bench.asked, bench.asked + FOOTPRINT_AT_ONCE)
            bench.asked += FOOTPRINT_AT_ONCE
            handles = [await start(bench.client, request(number)) for number in numbers]
            ended = asyncio.gather(*(handle.result() for handle in handles))
            while not ended.done():
                peaks = {pool: max(peaks[pool], megabytes(pid)) for pool, pid in pids.items()}
                await asyncio.sleep(1.0)
            results += await ended
        after = {pool: cpu_seconds(pid) for pool, pid in pids.items()} | {"server": bench.cpu()["server"]}
        requests = Counter(method for method, _, _ in objects.requests[asked:])
        usage = [result.usage for result in results]
        found = await history(bench.client, handles[-1].id)
        return found | {
            "cpu": {pool: round((after[pool] - before[pool]) / FOOTPRINT_RUNS, 4) for pool in after},
            "idle_cores": idle,
            "rest_megabytes": rest,
            "run_megabytes": {pool: round(max(0.0, peaks[pool] - warm[pool]) / FOOTPRINT_AT_ONCE, 2) for pool in pids},
            "warm_megabytes": {pool: round(warm[pool]) for pool in pids},
            "database_bytes": _growth(made.home, database),
            "redis_bytes": (redis.info("memory")["used_memory"] - memory) // FOOTPRINT_RUNS,
            "redis_keys": (redis.dbsize() - keys) / FOOTPRINT_RUNS,
            "object_requests": {method: number / FOOTPRINT_RUNS for method, number in requests.items()},
            "object_bytes": (sum(map(len, objects.objects.values())) - bytes_before) // FOOTPRINT_RUNS,
            "model_calls": statistics.mean(each.model_calls for each in usage),
            "tokens": statistics.mean(each.tokens for each in usage),
        }


def _growth(home: Path, before: int) -> int:
    return (sum(each.stat().st_size for each in home.glob("engine/*.db*")) - before) // FOOTPRINT_RUNS


async def main() -> None:
    """Measure one part and store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=0, help="worker processes with all pools")
    parser.add_argument("--at-once", type=int, nargs="*", default=AT_ONCE, help="runs at once")
    parser.add_argument("--footprint", action="store_true", help="what one run takes of each part")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.footprint:
            store(stored() | {"run": await footprint(Path(folder))})
        if given.processes:
            found = await points(given.processes, Path(folder), tuple(given.at_once))
            new = {(each["processes"], each["at_once"]) for each in found}
            others = [each for each in stored()["points"] if (each["processes"], each["at_once"]) not in new]
            both = sorted([*others, *found], key=lambda each: (each["processes"], each["at_once"]))
            store(stored() | {"points": both})


if __name__ == "__main__":
    asyncio.run(main())
