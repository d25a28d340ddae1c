"""The cache of searches and pages: fresh for a while, made once at a time, apart by tenant."""

import asyncio
import json
import pickle
from dataclasses import dataclass, field

import pytest

from providers.errors import RateLimited, SharedStateUnavailable, StorageFull, Unavailable
from providers.shared import cache as cache_module
from providers.shared.cache import NEWS_SEARCH, PAGE, SEARCH, Cache, Cached, CacheKind, RecentTexts
from providers.shared.stores.memory_store import MemorySharedStore
from tests.fakes.shared_stores import BrokenStore, away
from tests.unit.providers.shared.conftest import EVERYWHERE, Stores

SOON = 20.0
everywhere = pytest.mark.parametrize("kind", EVERYWHERE)


class Numbers:
    """Numbers as JSON."""

    async def encode(self, value: int) -> str:
        return json.dumps(value)

    async def decode(self, text: str) -> int:
        value = json.loads(text)
        if not isinstance(value, int):
            raise ValueError("no number")
        return value


@dataclass
class Service:
    """An outside service: counts how often it is asked, and answers when it is let."""

    calls: int = 0
    errors: list[Exception] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def ask(self) -> int:
        self.calls += 1
        number = self.calls
        self.asked.set()
        await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        return number


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


async def ask(
    cache: Cache, service: Service, request: str = "q", tenant: str = "t", of: CacheKind = SEARCH
) -> Cached[int]:
    """One request through the cache."""
    return await cache.get_or_make(of, tenant, request, service.ask, Numbers())


def keys_of(store: MemorySharedStore, prefix: str) -> list[str]:
    """Live keys with a prefix."""
    return [key for key in store._entries if key.startswith(prefix)]


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for another worker looks again sooner than in earnest."""
    monkeypatch.setattr(cache_module, "FIRST_POLL_SECONDS", 0.002)
    monkeypatch.setattr(cache_module, "LAST_POLL_SECONDS", 0.01)


@everywhere
async def test_identical_searches_at_once_are_one_call(stores: Stores) -> None:
    """Fifty searches of the same words by two workers ask the provider once, and one of them alone pays (S0-177)."""
    service, workers = Service(), [Cache(stores.open()), Cache(stores.open())]
    service.gate.clear()
    tasks = [asyncio.create_task(ask(workers[number % 2], service)) for number in range(50)]
    async with asyncio.timeout(SOON):
        await service.asked.wait()
        service.gate.set()
        found = await asyncio.gather(*tasks)
    assert service.calls == 1
    assert [each.value for each in found] == [1] * 50
    assert sum(not each.hit for each in found) == 1


@everywhere
async def test_a_fresh_value_is_not_asked_for_again(stores: Stores) -> None:
    """The same worker and any other get what was made, marked as a hit."""
    service, one, other = Service(), Cache(stores.open()), Cache(stores.open())
    assert await ask(one, service) == Cached(1, hit=False)
    assert await ask(one, service) == Cached(1, hit=True)
    assert await ask(other, service) == Cached(1, hit=True)
    assert service.calls == 1


async def test_how_long_each_kind_is_fresh() -> None:
    """A search an hour, one of news a quarter of it, a page a day; then the service is asked again, by all workers."""
    assert [kind.fresh_seconds for kind in (SEARCH, NEWS_SEARCH, PAGE)] == [3_600, 900, 86_400]
    clock = Clock()
    store = MemorySharedStore(clock)
    one, other = (Cache(store, RecentTexts(clock=clock)) for _ in range(2))
    service = Service()
    await ask(one, service)
    clock.now += 3_599
    assert (await ask(other, service)).hit
    clock.now += 1
    assert await ask(other, service) == Cached(2, hit=False)
    assert await ask(one, service) == Cached(2, hit=True)


async def test_tenants_and_kinds_and_requests_are_apart() -> None:
    """Nothing one tenant asked is seen by another, in the process or in the store; keys hold no text of a user."""
    store, service = MemorySharedStore(), Service()
    cache = Cache(store)
    asked = [
        ("secret words", "a", SEARCH),
        ("secret words", "b", SEARCH),
        ("secret words", "a", PAGE),
        ("other", "a", SEARCH),
    ]
    asked.append(("secret words", "a/search", SEARCH))
    for request, tenant, kind in asked:
        assert not (await ask(cache, service, request, tenant, kind)).hit
    assert service.calls == len(asked) == len(keys_of(store, "cache/"))
    assert not any("secret" in key for key in store._entries)
    assert await store.remove("cache/a/") == 3


@everywhere
async def test_one_who_gives_up_does_not_take_the_others_along(stores: Stores) -> None:
    """Cancelling one waiter, be it the first, leaves the call to the rest; somebody still learns that it was paid."""
    service, cache = Service(), Cache(stores.open())
    service.gate.clear()
    tasks = [asyncio.create_task(ask(cache, service)) for _ in range(3)]
    async with asyncio.timeout(SOON):
        await service.asked.wait()
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        service.gate.set()
        found = await asyncio.gather(*tasks[1:])
    assert service.calls == 1
    assert sorted(each.hit for each in found) == [False, True]


@everywhere
async def test_when_all_give_up_the_call_ends_and_is_free(stores: Stores) -> None:
    """Cancelled by its last waiter, a call is ended and its lease given back before the waiter goes."""
    service, cache, other = Service(), Cache(stores.open()), Cache(stores.open())
    service.gate.clear()
    task = asyncio.create_task(ask(cache, service))
    async with asyncio.timeout(SOON):
        await service.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        service.gate.set()
        assert await ask(other, service) == Cached(2, hit=False)


@everywhere
async def test_a_failure_is_raised_to_all_and_never_kept(stores: Stores) -> None:
    """Whoever waits gets the error; the next to ask, in any worker, makes the call again at once."""
    service, cache, other = (
        Service(errors=[RateLimited("wait", retry_after=7.0)]),
        Cache(stores.open()),
        Cache(stores.open()),
    )
    service.gate.clear()
    tasks = [asyncio.create_task(ask(cache, service)) for _ in range(3)]
    async with asyncio.timeout(SOON):
        await service.asked.wait()
        service.gate.set()
        failed = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(each) for each in failed] == [RateLimited] * 3
        assert await ask(other, service) == Cached(2, hit=False)


async def test_a_worker_that_waits_takes_over_from_one_that_failed() -> None:
    """The other worker's failure is its own: who waited for it makes the call itself."""
    store, service = MemorySharedStore(), Service(errors=[Unavailable("down")])
    service.gate.clear()
    first = asyncio.create_task(ask(Cache(store), service))
    async with asyncio.timeout(SOON):
        await service.asked.wait()
        second = asyncio.create_task(ask(Cache(store), service))
        await asyncio.sleep(0)
        service.gate.set()
        with pytest.raises(Unavailable):
            await first
        assert await second == Cached(2, hit=False)


