"""Limits of services and politeness towards sites, shared by all workers: pauses, configured rates, crawl delays.

One value per service or host. A call with a long wait raises `RateLimited` with the time to wait, and Temporal retries
it.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from pydantic import ConfigDict

from contracts.base import CheckedModel
from providers.errors import AnswerMalformed, RateLimited, Retryable, StoreUnavailable, Unavailable
from providers.interfaces import SharedStore
from providers.schemas import SERVICE, SITE
from providers.shared.shared_value import SharedValue, quote_part

BURST_SECONDS: Final = 6.0  # a tenth of a minute's calls may come at once; the others are evenly spaced
SLEEP_SECONDS: Final = 5.0  # a shorter wait is slept through: a retry by Temporal costs four events and a queue
SPACED_SLEEP_SECONDS: Final = 40.0  # the same, for the turns of a service whose calls are spaced: they all come
LEASE_OF_CALL_SECONDS: Final = 20.0  # longer than a search takes; the lease of a killed worker expires after this
BUSY_SECONDS: Final = 0.5  # between two checks whether a service that takes one call at a time is free
MAX_PAUSE_SECONDS: Final = (
    20.0  # after failures that named no time: 1 s, 2 s, 4 s, … up to this; 30 s cost runs too much
)
MAX_RETRY_AFTER_SECONDS: Final = 3_600.0
PROBE_SECONDS: Final = 1.0  # while a service fails, one call a second probes whether it answers again
MAX_PROBLEM: Final = 200
"""Characters of the last failure of a service."""
STORED_SECONDS: Final = MAX_RETRY_AFTER_SECONDS + 900.0


@dataclass(frozen=True)
class ServiceLimits:
    """Configured limits of a service, above zero; None is unlimited."""

    requests_per_minute: float | None = None
    tokens_per_minute: int | None = None
    is_spaced: bool = False
    """True if no calls may come at once: the service refuses those that come too early."""
    one_at_a_time: bool = False
    """True if the service allows one call at a time, of all workers together."""

    @property
    def burst_seconds(self) -> float:
        """Return the time whose calls may come at once."""
        return 0.0 if self.is_spaced else BURST_SECONDS

    def longest_sleep(self, state: "ServiceState") -> float:
        """Return the longest wait in seconds that is slept through; that of a service that failed is a short one."""
        return SPACED_SLEEP_SECONDS if self.is_spaced and not state.failures else SLEEP_SECONDS

    def spacing(self, tokens: int) -> float:
        """Return the seconds that a call of this many tokens uses up of the limits."""
        by_requests = 60.0 / self.requests_per_minute if self.requests_per_minute else 0.0
        return max(by_requests, 60.0 * tokens / self.tokens_per_minute if self.tokens_per_minute else 0.0)


NO_LIMITS: Final = ServiceLimits()


class ServiceState(CheckedModel):
    """State of a service. Times are seconds since the epoch by the store's clock."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    blocked_until: float = 0.0
    failures: int = 0
    """Refusals and outages since the last answer."""
    due: float = 0.0
    """Time at which the next call would begin if calls were evenly spaced."""
    leased_until: float = 0.0
    """End of the lease of a call under way, of a service that takes one at a time."""
    problem: str = ""
    """The last failure."""
    malformed: bool = False
    """True if that was an answer of another form."""


def take_turn(
    state: ServiceState, now: float, spacing: float, limits: ServiceLimits = NO_LIMITS
) -> tuple[ServiceState, float]:
    """Return the state and the seconds that a call must wait.

    Its place is taken if the wait is slept through; of a service that takes one call at a time only without a wait.
    """
    wait = min(max(0.0, state.blocked_until - now), MAX_RETRY_AFTER_SECONDS)
    due = min(max(state.due, now), now + MAX_RETRY_AFTER_SECONDS)  # a clock that was set back must not block for years
    if spacing:
        wait = max(wait, due - now - limits.burst_seconds)
    if limits.one_at_a_time and now < state.leased_until <= now + LEASE_OF_CALL_SECONDS:
        wait = max(wait, BUSY_SECONDS)
    if wait > limits.longest_sleep(state) or (wait > 0 and (state.failures or limits.one_at_a_time)):
        return state, wait  # after failures, the first call after the pause is the probe
    if limits.one_at_a_time:
        state = state.with_fields(leased_until=now + LEASE_OF_CALL_SECONDS)
    if spacing:
        state = state.with_fields(due=due + spacing)
    if state.failures:
        state = state.with_fields(blocked_until=now + PROBE_SECONDS)
    return state, wait


def record_failure(state: ServiceState, now: float, error: Retryable) -> ServiceState:
    """Pause a service for the time that its error names, else longer with each failure."""
    retry_after = error.retry_after
    if retry_after is None:
        pause = min(MAX_PAUSE_SECONDS, 2.0 ** min(state.failures, 10))
    else:
        pause = retry_after
    until = now + min(max(0.0, pause), MAX_RETRY_AFTER_SECONDS)
    return state.with_fields(
        failures=state.failures + 1,
        blocked_until=until,
        problem=str(error)[:MAX_PROBLEM],
        malformed=isinstance(error, AnswerMalformed),
    )


