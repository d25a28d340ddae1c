"""Permits that all workers share."""

import asyncio

import pytest

from providers.errors import AnswerCut, RateLimited, SharedStateUnavailable, StorageFull, Unavailable
from providers.interfaces import Limiter, SharedStore, StoredValue
from providers.shared.compare_and_swap import MOST_TRIES, load_state
from providers.shared.limiter import SharedLimiter
from providers.shared.rate_rules import PROBE_LEASE_SECONDS
from providers.shared.rates import ALONE, RateState, ServiceLimits, limits_for_one
from providers.shared.stores.fallback_store import FallbackStore, ReconnectBackoff
from providers.shared.stores.memory_store import MemorySharedStore
from tests.fakes.shared_stores import BrokenStore

START = 1_700_000_000.0


class World:
    """A store whose clock the test moves, and any number of workers."""

    def __init__(self, **limits: ServiceLimits) -> None:
        self.now = START
        self.store = BrokenStore(MemorySharedStore(lambda: self.now))
        self.limits = limits

    def worker(self) -> SharedLimiter:
        """One more process, as far as the limiter can tell."""
        return SharedLimiter(self.store, self.limits, clock=lambda: self.now)


async def call(limiter: Limiter, holder: str, service: str = "search", error: Exception | None = None) -> None:
    async with limiter.permit(service, holder):
        if error is not None:
            raise error


async def wait_of(limiter: Limiter, holder: str, service: str = "search", error: Exception | None = None) -> float:
    with pytest.raises(RateLimited) as told:
        await call(limiter, holder, service, error)
    assert told.value.retry_after is not None
    return told.value.retry_after


async def test_workers_share_a_limit() -> None:
    """What one worker used up is used up for the others, and a place holds at any worker (F7)."""
    world = World(search=ServiceLimits(1, 10.0))
    one, other = world.worker(), world.worker()
    await call(one, "first")
    wait = await wait_of(one, "second")
    assert await wait_of(other, "third") > wait
    world.now += wait
    await call(other, "second")


async def test_services_have_limits_of_their_own() -> None:
    """One service that is used up keeps nobody from another."""
    limiter = World(search=ServiceLimits(1, 10.0)).worker()
    await call(limiter, "first")
    await wait_of(limiter, "second")
    await call(limiter, "second", service="model")


async def test_a_refusal_makes_all_workers_wait() -> None:
    """A 429 that one worker got pauses every worker, then one probe goes, then the others (F7)."""
    world = World()
    one, other = world.worker(), world.worker()
    wait = await wait_of(one, "refused", error=RateLimited("429", retry_after=7.0))
    assert 7 <= wait <= 7.7
    assert await wait_of(other, "else") >= 7
    world.now += wait
    async with one.permit("search", "refused"):
        await wait_of(other, "else")
    world.now += 3
    await call(other, "else")


async def test_a_refusal_keeps_its_message_and_cause() -> None:
    """The service's own error stays visible behind the new wait."""
    refusal = RateLimited("Tavily: too many requests", retry_after=7.0)
    with pytest.raises(RateLimited, match="Tavily: too many requests") as told:
        await call(World().worker(), "refused", error=refusal)
    assert told.value.__cause__ is refusal


@pytest.mark.parametrize("error", [Unavailable("503"), AnswerCut("cut"), ValueError("a bug")])
async def test_other_errors_pass_and_pause_nobody(error: Exception) -> None:
    """Only being refused for speed is a limit."""
    limiter = World().worker()
    with pytest.raises(type(error)):
        await call(limiter, "first", error=error)
    await call(limiter, "second")


async def test_a_probe_without_an_answer_is_replaced_at_once() -> None:
    """A probe that failed for another reason proves nothing: the next call is the probe."""
    world = World()
    limiter = world.worker()
    world.now += await wait_of(limiter, "refused", error=RateLimited("429", retry_after=2.0))
    with pytest.raises(Unavailable):
        await call(limiter, "refused", error=Unavailable("503"))
    async with limiter.permit("search", "next") as permit:
        assert permit.probe
        await wait_of(limiter, "third")


async def test_a_cancelled_probe_is_replaced_at_once() -> None:
    """A run that is cancelled while its call is the probe blocks nobody."""
    world = World()
    limiter = world.worker()
    world.now += await wait_of(limiter, "refused", error=RateLimited("429", retry_after=2.0))
    inside = asyncio.Event()

    async def hang() -> None:
        async with limiter.permit("search", "refused"):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(hang())
    await inside.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    async with limiter.permit("search", "next") as permit:
        assert permit.probe


