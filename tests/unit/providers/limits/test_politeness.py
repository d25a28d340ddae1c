"""Politeness towards hosts, kept by all workers together (reliability 2.3)."""

import asyncio
import heapq
from contextlib import AsyncExitStack
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.errors import RateLimited, SharedStateUnavailable
from providers.shared.compare_and_swap import dump_state, load_state
from providers.shared.politeness import (
    GRACE_SECONDS,
    LEASE_SECONDS,
    MOST_AT_ONCE,
    HostState,
    Politeness,
    VisitRequest,
    end_lease,
    request_visit,
)
from providers.shared.store_keys import quote_part
from providers.shared.stores.memory_store import MemorySharedStore
from tests.fakes.shared_stores import BrokenStore

START = 1_700_000_000.0


class World:
    """A store whose clock the test moves, and any number of workers."""

    def __init__(self) -> None:
        self.now = START
        self.store = BrokenStore(MemorySharedStore(lambda: self.now))

    def worker(self, **options: float) -> Politeness:
        """One more process, as far as politeness can tell."""
        return Politeness(self.store, **options)

    async def state(self, host: str) -> HostState:
        """What the workers share about a host."""
        return load_state(HostState, (await self.store.get(f"politeness/{quote_part(host)}")).value)


async def wait_of(politeness: Politeness, holder: str, delay: float = 0.0, host: str = "site.test") -> float:
    with pytest.raises(RateLimited) as told:
        async with politeness.visit(host, holder, delay):
            pass
    assert told.value.retry_after is not None
    return told.value.retry_after


async def go(politeness: Politeness, holder: str, delay: float = 0.0, host: str = "site.test") -> None:
    async with politeness.visit(host, holder, delay):
        pass


async def test_two_at_once_in_the_whole_cluster() -> None:
    """A third request to a host waits, whichever worker makes it, and other hosts do not care."""
    world = World()
    one, other = world.worker(), world.worker()
    async with one.visit("site.test", "a", 0), other.visit("SITE.test", "b", 0):
        wait = await wait_of(one, "c")
        assert 1 <= wait <= 2
        await go(other, "d", host="else.test")
    world.now += wait
    await go(other, "c")


async def test_who_waited_comes_first() -> None:
    """A newcomer does not take the place of one who was told to come back."""
    world = World()
    politeness = world.worker()
    async with AsyncExitStack() as visits:
        for holder in ("a", "b"):
            await visits.enter_async_context(politeness.visit("site.test", holder))
        waits = [await wait_of(politeness, holder) for holder in ("c", "d", "e")]
        assert waits == sorted(waits)
    assert await wait_of(politeness, "newcomer") >= 1
    world.now += waits[0]
    async with politeness.visit("site.test", "c"), politeness.visit("site.test", "d"):
        await wait_of(politeness, "e")


async def test_waiting_in_vain_makes_one_come_less_often() -> None:
    """The longer requests take, the longer the others are told to wait."""
    world = World()
    politeness = world.worker()
    waits = []
    async with politeness.visit("site.test", "a"), politeness.visit("site.test", "b"):
        for _ in range(5):
            waits.append(await wait_of(politeness, "c"))
            world.now += waits[-1]
    assert waits[0] == 1
    assert waits == sorted(waits)
    assert waits[-1] < 10


async def test_a_crawl_delay_lies_between_starts() -> None:
    """A site that asks for 3 s between requests gets them, in the order of asking."""
    world = World()
    politeness = world.worker()
    await go(politeness, "a", 3.0)
    waits = [await wait_of(politeness, holder, 3.0) for holder in ("b", "c", "d")]
    assert waits == pytest.approx([3, 6, 9])
    world.now += 3
    await go(politeness, "b", 3.0)
    assert await wait_of(politeness, "c", 3.0) == pytest.approx(3)
    world.now += 3
    await go(politeness, "c", 3.0)


async def test_a_crawl_delay_has_a_limit() -> None:
    """A site that asks for an hour gets ten seconds."""
    world = World()
    politeness = world.worker()
    await go(politeness, "a", 3_600.0)
    assert await wait_of(politeness, "b", 3_600.0) == pytest.approx(10)


async def test_a_killed_holder_is_in_the_way_only_for_its_lease() -> None:
    """Nobody renews it any more, so it ends by itself after some seconds (F1)."""
    world = World()
    dead, alive = world.worker(renew_seconds=3_600.0), world.worker()
    async with AsyncExitStack() as killed:
        for holder in ("a", "b"):
            await killed.enter_async_context(dead.visit("site.test", holder))
        world.now += LEASE_SECONDS - 1
        await wait_of(alive, "c")
        world.now += 2
        await go(alive, "c")


