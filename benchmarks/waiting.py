"""What waiting costs, of memory and of processor time: `python -m benchmarks.waiting [--runs 40] [--queued 2000]`.

With `--queued N` only this: six runs are at work and N more are in line. Processor time of workers and server with the
line, less that without it; attempts of activities; how long `research list` takes for a page, and for all.

Without it, memory of a workflows worker, by waiting run and by node of a tree.

Runs wait for a person's yes, of three strategies; then trees of nine executors and twenty-four leaves are at work. Each
figure is what the process has more afterwards, divided by the number of runs, or of agents that are at work. What a
process allocates once is there before: the first round is not counted.
"""

import argparse
import asyncio
import re
import resource
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from temporalio.client import Client

from benchmarks.processes import cpu_seconds, megabytes
from contracts.names import POOLS
from contracts.vocabulary import RunStatus
from tests.acceptance.topology import Topology, topology
from tests.fakes import library_work
from tests.fakes.model_work import element
from tests.integration.runs import QUESTION, start, until
from tests.integration.server_homes import running

REQUEST: Final[dict[str, Any]] = {"query": QUESTION, "corpus": "documents"}
TREE_REQUEST: Final = REQUEST | {"strategy": "recursive", "depth": "medium", "gates": {"approve": "none"}}
TREES: Final = 3
CALL_SECONDS: Final = 4.0
AT_WORK: Final = 6
NEVER_SECONDS: Final = 3_000.0
MEASURED_SECONDS: Final = 20.0
SETTLE_SECONDS: Final = 25.0
"""After starts; the server has work with a new run for about 20 s."""
STARTS_AT_ONCE: Final = 20
SAMPLE: Final = 200
"""Runs in line whose attempts are counted."""


def nine_nodes(prompt: str) -> dict[str, Any]:
    """A tree of nine executors on three levels, with twenty-four leaves."""
    labels = re.findall(r"^(src-\S+): ", element(prompt, "sources"), re.MULTILINE)
    goal = element(prompt, "goal").rstrip("?")

    def node(name: str, leaves: int, below: int = 0) -> dict[str, Any]:
        asked = [(labels[part % len(labels)], f"{goal}, {name} {part}?") for part in range(leaves)]
        tasks = [{"source": one, "task_type": "ANSWER_QUESTION", "task_detail": text} for one, text in asked]
        return {"goal": f"{goal}, {name}?", "leaves": tasks, "nodes": [node(f"{name}.{n}", 3) for n in range(below)]}

    parts = [node("part 1", 3, 2), node("part 2", 3, 2), node("part 3", 2, 1)]
    return {"leaves": node("whole", 1)["leaves"], "nodes": parts}


async def by_waiting_run(made: Topology, strategy: str, runs: int) -> float:
    """Megabytes of a run that waits for a yes."""
    client, pid = await made.client(), made.worker_pids()[0]
    request = REQUEST | {"strategy": strategy, "depth": "medium", "gates": {"approve": "plan"}}
    first = await start(client, request)
    await until(first, lambda status: status.waiting is not None)
    before = megabytes(pid)
    handles = [await start(client, request) for _ in range(runs)]
    for handle in handles:
        await until(handle, lambda status: status.waiting is not None)
    after = megabytes(pid)
    for handle in (first, *handles):
        await handle.cancel()
    return (after - before) / runs


async def by_node(made: Topology) -> tuple[float, int]:
    """Megabytes of an executor at work, and how many there were."""
    client, pid = await made.client(), made.worker_pids()[0]
    await (await start(client, TREE_REQUEST)).result()
    made.model.latency, before, most, nodes = CALL_SECONDS, megabytes(pid), 0.0, 0
    handles = [await start(client, TREE_REQUEST) for _ in range(TREES)]
    ended = asyncio.gather(*(handle.result() for handle in handles))
    while not ended.done():
        at_work = await client.count_workflows("WorkflowType = 'research-agent' AND ExecutionStatus = 'Running'")
        most, nodes = max(most, megabytes(pid)), max(nodes, at_work.count)
        await asyncio.sleep(0.5)
    await ended
    return (most - before) / nodes, nodes