class SlowStore(MemorySharedStore):
    """A store whose changes take until the test lets them through."""

    def __init__(self) -> None:
        super().__init__(lambda: START)
        self.let = asyncio.Event()
        self.let.set()
        self.begun = asyncio.Event()

    async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
        """As of a shared store, when it may."""
        done = await super().swap(key, old, new, ttl_seconds)
        self.begun.set()
        await self.let.wait()
        return done


async def test_a_probe_cancelled_while_it_is_asked_for_is_given_back() -> None:
    """A cancellation between the store's change and its answer leaves no probe behind."""
    store = SlowStore()
    limiter = SharedLimiter(store, {})
    await wait_of(limiter, "refused", error=RateLimited("429", retry_after=0.0))
    store.let.clear()
    store.begun.clear()
    task = asyncio.create_task(call(limiter, "refused"))
    await store.begun.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    store.let.set()
    await limiter.close()
    async with limiter.permit("search", "next") as permit:
        assert permit.probe


async def test_a_killed_probe_blocks_only_for_its_lease() -> None:
    """A worker that dies as the probe is replaced after the lease (F1)."""
    world = World()
    dead, alive = world.worker(), world.worker()
    world.now += await wait_of(dead, "refused", error=RateLimited("429", retry_after=2.0))
    killed = dead.permit("search", "refused")
    assert (await killed.__aenter__()).probe
    assert await wait_of(alive, "next") <= PROBE_LEASE_SECONDS
    world.now += PROBE_LEASE_SECONDS + 1
    async with alive.permit("search", "next") as permit:
        assert permit.probe


async def test_tokens_are_settled() -> None:
    """What a call did not use is there for the next."""
    limiter = World(model=ServiceLimits(tokens_per_minute=1_000)).worker()
    async with limiter.permit("model", "first", tokens=900) as permit:
        permit.used(100)
    async with limiter.permit("model", "second", tokens=800):
        pass
    with pytest.raises(RateLimited):
        async with limiter.permit("model", "third", tokens=300):
            pass


async def test_a_refused_call_used_no_tokens() -> None:
    """What was estimated for a call that was refused is given back."""
    world = World(model=ServiceLimits(tokens_per_minute=1_000))
    limiter = world.worker()
    with pytest.raises(RateLimited) as told:
        async with limiter.permit("model", "first", tokens=900):
            raise RateLimited("429", retry_after=2.0)
    world.now += told.value.retry_after or 0.0
    async with limiter.permit("model", "first", tokens=900):
        pass


@pytest.mark.parametrize("error", [SharedStateUnavailable("away"), StorageFull("full")])
async def test_without_the_shared_store_limits_are_smaller_and_never_none(error: Exception) -> None:
    """A worker that cannot agree keeps to its share, and to a small rate where none is configured (F16)."""
    world = World(search=ServiceLimits(40, 60.0))
    world.store.error = error
    limiter = world.worker()
    for service, allowed in (("search", 40 * 0.25), ("else", ALONE.requests)):
        calls = [call(limiter, f"call-{number}", service) for number in range(60)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(outcome, RateLimited) for outcome in outcomes if outcome is not None)
        assert 1 <= outcomes.count(None) <= (allowed or 0)


async def test_a_degraded_store_counts_for_the_whole_machine() -> None:
    """Workers of a machine whose store goes on locally share the smaller limit between them (F16)."""

    class Degraded(MemorySharedStore):
        degraded = True

    store = Degraded(lambda: START)
    workers = [SharedLimiter(store, {"search": ServiceLimits(4, 60.0)}) for _ in range(3)]
    await call(workers[0], "first")
    for worker in workers:
        await wait_of(worker, "second")


async def test_a_store_that_comes_back_is_used_again() -> None:
    """While it is degraded it is still asked, so that it notices; then all limits are shared again (F16)."""
    primary, time = BrokenStore(), [0.0]
    store: SharedStore = FallbackStore(primary, MemorySharedStore(), ReconnectBackoff(clock=lambda: time[0]))
    limiter = SharedLimiter(store, {})
    primary.error = SharedStateUnavailable("away")
    async with limiter.permit("search", "first") as permit:
        assert permit.among.alone
    primary.error = None
    time[0] += 60
    async with limiter.permit("search", "second"):
        pass
    while store.degraded:  # type: ignore[attr-defined]
        await asyncio.sleep(0)
    async with limiter.permit("search", "third") as permit:
        assert not permit.among.alone
    await store.close()