async def test_a_long_request_keeps_its_place() -> None:
    """However long it takes, its lease is renewed while it is being made."""
    world = World()
    slow, other = world.worker(renew_seconds=0.001), world.worker()
    async with AsyncExitStack() as asking:
        for holder in ("a", "b"):
            await asking.enter_async_context(slow.visit("site.test", holder))
        for _ in range(5):
            world.now += LEASE_SECONDS * 0.9
            while min(lease.until for lease in (await world.state("site.test")).leases) <= world.now + 1:
                await asyncio.sleep(0.001)
        await wait_of(other, "c")
    assert (await world.state("site.test")).leases == ()


async def test_who_does_not_come_back_loses_its_place() -> None:
    """A waiting holder that was killed is in nobody's way for longer than the grace."""
    world = World()
    politeness = world.worker()
    await go(politeness, "a", 5.0)
    wait = await wait_of(politeness, "killed", 5.0)
    world.now += wait + GRACE_SECONDS + 0.1
    await go(politeness, "c", 5.0)


async def test_cancelled_and_failed_requests_give_back_their_lease() -> None:
    """Whatever ends a request ends its lease."""
    politeness = World().worker()
    for number in range(5):
        with pytest.raises(ValueError):
            async with politeness.visit("site.test", f"failed-{number}"):
                raise ValueError("a bug")
    inside = asyncio.Event()

    async def hang() -> None:
        async with politeness.visit("site.test", "hanging"):
            inside.set()
            await asyncio.Event().wait()

    for _ in range(3):
        inside.clear()
        task = asyncio.create_task(hang())
        await inside.wait()
        task.cancel()
        await asyncio.wait([task])
    async with politeness.visit("site.test", "x"), politeness.visit("site.test", "y"):
        pass


async def test_a_request_cancelled_while_it_asks_leaves_nothing_behind() -> None:
    """A cancellation between the store's change and its answer gives the lease back."""

    class Slow(MemorySharedStore):
        async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
            done = await super().swap(key, old, new, ttl_seconds)
            await asyncio.sleep(0.01)
            return done

    store = Slow(lambda: START)
    politeness = Politeness(store)
    for holder in ("a", "b", "c"):
        task = asyncio.create_task(go(politeness, holder))
        while (await store.get("politeness/site.test")).value is None:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await politeness.close()
        state = load_state(HostState, (await store.get("politeness/site.test")).value)
        assert state.leases == ()
        await store.remove("politeness/")


async def test_without_the_shared_store_one_at_a_time() -> None:
    """A worker that cannot agree makes one request at a time to a host, a second apart (F16)."""
    world = World()
    world.store.error = SharedStateUnavailable("away")
    politeness = world.worker()
    async with politeness.visit("site.test", "a"):
        assert await wait_of(politeness, "b") >= 1
    assert await wait_of(politeness, "b") > 0


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 20), st.floats(0.05, 5)), min_size=1, max_size=25),
    st.sampled_from([0.0, 0.5, 2.0]),
    st.floats(0, 2),
)
def test_never_more_than_two_and_never_closer_than_the_delay(
    visits: list[tuple[float, float]], delay: float, late: float
) -> None:
    """Whoever comes when and takes how long: two at once at most, and the delay between starts; all come through."""
    state, began, ended = HostState(), [], []
    events = [(at, number, "ask", seconds) for number, (at, seconds) in enumerate(visits)]
    heapq.heapify(events)
    for _ in range(20_000):
        if not events:
            break
        at, number, what, seconds = heapq.heappop(events)
        state = load_state(HostState, dump_state(state))
        if what == "end":
            state = end_lease(state, f"lease-{number}")
            ended.append(at)
            continue
        state, wait = request_visit(state, START + at, VisitRequest(f"h{number}", f"lease-{number}", delay))
        if wait > 0:
            heapq.heappush(events, (at + wait + late, number, "ask", seconds))
        else:
            began.append(at)
            assert len(began) - len(ended) <= MOST_AT_ONCE
            heapq.heappush(events, (at + seconds, number, "end", seconds))
    assert len(ended) == len(visits)
    assert all(after - before >= delay - 0.001 for before, after in pairwise(began))


@pytest.mark.parametrize("value", [b"", b"garbage", b"[]", b'{"leases": [["x"]]}'])
def test_a_value_that_is_no_state_counts_as_none(value: bytes) -> None:
    """A poisoned value is a miss (F17)."""
    assert load_state(HostState, value) == HostState()


def test_a_state_from_the_future_is_not_obeyed() -> None:
    """After a clock was set back nobody waits for the old time to come again (F13)."""
    state, _ = request_visit(HostState(), START, VisitRequest("a", "a", 10))
    assert request_visit(state, START - 3_600, VisitRequest("b", "b", 10))[1] == 0
