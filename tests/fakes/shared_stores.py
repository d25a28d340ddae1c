"""Shared stores for tests: every kind by name, ones that fail, and a script that uses one from another process."""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

from providers.errors import SharedStateUnavailable
from providers.interfaces import SharedStore, StoredValue
from providers.shared.stores.redis_store import RedisSharedStore
from providers.shared.stores.sqlite_store import SqliteSharedStore

ROOT = Path(__file__).resolve().parents[2]

Opener = Callable[[], SharedStore]
"""Gives one more store on the same values, as another process has it; where they cannot be shared, the same one."""


class MemorySharedStore:
    """A dictionary with a clock. Every method is one step of the event loop, and so atomic."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock` returns seconds since the epoch."""
        self._clock = clock
        self._entries: dict[str, tuple[bytes, float]] = {}

    async def get(self, key: str) -> StoredValue:
        now = self._clock()
        value, expires = self._entries.get(key, (None, 0.0))
        return StoredValue(value if expires > now else None, now)

    async def swap(
        self,
        key: str,
        old: bytes | None,
        new: bytes | None,
        ttl_seconds: float | None = None,
        *,
        over_limit: bool = False,
    ) -> bool:
        del over_limit
        found = await self.get(key)
        if found.value != old:
            return False
        if new is None:
            self._entries.pop(key, None)
        else:
            self._entries[key] = (new, float("inf") if ttl_seconds is None else found.now + ttl_seconds)
        return True

    async def remove(self, prefix: str) -> int:
        found = [key for key in self._entries if key.startswith(prefix)]
        live = [key for key in found if (await self.get(key)).value is not None]
        for key in found:
            del self._entries[key]
        return len(live)

    async def close(self) -> None:
        """Close nothing."""


class BrokenStore(MemorySharedStore):
    """A store that fails while `error` is set, and counts how often it is looked into."""

    error: Exception | None = None
    asked = 0

    async def get(self, key: str) -> StoredValue:
        self._ask()
        return await super().get(key)

    async def remove(self, prefix: str) -> int:
        self._ask()
        return await super().remove(prefix)

    def _ask(self) -> None:
        self.asked += 1
        if self.error is not None:
            raise self.error


def away() -> BrokenStore:
    """A store that does not answer."""
    store = BrokenStore()
    store.error = SharedStateUnavailable("away")
    return store


def opener(address: str) -> Opener:
    """Return how stores at an address are opened: `memory:`, `sqlite:PATH`, or a Redis URL."""
    kind, _, rest = address.partition(":")
    if kind == "memory":
        only = MemorySharedStore()
        return lambda: only
    if kind == "sqlite":
        return lambda: SqliteSharedStore(Path(rest), durable=False)
    return lambda: RedisSharedStore(address)


async def processes(script: str, address: str, *arguments: str, count: int) -> list[bytes]:
    """What each of several processes writes that run a script and are told to go at the same moment."""
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-c", script, address, *arguments)
    running = [await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, cwd=ROOT) for _ in range(count)]
    for process in running:
        assert process.stdout
        assert await process.stdout.readline() == b"ready\n"
    outputs = await asyncio.gather(*(process.communicate(b"\n") for process in running))
    assert [process.returncode for process in running] == [0] * count
    return [written for written, _ in outputs]
