"""A cache of answers from outside services in the store that all workers share."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

import structlog

from providers.errors import SharedStateUnavailable, StorageFull
from providers.interfaces import SharedStore
from providers.shared.shared_value import quote_part

T = TypeVar("T")

MOST_BYTES: Final = 1_000_000
"""A larger value is not stored: the shared store is for small ones."""

log = structlog.get_logger()


@dataclass(frozen=True)
class CacheKind:
    """A sort of values, and for how many seconds they are fresh."""

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
    """Writes values as JSON and reads them."""

    async def encode(self, value: T) -> str:
        """Return the value as JSON."""
        ...

    async def decode(self, text: str) -> T:
        """Inverse of `encode`. Raises ValueError for an invalid text, or if a document that it refers to is gone."""
        ...


class Cache:
    """Makes a request only where no answer to it is fresh.

    Keys contain the tenant, so that tenants never share answers, and a hash of the request. Failures are not cached. A
    store that is unavailable or full counts as empty: a search that was paid for is worth more than its cache entry.
    """

    def __init__(self, store: SharedStore) -> None:
        """The caller closes the store."""
        self._store = store

    async def get_or_make(
        self, kind: CacheKind, tenant: str, request: str, make: Callable[[], Awaitable[T]], codec: Codec[T]
    ) -> Cached[T]:
        """Return the fresh value of this very request, else what `make` returns.

        Raises what `make` and `codec.encode` raise.
        """
        key = _key(kind, tenant, request)
        stored = await self._get(key)
        if stored is not None and (found := await _decoded(stored, codec)) is not None:
            return found
        value = await make()
        data = (await codec.encode(value)).encode("utf-8", "surrogatepass")
        if len(data) <= MOST_BYTES:
            try:
                await self._store.swap(key, await self._get(key), data, kind.fresh_seconds)
            except (SharedStateUnavailable, StorageFull) as error:
                log.warning("cache.not_shared", error=type(error).__name__)
        return Cached(value, hit=False)

    async def _get(self, key: str) -> bytes | None:
        try:
            return (await self._store.get(key)).value
        except (SharedStateUnavailable, StorageFull) as error:
            log.warning("cache.not_shared", error=type(error).__name__)
            return None


async def _decoded(data: bytes, codec: Codec[T]) -> Cached[T] | None:
    """Return a stored value; an invalid one is a miss and is never unpickled or evaluated."""
    try:
        return Cached(await codec.decode(data.decode("utf-8", "surrogatepass")), hit=True)
    except ValueError:
        return None


def _key(kind: CacheKind, tenant: str, request: str) -> str:
    digest = hashlib.sha256(request.encode("utf-8", "surrogatepass")).hexdigest()
    return f"cache/{quote_part(tenant)}/{kind.name}/{digest}"
