"""What a process goes on with when it cannot reach the others."""

from providers.errors import RateLimited, SharedStateUnavailable
from providers.shared.limiter import SharedLimiter
from providers.shared.own_part import OwnPart
from providers.shared.rates import ALONE, ServiceLimits
from providers.shared.stores.fallback_store import FallbackStore
from providers.shared.stores.memory_store import MemorySharedStore
from tests.fakes.shared_stores import BrokenStore


class Workers:
    """Processes with a local store each, over one shared store that can go away; time passes by hand."""

    def __init__(self, count: int, limits: ServiceLimits) -> None:
        self.now = 1_000_000.0
        shared = MemorySharedStore(self.clock)
        self.primaries = [BrokenStore(shared) for _ in range(count)]
        self.limiters = [
            SharedLimiter(FallbackStore(primary, MemorySharedStore(self.clock)), {"service": limits}, clock=self.clock)
            for primary in self.primaries
        ]

    def clock(self) -> float:
        return self.now

    def leave(self) -> None:
        """The shared store goes away."""
        for primary in self.primaries:
            primary.error = SharedStateUnavailable("away")

    async def allowed(self, worker: int, most: int) -> int:
        """How many calls are allowed at this moment."""
        for number in range(most):
            try:
                async with self.limiters[worker].permit("service", f"{worker}-{number}-{self.now}"):
                    pass
            except RateLimited:
                return number
        return most


async def test_the_only_worker_goes_on_as_before() -> None:
    """With all calls its own it keeps to the whole limit, not to a quarter of it."""
    workers = Workers(1, ServiceLimits(requests=120))
    at_once = await workers.allowed(0, 200)
    workers.leave()
    workers.now += 120
    assert await workers.allowed(0, 200) == at_once == 30


def test_a_part_is_what_was_ones_own() -> None:
    """Three calls of four were one's, the fourth another's; who asked for next to nothing has the least part."""
    now = [1_000.0]
    much, little = (OwnPart(lambda: now[0], 0.1) for _ in range(2))
    assert much.share("service") == 0.1
    for _ in range(60):
        for _ in range(3):
            much.granted("service", 20)
        little.granted("service", 20)
        now[0] += 1
    assert 0.6 < much.share("service") < 0.9
    assert 0.15 < little.share("service") < 0.3
    assert much.share("other") == 0.1


async def test_without_a_limit_what_went_well_goes_on() -> None:
    """A process asks on as in its best minute; one that has asked for little still has some room."""
    workers = Workers(2, ServiceLimits())
    assert await workers.allowed(0, 700) == 700
    await workers.allowed(1, 1)
    workers.leave()
    workers.now += 120
    much, little = [await workers.allowed(worker, 2_000) for worker in (0, 1)]
    assert (much, little) == (700 // 4, (ALONE.requests or 0) // 4)
