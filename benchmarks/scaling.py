"""What more worker processes bring: `python -m benchmarks.scaling [--rounds 3] [--store Valkey]`.

Eight workflows ask for 160 reflections, all at once, of a model that takes a second for each; workers are real
processes of the models pool with eight slots each, first one, then four. A reflection is the activity that runs have:
through prompt, limiter, journal of paid calls and the model's client. The workflows only ask, so that slots alone
decide what is done at once. The Temporal server is the development server with its store in memory; what workers share
is one SQLite file, or Valkey. Calls that are to begin with (connections, code that is loaded once) are made before the
clock runs.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
import uuid
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from benchmarks.fan_out import QUEUE, FanOut
from benchmarks.processes import cpu_seconds, stolen_seconds
from benchmarks.web_deployment import WebDeployment, answered, web_deployment
from contracts import names
from contracts.supervisor_roles import SUPERVISOR, ReflectInput
from contracts.vocabulary import EngineKind, Phase
from tests.fakes.messages_api import Call, MessagesApi
from tests.fakes.valkey import running_valkey
from tests.fakes.web_world import WebWorld

PROCESSES: Final = (1, 4)
SLOTS: Final = 8
WORKFLOWS: Final = 8
ACTIVITIES: Final = 160
CALL_SECONDS: Final = 1.0
WARM_SECONDS: Final = 0.2
LEAST_RATIO: Final = 3.6
"""What four processes must bring (reliability P8)."""


def reflections(count: int) -> list[dict[str, Any]]:
    """Arguments of as many different calls."""
    research_id = f"r-{uuid.uuid4().hex[:8]}"
    return [
        ReflectInput(
            research_id=research_id,
            operation=f"think/{number}",
            engine=EngineKind.MODEL,
            date="2026-11-22",
            query="What is to be measured?",
            phase=Phase.PLANNING,
            prompt=f"This is thought {number} of {research_id}.",
            gate_valid=True,
            gate_score=8.0,
        ).model_dump(mode="json")
        for number in range(count)
    ]


async def asked(client: Client, count: int) -> float:
    """Seconds until so many calls are done, from all workflows at once."""
    each = count // WORKFLOWS
    began = time.monotonic()
    await asyncio.gather(
        *(
            client.execute_workflow(
                FanOut.run,
                args=[SUPERVISOR.activity, names.MODELS_QUEUE, reflections(each)],
                id=f"fan-out-{uuid.uuid4().hex[:8]}",
                task_queue=QUEUE,
            )
            for _ in range(WORKFLOWS)
        )
    )
    return time.monotonic() - began


def most_at_once(calls: list[Call]) -> int:
    """How many calls were under way at the same time."""
    changes = sorted([(call.started, 1) for call in calls] + [(call.ended or call.started, -1) for call in calls])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


async def measured(made: WebDeployment, model: MessagesApi, processes: int, rounds: int) -> list[float]:
    """Seconds of each round with so many processes."""
    workers = await made.start_workers(processes, pools=("models",))
    client = await made.client()
    model.latency = WARM_SECONDS
    await asked(client, 2 * processes * SLOTS)
    model.latency, seconds = CALL_SECONDS, []
    for _ in range(rounds):
        model.calls.clear()
        model.requests.clear()
        before = [cpu_seconds(worker.running.pid) for worker in workers]
        stolen = stolen_seconds()
        seconds.append(await asked(client, ACTIVITIES))
        stolen = stolen_seconds() - stolen
        cpu = [cpu_seconds(worker.running.pid) - was for worker, was in zip(workers, before, strict=True)]
        done = answered(model.calls)
        assert len(done) == sum(done.values()) == ACTIVITIES, "a call was lost or made twice"
        print(
            f"{processes} × {SLOTS} slots: {seconds[-1]:.2f} s, at most {most_at_once(model.calls)} calls at once, "
            f"worker CPU {sum(cpu):.1f} s, taken away by the host {stolen:.1f} s",
            flush=True,
        )
    await made.end_workers()
    return seconds


async def compared(name: str, folder: Path, rounds: int, redis_url: str | None) -> float:
    """How much more four processes do than one. Prints a line of the table.

    By the best round of each: whatever else the machine does only adds time, and more of it where two cores are busy.
    """
    model = MessagesApi()
    async with web_deployment(folder, WebWorld([]), model, temporal="memory", redis_url=redis_url) as made:
        made.configure(slots={"models": SLOTS})
        client = await made.client()
        async with Worker(client, task_queue=QUEUE, workflows=[FanOut], workflow_runner=UnsandboxedWorkflowRunner()):
            seconds = {count: await measured(made, model, count, rounds) for count in PROCESSES}
    one, four = (min(seconds[count]) for count in PROCESSES)
    middle = [statistics.median(seconds[count]) for count in PROCESSES]
    spread = [f"{min(each):.2f} to {max(each):.2f}" for each in seconds.values()]
    ideal = [ACTIVITIES / (SLOTS * count) * CALL_SECONDS for count in PROCESSES]
    print(
        f"{name}: one process {one:.2f} s ({spread[0]}; ideal {ideal[0]:.0f}), "
        f"four {four:.2f} s ({spread[1]}; ideal {ideal[1]:.0f}), ratio {one / four:.2f}, "
        f"of the medians {middle[0] / middle[1]:.2f}",
        flush=True,
    )
    return one / four


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", choices=("SQLite", "Valkey"), help="what workers share; both without it")
    given = parser.parse_args()
    rounds: int = given.rounds
    chosen: list[str] = [given.store] if given.store else ["SQLite", "Valkey"]
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M}, {ACTIVITIES} calls of {CALL_SECONDS:.0f} s from {WORKFLOWS} workflows")
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, ratios = Path(name), []
        for store in chosen:
            url = stack.enter_context(running_valkey(folder)).url if store == "Valkey" else None
            ratios.append(await compared(store, folder / store, rounds, url))
    if min(ratios) < LEAST_RATIO:
        raise SystemExit(f"four processes brought {min(ratios):.2f} times what one does, not {LEAST_RATIO}")


if __name__ == "__main__":
    asyncio.run(main())
