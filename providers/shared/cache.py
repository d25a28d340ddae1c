"""A cache of answers from outside services in the store that all workers share."""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

import structlog

from providers.errors import ContentCorrupt, NewerSchema, SharedStateUnavailable, StorageFull
from providers.interfaces import SharedStore
from providers.schemas import CACHED, UNNUMBERED, StoredSchema
from providers.shared.shared_value import quote_part, running

T = TypeVar("T")

LEASE: Final = b"making "  # beginning of a lease, stored in place of a value; no JSON begins like this
LEASE_SECONDS: Final = 10.0  # time after which the lease of a killed worker expires
RENEW_SECONDS: Final = 2.0
FIRST_POLL_SECONDS = 0.02
LAST_POLL_SECONDS = 0.25
MAX_NUMBER_DIGITS: Final = 6
MAX_VALUE_BYTES: Final = 1_000_000  # larger values are not stored: the shared store is for small ones

log = structlog.get_logger()


@dataclass(frozen=True)
class CacheKind:
    """A kind of value, and the seconds for which it is fresh."""

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
    """Encodes values as JSON and decodes them."""

    async def encode(self, value: T) -> str:
        """Return the value as JSON."""
        ...

    async def decode(self, text: str) -> T:
        """Invert `encode`. Raises ValueError for an invalid text, or if a document it refers to is gone."""
        ...


class Cache:
    """Makes a request once at a time in the whole cluster, and not again while its answer is fresh.

    Tenants never share answers; failures are not cached; an unavailable or full store counts as empty.
    """

    def __init__(
        self,
        store: SharedStore,
        *,
        lease_seconds: float = LEASE_SECONDS,
        renew_seconds: float = RENEW_SECONDS,
        schema: StoredSchema[Any] = CACHED,
    ) -> None:
        self._store = store
        self._schema = schema
        self._lease_seconds = lease_seconds
        self._renew_seconds = renew_seconds

    async def get_or_make(
        self, kind: CacheKind, tenant: str, request: str, make: Callable[[], Awaitable[T]], codec: Codec[T]
    ) -> Cached[T]:
        """Return the fresh value of this request, else the result of `make`. Raises what `make` and `encode` raise.

        Of callers with the same request, one makes the value while the others wait; if it fails, the next one tries.
        """
        digest = hashlib.sha256(request.encode("utf-8", "surrogatepass")).hexdigest()
        key = f"cache/{quote_part(tenant)}/{kind.name}/{digest}"
        lease = LEASE + secrets.token_hex(8).encode()
        pause = FIRST_POLL_SECONDS
        while True:
            stored = await self._get(key)
            if stored is None or not stored.startswith(LEASE):
                # An invalid value is a miss, and so is one of another version, which nobody has to wait for.
                with suppress(ValueError, ContentCorrupt, NewerSchema):
                    if stored is not None:
                        text = self._read(stored.decode("utf-8", "surrogatepass"))
                        return Cached(await codec.decode(text), hit=True)
                if await self._swap(key, stored, lease, self._lease_seconds):
                    return await self._make(kind, key, lease, make, codec)
            await asyncio.sleep(pause)
            pause = min(LAST_POLL_SECONDS, pause * 1.5)

    async def _make(
        self, kind: CacheKind, key: str, lease: bytes, make: Callable[[], Awaitable[T]], codec: Codec[T]
    ) -> Cached[T]:
        """Make a value and store it in place of its lease; release the lease if none is stored."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(self._renew_seconds)
                await self._swap(key, lease, lease, self._lease_seconds)

        is_stored = False
        try:
            async with running(renew()):
                value = await make()
                text = f"{self._schema.number}\n{await codec.encode(value)}"
                data = text.encode("utf-8", "surrogatepass")
                is_stored = len(data) <= MAX_VALUE_BYTES and await self._swap(key, lease, data, kind.fresh_seconds)
        finally:
            if not is_stored:
                await self._swap(key, lease, None)
        return Cached(value, hit=False)

    def _read(self, text: str) -> str:
        """Return the JSON of a stored value in the form of today: the first line is its number, if it has one.

        Raises as `StoredSchema.current`, and ValueError for what is no JSON.
        """
        first, _, value = text.partition("\n")
        if not first.isdecimal():
            first = str(UNNUMBERED)
            value = text
        if first == str(self._schema.number):
            return value
        return json.dumps(self._schema.current(json.loads(value), int(first[:MAX_NUMBER_DIGITS])), ensure_ascii=False)

    async def _get(self, key: str) -> bytes | None:
        with _outage_logged():
            return (await self._store.get(key)).value
        return None

    async def _swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
        with _outage_logged():
            return await self._store.swap(key, old, new, ttl_seconds)
        return True


@contextmanager
def _outage_logged() -> Iterator[None]:
    """Log that the store is unavailable or full, and continue after the block."""
    try:
        yield
    except (SharedStateUnavailable, StorageFull) as error:
        log.warning("cache.not_shared", error=type(error).__name__)