async def attempts(client: Client, names: list[str]) -> int:
    """How many attempts of activities these runs have begun."""
    begun = 0
    for name in names:
        described = (await client.get_workflow_handle(name).describe()).raw_description
        begun += described.workflow_execution_info.history_length
        begun += sum(activity.attempt for activity in described.pending_activities)
    return begun


async def cores(made: Topology, seconds: float = MEASURED_SECONDS) -> float:
    """Cores that workers and server use."""
    pids = [*made.worker_pids(), running(made.home).pid]
    before, began = sum(map(cpu_seconds, pids)), time.monotonic()
    await asyncio.sleep(seconds)
    return (sum(map(cpu_seconds, pids)) - before) / (time.monotonic() - began)


def children_seconds() -> float:
    """Processor time of the commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def queue_of(made: Topology, length: int) -> None:
    """Measure a line of this length and print a row."""
    client = await made.client()
    made.model.latency = NEVER_SECONDS
    for _ in range(AT_WORK):
        handle = await start(client, REQUEST)
        await until(handle, lambda status: status.phase is not None)
    await asyncio.sleep(SETTLE_SECONDS)
    without = await cores(made)
    slots = asyncio.Semaphore(STARTS_AT_ONCE)

    async def enter(number: int) -> str:
        async with slots:
            handle = await start(client, REQUEST | {"tenant": f"t-{number % 5}"})
            await until(handle, lambda status: status.status is RunStatus.QUEUED)
            return str(handle.id)

    began = time.monotonic()
    names = await asyncio.gather(*map(enter, range(length)))
    entered = time.monotonic() - began
    await asyncio.sleep(SETTLE_SECONDS)
    step = max(1, length // SAMPLE)
    sample = list(names)[::step]
    before, at = await attempts(client, sample), time.monotonic()
    with_line = await cores(made)
    each = (await attempts(client, sample) - before) / (time.monotonic() - at) / len(sample)
    used, began = children_seconds(), time.monotonic()
    await made.command("list")
    page_seconds = time.monotonic() - began
    page_processor = children_seconds() - used
    began = time.monotonic()
    code, shown, _ = await made.command("list", "--limit", str(length + AT_WORK))
    seconds = time.monotonic() - began
    lines = sum(" queued " in line for line in shown.splitlines())
    print(
        f"| {length} | {entered:.0f} s | {without:.3f} | {with_line:.3f} | {(with_line - without) * 100:.1f} % "
        f"| {each * length:.1f} | {page_seconds:.2f} s, {page_processor:.2f} s of a core "
        f"| {seconds:.2f} s, {lines} shown as queued, exit {code} |",
        flush=True,
    )


async def queued(length: int) -> None:
    """Measure a line of runs, with all pools in one worker process."""
    with tempfile.TemporaryDirectory() as folder:
        async with topology(Path(folder), configuration=f"[runs]\nat_once = {AT_WORK}\n") as made:
            await made.start_workers()
            print("| in line | to enter | cores without | with | more, of one | attempts, events/s | `list` | of all |")
            print("|---|---|---|---|---|---|---|---|")
            await queue_of(made, length)


async def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40, help="runs of each strategy that wait at once")
    parser.add_argument("--queued", type=int, default=0, help="measure a line of so many runs, and nothing else")
    given = parser.parse_args()
    if given.queued:
        await queued(given.queued)
        return
    runs = given.runs
    library_work.tree = nine_nodes
    print("| what | MB |\n|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        async with topology(Path(folder)) as made:
            code, _, errors = await made.command("corpus", "add", str(made.documents))
            if code:
                raise SystemExit(errors)
            await made.start_workers(pools="workflows")
            await made.start_workers(pools=",".join(pool for pool in POOLS if pool != "workflows"))
            for strategy in ("supervisor", "living", "recursive"):
                print(
                    f"| a waiting run of `{strategy}` | {await by_waiting_run(made, strategy, runs):.2f} |", flush=True
                )
            each, nodes = await by_node(made)
            print(f"| an executor at work, of {nodes} in {TREES} runs | {each:.2f} |")


if __name__ == "__main__":
    asyncio.run(main())
