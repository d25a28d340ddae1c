"""Limit the requests to one host, over all workers: two at once, and the crawl delay that the site asks for."""

import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import blake2s
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from providers.errors import RateLimited, SharedStateUnavailable, StorageFull
from providers.interfaces import SharedStore
from providers.shared.compare_and_swap import Agreement, Change, Scope, dump_state, load_state
from providers.shared.shielded_tasks import ShieldedTasks, renew_lease_every
from providers.shared.store_keys import quote_part

MOST_AT_ONCE: Final = 2
"""Requests to one host at the same time, of all workers together."""
LONGEST_DELAY_SECONDS: Final = 10.0
"""A site may ask for no more time between requests."""
LEASE_SECONDS: Final = 12.0
"""Renewed during the request. The lease of a killed worker expires after so long."""
GRACE_SECONDS: Final = 5.0
"""So much later than told a holder may come and still have its place."""
EARLY_SECONDS: Final = 0.02
FIRST_WAIT_SECONDS: Final = 1.0
"""A guess of how long a request takes."""
WAIT_GROWTH: Final = 1.5
MOST_GROWTHS: Final = 5
MOST_WAITING: Final = 200
LONGEST_WAIT_SECONDS: Final = 300.0
CLOCK_SECONDS: Final = 5.0


class HostLease(NamedTuple):
    """One request that is being made."""

    id: str
    until: float


class PageWait(NamedTuple):
    """A holder in line: when it comes back, and how often it came in vain."""

    holder: str
    at: float
    told: int


