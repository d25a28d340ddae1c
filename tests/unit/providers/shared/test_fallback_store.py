"""What the local store is for while the shared one is away, and after."""

import asyncio
from collections.abc import Callable

import pytest
import structlog

from providers.errors import NotConfigured, SharedStateUnavailable, StorageFull
from providers.interfaces import StoredValue
from providers.shared.paid_calls import SharedCallStore
from providers.shared.stores.fallback_store import MIRROR_SECONDS, FallbackStore, ReconnectBackoff
from providers.shared.stores.memory_store import MemorySharedStore
from tests.fakes.shared_stores import BrokenStore

AWAY = SharedStateUnavailable("Redis cannot be used: TimeoutError")
SOON = 10.0


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Pair:
    """A fallback store over two stores in memory, the shared one breakable, with the circuit's time in hand."""

    def __init__(self) -> None:
        self.time = Clock()
        self.clock = Clock(1_700_000_000.0)
        self.primary = BrokenStore(MemorySharedStore(self.clock))
        self.local = MemorySharedStore(self.clock)
        self.store = self.worker()

    def worker(self) -> FallbackStore:
        """One more worker on the same machine."""
        return FallbackStore(self.primary, self.local, ReconnectBackoff(clock=self.time))

    def leave(self) -> None:
        """The shared store goes away."""
        self.primary.error = AWAY

    async def come_back(self, *, empty: bool = False) -> None:
        """It comes back, and the worker takes note."""
        self.primary.error = None
        if empty:
            await self.primary.remove("")
        await self.try_again(lambda: not self.store.degraded)

    async def try_again(self, done: Callable[[], bool]) -> None:
        """Let the time pass after which the shared store is tried again."""
        self.time.now += 5.1
        await self.store.get("anything")
        async with asyncio.timeout(SOON):
            while not done():
                await asyncio.sleep(0)

    async def shared(self, key: str) -> bytes | None:
        """What the shared store itself holds."""
        return (await self.primary.inner.get(key)).value


@pytest.fixture
def pair() -> Pair:
    """Both stores, empty and well."""
    return Pair()


async def value_of(store: FallbackStore, key: str) -> bytes | None:
    """What lies under a key."""
    return (await store.get(key)).value


async def test_who_does_not_answer_is_asked_once_in_five_seconds(pair: Pair) -> None:
    """After a failure every call goes on locally at once; a single trial is made every five seconds (F16)."""
    pair.leave()
    assert await pair.store.swap("k", None, b"1")
    asked = pair.primary.asked
    for _ in range(10):
        assert await value_of(pair.store, "k") == b"1"
    pair.time.now += 4.9
    await pair.store.get("k")
    assert pair.primary.asked == asked == 1
    await pair.try_again(lambda: pair.primary.asked == 2)
    await asyncio.gather(*(pair.store.get("k") for _ in range(10)))
    assert pair.primary.asked == 2
    assert pair.store.degraded


async def test_nobody_waits_for_the_trial(pair: Pair) -> None:
    """A shared store that hangs when it is tried again does not delay the caller; closing ends the trial."""
    pair.leave()
    await pair.store.swap("k", None, b"1")
    hanging = asyncio.Event()

    class Hanging(BrokenStore):
        async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
            hanging.set()
            return await asyncio.Event().wait()

    pair.store._primary = Hanging()
    pair.time.now += 5.1
    assert await value_of(pair.store, "k") == b"1"
    async with asyncio.timeout(SOON):
        await hanging.wait()
        assert await value_of(pair.store, "k") == b"1"
        await pair.store.close()


async def test_each_change_is_logged_once_without_addresses(pair: Pair) -> None:
    """An operator reads when it began and when it was over, not one line per call."""
    with structlog.testing.capture_logs() as logs:
        pair.leave()
        for _ in range(5):
            await pair.store.get("k")
        await pair.try_again(lambda: pair.primary.asked > 1)
        await pair.come_back()
        await pair.store.get("k")
    assert [entry["event"] for entry in logs] == ["shared_state.degraded", "shared_state.recovered"]
    assert logs[0]["error"] == "Redis cannot be used: TimeoutError"


async def test_a_store_that_can_only_be_read_is_away(pair: Pair) -> None:
    """A replica or a full server answers reads: the trial writes, so that the circuit does not flap."""

    class ReadOnly(BrokenStore):
        async def get(self, key: str) -> StoredValue:
            return await self.inner.get(key)

    only = ReadOnly()
    only.error = SharedStateUnavailable("read-only")
    store = FallbackStore(only, pair.local, ReconnectBackoff(clock=pair.time))
    assert await store.swap("k", None, b"1", 60.0)
    pair.time.now += 5.1
    await store.get("k")
    async with asyncio.timeout(SOON):
        while only.asked < 2:
            await asyncio.sleep(0)
    assert store.degraded
    assert await value_of(store, "k") == b"1"


@pytest.mark.parametrize("empty", [True, False])
async def test_an_answer_given_while_it_was_away_is_found_afterwards(pair: Pair, *, empty: bool) -> None:
    """What was journalled locally is carried over when it is asked for, whatever the shared store remembers (invariant 12)."""
    calls = SharedCallStore(pair.store)
    assert await calls.begin("k", "r-1", 60.0) is None
    pair.leave()
    await calls.finish("k", "answer")
    assert await calls.begin("k", "r-1", 60.0) == "answer"
    await pair.come_back(empty=empty)
    assert await calls.begin("k", "r-1", 60.0) == "answer"
    assert await SharedCallStore(pair.primary).begin("k", "r-1", 60.0) == "answer"


