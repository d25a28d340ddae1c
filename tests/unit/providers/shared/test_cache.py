"""The cache of searches and pages: fresh for a while, apart by tenant."""

import json
import pickle
from dataclasses import dataclass, field

import pytest

from providers.errors import SharedStateUnavailable, StorageFull
from providers.shared.cache import PAGE, SEARCH, Cache, Cached, CacheKind
from tests.fakes.memory_store import MemorySharedStore
from tests.fakes.shared_stores import BrokenStore
from tests.unit.providers.shared.conftest import EVERYWHERE, Stores

everywhere = pytest.mark.parametrize("kind", EVERYWHERE)


class Numbers:
    """Numbers as JSON, padded to the wanted length."""

    length = 0

    async def encode(self, value: int) -> str:
        return json.dumps(value).rjust(self.length)

    async def decode(self, text: str) -> int:
        value = json.loads(text)
        if not isinstance(value, int):
            raise ValueError("no number")
        return value


@dataclass
class Service:
    """An outside service that counts its calls."""

    calls: int = 0
    errors: list[Exception] = field(default_factory=list)
    codec: Numbers = field(default_factory=Numbers)

    async def ask(self) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.calls


async def ask(
    cache: Cache, service: Service, request: str = "q", tenant: str = "t", of: CacheKind = SEARCH
) -> Cached[int]:
    """Make one request through the cache."""
    return await cache.get_or_make(of, tenant, request, service.ask, service.codec)


@everywhere
async def test_an_identical_search_is_not_sent_twice(stores: Stores) -> None:
    """The answer of one worker serves every other one, and a failure is no answer (S0-177)."""
    service = Service(errors=[StorageFull("full")])
    with pytest.raises(StorageFull):
        await ask(Cache(stores.open()), service)
    assert await ask(Cache(stores.open()), service) == Cached(2, hit=False)
    assert await ask(Cache(stores.open()), service) == Cached(2, hit=True)


async def test_tenants_and_kinds_and_requests_are_apart() -> None:
    """No tenant sees an answer of another; keys contain no text of a user."""
    store, service = MemorySharedStore(), Service()
    requests = [
        ("secret words", "a", SEARCH),
        ("secret words", "b", SEARCH),
        ("secret words", "a", PAGE),
        ("other", "a", SEARCH),
        ("secret words", "a/search", SEARCH),
    ]
    for request, tenant, kind in requests:
        assert not (await ask(Cache(store), service, request, tenant, kind)).hit
    assert service.calls == len(store._entries) == len(requests)
    assert not any("secret" in key for key in store._entries)
    assert await store.remove("cache/a/") == 3


@pytest.mark.parametrize("poison", [b"", b"\x80\x04\x95\x10", b"\xff\xfe", b'"seven"', b"[[[[", pickle.dumps(7)])
async def test_a_value_that_is_not_ours_is_a_miss_and_is_replaced(poison: bytes) -> None:
    """Garbage, pickles and wrong types are made again, and the new value is stored (F17)."""
    store, service = MemorySharedStore(), Service()
    await ask(Cache(store), service)
    (key,) = store._entries
    await store.swap(key, (await store.get(key)).value, poison)
    assert await ask(Cache(store), service) == Cached(2, hit=False)
    assert await ask(Cache(store), service) == Cached(2, hit=True)


@pytest.mark.parametrize("error", [SharedStateUnavailable("away"), StorageFull("full")])
@pytest.mark.parametrize("answered", range(3))
async def test_a_store_that_cannot_be_used_is_an_empty_one(error: Exception, answered: int) -> None:
    """Wherever the store fails, between looking and writing, the value is returned (F16)."""

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
