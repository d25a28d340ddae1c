"""Small values that all workers change by compare and swap, their keys, and leases renewed during work."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote
from weakref import WeakValueDictionary

from pydantic import BaseModel

from providers.errors import ContentCorrupt, RateLimited, SharedStateUnavailable
from providers.interfaces import SharedStore, StoredValue
from providers.schemas import StoredSchema

S = TypeVar("S", bound=BaseModel)
T = TypeVar("T")

MAX_TRIES: Final = 40  # of a change that others overtake, before it waits for another attempt of its call
MAX_PAUSE_SECONDS: Final = 0.02  # between tries; a swap takes about a millisecond
CONTENDED_SECONDS: Final = 1.0
CANCELLED_AGAIN_SECONDS: Final = 0.2


def key_bytes(key: str) -> bytes:
    """Encode a key as stored; any text is allowed, even lone surrogates."""
    return key.encode("utf-8", "surrogatepass")


def quote_part(text: str) -> str:
    """Quote a text as one part of a key: without a slash, and different for different texts."""
    return quote(text, safe="", errors="surrogatepass")


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run endless work concurrently with the block; its failure is raised when the block ends.

    Before Python 3.12 `asyncio.wait_for`, which redis-py uses, may swallow a cancellation: it is repeated.
    """
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=CANCELLED_AGAIN_SECONDS)
    if not task.cancelled():
        task.result()


class SharedValue(Generic[S]):
    """Models of one kind by key, as JSON with a schema number. What is absent counts as the kind's default."""

    def __init__(
        self, store: SharedStore, kind: type[S], schema: StoredSchema[dict[str, Any]], ttl_seconds: float | None
    ) -> None:
        self._store = store
        self._kind = kind
        self._schema = schema
        self._ttl_seconds = ttl_seconds
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def update(self, key: str, step: Callable[[S, float], tuple[S, T]]) -> T:
        """Replace the value by that of `step(value, now)` and return its result; retry if another worker was faster.

        `now` is the store's clock. Raises `RateLimited` under sustained contention, `NewerSchema` for what a newer
        version wrote, `SharedStateUnavailable` for what cannot be read, and the errors of the store.
        """
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:  # tasks of this process need not race each other
            for number in range(MAX_TRIES):
                stored = await self._store.get(key)
                state, result = step(self._parse(key, stored), stored.now)
                changed = self._schema.write(state.model_dump_json(exclude_defaults=True)).encode()
                if changed == (stored.value or self._schema.write("{}").encode()):
                    return result
                if await self._store.swap(key, stored.value, changed, self._ttl_seconds):
                    return result
                await asyncio.sleep(random.uniform(0, min(0.001 * 2**number, MAX_PAUSE_SECONDS)))  # noqa: S311
        raise RateLimited("too many workers change one value at once", retry_after=CONTENDED_SECONDS)

    async def read(self, key: str) -> S | None:
        """Return the value; None if there is none. Raises as `update`."""
        stored = await self._store.get(key)
        if stored.value is None and not stored.refused:
            return None
        return self._parse(key, stored)

    def _parse(self, key: str, stored: StoredValue) -> S:
        if stored.value is None and not stored.refused:
            return self._kind()
        try:
            return self._kind.model_validate_json(self._schema.read((stored.value or b"").decode(), key))
        except (ValueError, ContentCorrupt):
            # Begun anew, it would forget what runs have spent, or which of them are at work.
            problem = f"{self._schema.what} in the shared store cannot be read"
            remedy = f"restore the value of the key {key}, or delete that key to begin without it"
            raise SharedStateUnavailable(problem, remedy=remedy) from None
