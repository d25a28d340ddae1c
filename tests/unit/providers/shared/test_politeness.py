"""Politeness towards hosts, kept by all workers together."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from providers.errors import RateLimited
from providers.shared.politeness import LEASE_SECONDS, HostState, Politeness, start_request
from tests.fakes.memory_store import MemorySharedStore


class World:
    """Workers that share a store whose clock the test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.store = MemorySharedStore(lambda: self.now)

    async def wait(self, delay: float = 0.0, host: str = "site.test") -> float:
        """Return how long a request of another worker must wait."""
        try:
            async with Politeness(self.store).visit(host, delay):
                return 0.0
        except RateLimited as error:
            return error.retry_after or 0.0


async def test_two_requests_at_once_to_a_host_and_no_more() -> None:
    """Of all workers together; another host is free, and the host is free when a request has ended."""
    world = World()
    async with AsyncExitStack() as visits:
        for _ in range(2):
            await visits.enter_async_context(Politeness(world.store).visit("Site.test"))
        assert await world.wait() > 0
        assert await world.wait(host="other.test") == 0
    assert await world.wait() == 0


async def test_a_crawl_delay_lies_between_two_starts() -> None:
    """A site that names a delay is asked once at a time, that far apart, and at most ten seconds."""
    world = World()
    assert await world.wait(3.0) == 0
    assert await world.wait(3.0) == pytest.approx(3)
    world.now += 3
    assert await world.wait(3_600.0) == pytest.approx(7)


async def test_the_lease_of_a_killed_worker_expires() -> None:
    """A request that never ended blocks its place for a minute."""
    state, _ = start_request(HostState(), 1_000.0, "killed", 0.0)
    state, _ = start_request(state, 1_000.0, "killed-too", 0.0)
    assert start_request(state, 1_000.0 + LEASE_SECONDS - 1, "next", 0.0)[1] > 0
    assert start_request(state, 1_000.0 + LEASE_SECONDS, "next", 0.0)[1] == 0


async def test_a_request_that_fails_or_is_cancelled_gives_its_place_back() -> None:
    """Whatever ends a request, the next one goes at once."""
    world = World()

    async def hang() -> None:
        async with Politeness(world.store).visit("site.test"):
            await asyncio.sleep(60)

    for _ in range(3):
        task = asyncio.create_task(hang())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert await world.wait() == 0
