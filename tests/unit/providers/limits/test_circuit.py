"""Circuits of endpoints, shared by workers."""

import pytest

from providers.errors import (
    AnswerCut,
    InvalidCall,
    NotConfigured,
    ProviderError,
    RateLimited,
    SharedStateUnavailable,
    Unavailable,
)
from providers.shared.circuit_breaker import (
    FAILURES_TO_OPEN,
    OPEN_SECONDS,
    PROBE_LEASE_SECONDS,
    WINDOW_SECONDS,
    CircuitBreaker,
    CircuitState,
    judge_outcome,
)
from providers.shared.stores.memory_store import MemorySharedStore
from tests.fakes.shared_stores import BrokenStore

NAME = "https://model.test/v1"


class World:
    """A store whose clock the test moves, and any number of workers."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0
        self.store = BrokenStore(MemorySharedStore(lambda: self.now))

    def worker(self) -> CircuitBreaker:
        """One more process, as far as the circuit can tell."""
        return CircuitBreaker(self.store)


async def fail(breaker: CircuitBreaker, times: int = FAILURES_TO_OPEN) -> None:
    for _ in range(times):
        await breaker.report(NAME, ok=False)


async def test_failures_in_a_row_open_it_for_all_workers() -> None:
    """After five failures, whoever had them, nobody asks the endpoint; others are asked as before."""
    world = World()
    one, other = world.worker(), world.worker()
    await fail(one, FAILURES_TO_OPEN - 1)
    assert await other.allow(NAME)
    await fail(other, 1)
    assert not await one.allow(NAME)
    assert await one.state(NAME) is CircuitState.OPEN
    assert await one.allow("another")


async def test_a_success_between_failures_counts() -> None:
    """Only failures one after the other open a circuit, and only ones that are near each other."""
    world = World()
    breaker = world.worker()
    await fail(breaker, FAILURES_TO_OPEN - 1)
    await breaker.report(NAME, ok=True)
    await fail(breaker, FAILURES_TO_OPEN - 1)
    assert await breaker.state(NAME) is CircuitState.CLOSED
    world.now += WINDOW_SECONDS + 1
    await fail(breaker, 1)
    assert await breaker.state(NAME) is CircuitState.CLOSED


async def test_half_open_lets_one_through() -> None:
    """After half a minute one call finds out whether the endpoint works again."""
    world = World()
    one, other = world.worker(), world.worker()
    await fail(one)
    world.now += OPEN_SECONDS + 1
    assert await one.state(NAME) is CircuitState.HALF_OPEN
    assert await one.allow(NAME)
    assert not await other.allow(NAME)
    await one.report(NAME, ok=True)
    assert await other.state(NAME) is CircuitState.CLOSED
    assert await other.allow(NAME)


async def test_a_failed_probe_opens_it_again() -> None:
    """One failure is enough while it is half open."""
    world = World()
    breaker = world.worker()
    await fail(breaker)
    world.now += OPEN_SECONDS + 1
    assert await breaker.allow(NAME)
    await fail(breaker, 1)
    assert await breaker.state(NAME) is CircuitState.OPEN
    world.now += OPEN_SECONDS - 1
    assert not await breaker.allow(NAME)


async def test_late_failures_do_not_keep_it_open() -> None:
    """Calls begun before it opened, which fail only now, tell nothing new."""
    world = World()
    breaker = world.worker()
    await fail(breaker)
    world.now += OPEN_SECONDS - 1
    await fail(breaker, 3)
    world.now += 2
    assert await breaker.allow(NAME)


async def test_a_probe_that_says_nothing_or_dies_is_replaced() -> None:
    """A probe without an outcome makes room at once, a killed one after its lease."""
    world = World()
    breaker = world.worker()
    await fail(breaker)
    world.now += OPEN_SECONDS + 1
    assert await breaker.allow(NAME)
    await breaker.report(NAME, ok=None)
    assert await breaker.allow(NAME)
    assert not await breaker.allow(NAME)
    world.now += PROBE_LEASE_SECONDS + 1
    assert await breaker.allow(NAME)


async def test_without_the_shared_store_each_worker_has_its_own() -> None:
    """A worker that cannot agree still leaves a broken endpoint alone (F16)."""
    world = World()
    world.store.error = SharedStateUnavailable("away")
    one, other = world.worker(), world.worker()
    await fail(one)
    assert not await one.allow(NAME)
    assert await one.state(NAME) is CircuitState.OPEN
    assert await other.allow(NAME)


async def test_a_healthy_endpoint_costs_no_change() -> None:
    """Without failures nothing is written: asking and reporting only read."""
    store = MemorySharedStore()
    breaker = CircuitBreaker(store)
    assert await breaker.allow(NAME)
    await breaker.report(NAME, ok=True)
    assert await store.remove("") == 0


async def test_a_poisoned_value_counts_as_none() -> None:
    """Garbage under the key is a closed circuit, and so is a state that another clock wrote (F13, F17)."""
    world = World()
    breaker = world.worker()
    await fail(breaker)
    key = "circuits/https%3A%2F%2Fmodel.test%2Fv1"
    world.now -= 3_600
    assert await breaker.allow(NAME)
    assert await world.store.swap(key, None, b"garbage")
    assert await breaker.state(NAME) is CircuitState.CLOSED
    await fail(breaker)
    assert not await breaker.allow(NAME)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, True),
        (Unavailable("503"), False),
        (AnswerCut("cut"), True),
        (InvalidCall("400"), True),
        (RateLimited("429"), None),
        (NotConfigured("401"), None),
        (SharedStateUnavailable("away"), None),
    ],
)
def test_what_counts_as_a_failure(error: ProviderError | None, outcome: bool | None) -> None:
    """Timeouts, 5xx and lost connections; never a 429, nor a key of this worker alone."""
    assert judge_outcome(error) is outcome


async def test_a_circuit_without_failures_is_not_looked_at_for_every_call() -> None:
    """What was well a moment ago is believed for that moment: no longer, and not after a failure of this worker."""
    world = World()
    breaker = CircuitBreaker(world.store, believed_seconds=3_600.0)
    for _ in range(10):
        assert await breaker.allow(NAME)
        await breaker.report(NAME, ok=True)
    asked = world.store.asked
    assert asked == 1
    await fail(breaker)
    assert not await breaker.allow(NAME)
    forgetful = CircuitBreaker(world.store, believed_seconds=0.0)
    before = world.store.asked
    assert await forgetful.allow("another")
    assert await forgetful.allow("another")
    assert world.store.asked == before + 2
