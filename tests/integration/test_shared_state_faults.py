"""A real Valkey that dies, forgets, hangs, turns into a replica or is full while workers use it: they finish."""

import asyncio
import contextlib
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from providers.errors import CallInFlight, RateLimited
from providers.shared.cache import SEARCH, Cache
from providers.shared.limiter import SharedLimiter
from providers.shared.paid_calls import SharedCallStore
from providers.shared.stores.fallback_store import FallbackStore, ReconnectBackoff
from providers.shared.stores.redis_store import RedisSharedStore
from providers.shared.stores.sqlite_store import SqliteSharedStore
from tests.fakes.valkey import ValkeyServer, free_port, running_valkey

pytestmark = pytest.mark.integration

TRY_AGAIN_SECONDS = 0.3
ONE_STEP_SECONDS = 12.0
"""Far below what a step takes if each of its questions waits a second for a server that hangs."""
SOON = 30.0
PAUSE_SECONDS = 300.0
"""Longer than any of these tests may last."""


class Texts:
    """Texts as JSON."""

    async def encode(self, value: str) -> str:
        return json.dumps(value)

    async def decode(self, text: str) -> str:
        return str(json.loads(text))


class Worker:
    """A worker on a machine of its own: what it pays for is counted."""

    def __init__(self, url: str, home: Path) -> None:
        local = SqliteSharedStore(home / "shared.sqlite3", durable=True)
        self.store = FallbackStore(RedisSharedStore(url), local, ReconnectBackoff(TRY_AGAIN_SECONDS))
        self.calls = SharedCallStore(self.store)
        self.cache = Cache(self.store)
        self.paid: Counter[str] = Counter()
        self.searched: Counter[str] = Counter()

    async def answer(self, key: str, meanwhile: Callable[[], Awaitable[None]] | None = None) -> str:
        """A paid call through the journal; `meanwhile` happens while the service works on it."""
        known = await self.calls.begin(key, "r-1", 10.0)
        if known is not None:
            return known
        self.paid[key] += 1
        if meanwhile is not None:
            await meanwhile()
        await self.calls.renew(key, 10.0)
        await self.calls.finish(key, f"answer of {key}")
        return f"answer of {key}"

    async def search(self, words: str) -> str:
        """A search through the cache."""

        async def make() -> str:
            self.searched[words] += 1
            return f"hits of {words}"

        return (await self.cache.get_or_make(SEARCH, "t", words, make, Texts())).value

    async def count(self) -> None:
        """A change as limits make them: again until it succeeds."""
        while True:
            held = (await self.store.get("limits/count")).value
            if await self.store.swap("limits/count", held, b"%d" % (int(held or 0) + 1), 60.0):
                return

    async def step(self, number: int) -> None:
        """A call, the same call again as a retry would make it, a search and a limit, in bounded time."""
        async with asyncio.timeout(ONE_STEP_SECONDS):
            for _ in range(2):
                assert await self.answer(f"call-{number}") == f"answer of call-{number}"
            assert await self.search(f"words {number}") == f"hits of words {number}"
            await self.count()


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    """A server of this test alone: it will not be the same afterwards."""
    with running_valkey(tmp_path) as server:
        yield server


@contextlib.asynccontextmanager
async def working(valkey: ValkeyServer, home: Path) -> AsyncIterator[Worker]:
    """A worker, closed at the end even if its server is in trouble."""
    worker = Worker(valkey.url, home)
    try:
        yield worker
    finally:
        await worker.store.close()


async def kill(valkey: ValkeyServer) -> None:
    await asyncio.to_thread(valkey.kill)


async def start(valkey: ValkeyServer) -> None:
    await asyncio.to_thread(valkey.start)


async def flush(valkey: ValkeyServer) -> None:
    await asyncio.to_thread(valkey.flush)


async def pause(valkey: ValkeyServer) -> None:
    valkey.pause()


async def resume(valkey: ValkeyServer) -> None:
    valkey.resume()


async def become_replica(valkey: ValkeyServer) -> None:
    await valkey.tell("REPLICAOF", "127.0.0.1", free_port())


async def become_primary(valkey: ValkeyServer) -> None:
    await valkey.tell("REPLICAOF", "NO", "ONE")


async def fill(valkey: ValkeyServer) -> None:
    await valkey.tell("CONFIG", "SET", "maxmemory-policy", "noeviction")
    await valkey.tell("SET", "theirs", b"x" * 2_000_000)
    await valkey.tell("CONFIG", "SET", "maxmemory", "1mb")


async def make_room(valkey: ValkeyServer) -> None:
    await valkey.tell("CONFIG", "SET", "maxmemory", "0")


async def nothing(valkey: ValkeyServer) -> None:
    pass


Act = Callable[[ValkeyServer], Awaitable[None]]
FAULTS: dict[str, tuple[Act, Act, bool]] = {
    "killed": (kill, start, True),
    "flushed": (flush, nothing, False),
    "paused": (pause, resume, True),
    "read-only": (become_replica, become_primary, True),
    "full": (fill, make_room, True),
}
"""Name → what happens, what ends it, and whether the server cannot be used meanwhile."""

with_faults = pytest.mark.parametrize("fault", FAULTS)


async def until_recovered(worker: Worker) -> None:
    """Use the store as a run does until it is shared again."""
    async with asyncio.timeout(SOON):
        while worker.store.degraded:
            await worker.store.get("anything")
            await asyncio.sleep(0.02)


