"""What all workers observe together: limits and waits of services, politeness towards hosts."""

import asyncio

import pytest

from providers.errors import AnswerMalformed, RateLimited, StoreUnavailable, Unavailable
from providers.service_calls import retry_after_seconds
from providers.shared.limits import (
    LEASE_SECONDS,
    MAX_PAUSE_SECONDS,
    MAX_RETRY_AFTER_SECONDS,
    SLEEP_SECONDS,
    HostState,
    Limiter,
    Politeness,
    ServiceLimits,
    ServiceState,
    record_failure,
    start_request,
    take_turn,
)
from tests.fakes.shared_stores import MemorySharedStore, away


class World:
    """Two workers that share a store whose clock the test moves."""

    def __init__(self, **limits: float) -> None:
        self.now = 1_000.0
        self.store = MemorySharedStore(lambda: self.now)
        configured = {"service": ServiceLimits(**limits)} if limits else {}  # type: ignore[arg-type]
        self.one, self.other = Limiter(self.store, configured), Limiter(self.store, configured)

    async def call(self, worker: Limiter, error: Exception | None = None, tokens: int = 0) -> float:
        """Make a call that ends with an error or well; return the seconds that it has to wait, 0 if it was made."""
        try:
            async with worker.permit("service", tokens):
                if error is not None:
                    raise error
        except RateLimited as refused:
            return refused.retry_after or 0.0
        except Unavailable:
            return 0.0
        return 0.0

    async def visit(self, delay: float = 0.0, host: str = "site.test") -> float:
        """Make a request to a host; return the seconds that it has to wait, 0 if it was made."""
        try:
            async with Politeness(self.store).visit(host, delay):
                return 0.0
        except RateLimited as error:
            return error.retry_after or 0.0


async def test_a_refusal_pauses_every_worker_for_the_named_time() -> None:
    """Whoever shares the store waits as long as the service said, and then calls again (F7)."""
    world = World()
    await world.call(world.one, RateLimited("429", retry_after=20))
    assert await world.call(world.other) == pytest.approx(20)
    world.now += 21
    assert await world.call(world.other) == 0
    assert await world.call(world.one) == 0


async def test_an_outage_is_probed_by_one_call_a_second() -> None:
    """Pauses grow with each failure up to a bound; afterwards one call goes while the others wait for its answer."""
    state, now, pauses = ServiceState(), 1_000.0, []
    for _ in range(8):
        state = record_failure(state, now, Unavailable("503"))
        pauses.append(state.blocked_until - now)
    assert pauses == [1, 2, 4, 8, 16, MAX_PAUSE_SECONDS, MAX_PAUSE_SECONDS, MAX_PAUSE_SECONDS]
    now = state.blocked_until
    probed, wait = take_turn(state, now, 0.0)
    assert wait == 0
    assert take_turn(probed, now, 0.0)[1] == pytest.approx(1)


async def test_a_refusal_names_the_failure_that_it_waits_for() -> None:
    """An answer of another form stays one: it is no outage, and whoever waits for the next probe must know."""
    world = World()
    outage = Unavailable("Example: 503", retry_after=20)
    malformed = AnswerMalformed("Example: a page", retry_after=20)
    for error, kind in ((outage, RateLimited), (malformed, AnswerMalformed)):
        world.now += 100
        await world.call(world.one, error)
        with pytest.raises(kind, match=f"service is not called now: {error}"):
            async with world.other.permit("service"):
                pass


def test_a_configured_rate_holds_over_a_minute() -> None:
    """Of 60 a minute and a tenth of it at once, no more than 67 calls begin within any minute."""
    limits, state, now, begun = ServiceLimits(requests_per_minute=60), ServiceState(), 1_000.0, 0
    while now < 1_060.0:
        state, wait = take_turn(state, now, limits.spacing(0))
        begun += wait <= SLEEP_SECONDS and now + wait < 1_060.0
        now += 0.1
    assert 60 <= begun <= 67


def test_spaced_calls_begin_one_after_the_other() -> None:
    """A service that refuses what comes early gets none at once: each waits for its place, however many come."""
    limits, state, waits = ServiceLimits(20, is_spaced=True), ServiceState(), []
    for _ in range(5):
        state, wait = take_turn(state, 1_000.0, limits.spacing(0), limits)
        waits.append(wait)
    assert waits == [0, 3, 6, 9, 12]
    failed = record_failure(state, 1_000.0, Unavailable("503", retry_after=30.0))
    assert take_turn(failed, 1_000.0, limits.spacing(0), limits) == (failed, 30.0), "a pause is not slept through"


