"""The cache of searches and pages: fresh for a while, made once at a time, apart by tenant."""

import asyncio
import json
import pickle
from dataclasses import dataclass, field

import pytest

from providers.errors import RateLimited, SharedStateUnavailable, StorageFull
from providers.shared.cache import PAGE, SEARCH, Cache, Cached, CacheKind
from tests.fakes.shared_stores import BrokenStore, MemorySharedStore, Opener
from tests.unit.providers.shared.conftest import everywhere

SOON = 20.0


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
    """An outside service that counts its calls and answers when its gate is open."""

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


async def ask(
    cache: Cache, service: Service, request: str = "q", tenant: str = "t", of: CacheKind = SEARCH
) -> Cached[int]:
    async with asyncio.timeout(SOON):
        return await cache.get_or_make(of, tenant, request, service.ask, Numbers())


@everywhere
async def test_identical_searches_at_once_are_one_call(open_store: Opener) -> None:
    """Fifty searches of the same words by two workers ask the provider once, and one of them alone pays."""
    service, workers = Service(), [Cache(open_store()), Cache(open_store())]
    service.gate.clear()
    tasks = [asyncio.create_task(ask(workers[number % 2], service)) for number in range(50)]
    await service.asked.wait()
    service.gate.set()
    found = await asyncio.gather(*tasks)
    assert service.calls == 1
    assert [each.value for each in found] == [1] * 50
    assert sum(not each.hit for each in found) == 1


async def test_tenants_and_kinds_and_requests_are_apart() -> None:
    """No tenant sees an answer of another; keys contain no text of a user."""
    store, service = MemorySharedStore(), Service()
    requests = [
        ("secret words", "a", SEARCH),
        ("secret words", "b", SEARCH),
        ("secret words", "a", PAGE),
        ("secret words", "a/search", SEARCH),
    ]
    for request, tenant, kind in requests:
        assert not (await ask(Cache(store), service, request, tenant, kind)).hit
    assert service.calls == len(store._entries) == len(requests)
    assert not any("secret" in key for key in store._entries)
    assert await store.remove("cache/a/") == 2


@everywhere
@pytest.mark.parametrize("error", [None, RateLimited("wait", retry_after=7.0)])
async def test_a_caller_that_waits_takes_over(open_store: Opener, error: Exception | None) -> None:
    """When the caller that makes the value is cancelled or fails, one that waits makes it at once."""
    service, one, other = Service(errors=[error] if error else []), Cache(open_store()), Cache(open_store())
    service.gate.clear()
    first = asyncio.create_task(ask(one, service))
    await service.asked.wait()
    second = asyncio.create_task(ask(other, service))
    await asyncio.sleep(0.01)
    if error is None:
        first.cancel()
    service.gate.set()
    (outcome,) = await asyncio.gather(first, return_exceptions=True)
    assert outcome is error or isinstance(outcome, asyncio.CancelledError)
    assert await second == Cached(2, hit=False)


async def test_a_killed_worker_blocks_no_longer_than_its_lease() -> None:
    """A lease is renewed while a call runs, and runs out when its owner was killed."""
    service, store = Service(), MemorySharedStore()
    service.gate.clear()
    living = asyncio.create_task(ask(Cache(store, lease_seconds=1.0, renew_seconds=0.02), service))
    await service.asked.wait()
    waiting = asyncio.create_task(ask(Cache(store), service))
    await asyncio.sleep(1.2)
    assert service.calls == 1
    (lease,) = store._entries
    await store.remove(lease)
    while service.calls < 2:
        await asyncio.sleep(0.01)
    service.gate.set()
    assert {(await living).value, (await waiting).value} == {1, 2}


@pytest.mark.parametrize("poison", [b"", b"\xff\xfe", b'"seven"', pickle.dumps(7)])
async def test_a_value_that_is_not_ours_is_a_miss_and_is_replaced(poison: bytes) -> None:
    """Garbage, pickles and wrong types are made again, and the new value is stored (F17)."""
    store, service = MemorySharedStore(), Service()
    await ask(Cache(store), service)
    (key,) = store._entries
    await store.swap(key, (await store.get(key)).value, poison)
    assert await ask(Cache(store), service) == Cached(2, hit=False)
    assert await ask(Cache(store), service) == Cached(2, hit=True)


@pytest.mark.parametrize("error", [SharedStateUnavailable("away"), StorageFull("full")])
@pytest.mark.parametrize("answered", range(6))
async def test_a_store_that_cannot_be_used_is_an_empty_one(error: Exception, answered: int) -> None:
    """Wherever the store fails, between looking, taking the lease and writing, the value is returned (F16)."""

    class GoingAway(BrokenStore):
        def _ask(self) -> None:
            super()._ask()
            if self.asked > answered:
                raise error

    service = Service()
    assert (await ask(Cache(GoingAway()), service)).value == 1
    assert service.calls == 1
    with pytest.raises(StorageFull, match="content store"):
        await ask(Cache(GoingAway()), Service(errors=[StorageFull("content store")]))
