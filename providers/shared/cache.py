"""What outside services answered, kept for a while: in this process, and in the store that all workers share."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from providers.interfaces import SharedStore
from providers.shared.cache_entries import LEASE_SECONDS, RENEW_SECONDS, SharedEntries, SharedEntry
from providers.shared.recent_texts import RecentTexts
from providers.shared.single_flight import Flights
from providers.shared.store_keys import part

T = TypeVar("T")

FIRST_POLL_SECONDS, LAST_POLL_SECONDS = 0.05, 0.25


@dataclass(frozen=True)
class CacheKind:
    """A sort of values, and how long they count as fresh."""

    name: str
    fresh_seconds: float


SEARCH: Final = CacheKind("search", 3_600.0)
NEWS_SEARCH: Final = CacheKind("news", 900.0)
PAGE: Final = CacheKind("page", 86_400.0)


@dataclass(frozen=True)
class Cached(Generic[T]):
    """A value, and whether it was there so that nobody was asked."""

    value: T
    hit: bool


class Codec(Protocol[T]):
    """How values are written as JSON and read again."""

    async def encode(self, value: T) -> str:
        """The value as JSON."""
        ...

    async def decode(self, text: str) -> T:
        """Inverse of `encode`. Raises ValueError if the text is none, or what it names is gone: then it is a miss."""
        ...


class Cache:
    """The same request is made once at a time in the whole cluster, and not again while its answer is fresh.

    Keys hold the tenant, so that tenants never see each other's, and a hash of the request. A failure is raised to
    all who wait for it, and never kept. A shared store that is unavailable or full counts as empty.
    """

    def __init__(
        self,
        store: SharedStore,
        recent: RecentTexts | None = None,
        *,
        lease_seconds: float = LEASE_SECONDS,
        renew_seconds: float = RENEW_SECONDS,
    ) -> None:
        """The store is closed by whoever opened it."""
        self._entries = SharedEntries(store, lease_seconds, renew_seconds)
        self._recent = RecentTexts() if recent is None else recent
        self._flights: Flights[Cached[Any]] = Flights()

    async def get_or_make(
        self, kind: CacheKind, tenant: str, request: str, make: Callable[[], Awaitable[T]], codec: Codec[T]
    ) -> Cached[T]:
        """The fresh value of this very request, else what `make` gives. Raises what `make` and `codec.encode` raise.

        Of callers that wait for the same value, one alone learns that it was made; to the others it is a hit.
        """
        key = _key(kind, tenant, request)
        text = self._recent.get(key)
        if text is not None:
            try:
                return Cached(await codec.decode(text), hit=True)
            except ValueError:
                self._recent.drop(key)
        fetch = _Fetch(self._entries, self._recent, kind, key, make, codec)
        # A key stands for one kind of value, and so for one type.
        found, first = await self._flights.join(key, fetch.run)
        return Cached(found.value, hit=found.hit or not first)


class _Fetch(Generic[T]):
    """One value on its way: from another worker if one has it, else made under a lease."""

    def __init__(
        self,
        entries: SharedEntries,
        recent: RecentTexts,
        kind: CacheKind,
        key: str,
        make: Callable[[], Awaitable[T]],
        codec: Codec[T],
    ) -> None:
        self._entries = entries
        self._recent = recent
        self._kind = kind
        self._key = key
        self._make = make
        self._codec = codec

    async def run(self) -> Cached[T]:
        """Look, take the lease, make; while another worker has the lease, look again and again."""
        pause = FIRST_POLL_SECONDS
        while True:
            found = await self._found(await self._entries.get(self._key))
            if found is not None:
                return found
            lease = await self._entries.take(self._key)
            if lease is not None:
                async with self._entries.kept(lease):
                    return await self._found_or_made()
            await asyncio.sleep(pause)
            pause = min(LAST_POLL_SECONDS, pause * 1.5)

    async def _found_or_made(self) -> Cached[T]:
        """The value may have been written between looking for it and taking the lease."""
        entry = await self._entries.get(self._key)
        found = await self._found(entry)
        if found is not None:
            return found
        value = await self._make()
        text = await self._codec.encode(value)
        self._recent.put(self._key, text, self._kind.fresh_seconds)
        await self._entries.replace(self._key, entry, text, self._kind.fresh_seconds)
        return Cached(value, hit=False)

    async def _found(self, entry: SharedEntry) -> Cached[T] | None:
        left = self._kind.fresh_seconds - entry.age_seconds
        if entry.text is None or left <= 0:
            return None
        try:
            value = await self._codec.decode(entry.text)
        except ValueError:
            return None
        self._recent.put(self._key, entry.text, left)
        return Cached(value, hit=True)


def _key(kind: CacheKind, tenant: str, request: str) -> str:
    digest = hashlib.sha256(request.encode("utf-8", "surrogatepass")).hexdigest()
    return f"cache/{part(tenant)}/{kind.name}/{digest}"
