"""Politeness towards hosts, kept by all workers together."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from hashlib import blake2s
from typing import Final

from providers.errors import ProviderError, RateLimited, SharedStateUnavailable, StorageFull
from providers.interfaces import SharedStore
from providers.shared.compare_and_swap import Agreement, Among, Change
from providers.shared.host_leases import (
    LEASE_SECONDS,
    LONGEST_WAIT_SECONDS,
    HostState,
    Visiting,
    host_state_from_bytes,
    host_state_to_bytes,
    kept_up,
    left,
    visited,
)
from providers.shared.shielded_tasks import Unfinished
from providers.shared.store_keys import part

RENEW_SECONDS: Final = LEASE_SECONDS / 4
KEPT_SECONDS: Final = LEASE_SECONDS + LONGEST_WAIT_SECONDS
ALONE_AT_ONCE: Final = 1
ALONE_DELAY_SECONDS: Final = 1.0
"""Of a worker that cannot agree with the others."""


class Politeness:
    """At most two requests at once to a host, and the delay between their starts that its site asks for.

    Who must wait is told how long and keeps its place in line. Where the shared store cannot be used, each worker
    makes one request at a time to a host, a second apart.
    """

    def __init__(self, store: SharedStore, *, renew_seconds: float = RENEW_SECONDS) -> None:
        self._renew_seconds = renew_seconds
        self._agreement = Agreement(store)
        self._unfinished = Unfinished()

    @asynccontextmanager
    async def visit(self, host: str, holder: str, delay_seconds: float = 0.0) -> AsyncIterator[None]:
        """Ask a host in the block. Raises `RateLimited` before it when the request must wait.

        `delay_seconds` is the site's crawl delay, 0 if it has none; more than 10 s is not obeyed. `holder` is the
        logical operation.
        """
        key = f"politeness/{part(host.lower())}"
        name = blake2s(holder.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()
        visiting = Visiting(name, secrets.token_hex(6), delay_seconds)
        among = await self._entered(key, visiting)
        keeping = asyncio.create_task(self._kept_up(key, visiting, among))
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])
            await self._unfinished.completed(self._left(key, visiting, among))

    async def close(self) -> None:
        """Wait for what cancelled requests left to be given back."""
        await self._unfinished.close()

    async def _entered(self, key: str, visiting: Visiting) -> Among:
        task = self._unfinished.begun(self._ask(key, visiting))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._unfinished.begun(self._undone(key, visiting, task))
            raise

    async def _ask(self, key: str, visiting: Visiting) -> Among:
        def decide(value: bytes | None, now: float, alone: bool) -> Change[float]:
            wanted = visiting
            if alone:
                delay = max(ALONE_DELAY_SECONDS, visiting.delay_seconds)
                wanted = replace(visiting, delay_seconds=delay, most_at_once=ALONE_AT_ONCE)
            state, seconds = visited(host_state_from_bytes(value), now, wanted)
            return Change(host_state_to_bytes(state), seconds, KEPT_SECONDS)

        agreed = await self._agreement.change(key, decide)
        if agreed.result > 0:
            raise RateLimited("the site is being asked already", retry_after=agreed.result)
        return agreed.among

    async def _undone(self, key: str, visiting: Visiting, task: "asyncio.Task[Among]") -> None:
        with suppress(ProviderError):
            await self._left(key, visiting, await task)

    async def _kept_up(self, key: str, visiting: Visiting, among: Among) -> None:
        def decide(value: bytes | None, now: float) -> Change[None]:
            state = kept_up(host_state_from_bytes(value), now, visiting.lease)
            return Change(host_state_to_bytes(state), None, KEPT_SECONDS)

        while True:
            await asyncio.sleep(self._renew_seconds)
            with suppress(SharedStateUnavailable, StorageFull, RateLimited):  # the next one may get through
                await self._agreement.change_among(among, key, decide)

    async def _left(self, key: str, visiting: Visiting, among: Among) -> None:
        def decide(value: bytes | None, _: float) -> Change[None]:
            state = left(host_state_from_bytes(value), visiting.lease)
            return Change(None if state == HostState() else host_state_to_bytes(state), None, KEPT_SECONDS)

        with suppress(SharedStateUnavailable, StorageFull, RateLimited):  # the lease then runs out
            await self._agreement.change_among(among, key, decide)