async def test_a_service_with_one_connection_has_one_call_at_a_time() -> None:
    """Of all workers together, and three seconds after the last; a killed worker holds it only for a while."""
    world = World(requests_per_minute=20, is_spaced=True, one_at_a_time=True)
    limits = ServiceLimits(20, is_spaced=True, one_at_a_time=True)
    state, wait = take_turn(ServiceState(), 1_000.0, 3.0, limits)
    assert wait == 0
    assert take_turn(state, 1_004.0, 3.0, limits)[1] == pytest.approx(0.5), "the first call is still under way"
    assert take_turn(state, 1_001.0, 3.0, limits)[1] == pytest.approx(2)
    assert take_turn(state, 1_030.0, 3.0, limits)[1] == 0, "its worker is lost"
    under_way, most = 0, 0

    async def call(worker: Limiter) -> None:
        nonlocal under_way, most
        async with worker.permit("service"):
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.05)
            world.now += 4
            under_way -= 1

    calls = [asyncio.create_task(call(worker)) for worker in (world.one, world.other)]
    await asyncio.sleep(0.01)
    world.now += 3.5  # the place of the second call has come, and the first one is under way
    await asyncio.gather(*calls)
    assert most == 1
    await world.call(world.one, RateLimited("429", retry_after=2))
    world.now += 6
    assert await world.call(world.other) == 0, "a failure frees the service, too"
    world.now += 6
    await world.call(world.one, RateLimited("429", retry_after=20))
    assert await world.call(world.other) == pytest.approx(20), "a pause is no turn to wait for within the call"


async def test_tokens_are_limited_by_their_estimate() -> None:
    """A call that is expected to take a minute's tokens makes the next one wait."""
    world = World(tokens_per_minute=60)
    assert await world.call(world.one, tokens=1) == 0
    assert await world.call(world.one, tokens=60) == 0
    assert await world.call(world.other, tokens=1) > SLEEP_SECONDS


def test_a_clock_that_was_set_back_blocks_for_a_bounded_time() -> None:
    """A pause in a far future is no reason to wait for days (F13)."""
    state = ServiceState(blocked_until=1e9, due=1e9)
    assert take_turn(state, 1_000.0, 1.0)[1] <= MAX_RETRY_AFTER_SECONDS


async def test_an_unreachable_store_makes_calls_wait() -> None:
    """Without what workers share no call is made: it fails for a reason that may pass (F16)."""
    limiter = Limiter(away(), {})
    with pytest.raises(StoreUnavailable):
        async with limiter.permit("service"):
            raise AssertionError("no call may be made")


async def test_two_requests_at_once_to_a_host_and_no_more() -> None:
    """Of all workers together; another host is free, and a host is free again, however its requests ended."""
    world = World()

    async def hang() -> None:
        async with Politeness(world.store).visit("Site.test"):
            await asyncio.sleep(60)

    visits = [asyncio.create_task(hang()) for _ in range(2)]
    await asyncio.sleep(0.01)
    assert await world.visit() > 0
    assert await world.visit(host="other.test") == 0
    for visit in visits:
        visit.cancel()
    await asyncio.gather(*visits, return_exceptions=True)
    assert await world.visit() == 0


async def test_a_crawl_delay_lies_between_two_starts() -> None:
    """A site that names a delay is asked once at a time, that far apart."""
    world = World()
    assert await world.visit(3.0) == 0
    assert await world.visit(3.0) == pytest.approx(3)
    world.now += 3
    assert await world.visit(10.0) == pytest.approx(7)


def test_the_lease_of_a_killed_worker_expires() -> None:
    """A request that never ended blocks its place for a minute."""
    state, _ = start_request(HostState(), 1_000.0, "killed", 0.0)
    state, _ = start_request(state, 1_000.0, "killed-too", 0.0)
    assert start_request(state, 1_000.0 + LEASE_SECONDS - 1, "next", 0.0)[1] > 0
    assert start_request(state, 1_000.0 + LEASE_SECONDS, "next", 0.0)[1] == 0


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        *(([("Retry-After", value)], wait) for value, wait in (("0", 0), ("  7 ", 7), ("9" * 5_000, 300))),
        *(([("Retry-After", value)], None) for value in ("-1", "1.5", "", "1e3", "nan", "5, 10", "٣")),
        ([("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT")], 0),
        ([("Retry-After", "Sat, 21 Nov 2026 20:01:30 GMT"), ("Date", "Sat, 21 Nov 2026 20:00:00 GMT")], 90),
        ([("Retry-After", "Sat, 30 Feb 2026 20:01:30 GMT")], None),
        ([("date", "Wed, 21 Oct 2099 07:28:00 GMT"), ("retry-after", "Wed, 21 Oct 2099 07:28:12 GMT")], 12),
        ([("retry-after-ms", "-1"), ("retry-after", "4")], 4),
        ([("retry-after-ms", "1500"), ("retry-after", "4")], 1.5),
        ([("retry-after", "5"), ("retry-after", "10")], None),
        ([], None),
    ],
)
def test_a_named_wait_is_read_with_care(headers: list[tuple[str, str]], expected: float | None) -> None:
    """Whole seconds and dates count, by the clock of the response; nonsense is ignored, and no wait exceeds 300 s."""
    assert retry_after_seconds(headers) == expected
