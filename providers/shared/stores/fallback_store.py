"""Go on with a local store while the shared one does not answer, so that runs finish."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import structlog
from cachetools import LRUCache

from providers.errors import ProviderError, SharedStateUnavailable
from providers.interfaces import SharedStore, StoredValue

FIRST_PAUSE_SECONDS: Final = 0.5
"""A restarted server is back soon, and until then workers do not share state."""
LONGEST_PAUSE_SECONDS: Final = 5.0
STEADY_SECONDS: Final = 60.0
"""A store that fails again so soon after it was back is waited for longer and longer, up to this."""


class ReconnectBackoff:
    """Exponential backoff of the attempts to reach a store again; open from a failure to the next success."""

    def __init__(
        self, longest_pause_seconds: float = LONGEST_PAUSE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock` shows seconds and never jumps."""
        self._longest_pause = longest_pause_seconds
        self._pause = FIRST_PAUSE_SECONDS
        self._clock = clock
        self._next_attempt: float | None = None
        self._back_since: float | None = None

    @property
    def open(self) -> bool:
        """Whether the last attempt failed."""
        return self._next_attempt is not None

    def failed(self) -> bool:
        """Record a failure; return whether it was the first."""
        first = not self.open
        if first:
            steady = self._back_since is None or self._clock() - self._back_since >= STEADY_SECONDS
            self._pause = (
                min(FIRST_PAUSE_SECONDS, self._longest_pause) if steady else min(2 * self._pause, STEADY_SECONDS)
            )
        self._next_attempt = self._clock() + self._pause
        return first

    def succeeded(self) -> bool:
        """Record a success; return whether a failure preceded it."""
        recovered = self.open
        self._next_attempt = None
        if recovered:
            self._back_since = self._clock()
        return recovered

    def attempt_is_due(self) -> bool:
        """Return whether this caller makes the next attempt; True for one caller per pause."""
        now = self._clock()
        if self._next_attempt is None or now < self._next_attempt:
            return False
        self._pause = max(self._pause, min(2 * self._pause, self._longest_pause))
        self._next_attempt = now + self._pause
        return True


FOREVER: Final = b"-"


@dataclass(frozen=True)
class LocalCopy:
    """A value as it lies in the local store."""

    value: bytes | None
    ttl_seconds: float | None
    """Time until it expires; None means never."""
    now: float
    """By the local store's clock."""
    raw: bytes | None
    """Value and end in one, for swapping."""


