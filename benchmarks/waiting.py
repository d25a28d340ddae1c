"""Memory of a workflows worker, by waiting run and by node of a tree: `python -m benchmarks.waiting [--runs 40]`.

Runs wait for a person's yes, of three strategies; then trees of nine executors and twenty-four leaves are at work. Each
figure is what the process has more afterwards, divided by the number of runs, or of agents that are at work. What a
process allocates once is there before: the first round is not counted.
"""

import argparse
import asyncio
import re
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.processes import megabytes
from contracts.names import POOLS
from tests.acceptance.topology import Topology, topology
from tests.fakes import library_work
from tests.fakes.model_work import element
from tests.integration.runs import QUESTION, start, until

REQUEST: Final[dict[str, Any]] = {"query": QUESTION, "corpus": "documents"}
TREE_REQUEST: Final = REQUEST | {"strategy": "recursive", "depth": "medium", "gates": {"approve": "none"}}
TREES: Final = 3
CALL_SECONDS: Final = 4.0


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


async def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40, help="runs of each strategy that wait at once")
    runs = parser.parse_args().runs
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
