"""Removing for good: from every store, from one that is full, and not at all from one that is away."""

import asyncio

import pytest

from providers.errors import SharedStateUnavailable
from providers.interfaces import SharedStore
from providers.shared.paid_calls import SharedCallStore
from providers.shared.stores.memory_store import MemorySharedStore
from tests.unit.providers.shared.conftest import WHERE_IT_CAN_BE_REMOVED

SOON = 20.0


class FullStore(MemorySharedStore):
    """Takes nothing new while it is full, as Redis without eviction; what it holds can be read and removed."""

    full = False

    async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
        """Compared first, as in the script of Redis."""
        if self.full and new is not None and (await self.get(key)).value == old:
            raise SharedStateUnavailable("full")
        return await super().swap(key, old, new, ttl_seconds)


def rows(*stores: MemorySharedStore) -> list[str]:
    """Which rows of calls are left."""
    return [key for store in stores for key in store._entries if key.startswith("calls/")]


async def answered(calls: SharedCallStore, *keys: str) -> None:
    """Make these calls."""
    for key in keys:
        assert await calls.begin(key, "r-1", 60.0) is None
        await calls.finish(key, "answer")


@pytest.mark.parametrize("kind", WHERE_IT_CAN_BE_REMOVED)
async def test_a_prefix_removes_its_keys_and_no_other(store: SharedStore) -> None:
    """A prefix is taken literally, whatever signs it has; what had expired is not counted."""
    kept = ["calls/r1", "calls/r-10/a", "Calls/r-1/a", "a*", "axc", "é"]
    for key in [*kept, "calls/r-1/a", "calls/r-1/b/c", "calls/r-1/\U0010ffff", "a?c", "a?d"]:
        assert await store.swap(key, None, b"1")
    await store.swap("calls/r-1/expired", None, b"1", 0.01)
    async with asyncio.timeout(SOON):
        while (await store.get("calls/r-1/expired")).value is not None:
            await asyncio.sleep(0.01)
    assert await store.remove("calls/r-1/") == 3
    assert await store.remove("calls/r-1/") == 0
    assert await store.remove("a?") == 2
    assert (await store.get("calls/r-1/a")).value is None
    assert [(await store.get(key)).value for key in kept] == [b"1"] * len(kept)
    assert await store.remove("") == len(kept)


@pytest.mark.parametrize("kind", WHERE_IT_CAN_BE_REMOVED)
async def test_many_keys_are_removed_together(store: SharedStore) -> None:
    """A run of many calls is forgotten as a whole."""
    await asyncio.gather(*(store.swap(f"many/{number}", None, b"1") for number in range(1_100)))
    assert await store.remove("many/") == 1_100


async def test_an_answer_that_comes_before_the_mark_goes_too() -> None:
    """Between removing the answers and marking the run another worker may write one: it is removed and counted."""

    class AnsweredMeanwhile(MemorySharedStore):
        worker: SharedCallStore | None = None

        async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
            if key.startswith("forgotten/") and self.worker is not None:
                worker, self.worker = self.worker, None
                await worker.finish("late", "answer")
            return await super().swap(key, old, new, ttl_seconds)

    store = AnsweredMeanwhile()
    worker = SharedCallStore(store)
    await answered(worker, "a")
    assert await worker.begin("late", "r-1", 60.0) is None
    store.worker = worker
    assert await SharedCallStore(store).forget("r-1") == 2
    assert rows(store) == []
