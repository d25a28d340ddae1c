"""The shared level of the cache: texts with the time they were made, and who is making one."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final

import structlog

from providers.errors import SharedStateUnavailable, StorageFull
from providers.interfaces import SharedStore, StoredValue

LEASE_SECONDS: Final = 10.0
"""A worker that was killed keeps the others waiting no longer than this."""
RENEW_SECONDS: Final = 2.0
MOST_SHARED_BYTES: Final = 1_000_000
"""Larger texts stay in the process: the shared store is for small ones."""
CLOCKS_APART_SECONDS: Final = 60.0
"""How far in the future a text may have been made: clocks of machines differ a little."""

log = structlog.get_logger()


@dataclass(frozen=True)
class SharedEntry:
    """What lies under a key: `raw` as it is, `text` where it can be understood."""

    raw: bytes | None = None
    text: str | None = None
    age_seconds: float = 0.0
    now: float | None = None
    """By the store's clock; null if the store could not be asked."""


@dataclass(frozen=True)
class CacheLease:
    """The right to make the text of a key."""

    key: str
    owner: bytes


class SharedEntries:
    """No method raises: a shared store that is unavailable or full holds nothing and lets everybody go ahead."""

    def __init__(self, store: SharedStore, lease_seconds: float, renew_seconds: float) -> None:
        self._store = store
        self._lease_seconds = lease_seconds
        self._renew_seconds = renew_seconds

    async def get(self, key: str) -> SharedEntry:
        """What lies under a key now."""
        try:
            return _entry(await self._store.get(key))
        except (SharedStateUnavailable, StorageFull) as error:
            _not_shared(error)
            return SharedEntry()

    async def replace(self, key: str, seen: SharedEntry, text: str, ttl_seconds: float) -> None:
        """Put a text in the place of what was seen there, unless it is large or another came before."""
        data = text.encode("utf-8", "surrogatepass")
        if seen.now is None or len(data) > MOST_SHARED_BYTES:
            return
        with self._tolerated():
            await self._store.swap(key, seen.raw, f"{seen.now!r}\n".encode() + data, ttl_seconds)

    async def take(self, key: str) -> CacheLease | None:
        """The lease, or null while another has it."""
        lease = CacheLease(f"making/{key}", secrets.token_hex(8).encode())
        with self._tolerated():
            taken = await self._store.swap(lease.key, None, lease.owner, self._lease_seconds)
            return lease if taken else None
        return lease

    @asynccontextmanager
    async def kept(self, lease: CacheLease) -> AsyncIterator[None]:
        """Keep the lease for the time of the block, and give it back at the end."""
        renewing = asyncio.create_task(self._renew(lease))
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])
            with self._tolerated():
                await self._store.swap(lease.key, lease.owner, None)

    async def _renew(self, lease: CacheLease) -> None:
        while True:
            await asyncio.sleep(self._renew_seconds)
            with self._tolerated():
                await self._store.swap(lease.key, lease.owner, lease.owner, self._lease_seconds)

    @contextmanager
    def _tolerated(self) -> Iterator[None]:
        try:
            yield
        except (SharedStateUnavailable, StorageFull) as error:
            _not_shared(error)


def _entry(stored: StoredValue) -> SharedEntry:
    """Whatever is no text of ours is not understood: it is never unpickled, evaluated or passed on (F17)."""
    made, found, data = (stored.value or b"").partition(b"\n")
    try:
        age = stored.now - float(made) if found else -1.0
        text = data.decode("utf-8", "surrogatepass")
    except ValueError:
        return SharedEntry(stored.value, now=stored.now)
    if not found or not age >= -CLOCKS_APART_SECONDS:
        return SharedEntry(stored.value, now=stored.now)
    return SharedEntry(stored.value, text, max(0.0, age), stored.now)


def _not_shared(error: SharedStateUnavailable | StorageFull) -> None:
    log.warning("cache.not_shared", error=type(error).__name__)
