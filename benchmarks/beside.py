"""Processor time of a run in several trees of the product, in turns: `python -m benchmarks.beside TREE TREE …`.

A tree is an unpacked commit (`git archive COMMIT | tar x -C TREE`) that has `benchmarks.engine_time`; the packages of
this environment serve all. Their servers and workers live side by side and each makes one run in turn, so that other
work on the machine meets all of them alike: ratios hold on a busy machine, too. A tree given twice shows the noise.
"""

import argparse
import asyncio
import json
import statistics
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Final

from workers.settings.loading import child_environment

SETTLE_SECONDS: Final = 0.15
"""After a run its server and worker still write."""
MEMBER: Final = f"""
import asyncio, json, sys, tempfile
from pathlib import Path
from benchmarks.engine_time import bench

async def main():
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory() as name:
        async with bench(Path(name), int(sys.argv[1]), 0.0) as made:
            print("ready", flush=True)
            while await loop.run_in_executor(None, sys.stdin.readline):
                before = made.cpu()
                await made.run()
                await asyncio.sleep({SETTLE_SECONDS})
                print(json.dumps([after - before[part] for part, after in made.cpu().items()]), flush=True)

asyncio.run(main())
"""
"""One tree: it makes a run for each line that it reads, and prints the seconds of its server and of its worker."""


async def member(tree: Path, runs: int) -> Process:
    """Start a tree's server, worker and fakes. Raises RuntimeError if they do not start."""
    command = (sys.executable, "-c", MEMBER, str(runs))
    environment = child_environment() | {"PYTHONPATH": str(tree)}
    process = await asyncio.create_subprocess_exec(*command, cwd=tree, env=environment, stdin=PIPE, stdout=PIPE)
    assert process.stdout is not None
    if await process.stdout.readline() != b"ready\n":
        raise RuntimeError(f"{tree} has no benchmarks.engine_time that runs here")
    return process


async def run_of(process: Process) -> list[float]:
    """Have a tree make one run; seconds of its server, and of its worker with children."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"run\n")
    await process.stdin.drain()
    seconds: list[float] = json.loads(await process.stdout.readline())
    return seconds


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=10, help="runs of each tree")
    given = parser.parse_args()
    trees = [tree.resolve() for tree in given.trees]
    processes: list[Process] = []
    try:
        for tree in trees:
            processes.append(await member(tree, given.runs))  # noqa: PERF401  those that started must end
        runs: list[list[list[float]]] = [[] for _ in trees]
        for turn in range(given.runs):
            for place in range(len(trees)):
                index = (place + turn) % len(trees)
                runs[index].append(await run_of(processes[index]))
    finally:
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()
    first = statistics.mean(map(sum, runs[0]))
    for tree, seconds in zip(trees, runs, strict=True):
        mean = statistics.mean(map(sum, seconds))
        server = statistics.mean(run[0] for run in seconds)
        ratios = [sum(run) / sum(other) for run, other in zip(seconds, runs[0], strict=True)]
        spread = f"median of turns {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}"
        print(f"{tree}: {mean:.2f} s (server {server:.2f}); {mean / first:.2f} of the first ({spread})")


if __name__ == "__main__":
    asyncio.run(main())