class Limiter:
    """Limits by service in a shared store. Every method raises the errors of the store."""

    def __init__(self, store: SharedStore, limits_by_service: Mapping[str, ServiceLimits]) -> None:
        self._services = SharedValue(store, ServiceState, SERVICE, STORED_SECONDS)
        self._limits = dict(limits_by_service)

    @asynccontextmanager
    async def permit(self, service: str, tokens: int = 0) -> AsyncIterator[None]:
        """Allow one call of about this many tokens. Raises `RateLimited` before the block if the call must wait.

        A `RateLimited` or `Unavailable` raised in the block makes all workers wait; an answer ends the pause.
        """
        key = f"limits/{quote_part(service)}"
        limits = self._limits.get(service, NO_LIMITS)
        earlier_state = await self._take(key, service, limits, limits.spacing(tokens))
        try:
            yield
        except StoreUnavailable:
            raise
        except (RateLimited, Unavailable) as error:
            failure = error
            await self._services.update(key, lambda state, now: (record_failure(state, now, failure), None))
            if isinstance(error, RateLimited):
                error.service = service
            raise
        else:
            if earlier_state.failures:
                await self._services.update(key, lambda state, _: (ServiceState(due=state.due), None))
        finally:
            if limits.one_at_a_time:
                await self._services.update(key, lambda state, _: (state.with_fields(leased_until=0.0), None))

    async def _take(self, key: str, service: str, limits: ServiceLimits, spacing: float) -> ServiceState:
        """Return the state before the call, once the call may start."""

        def decide(state: ServiceState, now: float) -> tuple[ServiceState, tuple[ServiceState, float, bool]]:
            new_state, wait = take_turn(state, now, spacing, limits)
            return new_state, (state, wait, new_state is not state)

        slept = 0.0
        while True:
            state, wait, is_taken = await self._services.update(key, decide)
            longest = limits.longest_sleep(state)
            if wait > longest or (limits.one_at_a_time and slept > longest):
                raise _refusal(service, state, wait)
            if wait:
                await asyncio.sleep(wait)
                slept += wait
            if is_taken or not wait:
                return state


def _refusal(service: str, state: ServiceState, wait: float) -> Retryable:
    """Return the error for a call that must wait, with the failure that it waits for."""
    why = f": {state.problem}" if state.failures and state.problem else ""
    kind = AnswerMalformed if state.failures and state.malformed else RateLimited
    return kind(f"{service} is not called now{why}", retry_after=wait)


# --- politeness towards sites -----------------------------------------------------------------------------------------
MAX_CONCURRENT_REQUESTS: Final = 2  # to one host, by all workers together
LEASE_SECONDS: Final = 60.0  # longer than a request takes; the lease of a killed worker expires after this
WAIT_SECONDS: Final = 1.0  # between two checks whether a host is free; a page takes about a second


class HostState(CheckedModel):
    """State of a host. Times are seconds since the epoch by the store's clock."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    last_start: float = 0.0
    leases: dict[str, float] = {}
    """Requests under way → end of their lease."""


def start_request(state: HostState, now: float, lease: str, delay_seconds: float) -> tuple[HostState, float]:
    """Return the state and the seconds that the request must wait: 0 if it starts now."""
    leases = {other: until for other, until in state.leases.items() if now < until <= now + LEASE_SECONDS}
    since = now - state.last_start
    if 0 <= since < delay_seconds:
        return state, delay_seconds - since
    if len(leases) >= (1 if delay_seconds else MAX_CONCURRENT_REQUESTS):
        return state, WAIT_SECONDS
    return HostState(last_start=now, leases=leases | {lease: now + LEASE_SECONDS}), 0.0


def end_request(state: HostState, lease: str) -> HostState:
    """Return the state after a request."""
    return state.with_fields(leases={other: end for other, end in state.leases.items() if other != lease})


class Politeness:
    """Visits to hosts, in a shared store. Every method raises the errors of the store."""

    def __init__(self, store: SharedStore) -> None:
        self._hosts = SharedValue(store, HostState, SITE, LEASE_SECONDS)

    @asynccontextmanager
    async def visit(self, host: str, delay_seconds: float = 0.0) -> AsyncIterator[None]:
        """Allow one request to a host, after the site's crawl delay. Raises `RateLimited` if the request must wait."""
        key = f"politeness/{quote_part(host.lower())}"
        lease = secrets.token_hex(6)
        wait = await self._hosts.update(key, lambda state, now: start_request(state, now, lease, delay_seconds))
        if wait:
            raise RateLimited("two requests to the site are under way", retry_after=wait)
        try:
            yield
        finally:
            await self._hosts.update(key, lambda state, _: (end_request(state, lease), None))