class LocalCopies:
    """Values with the time of their end written beside them, so that they can go on elsewhere with what is left."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store

    async def get(self, key: str) -> LocalCopy:
        """Return the copy under a key; its value is None where there is none or it is invalid."""
        stored = await self._store.get(key)
        end, found, value = (stored.value or b"").partition(b"\n")
        if not found:
            return LocalCopy(None, None, stored.now, stored.value)
        if end == FOREVER:
            return LocalCopy(value, None, stored.now, stored.value)
        try:
            return LocalCopy(value, max(0.0, float(end) - stored.now), stored.now, stored.value)
        except ValueError:
            return LocalCopy(None, None, stored.now, stored.value)

    async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None) -> bool:
        """As of a shared store."""
        held = await self.get(key)
        return held.value == old and await self._replace(key, held, new, ttl_seconds)

    async def put(self, key: str, value: bytes | None, ttl_seconds: float | None = None) -> None:
        """Write over whatever is there; of two that do so at once, either may win."""
        held = await self.get(key)
        if held.value is not None or value is not None:
            await self._replace(key, held, value, ttl_seconds)

    async def _replace(self, key: str, held: LocalCopy, new: bytes | None, ttl_seconds: float | None) -> bool:
        if new is None:
            return await self._store.swap(key, held.raw, None)
        end = FOREVER if ttl_seconds is None else repr(held.now + ttl_seconds).encode()
        return await self._store.swap(key, held.raw, end + b"\n" + new, ttl_seconds)

    async def remove(self, prefix: str) -> int:
        """As of a shared store."""
        return await self._store.remove(prefix)

    async def close(self) -> None:
        """Close the local store."""
        await self._store.close()


T = TypeVar("T")

MIRROR_SECONDS: Final = 86_400.0
"""How long a value that is kept for longer lies here too, should the shared store lose it."""
ATTEMPT_KEY, ATTEMPT_TTL_SECONDS = "attempt/", 5.0
ATTEMPT_BYTES: Final = 65_536
"""As large as an answer: a store that is full but for a few bytes is not back."""
MOST_REMEMBERED: Final = 20_000

log = structlog.get_logger()


class FallbackStore:
    """Reads and writes `primary`; when it is unavailable, `local` at once, and every few seconds it is tried again.

    * The trial is a write in the background: a read-only store is of no use, and no caller waits for it.
    * A value that is kept for days is copied to `local` too. So this worker does not pay twice for what it was
      answered, whether the primary is gone or comes back empty.
    * What the primary lacks is looked for in `local`, and carried over if it is found.
    * `now` goes on by the primary's clock while it is away.

    `local` belongs to this class alone: what lies in it has its own form.
    """

    def __init__(self, primary: SharedStore, local: SharedStore, circuit: ReconnectBackoff | None = None) -> None:
        self._primary = primary
        self._local = LocalCopies(local)
        self._circuit = ReconnectBackoff() if circuit is None else circuit
        self._ahead: float | None = None
        self._copied: LRUCache[str, None] = LRUCache(MOST_REMEMBERED)
        self._attempt: asyncio.Task[None] | None = None

    @property
    def degraded(self) -> bool:
        """Whether workers do not share this state at the moment: each machine sees only its own."""
        return self._circuit.open

    async def get(self, key: str) -> StoredValue:
        """Return the value, None where there is none or where it has expired. Raises what `local` raises."""
        return await self._either(lambda: self._get_shared(key), lambda: self._get_local(key))

    async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
        """Replace `old` by `new` if the key still holds `old`; None means absent. Return whether it was done."""
        return await self._either(
            lambda: self._swap_shared(key, old, new, ttl_seconds), lambda: self._swap_local(key, old, new, ttl_seconds)
        )

    async def remove(self, prefix: str) -> int:
        """Forget every key that begins with the prefix, there and here; how many there were where there were more.

        Raises `SharedStateUnavailable` if the primary cannot do it, and then nothing is removed here: what is to be
        gone for good must not be waiting there. It is asked whatever the circuit says: a full one still removes.
        """
        shared = await self._primary.remove(prefix)
        return max(shared, await self._local.remove(prefix))

    async def close(self) -> None:
        """Close both."""
        if self._attempt is not None:
            self._attempt.cancel()
            await asyncio.wait([self._attempt])
        await self._primary.close()
        await self._local.close()

    async def _either(self, shared: Callable[[], Awaitable[T]], local: Callable[[], Awaitable[T]]) -> T:
        if (self._attempt is None or self._attempt.done()) and self._circuit.attempt_is_due():
            self._attempt = asyncio.create_task(self._try_again())
        if not self._circuit.open:
            try:
                return await shared()
            except SharedStateUnavailable as error:
                self._failed(error)
        return await local()

    def _failed(self, error: SharedStateUnavailable) -> None:
        if self._circuit.failed():
            log.warning("shared_state.degraded", error=str(error))

    async def _try_again(self) -> None:
        try:
            key = ATTEMPT_KEY + secrets.token_hex(8)
            await self._primary.swap(key, None, bytes(ATTEMPT_BYTES), ATTEMPT_TTL_SECONDS)
        except SharedStateUnavailable as error:
            self._failed(error)
        else:
            if self._circuit.succeeded():
                log.info("shared_state.recovered")

    async def _get_shared(self, key: str) -> StoredValue:
        stored = await self._primary.get(key)
        self._ahead = stored.now - time.monotonic()
        if stored.value is not None:
            return stored
        copy = await self._local.get(key)
        if copy.value is None:
            return stored
        carried = await self._primary.swap(key, None, copy.value, copy.ttl_seconds)
        return StoredValue(copy.value, stored.now) if carried else await self._primary.get(key)

    async def _get_local(self, key: str) -> StoredValue:
        copy = await self._local.get(key)
        return StoredValue(copy.value, copy.now if self._ahead is None else self._ahead + time.monotonic())

    async def _swap_shared(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None) -> bool:
        done = await self._primary.swap(key, old, new, ttl_seconds)
        if new is not None and (ttl_seconds is None or ttl_seconds > MIRROR_SECONDS):
            # Refused, it is there already: then that one is what this worker goes on with.
            kept = new if done else (await self._primary.get(key)).value
            if kept is not None:
                await self._copy(key, kept, MIRROR_SECONDS)
        elif done and (new is None or key in self._copied):
            await self._copy(key, None, None)
        return done

    async def _swap_local(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None) -> bool:
        done = await self._local.swap(key, old, new, ttl_seconds)
        if done:
            self._remember(key, copied=new is not None)
        return done

    async def _copy(self, key: str, value: bytes | None, ttl_seconds: float | None) -> None:
        """Bring the local copy up to date. What was done in the shared store holds without it."""
        try:
            await self._local.put(key, value, ttl_seconds)
        except ProviderError as error:
            log.warning("shared_state.not_copied", error=type(error).__name__)
        self._remember(key, copied=value is not None)

    def _remember(self, key: str, *, copied: bool) -> None:
        """Which keys this process has put into the local store: a newer value elsewhere makes them stale."""
        if copied:
            self._copied[key] = None
        else:
            self._copied.pop(key, None)
