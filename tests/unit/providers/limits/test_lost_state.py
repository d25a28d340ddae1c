"""A pause that workers have seen, when the state that they share is lost, is another one, or its clock is set."""

from collections.abc import Awaitable, Callable

import pytest

from providers.errors import RateLimited, SharedStateUnavailable
from providers.interfaces import StoredValue
from providers.shared.limiter import SharedLimiter
from providers.shared.rates import ServiceLimits
from providers.shared.stores.memory_store import MemorySharedStore
from tests.fakes.shared_stores import BrokenStore

START = 1_700_000_000.0
PAUSE = 60.0
SLACK = 3.0
"""Of what one is told beyond the end of a pause: places behind the probe."""
KEY = "limits/search"


class World:
    """A store whose clock the test sets, and workers whose own clocks only ever go on."""

    def __init__(self, limits: ServiceLimits | None = None) -> None:
        self.passed = 0.0
        self.ahead = 0.0
        """How far the store's clock was set."""
        self.local = MemorySharedStore(self.time)
        self.store = BrokenStore(self.local)
        self.limits = {} if limits is None else {"search": limits}

    def time(self) -> float:
        """The store's clock."""
        return START + self.passed + self.ahead

    def worker(self) -> SharedLimiter:
        """One more process."""
        return SharedLimiter(self.store, self.limits, clock=lambda: self.passed)

    async def value(self) -> bytes | None:
        """What is shared."""
        return (await self.local.get(KEY)).value

    async def put(self, value: bytes | None) -> None:
        """Share something else."""
        assert await self.local.swap(KEY, await self.value(), value, 900.0)


async def wait_of(limiter: SharedLimiter, holder: str, error: Exception | None = None) -> float:
    """How long a call is told to wait; 0 if it goes and is answered."""
    try:
        async with limiter.permit("search", holder):
            if error is not None:
                raise error
    except RateLimited as told:
        return told.retry_after or 0.0
    return 0.0


async def refused(limiter: SharedLimiter) -> None:
    assert await wait_of(limiter, "refused", RateLimited("429", retry_after=PAUSE)) >= PAUSE


async def refused_twice(limiter: SharedLimiter) -> None:
    async def refuse_within() -> None:
        async with limiter.permit("search", "refused too"):
            await refused(limiter)
            raise RateLimited("429", retry_after=PAUSE)

    with pytest.raises(RateLimited):
        await refuse_within()


async def granted(limiter: SharedLimiter, calls: int = 60) -> int:
    """How many of many new calls go now."""
    return [await wait_of(limiter, f"call-{number}") for number in range(calls)].count(0.0)


async def lose(world: World) -> None:
    await world.local.remove("")


async def go_away(world: World) -> None:
    world.store.error = SharedStateUnavailable("away")


async def be_poisoned(world: World) -> None:
    await world.put(b"garbage")


async def go_back_a_little_too_far(world: World) -> None:
    world.ahead -= 6.0


async def go_back_a_day(world: World) -> None:
    world.ahead -= 86_400.0


async def go_forward(world: World) -> None:
    world.ahead += 3_600.0


Fault = Callable[[World], Awaitable[None]]
FAULTS: list[Fault] = [lose, go_away, be_poisoned, go_back_a_little_too_far, go_back_a_day, go_forward]
with_faults = pytest.mark.parametrize("fault", FAULTS)


@with_faults
@pytest.mark.parametrize("limits", [None, ServiceLimits(600, 60.0)], ids=["no-limit", "limit"])
async def test_nothing_goes_in_a_pause_that_was_seen(fault: Fault, limits: ServiceLimits | None) -> None:
    """Whatever becomes of the shared state: no call goes before the Retry-After, then one probe does (F7, F16)."""
    world = World(limits)
    one, other = world.worker(), world.worker()
    await refused(one)
    assert await wait_of(other, "looks") >= PAUSE
    await fault(world)
    for limiter in (one, other):
        assert await granted(limiter) == 0
    world.passed += PAUSE - 0.5
    for limiter in (one, other):
        assert await granted(limiter) == 0
    world.passed += 1.0
    async with one.permit("search", "refused") as permit:
        assert permit.probe
        assert await granted(one) == 0


@with_faults
async def test_a_pause_becomes_no_longer(fault: Fault) -> None:
    """Nobody is told to wait longer than the pause was to last at first, places behind the probe aside (F13)."""
    world = World()
    limiter = world.worker()
    await refused(limiter)
    world.passed += 20.0
    assert await wait_of(limiter, "looks") <= PAUSE - 20 + SLACK
    await fault(world)
    assert await wait_of(limiter, "new") <= PAUSE - 20 + SLACK


