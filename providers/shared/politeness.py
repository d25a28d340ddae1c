"""Politeness towards sites, across all workers: two requests at once to a host, and the crawl delay that it names."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from pydantic import BaseModel, ConfigDict

from providers.errors import RateLimited
from providers.interfaces import SharedStore
from providers.shared.shared_value import SharedValue, quote_part

MOST_AT_ONCE: Final = 2
"""Requests to one host at the same time, of all workers together."""
LONGEST_DELAY_SECONDS: Final = 10.0
"""A longer crawl delay is not obeyed: a run would wait for one site."""
LEASE_SECONDS: Final = 60.0
"""A request takes less; the lease of a killed worker expires after so long."""
WAIT_SECONDS: Final = 1.0
"""Between two looks whether a host is free; a page takes about a second."""


class HostState(BaseModel):
    """State of a host. Times are seconds since the epoch by the store's clock."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    last_start: float = 0.0
    leases: dict[str, float] = {}
    """Requests under way → when their lease ends."""

    def without(self, lease: str) -> "HostState":
        """Return the state after a request."""
        return self.model_copy(update={"leases": {name: at for name, at in self.leases.items() if name != lease}})


def start_request(state: HostState, now: float, lease: str, delay_seconds: float) -> tuple[HostState, float]:
    """Return the state, and how many seconds the request must wait: 0 if it goes now."""
    leases = {name: until for name, until in state.leases.items() if now < until <= now + LEASE_SECONDS}
    delay = max(0.0, min(LONGEST_DELAY_SECONDS, delay_seconds))
    since = now - state.last_start
    if 0 <= since < delay:
        return state, delay - since
    if len(leases) >= (1 if delay else MOST_AT_ONCE):
        return state, WAIT_SECONDS
    return HostState(last_start=now, leases=leases | {lease: now + LEASE_SECONDS}), 0.0


class Politeness:
    """Hosts in a shared store; every method raises the errors of the store."""

    def __init__(self, store: SharedStore) -> None:
        self._hosts = SharedValue(store, HostState, LEASE_SECONDS)

    @asynccontextmanager
    async def visit(self, host: str, delay_seconds: float = 0.0) -> AsyncIterator[None]:
        """Allow one request to a host in the block. Raises `RateLimited` before it when the request must wait.

        `delay_seconds` is the site's crawl delay, 0 if it names none.
        """
        key, lease = f"politeness/{quote_part(host.lower())}", secrets.token_hex(6)
        wait = await self._hosts.update(key, lambda state, now: start_request(state, now, lease, delay_seconds))
        if wait:
            raise RateLimited("two requests to the site are under way", retry_after=wait)
        try:
            yield
        finally:
            await self._hosts.update(key, lambda state, _: (state.without(lease), None))