async def test_a_worker_that_vanished_blocks_no_longer_than_its_lease() -> None:
    """A lease whose owner was killed runs out by the store's clock, and then somebody else makes the call."""
    clock, service = Clock(), Service()
    store = MemorySharedStore(clock)
    service.gate.clear()
    dying = asyncio.create_task(ask(Cache(store, renew_seconds=600.0), service))
    async with asyncio.timeout(SOON):
        await service.asked.wait()
        waiting = asyncio.create_task(ask(Cache(store), service))
        while len(keys_of(store, "making/")) != 1:
            await asyncio.sleep(0)
        clock.now += 9.9
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert service.calls == 1
        clock.now += 0.2
        while service.calls < 2:
            await asyncio.sleep(0.001)
        service.gate.set()
        assert (await waiting).value == 2
        await dying


async def test_a_value_written_while_the_lease_is_taken_is_found() -> None:
    """Between looking for a value and taking the lease another worker may be done: then nobody is asked again."""
    source, service = MemorySharedStore(), Service()
    await ask(Cache(source), service)
    (key,) = keys_of(source, "cache/")
    made = (await source.get(key)).value

    class MadeMeanwhile(MemorySharedStore):
        async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
            if key.startswith("making/") and new is not None:
                await super().swap(key.removeprefix("making/"), None, made)
            return await super().swap(key, old, new, ttl_seconds)

    store = MadeMeanwhile()
    assert await ask(Cache(store), service) == Cached(1, hit=True)
    assert not keys_of(store, "making/")


async def test_a_long_call_keeps_its_lease() -> None:
    """The lease is renewed as long as the call takes."""
    clock, service = Clock(), Service()
    store = MemorySharedStore(clock)
    service.gate.clear()
    task = asyncio.create_task(ask(Cache(store, renew_seconds=0.001), service))
    async with asyncio.timeout(SOON):
        await service.asked.wait()
        before = store._entries[keys_of(store, "making/")[0]].expires
        clock.now += 5.0
        while store._entries[keys_of(store, "making/")[0]].expires == before:
            await asyncio.sleep(0.001)
        service.gate.set()
        await task
    assert not keys_of(store, "making/")