async def test_a_refusal_is_obeyed_although_the_store_went_away_meanwhile() -> None:
    """What cannot be told to the others is at least obeyed here."""
    world = World()
    limiter = world.worker()

    async def refused() -> None:
        async with limiter.permit("search", "first"):
            world.store.error = SharedStateUnavailable("away")
            raise RateLimited("429", retry_after=60.0)

    with pytest.raises(RateLimited):
        await refused()
    assert await wait_of(limiter, "second") >= 60


async def test_a_call_succeeds_although_it_cannot_be_settled() -> None:
    """An answer is not thrown away because the store went away."""
    world = World(model=ServiceLimits(tokens_per_minute=1_000))
    limiter = world.worker()
    async with limiter.permit("model", "first", tokens=900) as permit:
        permit.used(10)
        world.store.error = SharedStateUnavailable("away")


async def test_many_at_once_get_what_there_is() -> None:
    """Decisions that compete in one process and between several are all made, none twice."""
    world = World(search=ServiceLimits(5, 5.0))
    workers = [world.worker() for _ in range(4)]
    outcomes = await asyncio.gather(
        *(call(workers[number % 4], f"call-{number}") for number in range(80)), return_exceptions=True
    )
    assert sum(outcome is None for outcome in outcomes) == 1
    assert all(isinstance(outcome, RateLimited) for outcome in outcomes if outcome is not None)


async def test_a_store_that_always_loses_says_come_again() -> None:
    """Under contention without end a call waits; it never goes unlimited."""

    class Contended(MemorySharedStore):
        async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
            return False

        async def get(self, key: str) -> StoredValue:
            return StoredValue(None, START)

    assert await wait_of(SharedLimiter(Contended(), {}), "first") == 1.0


async def test_many_decisions_do_not_always_lose_to_few() -> None:
    """A process that has much to decide makes less of it at once when others are quicker, and all of it in the end."""

    class Quick(MemorySharedStore):
        async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
            grown = load_state(RateState, new).recent[-1].amount - sum(
                one.amount for one in load_state(RateState, old).recent
            )
            return grown <= 2 and await super().swap(key, old, new, ttl_seconds)

    limiter = SharedLimiter(Quick(lambda: START), {})
    await asyncio.gather(*(call(limiter, f"call-{number}") for number in range(20)))


async def test_a_refusal_gets_through_contention() -> None:
    """Who has a refusal to tell of does not give up as long as one who only asks."""

    class Contended(MemorySharedStore):
        lost = 0

        async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
            if b"slowdown" in (new or b"") and self.lost < MOST_TRIES + 1:
                self.lost += 1
                return False
            return await super().swap(key, old, new, ttl_seconds)

    limiter = SharedLimiter(Contended(), {})
    assert await wait_of(limiter, "refused", error=RateLimited("429", retry_after=60.0)) >= 60
    assert await wait_of(limiter, "else") >= 59


async def test_names_of_holders_and_services_stay_here() -> None:
    """The shared value holds no operation's name, and a service's name cannot leave its key."""
    keys: list[str] = []

    class Watched(MemorySharedStore):
        async def get(self, key: str) -> StoredValue:
            keys.append(key)
            return await super().get(key)

    store = Watched()
    limiter = SharedLimiter(store, {})
    await wait_of(limiter, "what a person asked", "a/b", RateLimited("429", retry_after=1.0))
    stored = await store.get(keys[0])
    assert keys[0] == "limits/a%2Fb"
    assert stored.value is not None
    assert b"person" not in stored.value


@pytest.mark.parametrize(
    ("limits", "alone"),
    [
        (ServiceLimits(40, 60.0, 1_000), ServiceLimits(10, 60.0, 250)),
        (ServiceLimits(1, 1.0), ServiceLimits(1, 4.0)),
        (ServiceLimits(2, 10.0), ServiceLimits(1, 20.0)),
        (ServiceLimits(tokens_per_minute=1), ServiceLimits(300, 60.0, 1)),
        (ServiceLimits(), ALONE),
    ],
)
def test_a_share_of_limits(limits: ServiceLimits, alone: ServiceLimits) -> None:
    """A quarter of the rate, and at least something of everything."""
    assert limits_for_one(limits, 0.25) == alone


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5])
def test_a_share_is_a_share(share: float) -> None:
    """Nobody gets more than everything, or nothing."""
    with pytest.raises(ValueError):
        SharedLimiter(MemorySharedStore(), {}, share_when_degraded=share)