@with_faults
async def test_a_run_goes_on_and_pays_nothing_twice(valkey: ValkeyServer, tmp_path: Path, fault: str) -> None:
    """Steps before, during and after the fault all finish; each call of a worker is paid once, in order (F16, invariant 12)."""
    strike, heal, unusable = FAULTS[fault]
    async with working(valkey, tmp_path / "one") as worker:
        for number in range(5):
            await worker.step(number)
        await strike(valkey)
        for number in range(12):
            await worker.step(number)
        assert worker.store.degraded == unusable
        await heal(valkey)
        await until_recovered(worker)
        for number in range(15):
            await worker.step(number)
        assert worker.paid == Counter({f"call-{number}": 1 for number in range(15)})
        assert worker.searched == Counter({f"words {number}": 1 for number in range(15)})


@with_faults
async def test_a_call_under_way_is_journalled(valkey: ValkeyServer, tmp_path: Path, fault: str) -> None:
    """The fault comes while a call is made: its answer is kept, found meanwhile, and found by others afterwards."""
    strike, heal, _ = FAULTS[fault]
    async with working(valkey, tmp_path / "one") as worker, working(valkey, tmp_path / "other") as other:
        async with asyncio.timeout(ONE_STEP_SECONDS):
            await worker.answer("call", lambda: strike(valkey))
            assert await worker.answer("call") == "answer of call"
        await heal(valkey)
        await until_recovered(worker)
        assert await worker.answer("call") == "answer of call"
        assert await other.answer("call") == "answer of call"
        assert (worker.paid, other.paid) == (Counter({"call": 1}), Counter())


@with_faults
async def test_workers_of_one_machine_stay_together(valkey: ValkeyServer, tmp_path: Path, fault: str) -> None:
    """While the server is away, processes with the same home still share calls, searches and limits."""
    strike, heal, _ = FAULTS[fault]
    async with working(valkey, tmp_path / "one") as worker, working(valkey, tmp_path / "one") as other:
        await strike(valkey)
        for number in range(3):
            await worker.step(number)
            await other.step(number)
        assert not other.paid
        assert not other.searched
        await heal(valkey)


@with_faults
async def test_a_worker_that_starts_in_the_middle_of_it_works(valkey: ValkeyServer, tmp_path: Path, fault: str) -> None:
    """A worker that was killed and started again while the server is in trouble knows what it had paid for."""
    strike, heal, _ = FAULTS[fault]
    async with working(valkey, tmp_path / "one") as worker:
        await worker.step(0)
        await strike(valkey)
        await worker.step(1)
    async with working(valkey, tmp_path / "one") as again:
        for number in range(3):
            await again.step(number)
        assert again.paid == Counter({"call-2": 1})
    await heal(valkey)


async def calls_that_go(limiters: list[SharedLimiter], when: str) -> int:
    """How many of many new calls are let through."""
    granted = 0
    for number, limiter in enumerate(limiters * 20):
        with contextlib.suppress(RateLimited):
            async with limiter.permit("model/m", f"{when}-{number}"):
                granted += 1
    return granted


@with_faults
async def test_nobody_calls_in_a_pause(valkey: ValkeyServer, tmp_path: Path, fault: str) -> None:
    """A service that refused before the fault is left alone during and after it by all who know of that (F7, F16)."""
    strike, heal, _ = FAULTS[fault]
    async with working(valkey, tmp_path / "one") as one, working(valkey, tmp_path / "other") as other:
        limiters = [SharedLimiter(worker.store, {}) for worker in (one, other)]
        with pytest.raises(RateLimited):
            async with limiters[0].permit("model/m", "refused"):
                raise RateLimited("429", retry_after=PAUSE_SECONDS)
        assert await calls_that_go(limiters, "before") == 0
        await strike(valkey)
        assert await calls_that_go(limiters, "during") == 0
        await heal(valkey)
        await asyncio.gather(until_recovered(one), until_recovered(other))
        assert await calls_that_go(limiters, "after") == 0


async def test_a_server_that_hangs_costs_one_answers_time_now_and_then(valkey: ValkeyServer, tmp_path: Path) -> None:
    """However many wait at once, all go on after about a second, and nobody waits for later trials."""
    async with working(valkey, tmp_path / "one") as worker:
        await worker.step(0)
        valkey.pause()
        async with asyncio.timeout(ONE_STEP_SECONDS):
            await asyncio.gather(*(worker.store.get(str(number)) for number in range(200)))
        async with asyncio.timeout(ONE_STEP_SECONDS):
            for number in range(2_000):
                await worker.store.get(str(number))
        valkey.resume()
        await until_recovered(worker)


async def test_a_server_that_comes_and_goes(valkey: ValkeyServer, tmp_path: Path) -> None:
    """Faults of all kinds, one after another and without a pause, while two workers of two machines run."""
    stop = asyncio.Event()

    async def run(worker: Worker) -> int:
        for number in itertools.count():
            with contextlib.suppress(CallInFlight):  # the other one has it: a retry comes later
                await worker.step(number)
            if stop.is_set():
                return number
        raise AssertionError

    async with working(valkey, tmp_path / "one") as one, working(valkey, tmp_path / "other") as other:
        running = [asyncio.create_task(run(worker)) for worker in (one, other)]
        for strike, heal, _ in FAULTS.values():
            await strike(valkey)
            await asyncio.sleep(TRY_AGAIN_SECONDS)
            await heal(valkey)
            await asyncio.gather(until_recovered(one), until_recovered(other))
        stop.set()
        async with asyncio.timeout(SOON):
            assert min(await asyncio.gather(*running)) > 5
        assert set(one.paid.values()) == set(other.paid.values()) == {1}