async def test_who_saw_a_pause_tells_the_others() -> None:
    """A worker that never asked before is kept by what another one told the store again (F7)."""
    world = World()
    one, new = world.worker(), world.worker()
    await refused(one)
    await lose(world)
    assert await wait_of(one, "first") >= PAUSE
    assert await granted(new) == 0


async def test_a_worker_that_saw_nothing_moves_a_pause_with_the_clock() -> None:
    """Also where nobody remembers, a clock that is set back makes no pause shorter, nor longer than it was (F13)."""
    world = World()
    await refused(world.worker())
    await go_back_a_day(world)
    new = world.worker()
    assert PAUSE <= await wait_of(new, "first") <= PAUSE + SLACK
    assert await granted(new) == 0
    world.passed += PAUSE + SLACK
    assert await wait_of(new, "first") == 0


async def test_a_window_moves_with_the_clock() -> None:
    """What was used of a configured limit stays used when the clock is set back (F7)."""
    world = World(ServiceLimits(4, 60.0))
    limiter = world.worker()
    for number in range(4):
        assert await wait_of(limiter, f"used-{number}") == 0
        world.passed += 15.0
    await go_back_a_day(world)
    assert await granted(limiter) == 0


async def test_an_older_copy_of_the_state_is_told() -> None:
    """A store that comes back with what it held a moment before the refusal lets nothing go (F16)."""
    world = World()
    limiter = world.worker()
    await refused(limiter)
    world.passed += PAUSE + SLACK
    older = await world.value()
    assert await wait_of(limiter, "probe", RateLimited("429", retry_after=PAUSE)) >= PAUSE
    await world.put(older)
    assert await granted(limiter) == 0


async def test_two_states_in_turn_keep_the_same_pause() -> None:
    """A store that comes and goes makes a pause neither shorter nor longer (F16)."""
    world = World()
    limiter = world.worker()
    await refused(limiter)
    for number in range(20):
        world.store.error = SharedStateUnavailable("away") if number % 2 == 0 else None
        world.passed += 1.0
        left = PAUSE - number - 1
        assert left <= await wait_of(limiter, f"call-{number}") <= left + PAUSE  # some have places behind others
        assert await granted(limiter, 5) == 0
    world.store.error = None
    world.passed += PAUSE - 20 + 0.5
    async with limiter.permit("search", "refused") as permit:
        assert permit.probe


async def test_after_a_probe_the_rate_is_remembered_too() -> None:
    """A state that is lost after the pause does not give back the rate that was too much (F7)."""
    world = World()
    limiter = world.worker()
    await refused_twice(limiter)
    world.passed += PAUSE + 0.5
    assert await wait_of(limiter, "probe") == 0
    assert await wait_of(limiter, "sees") >= 0
    await lose(world)
    assert await granted(limiter) <= 1


async def test_what_is_over_is_not_brought_back() -> None:
    """A state that forgot a refusal because it limits nobody any more stays as it is; nobody probes again."""
    world = World()
    one, idle = world.worker(), world.worker()
    await refused(one)
    assert await wait_of(idle, "looks") >= PAUSE
    world.passed += PAUSE + 0.5
    assert await wait_of(one, "probe") == 0
    world.passed += 250.0
    while b"slowdown" in (await world.value() or b""):
        await wait_of(one, "goes on")
        world.passed += 1.0
    async with idle.permit("search", "returns") as permit:
        assert not permit.probe


async def test_a_refusal_that_lost_its_turn_leaves_no_memory_of_another_state() -> None:
    """Only what is shared is remembered: a decision that others forestalled makes no pause longer."""

    class Quick(MemorySharedStore):
        """Others are quicker now and then."""

        lost = 0

        async def get(self, key: str) -> StoredValue:
            world.passed += 0.5
            return await super().get(key)

        async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
            if b"slowdown" in (new or b"") and self.lost < 5:
                self.lost += 1
                return False
            return await super().swap(key, old, new, ttl_seconds)

    world = World()
    limiter = SharedLimiter(Quick(world.time), {}, clock=lambda: world.passed)
    told = await wait_of(limiter, "refused", RateLimited("429", retry_after=PAUSE))
    assert told <= PAUSE + 1
    assert await wait_of(limiter, "next") <= PAUSE + SLACK
