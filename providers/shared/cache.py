"""Cache what services answered: in this process, and in the store that all workers share."""

import asyncio
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

import structlog
from cachetools import TLRUCache

from providers.errors import SharedStateUnavailable, StorageFull
from providers.interfaces import SharedStore, StoredValue
from providers.shared.shielded_tasks import renew_lease_every
from providers.shared.store_keys import quote_part

MOST_BYTES: Final = 64_000_000
MOST_ENTRIES: Final = 4_000


class RecentTexts:
    """Bounded in bytes and in number; what was not used for longest goes first."""

    def __init__(
        self,
        most_bytes: int = MOST_BYTES,
        most_entries: int = MOST_ENTRIES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` shows seconds and never jumps."""
        self._most_entries = most_entries
        self._entries: TLRUCache[str, tuple[str, float]] = TLRUCache(
            most_bytes,
            lambda _, entry, now: now + entry[1],
            clock,
            lambda entry: len(entry[0].encode("utf-8", "surrogatepass")),
        )

    @property
    def size(self) -> int:
        """Bytes of UTF-8 that are held."""
        return int(self._entries.currsize)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> str | None:
        """Return the text while it is fresh, else None."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: str, text: str, fresh_seconds: float) -> None:
        """Keep a text for so long, unless it is larger than the bound in bytes."""
        self.drop(key)
        with suppress(ValueError):
            self._entries[key] = (text, fresh_seconds)
        while len(self._entries) > self._most_entries:
            self._entries.popitem()

    def drop(self, key: str) -> None:
        """Forget a text, if there is one."""
        self._entries.pop(key, None)


T = TypeVar("T")


class _Flight(Generic[T]):
    def __init__(self, task: "asyncio.Task[T]") -> None:
        self.task = task
        self.waiting = 0
        self.delivered = False


class SingleFlight(Generic[T]):
    """One task per key; cancelled when its last caller is."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight[T]] = {}

    async def join(self, key: str, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The result of the work under way, else of `work`; and whether this caller is the first to get it.

        Raises what the work raises, to all callers.
        """
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight(asyncio.ensure_future(work()))
            flight.task.add_done_callback(lambda task: self._landed(key, task))
        flight.waiting += 1
        try:
            result = await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                await self._abandon(key, flight)
        first, flight.delivered = not flight.delivered, True
        return result, first

    async def _abandon(self, key: str, flight: _Flight[T]) -> None:
        """End the work, and let it clean up before its last caller goes."""
        if self._flights.get(key) is flight:
            del self._flights[key]
        flight.task.cancel()
        await asyncio.wait([flight.task])

    def _landed(self, key: str, task: "asyncio.Future[Any]") -> None:
        flight = self._flights.get(key)
        if flight is not None and flight.task is task:
            del self._flights[key]
        if not task.cancelled():
            task.exception()  # all callers may have been cancelled before it failed


LEASE_SECONDS: Final = 10.0
"""The lease of a killed worker expires after so long."""
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
    """By the store's clock; None if the store is unavailable."""


@dataclass(frozen=True)
class CacheLease:
    """The right to make the text of a key."""

    key: str
    owner: bytes


class SharedEntries:
    """No method raises: a shared store that is unavailable or full counts as empty and grants every lease."""

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
        """Take the lease; None while another worker has it."""
        lease = CacheLease(f"making/{key}", secrets.token_hex(8).encode())
        with self._tolerated():
            taken = await self._store.swap(lease.key, None, lease.owner, self._lease_seconds)
            return lease if taken else None
        return lease

    @asynccontextmanager
    async def kept(self, lease: CacheLease) -> AsyncIterator[None]:
        """Keep the lease for the time of the block, and give it back at the end."""
        try:
            async with renew_lease_every(self._renew_seconds, lambda: self._renew(lease)):
                yield
        finally:
            with self._tolerated():
                await self._store.swap(lease.key, lease.owner, None)

    async def _renew(self, lease: CacheLease) -> None:
        with self._tolerated():
            await self._store.swap(lease.key, lease.owner, lease.owner, self._lease_seconds)

    @contextmanager
    def _tolerated(self) -> Iterator[None]:
        try:
            yield
        except (SharedStateUnavailable, StorageFull) as error:
            _not_shared(error)


def _entry(stored: StoredValue) -> SharedEntry:
    """Parse a stored value; an invalid one is a miss and is never unpickled or evaluated."""
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
    """A value, and whether it was a cache hit."""

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
    all callers that wait for it, and never stored. A shared store that is unavailable or full counts as empty.
    """

    def __init__(
        self,
        store: SharedStore,
        recent: RecentTexts | None = None,
        *,
        lease_seconds: float = LEASE_SECONDS,
        renew_seconds: float = RENEW_SECONDS,
    ) -> None:
        """The caller closes the store."""
        self._entries = SharedEntries(store, lease_seconds, renew_seconds)
        self._recent = RecentTexts() if recent is None else recent
        self._flights: SingleFlight[Cached[Any]] = SingleFlight()

    async def get_or_make(
        self, kind: CacheKind, tenant: str, request: str, make: Callable[[], Awaitable[T]], codec: Codec[T]
    ) -> Cached[T]:
        """The fresh value of this very request, else what `make` gives. Raises what `make` and `codec.encode` raise.

        Of callers that wait for the same value, one gets a miss and the rest a hit.
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


@dataclass(frozen=True)
class _Fetch(Generic[T]):
    """One value on its way: from another worker if one has it, else made under a lease."""

    _entries: SharedEntries
    _recent: RecentTexts
    _kind: CacheKind
    _key: str
    _make: Callable[[], Awaitable[T]]
    _codec: Codec[T]

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
    return f"cache/{quote_part(tenant)}/{kind.name}/{digest}"
