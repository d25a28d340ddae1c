"""Change a small shared value by compare and swap: a pure decision, repeated until no other worker was quicker."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final, Generic, TypeVar
from weakref import WeakValueDictionary

from pydantic import BaseModel, ValidationError

from providers.errors import ProviderError, RateLimited, SharedStateUnavailable, StorageFull
from providers.interfaces import SharedStore
from providers.shared.stores.memory_store import MemorySharedStore

T = TypeVar("T")
S = TypeVar("S", bound=BaseModel)

MOST_TRIES: Final = 40
DEFEATS_TO_HALVE: Final = 3
LONGEST_PAUSE_SECONDS: Final = 0.02
CONTENDED_SECONDS: Final = 1.0


@dataclass(frozen=True)
class Change(Generic[T]):
    """The new value of a decision, and its result for the caller."""

    value: bytes | None
    result: T
    ttl_seconds: float


class Scope(Enum):
    """Which workers share a decision."""

    ALL = "all"
    MACHINE = "machine"
    """Workers that share the local store of a degraded one; the rest of the cluster is unknown."""
    PROCESS = "process"

    @property
    def alone(self) -> bool:
        """Whether some workers know nothing of it, so that it must be conservative."""
        return self is not Scope.ALL


@dataclass(frozen=True)
class Agreed(Generic[T]):
    """The result, and the workers that share it."""

    result: T
    among: Scope


class Entry(Generic[T]):
    """A decision that is to be made, and what came of it."""

    def __init__(self, decide: Callable[[bytes | None, float], Change[T]]) -> None:
        self.decide = decide
        self.change: Change[T] | None = None
        self.error: ProviderError | None = None

    @property
    def done(self) -> bool:
        """Whether it was made."""
        return self.change is not None or self.error is not None

    def outcome(self) -> T:
        """The result. Raises the store's error, and `RateLimited`."""
        if self.error is not None:
            raise self.error
        assert self.change is not None, "the holder of the lock made the decision"
        return self.change.result


class Queue:
    """Decisions of this process about one value. The next one to hold the lock makes them all."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting: list[Entry[Any]] = []


class Agreement:
    """Values under keys of a `SharedStore`; while that cannot be used, values of their own for those cut off.

    A decision is a pure function of the value, the time and whether it is made alone; then it must be conservative.
    """

    def __init__(self, store: SharedStore, clock: Callable[[], float] | None = None) -> None:
        """`clock` is that of the values of their own, and shows seconds."""
        self._store = store
        self._own = MemorySharedStore(clock)
        self._queues: WeakValueDictionary[tuple[str, Scope], Queue] = WeakValueDictionary()

    async def change(self, key: str, decide: Callable[[bytes | None, float, bool], Change[T]]) -> Agreed[T]:
        """Decide among all reachable workers. Raises `RateLimited` under lasting contention."""
        for among in (Scope.ALL, Scope.MACHINE):
            # A degraded store is asked too: that is how it learns that it can be used again.
            if self._degraded() != among.alone:
                continue
            try:
                result = await self.change_among(among, key, partial(_decided, decide, among.alone))
            except (SharedStateUnavailable, StorageFull):
                continue
            # A store that degraded meanwhile decided for a few workers with the limits of all: decide again.
            if self._degraded() == among.alone:
                return Agreed(result, among)
        result = await self.change_among(Scope.PROCESS, key, partial(_decided, decide, True))
        return Agreed(result, Scope.PROCESS)

    async def change_among(self, among: Scope, key: str, decide: Callable[[bytes | None, float], Change[T]]) -> T:
        """Decide with the same as before. Raises `SharedStateUnavailable`, `StorageFull`, and `RateLimited`."""
        queue = self._queues.setdefault((key, among), Queue())
        entry = Entry(decide)
        queue.waiting.append(entry)
        while not entry.done:
            async with queue.lock:
                if not entry.done:
                    batch, queue.waiting = queue.waiting, []
                    queue.waiting = await self._swapped(among, key, batch) + queue.waiting
        return entry.outcome()

    async def _swapped(self, among: Scope, key: str, batch: "list[Entry[Any]]") -> "list[Entry[Any]]":
        """Make decisions of this process in one change: only processes have to compete. Those that are left over.

        Many decisions take longer than few, and lose against other workers: after defeats fewer are made at once.
        """
        store = self._own if among is Scope.PROCESS else self._store
        name = f"alone/{key}" if among is Scope.MACHINE else key
        try:
            for attempt in range(MOST_TRIES):
                stored = await store.get(name)
                made = batch[: max(1, len(batch) >> (attempt // DEFEATS_TO_HALVE))]
                changes = _one_after_the_other(made, stored.value, stored.now)
                value, ttl = changes[-1].value, max(change.ttl_seconds for change in changes)
                if value == stored.value or await store.swap(name, stored.value, value, ttl):
                    for entry, change in zip(made, changes, strict=True):
                        entry.change = change
                    return batch[len(made) :]
                await asyncio.sleep(random.uniform(0, min(0.001 * 2**attempt, LONGEST_PAUSE_SECONDS)))  # noqa: S311
            raise RateLimited("too many workers ask at once", retry_after=CONTENDED_SECONDS)
        except ProviderError as error:
            for entry in batch:
                entry.error = error
            return []

    async def read(self, key: str, understand: Callable[[bytes | None, float], T]) -> T:
        """Look at a value, as far as it is shared."""
        return (await self.change(key, lambda value, now, _: Change(value, understand(value, now), 0.0))).result

    def _degraded(self) -> bool:
        return bool(getattr(self._store, "degraded", False))


def dump_state(state: BaseModel) -> bytes:
    """Serialize a state for the store."""
    return state.model_dump_json(exclude_defaults=True).encode()


def load_state(kind: type[S], value: bytes | None) -> S:
    """Inverse of `dump_state`; an invalid value counts as no state."""
    try:
        return kind() if value is None else kind.model_validate_json(value)
    except ValidationError:
        return kind()


def _decided(
    decide: Callable[[bytes | None, float, bool], Change[T]], alone: bool, value: bytes | None, now: float
) -> Change[T]:
    return decide(value, now, alone)


def _one_after_the_other(batch: list[Entry[Any]], value: bytes | None, now: float) -> list[Change[Any]]:
    changes: list[Change[Any]] = []
    for entry in batch:
        changes.append(entry.decide(value, now))
        value = changes[-1].value
    return changes
