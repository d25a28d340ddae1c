"""What Temporal alone takes for a run of this shape: `python -m benchmarks.bare_temporal`.

The activities of the run of `benchmarks.engine_time`, in the same order and as many side by side, do nothing; the
workflow keeps nothing. Plain SDK defaults, the embedded server with its file. What is above these figures is ours.
`--row SECONDS` has activities that take so long follow one another, as model calls do: what a step takes besides.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

from benchmarks.processes import cpu_seconds, stolen_seconds
from workers.dev_server import describe_server, detach_server, ensure_server

SHAPE: Final = (1, 1, 1, 1, 3, 27, 3, 5, 5, 1)
"""Activities side by side, step after step: 48, as in a run of ten role calls, 3 searches, 26 pages and its records."""
QUEUE: Final = "bare"
WARM_RUNS: Final = 3
AT_ONCE: Final = 20
ROW_STEPS: Final = 10
WIDTHS: Final = (1, 3)
"""Activities side by side, in a row of steps."""


@activity.defn
async def do_nothing(size: int) -> str:
    """Answer with so many characters."""
    return "x" * size


@workflow.defn(sandboxed=False)
class Bare:
    """The shape alone."""

    @workflow.run
    async def run(self, size: int) -> int:
        """Each step begins when the one before is done; how many activities there were."""
        for width in SHAPE:
            work = [
                workflow.execute_activity(do_nothing, size, start_to_close_timeout=timedelta(minutes=1))
                for _ in range(width)
            ]
            await asyncio.gather(*work)
        return sum(SHAPE)


@activity.defn
async def wait(seconds: float) -> None:
    """Take so long."""
    await asyncio.sleep(seconds)


@dataclass(frozen=True)
class Steps:
    """Steps one after the other: how many, of how many activities side by side, and how long each takes."""

    count: int
    width: int
    seconds: float


@workflow.defn(sandboxed=False)
class Row:
    """A row of calls alone."""

    @workflow.run
    async def run(self, steps: Steps) -> None:
        """Each step begins when the one before is done."""
        for _ in range(steps.count):
            work = [
                workflow.execute_activity(wait, steps.seconds, start_to_close_timeout=timedelta(minutes=1))
                for _ in range(steps.width)
            ]
            await asyncio.gather(*work)


async def serve(address: str) -> None:
    """A worker until it is killed."""
    client = await Client.connect(address)
    await Worker(client, task_queue=QUEUE, workflows=[Bare, Row], activities=[do_nothing, wait]).run()


async def measure(home: Path, runs: int, row: float) -> None:
    """Print wall and processor time of a run, and of twenty at once; with seconds, what a step of a row takes, too."""
    home.mkdir()
    address = (await ensure_server(home)).address
    worker = await asyncio.create_subprocess_exec(sys.executable, "-m", "benchmarks.bare_temporal", "--serve", address)
    try:
        client = await Client.connect(address)

        async def run() -> float:
            began = time.monotonic()
            await client.execute_workflow(Bare.run, 300, id=f"bare-{time.monotonic_ns()}", task_queue=QUEUE)
            return time.monotonic() - began

        server = describe_server(home)
        assert server is not None
        for _ in range(WARM_RUNS):
            await run()
        before = cpu_seconds(server.pid), cpu_seconds(worker.pid)
        walls = [await run() for _ in range(runs)]
        after = cpu_seconds(server.pid), cpu_seconds(worker.pid)
        of_server, of_worker = ((late - early) / runs for early, late in zip(before, after, strict=True))
        print(f"{sum(SHAPE)} activities that do nothing: {statistics.median(walls):.3f} s wall")
        told = f"server {of_server:.2f}, worker {of_worker:.2f}"
        print(f"processor time of a run: {of_server + of_worker:.2f} s ({told})")
        began = time.monotonic()
        await asyncio.gather(*(run() for _ in range(AT_ONCE)))
        print(f"{AT_ONCE} runs at once: {time.monotonic() - began:.2f} s wall")
        for width in WIDTHS if row else ():
            steps = Steps(ROW_STEPS, width, row)
            began = time.monotonic()
            await client.execute_workflow(Row.run, steps, id=f"row-{width}", task_queue=QUEUE)
            besides = (time.monotonic() - began) / ROW_STEPS - row
            print(
                f"a step of {width} side by side that take {row:g} s each: {1000 * besides:.0f} ms besides", flush=True
            )
    finally:
        worker.kill()
        await worker.wait()
        detach_server(home)


async def main() -> None:
    """Measure, or serve the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--row", type=float, default=0.0, metavar="SECONDS", help="also a row of activities of so long")
    parser.add_argument("--serve", metavar="ADDRESS", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        await serve(given.serve)
        return
    stolen = stolen_seconds()
    with tempfile.TemporaryDirectory() as name:
        await measure(Path(name) / "home", given.runs, given.row)
    print(f"taken away by the machine's host meanwhile: {stolen_seconds() - stolen:.1f} s")


if __name__ == "__main__":
    asyncio.run(main())