class HostState(BaseModel):
    """What workers share about one host. Times are seconds since the epoch by the store's clock."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    changed_at: float = 0.0
    last_start: float = 0.0
    leases: tuple[HostLease, ...] = ()
    line: tuple[PageWait, ...] = ()
    """In the order of asking."""


@dataclass(frozen=True)
class VisitRequest:
    """A request that wants to go. `lease` names this very attempt, `holder` the operation that it belongs to."""

    holder: str
    lease: str
    delay_seconds: float = 0.0
    """What the site asks for between the starts of requests."""
    most_at_once: int = MOST_AT_ONCE


def request_visit(state: HostState, now: float, visiting: VisitRequest) -> tuple[HostState, float]:
    """Return the state, and how many seconds the request must wait: 0 if it goes now."""
    state = drop_expired_leases(state, now)
    ahead = _ahead(state.line, visiting.holder)
    if _may_go(state, now, visiting, len(ahead)):
        lease = HostLease(visiting.lease, now + LEASE_SECONDS)
        line = tuple(waiting for waiting in state.line if waiting.holder != visiting.holder)
        return state.model_copy(update={"last_start": now, "leases": (*state.leases, lease), "line": line}), 0.0
    mine = next((waiting for waiting in state.line if waiting.holder == visiting.holder), None)
    if mine is not None and mine.at > now + EARLY_SECONDS:
        return state, mine.at - now
    told = 0 if mine is None else mine.told + 1
    at = min(_next_try(state, now, visiting, ahead, told), now + LONGEST_WAIT_SECONDS)
    if mine is None and len(state.line) >= MOST_WAITING:
        return state, at - now
    entry = PageWait(visiting.holder, at, told)
    line = (
        (*state.line, entry) if mine is None else tuple(entry if waiting == mine else waiting for waiting in state.line)
    )
    return state.model_copy(update={"line": line}), at - now


def renew_lease(state: HostState, now: float, lease: str) -> HostState:
    """Renew the lease of a running request, also one that expired while its worker stood still."""
    rest = tuple(entry for entry in state.leases if entry.id != lease)
    return state.model_copy(update={"leases": (*rest, HostLease(lease, now + LEASE_SECONDS))})


def end_lease(state: HostState, lease: str) -> HostState:
    """Give back the lease of a request."""
    return state.model_copy(update={"leases": tuple(entry for entry in state.leases if entry.id != lease)})


def drop_expired_leases(state: HostState, now: float) -> HostState:
    """Drop leases that expired and places that were missed."""
    if state.changed_at > now + CLOCK_SECONDS:  # kept by another clock
        return HostState(changed_at=now)
    leases = tuple(lease for lease in state.leases if lease.until > now)
    line = tuple(waiting for waiting in state.line if waiting.at + GRACE_SECONDS >= now)
    return state.model_copy(update={"changed_at": now, "leases": leases, "line": line})


def _ahead(line: tuple[PageWait, ...], holder: str) -> tuple[PageWait, ...]:
    for index, waiting in enumerate(line):
        if waiting.holder == holder:
            return line[:index]
    return line


def _delay(visiting: VisitRequest) -> float:
    return max(0.0, min(LONGEST_DELAY_SECONDS, visiting.delay_seconds))


def _may_go(state: HostState, now: float, visiting: VisitRequest, ahead: int) -> bool:
    delay = _delay(visiting)
    free = visiting.most_at_once - len(state.leases)
    if delay > 0:  # one start after the other, in the order of the line
        return ahead == 0 and free > 0 and now >= state.last_start + delay
    return ahead < free


def _next_try(state: HostState, now: float, visiting: VisitRequest, ahead: tuple[PageWait, ...], told: int) -> float:
    rounds = 1 + len(ahead) // visiting.most_at_once
    wait = FIRST_WAIT_SECONDS * WAIT_GROWTH ** min(told, MOST_GROWTHS)
    delay = _delay(visiting)
    if delay == 0:
        return now + rounds * wait
    start = state.last_start + delay * (1 + len(ahead))
    after = ahead[-1].at + delay if ahead else start
    taken = now + wait if len(state.leases) >= visiting.most_at_once else now + FIRST_WAIT_SECONDS
    return max(start, after, taken)


RENEW_SECONDS: Final = LEASE_SECONDS / 4
KEPT_SECONDS: Final = LEASE_SECONDS + LONGEST_WAIT_SECONDS
ALONE_AT_ONCE: Final = 1
ALONE_DELAY_SECONDS: Final = 1.0
"""For a worker that cannot reach the shared store."""


class Politeness:
    """At most two requests at once to a host, and the delay between their starts that its site asks for.

    A request that must wait gets `retry_after` and a place in line. Where the shared store cannot be used, each worker
    makes one request at a time to a host, a second apart.
    """

    def __init__(self, store: SharedStore, *, renew_seconds: float = RENEW_SECONDS) -> None:
        self._renew_seconds = renew_seconds
        self._agreement = Agreement(store)
        self._tasks = ShieldedTasks()

    @asynccontextmanager
    async def visit(self, host: str, holder: str, delay_seconds: float = 0.0) -> AsyncIterator[None]:
        """Ask a host in the block. Raises `RateLimited` before it when the request must wait.

        `delay_seconds` is the site's crawl delay, 0 if it has none; more than 10 s is not obeyed. `holder` is the
        logical operation.
        """
        key = f"politeness/{quote_part(host.lower())}"
        name = blake2s(holder.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()
        visiting = VisitRequest(name, secrets.token_hex(6), delay_seconds)

        def release(scope: Scope) -> Coroutine[Any, Any, None]:
            return self._change(scope, key, lambda state, _: end_lease(state, visiting.lease))

        def renew() -> Coroutine[Any, Any, None]:
            return self._change(scope, key, lambda state, now: renew_lease(state, now, visiting.lease))

        scope = await self._tasks.acquire(self._request(key, visiting), release)
        try:
            async with renew_lease_every(self._renew_seconds, renew):
                yield
        finally:
            await self._tasks.finish(release(scope))

    async def close(self) -> None:
        """Wait for what cancelled requests left to be given back."""
        await self._tasks.close()

    async def _request(self, key: str, visiting: VisitRequest) -> Scope:
        def decide(value: bytes | None, now: float, alone: bool) -> Change[float]:
            wanted = visiting
            if alone:
                delay = max(ALONE_DELAY_SECONDS, visiting.delay_seconds)
                wanted = replace(visiting, delay_seconds=delay, most_at_once=ALONE_AT_ONCE)
            state, seconds = request_visit(load_state(HostState, value), now, wanted)
            return Change(dump_state(state), seconds, KEPT_SECONDS)

        agreed = await self._agreement.change(key, decide)
        if agreed.result > 0:
            raise RateLimited("the site is being asked already", retry_after=agreed.result)
        return agreed.among

    async def _change(self, scope: Scope, key: str, change: Callable[[HostState, float], HostState]) -> None:
        def decide(value: bytes | None, now: float) -> Change[None]:
            state = change(load_state(HostState, value), now)
            return Change(None if state == HostState() else dump_state(state), None, KEPT_SECONDS)

        # A renewal that fails is repeated soon; a lease that is not given back expires.
        with suppress(SharedStateUnavailable, StorageFull, RateLimited):
            await self._agreement.change_among(scope, key, decide)
