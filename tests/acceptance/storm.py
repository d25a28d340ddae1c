"""A storm of calls from several worker processes against a service that can do less, and what its journal shows.

`python -m tests.acceptance.storm STORE URL FIRST COUNT SLOTS` is one worker process. It does what the engine does: a
call that is told to wait frees its slot, comes back after that time (at least a second), and is never given up.
"""

import asyncio
import json
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import httpx2

from providers.errors import RateLimited
from providers.interfaces import SharedStore
from providers.retry_after import retry_after_seconds
from providers.shared.limiter import SharedLimiter
from providers.shared.stores.redis_store import RedisSharedStore
from providers.shared.stores.sqlite_store import SqliteSharedStore
from tests.fakes.throttled_api import Served, ThrottledApi

ROOT = Path(__file__).resolve().parents[2]
SERVICE = "throttled"
READY = b"ready\n"
"""What a worker says when it could begin; it does when its input ends, so that all begin at once."""
ENGINE_WAITS_AT_LEAST = 1.0
SAME_PAUSE_SECONDS = 1.5
"""Refusals so near each other belong to one pause: they are of requests that were made before it was known."""

Told = dict[str, list[float]]
"""Call → when its worker knew that everybody knows, for each of its refusals in order. Seconds of the wall clock."""


@dataclass(frozen=True)
class Storm:
    """What the service and the workers saw."""

    needed: int
    requests: int
    answered: int
    refused: int
    too_early: tuple[float, ...]
    """Seconds after a refusal at which requests were allowed although it had asked for more, and that was known."""
    probes: tuple[float, ...]
    """Seconds from the last refusal of a pause to the first request after it."""
    held_up: float
    """Most seconds from a refusal to when it was known: how slow the machine was."""
    seconds: float
    share: float
    """Of what the service could have done in that time."""

    def __str__(self) -> str:
        latest = f"{max(self.probes):.2f} s" if self.probes else "none"
        return (
            f"{self.requests} requests for {self.needed} calls ({self.requests / self.needed:.3f}), "
            f"{self.refused} refused in {len(self.probes)} pauses, first probe at the latest after {latest}, "
            f"{len(self.too_early)} too early, known after {self.held_up:.2f} s, {self.seconds:.1f} s, {self.share:.0%} of the capacity"
        )


async def storm(api: ThrottledApi, store: str, *, calls: int, processes: int = 4, slots: int = 10) -> Storm:
    """Let worker processes make so many calls. `store` is a file or the URL of a Redis."""
    workers = []
    for index in range(processes):
        count = calls // processes + (index < calls % processes)
        arguments = (store, api.base_url, str(index), str(count), str(slots))
        command = (sys.executable, "-m", "tests.acceptance.storm", *arguments)
        pipe = asyncio.subprocess.PIPE
        workers.append(await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=pipe, stdout=pipe))
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert await worker.stdout.readline() == READY
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.close()
        said = await asyncio.gather(*(worker.stdout.read() for worker in workers if worker.stdout is not None))
        codes = await asyncio.gather(*(worker.wait() for worker in workers))
    finally:
        for worker in workers:
            if worker.returncode is None:
                worker.kill()
                await worker.wait()
    assert not any(codes), "a worker failed"
    told: Told = {}
    for text in said:
        told |= json.loads(text)
    return judged(api, calls, told)


def assert_polite(seen: Storm, retry_after: float) -> None:
    """What has to be true of every storm."""
    assert seen.answered == seen.needed, seen
    assert seen.refused > 0, f"the service was never asked too much: {seen}"
    assert seen.requests <= 1.2 * seen.needed, seen
    assert not seen.too_early, seen
    assert max(seen.probes) <= retry_after + max(0.1 * retry_after, 1.1) + seen.held_up, seen


def judged(api: ThrottledApi, calls: int, told: Told) -> Storm:
    """What the journals show."""
    journal = sorted(api.journal, key=lambda served: served.began)
    refusals = [served for served in journal if served.status == 429]
    waiting = {call: iter(times) for call, times in told.items()}
    known = [(served.ended, next(waiting[served.call])) for served in refusals]
    seconds = max(served.ended for served in journal) - journal[0].began
    return Storm(
        needed=calls,
        requests=len(journal),
        answered=len({served.call for served in journal if served.status == 200}),
        refused=len(refusals),
        too_early=_too_early(journal, known, api.retry_after_seconds),
        probes=_probes(journal, sorted(known)),
        held_up=max((when - ended for ended, when in known), default=0.0),
        seconds=seconds,
        share=calls / (seconds * api.calls_per_second),
    )


def _too_early(journal: list[Served], known: list[tuple[float, float]], retry_after: float) -> tuple[float, ...]:
    return tuple(
        served.granted - ended
        for ended, when in known
        for served in journal
        if when < served.granted < ended + retry_after
    )


def _probes(journal: list[Served], known: list[tuple[float, float]]) -> tuple[float, ...]:
    probes, everybody_knows = [], 0.0
    for (ended, when), (after, _) in zip(known, [*known[1:], (math.inf, math.inf)], strict=True):
        everybody_knows = max(everybody_knows, when)
        if after - ended > SAME_PAUSE_SECONDS:
            begins = [served.began for served in journal if served.granted > everybody_knows]
            probes += [begins[0] - ended] if begins else []
    return tuple(probes)


def opened(store: str) -> SharedStore:
    """A store by its file or URL."""
    return RedisSharedStore(store) if store.startswith("redis://") else SqliteSharedStore(Path(store), durable=False)


async def work(store: str, url: str, index: int, count: int, slots: int) -> None:
    """One worker process: all its calls wait in line for its slots."""
    shared = opened(store)
    limiter = SharedLimiter(shared, {})
    told: Told = {}
    free = asyncio.Semaphore(slots)
    limits = httpx2.Limits(max_connections=slots, max_keepalive_connections=slots)
    async with httpx2.AsyncClient(base_url=url, limits=limits, timeout=60.0, trust_env=False) as client:

        async def attempt(name: str) -> None:
            async with limiter.permit(SERVICE, name) as permit:
                response = await client.get(f"/{name}", headers={"x-granted": repr(permit.granted_at)})
                if response.status_code == 429:
                    raise RateLimited("refused", retry_after=retry_after_seconds(response.headers.multi_items()))
                response.raise_for_status()

        async def call(name: str) -> None:
            while True:
                try:
                    async with free:
                        await attempt(name)
                except RateLimited as wait:
                    if wait.__cause__ is not None:  # the service's own refusal, which all workers know by now
                        told.setdefault(name, []).append(time.time())
                    await asyncio.sleep(max(ENGINE_WAITS_AT_LEAST, wait.retry_after or 0.0))
                else:
                    return

        sys.stdout.buffer.write(READY)
        sys.stdout.buffer.flush()
        await asyncio.to_thread(sys.stdin.read)
        await asyncio.gather(*(call(f"call-{index}-{number}") for number in range(count)))
    await limiter.close()
    await shared.close()
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    place, address, *numbers = sys.argv[1:]
    asyncio.run(work(place, address, *(int(number) for number in numbers)))
