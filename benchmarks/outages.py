"""What an outage costs: `python -m benchmarks.outages [--rounds 3] [--only redis|kills]`.

*Redis*: one worker process with all pools does a whole run over the web (eighty pages, model calls of a second), with a
Redis that is there, that is away from the beginning, that is killed in the middle, and that is full from the middle on.
*Kills*: of two worker processes, the one that works on a model call and decides for the run is killed (SIGKILL). Shown
is how long it takes until another one makes the call again; and, when the run is cancelled right after the kill, until
it is over, with the model calls that began after the cancel. The Temporal server is the embedded one (one SQLite file,
WAL, synchronous=normal); everything shares the cores of this machine.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.web_runs import HOSTS, PAGES, WARM, request
from client.handle import ResearchClient
from contracts.vocabulary import Outcome
from tests.acceptance.cluster import deciding, holders
from tests.acceptance.web_deployment import answered, web_deployment
from tests.fakes.many_pages import QUESTION, pages
from tests.fakes.messages_api import MessagesApi
from tests.fakes.valkey import ValkeyServer, running_valkey
from tests.fakes.web_world import Latencies, WebWorld
from tests.integration.runs import start
from workers.process_exit import leave, run_to_end

CALL_SECONDS, WEB_SECONDS = 1.0, 0.4
HELD_SECONDS: Final = 6.0
"""A model call that is going on when its worker is killed."""
MIDDLE: Final = 3
"""Model calls after which a fault strikes."""

Fault = Callable[[ValkeyServer], Awaitable[None]]


async def _until(reached: Callable[[], bool]) -> None:
    """What other processes do has no event to wait for."""
    while not reached():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def killed(redis: ValkeyServer) -> None:
    """Gone, and not back."""
    await asyncio.to_thread(redis.kill)


async def full(redis: ValkeyServer) -> None:
    """It answers, and takes nothing more."""
    await redis.tell("CONFIG", "SET", "maxmemory-policy", "noeviction")
    await redis.tell("SET", "theirs", b"x" * 2_000_000)
    await redis.tell("CONFIG", "SET", "maxmemory", "1mb")


async def wall(folder: Path, fault: Fault | None, *, at_once: bool = False) -> float:
    """Seconds of one run. A fault strikes before the run, or after a few of its model calls."""
    world = WebWorld([*pages(PAGES, hosts=HOSTS), WARM], latencies=Latencies(WEB_SECONDS))
    model = MessagesApi("gaps", latency=CALL_SECONDS)
    with ExitStack() as stack:
        redis = stack.enter_context(running_valkey(folder))
        async with web_deployment(folder / "home", world, model, temporal="file", redis_url=redis.url) as made:
            await made.start_workers()
            client = await made.client()
            small = {"max_iterations": 1, "max_sub_queries": 1, "max_sources": 1}
            await (await start(client, request("Which lanterns hang in Orvik?") | {"limits": small})).result()
            before = len(model.calls)
            if fault is not None and at_once:
                await fault(redis)
            began = time.monotonic()
            handle = await start(client, request(QUESTION))
            if fault is not None and not at_once:
                await _until(lambda: len(model.calls) >= before + MIDDLE)
                await fault(redis)
            result = await handle.result()
            seconds = time.monotonic() - began
            assert result.outcome is Outcome.COMPLETED, result.outcome
            assert max(answered(model.calls).values()) == 1, "a call was paid twice"
    return seconds


async def kill(folder: Path, *, cancel: bool) -> tuple[float, int]:
    """Seconds from the kill to the repeated call, or to the end of the cancelled run; calls begun after the cancel."""
    world, model = WebWorld([*pages(PAGES, hosts=HOSTS), WARM]), MessagesApi("gaps", latency=HELD_SECONDS)
    async with web_deployment(folder, world, model, temporal="file") as made:
        workers = await made.start_workers(2)
        client = await made.client()
        handle = await ResearchClient(client).start(request(QUESTION, iterations=1), "r-killed")
        await _until(lambda: bool(model.calls))
        await asyncio.sleep(1.0)
        calling = (await holders(client, handle.research_id))["models"]
        victim = await deciding(client, handle.research_id) if cancel else calling
        next(worker for worker in workers if worker.running.pid == victim).kill()
        began, calls = time.monotonic(), len(model.calls)
        if cancel:
            await handle.cancel()
            result = await handle.result()
            seconds = time.monotonic() - began
            assert result.outcome is Outcome.CANCELLED, result.outcome
            await asyncio.sleep(2.0)
            return seconds, len(model.calls) - calls
        await _until(lambda: len(model.calls) > calls)
        return time.monotonic() - began, 0


async def measure_redis(rounds: int) -> None:
    """The walls, round by round in turns, so that what else the machine does meets all of them."""
    ways: dict[str, tuple[Fault | None, bool]] = {
        "there": (None, False),
        "away from the beginning": (killed, True),
        "killed in the middle": (killed, False),
        "full from the middle on": (full, False),
    }
    walls: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, (fault, at_once) in ways.items():
            with tempfile.TemporaryDirectory() as folder:
                walls[way].append(await wall(Path(folder), fault, at_once=at_once))
                print(f"Redis {way}: {walls[way][-1]:.1f} s", flush=True)
    there = median(walls["there"])
    for way, seconds in walls.items():
        print(f"Redis {way}: median {median(seconds):.1f} s, {median(seconds) / there:.2f} times", flush=True)


async def measure_kills(rounds: int) -> None:
    """Both sorts of kills, in turns."""
    found: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(rounds):
        for cancel, seconds in found.items():
            with tempfile.TemporaryDirectory() as folder:
                took, begun = await kill(Path(folder), cancel=cancel)
            seconds.append(took)
            what = f"cancelled run over, {begun} calls begun since" if cancel else "call made again"
            print(f"worker killed: {what}: {took:.1f} s", flush=True)
    for cancel, seconds in found.items():
        what = "cancelled run over" if cancel else "call made again"
        print(f"worker killed: {what}: median {median(seconds):.1f} s, at most {max(seconds):.1f} s", flush=True)


async def main() -> None:
    """What is asked for."""
    parser = argparse.ArgumentParser(description="What an outage costs.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("redis", "kills"))
    given = parser.parse_args()
    if given.only != "kills":
        await measure_redis(given.rounds)
    if given.only != "redis":
        await measure_kills(given.rounds)


if __name__ == "__main__":
    run_to_end(main())
    leave(0)