POISON = [
    b"", b"\n", b"nothing", b"\x80\x04\x95\x10", b"1700000000.0\n{}", b"1700000000.0\n\xff\xfe", b"nan\n7", b"inf\n7",
    b"1e400\n7", b"9999999999.0\n7", b"-5\n7", b"x\n7", b'1700000000.0\n"seven"', b"1700000000.0\n[[[[", pickle.dumps(7),
]  # fmt: skip


@pytest.mark.parametrize("poison", POISON)
async def test_a_value_that_is_not_ours_is_a_miss_and_is_replaced(poison: bytes) -> None:
    """Garbage, pickles, wrong types and impossible times are asked for anew, and what comes is kept (F17)."""
    store, service = MemorySharedStore(Clock()), Service()
    await ask(Cache(store), service)
    (key,) = keys_of(store, "cache/")
    held = (await store.get(key)).value
    await store.swap(key, held, poison)
    assert await ask(Cache(store), service) == Cached(2, hit=False)
    assert await ask(Cache(store), service) == Cached(2, hit=True)


@pytest.mark.parametrize("error", [SharedStateUnavailable("away"), StorageFull("full")])
async def test_a_store_that_cannot_be_used_is_an_empty_one(error: Exception) -> None:
    """Without the shared store the call is made, and this worker remembers it (F16)."""
    store, service = BrokenStore(), Service()
    store.error = error
    cache = Cache(store)
    assert await ask(cache, service) == Cached(1, hit=False)
    assert await ask(cache, service) == Cached(1, hit=True)


@pytest.mark.parametrize("asked", range(2, 6))
async def test_a_store_that_goes_away_in_the_middle_loses_no_answer(asked: int) -> None:
    """Wherever the store fails, between looking, taking the lease and writing, the value is returned."""
    service = Service()

    class GoingAway(BrokenStore):
        def _ask(self) -> None:
            super()._ask()
            if self.asked >= asked:
                raise SharedStateUnavailable("away")

    assert (await ask(Cache(GoingAway()), service)).value == 1
    assert service.calls == 1


async def test_the_services_own_errors_are_not_the_stores() -> None:
    """A full disk told by the service's own side is raised, not taken for a full cache."""
    for store in (MemorySharedStore(), away()):
        with pytest.raises(StorageFull):
            await ask(Cache(store), Service(errors=[StorageFull("content store")]))


async def test_large_values_stay_in_the_process() -> None:
    """What is above a megabyte is not put into the shared store (it is for small values)."""

    class Texts:
        async def encode(self, value: str) -> str:
            return json.dumps(value)

        async def decode(self, text: str) -> str:
            return str(json.loads(text))

    async def make() -> str:
        return "x" * 1_000_001

    store = MemorySharedStore()
    cache = Cache(store)
    assert not (await cache.get_or_make(SEARCH, "t", "q", make, Texts())).hit
    assert (await cache.get_or_make(SEARCH, "t", "q", make, Texts())).hit
    assert not keys_of(store, "")


async def test_a_value_from_another_worker_is_no_fresher_here() -> None:
    """What was made half an hour ago by another worker stays in this process for the other half."""
    clock = Clock()
    store, service = MemorySharedStore(clock), Service()
    await ask(Cache(store, RecentTexts(clock=clock)), service)
    clock.now += 1_800
    later = Cache(store, RecentTexts(clock=clock))
    assert (await ask(later, service)).hit
    clock.now += 1_801
    assert not (await ask(later, service)).hit


def test_recent_texts_are_bounded() -> None:
    """Neither number nor bytes of UTF-8 exceed the bounds; what was used least recently goes first."""
    recent = RecentTexts(most_bytes=10, most_entries=3)
    for key in "abc":
        recent.put(key, key, 60.0)
    assert recent.get("a") == "a"
    recent.put("d", "d", 60.0)
    assert [recent.get(key) for key in "abcd"] == ["a", None, "c", "d"]
    recent.put("e", "üüüü", 60.0)
    assert (recent.size, len(recent)) == (10, 3)
    recent.put("f", "ü" * 6, 60.0)
    assert recent.get("f") is None
    recent.put("e", "e", 60.0)
    assert recent.size == 3
    recent.put("g", "g", 0.0)
    assert recent.get("g") is None
    recent.drop("none")
