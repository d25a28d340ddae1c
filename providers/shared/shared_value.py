"""Change a small shared value by compare and swap: a pure decision, repeated until no other worker was quicker."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar
from weakref import WeakValueDictionary

from pydantic import BaseModel, ValidationError

from providers.errors import RateLimited
from providers.interfaces import SharedStore

T = TypeVar("T")
S = TypeVar("S", bound=BaseModel)

MOST_TRIES: Final = 40
LONGEST_PAUSE_SECONDS: Final = 0.02
"""Between tries; a swap takes about a millisecond."""
CONTENDED_SECONDS: Final = 1.0


@dataclass(frozen=True)
class Change(Generic[T]):
    """The new value of a decision, None to remove it, and the result for the caller."""

    value: bytes | None
    result: T
    ttl_seconds: float


class SharedValue:
    """Values under keys of a `SharedStore`; decisions of this process about one key are made one after the other."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def change(self, key: str, decide: Callable[[bytes | None, float], Change[T]]) -> T:
        """Decide from the value and the store's time. Raises `RateLimited` under lasting contention, store errors."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            for number in range(MOST_TRIES):
                stored = await self._store.get(key)
                change = decide(stored.value, stored.now)
                if change.value == stored.value:
                    return change.result
                if await self._store.swap(key, stored.value, change.value, change.ttl_seconds):
                    return change.result
                await asyncio.sleep(random.uniform(0, min(0.001 * 2**number, LONGEST_PAUSE_SECONDS)))  # noqa: S311
        raise RateLimited("too many workers change one value at once", retry_after=CONTENDED_SECONDS)


def dump_state(state: BaseModel) -> bytes:
    """Serialize a state for the store."""
    return state.model_dump_json(exclude_defaults=True).encode()


def load_state(kind: type[S], value: bytes | None) -> S:
    """Inverse of `dump_state`; an invalid value counts as no state."""
    try:
        return kind() if value is None else kind.model_validate_json(value)
    except ValidationError:
        return kind()