@pytest.mark.parametrize("flushed", [True, False])
async def test_an_answer_given_before_is_not_paid_again(pair: Pair, *, flushed: bool) -> None:
    """The worker that was answered knows the answer though the shared store is away or was emptied."""
    calls = SharedCallStore(pair.store)
    await calls.begin("k", "r-1", 60.0)
    await calls.finish("k", "answer")
    if flushed:
        await pair.primary.remove("")
    else:
        pair.leave()
    assert await calls.begin("k", "r-1", 60.0) == "answer"
    assert await SharedCallStore(pair.worker()).begin("k", "r-1", 60.0) == "answer"


async def test_an_answer_that_came_second_is_not_paid_again(pair: Pair) -> None:
    """Where another worker's answer stayed, that one is known here too when the shared store forgets it."""
    calls = SharedCallStore(pair.store)
    await calls.begin("k", "r-1", 60.0)
    assert await pair.primary.swap("calls/r-1/answer/k", None, b"first")
    await calls.finish("k", "second")
    await pair.primary.remove("")
    assert await calls.begin("k", "r-1", 60.0) == "first"


async def test_copies_of_what_is_kept_do_not_stay_for_ever(pair: Pair) -> None:
    """The copy of a value that the shared store keeps is dropped after a day; what exists only here is not."""
    await pair.store.swap("shared", None, b"1")
    pair.leave()
    await pair.store.swap("here", None, b"1")
    pair.clock.now += MIRROR_SECONDS - 1
    assert await value_of(pair.store, "shared") == b"1"
    pair.clock.now += 2
    assert await value_of(pair.store, "shared") is None
    assert await value_of(pair.store, "here") == b"1"


async def test_what_is_carried_over_keeps_its_time(pair: Pair) -> None:
    """A value with an end goes on with what is left of it, one without an end without."""
    pair.leave()
    await pair.store.swap("short", None, b"1", 60.0)
    await pair.store.swap("kept", None, b"1")
    pair.clock.now += 40
    await pair.come_back(empty=True)
    assert await value_of(pair.store, "short") == b"1"
    assert await value_of(pair.store, "kept") == b"1"
    assert await pair.shared("short") == b"1"
    pair.clock.now += 21
    assert await pair.shared("short") is None
    assert await pair.shared("kept") == b"1"


async def test_what_was_left_behind_does_not_come_back_from_the_dead(pair: Pair) -> None:
    """A value that was changed or removed in the shared store since is never replaced by an older local one."""
    pair.leave()
    for key in ("changed", "removed", "unkept"):
        await pair.store.swap(key, None, b"old", 600.0)
    await pair.come_back(empty=True)
    assert await pair.store.swap("changed", None, b"new", 10.0)
    assert await value_of(pair.store, "removed") == b"old"
    assert await pair.store.swap("removed", b"old", None)
    assert await pair.store.swap("unkept", None, b"kept")
    assert await pair.store.swap("unkept", b"kept", b"new", 10.0)
    pair.clock.now += 11
    assert [await value_of(pair.store, key) for key in ("changed", "removed", "unkept")] == [None, None, None]


async def test_the_clock_goes_on_as_the_shared_one(pair: Pair) -> None:
    """A machine whose clock is an hour wrong shows the shared store's time while that is away (F13)."""
    pair.clock.now += 3_600
    pair.primary.inner = MemorySharedStore(lambda: 1_700_000_000.0)
    before = (await pair.store.get("k")).now
    pair.leave()
    after = (await pair.store.get("k")).now
    assert before == 1_700_000_000.0
    assert 0 <= after - before < 60


async def test_a_run_is_forgotten_here_and_there(pair: Pair) -> None:
    """Removing counts each key once, and finds what was written here alone while the shared store was away."""
    calls = SharedCallStore(pair.store)
    for key in ("a", "b"):
        await calls.begin(key, "r-1", 60.0)
        await calls.finish(key, "answer")
    assert await calls.forget("r-1") == 2
    assert not [key for key in pair.local._entries if key.startswith("calls/")]
    pair.leave()
    await calls.begin("c", "r-2", 60.0)
    await calls.finish("c", "answer")
    await pair.come_back()
    assert await calls.forget("r-2") == 1
    assert not [key for key in pair.local._entries if key.startswith("calls/")]


async def test_a_local_store_that_fails(pair: Pair) -> None:
    """It harms nothing while the shared one is well; without both, the caller is told why."""

    class Full(MemorySharedStore):
        async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
            raise StorageFull("no space")

    store = FallbackStore(pair.primary, Full())
    assert await store.swap("k", None, b"1")
    pair.leave()
    with pytest.raises(StorageFull):
        await store.swap("k", None, b"1")


async def test_other_errors_of_the_shared_store_are_passed_on(pair: Pair) -> None:
    """Only an unavailable store is replaced: one that is set up wrongly is told."""
    pair.primary.error = NotConfigured("wrong")
    with pytest.raises(NotConfigured):
        await pair.store.get("k")
    assert not pair.store.degraded


@pytest.mark.parametrize("garbage", [b"", b"nothing", b"\n", b"soon\nvalue", b"\xff\nvalue"])
async def test_garbage_in_the_local_store_is_nothing(pair: Pair, garbage: bytes) -> None:
    """What is not written by this class is not understood, and is written over (F17)."""
    await pair.local.swap("k", None, garbage)
    assert await value_of(pair.store, "k") is None
    pair.leave()
    assert await value_of(pair.store, "k") is None
    assert await pair.store.swap("k", None, b"1")
    assert await value_of(pair.store, "k") == b"1"
