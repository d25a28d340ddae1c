"""Share state through Redis or Valkey, for workers on several machines."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from providers.errors import NotConfigured, SharedStateUnavailable
from providers.interfaces import StoredValue
from providers.shared.store_keys import key_bytes

LOOKS: Final = 10
"""How often one wait is looked after; a standstill of this process counts as one look, however long it was."""


@asynccontextmanager
async def stall_tolerant_timeout(seconds: float) -> AsyncIterator[None]:
    """Give up what the block waits for after so many seconds of waiting. Raises TimeoutError.

    A plain timeout that ends while the process stands still (a busy host, a long collection of garbage) fires before
    an answer that has long arrived is read, and takes a server in good health for one that is gone.
    """
    async with asyncio.timeout(None) as limit:
        watch = _Watch(limit, seconds / LOOKS)
        try:
            yield
        finally:
            watch.end()


class _Watch:
    """Looks a few times, one pause apart, and lets the limit fire at the last look."""

    def __init__(self, limit: asyncio.Timeout, pause: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._limit = limit
        self._pause = pause
        self._left = LOOKS
        self._next = self._loop.call_later(pause, self._look)

    def end(self) -> None:
        """Look no more."""
        self._next.cancel()

    def _look(self) -> None:
        self._left -= 1
        if self._left:
            self._next = self._loop.call_later(self._pause, self._look)
        else:
            self._limit.reschedule(self._loop.time())


PREFIX: Final = b"research:"
"""Of every key, so that the server may serve other applications too."""
ANSWER_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 5.0
BEYOND_PATIENCE: Final = 10
"""The library's own limits, which count standstills of this process too, are for what comes after: closing."""
MOST_CONNECTIONS: Final = 32
REMOVED_AT_ONCE: Final = 1_000
SPECIAL: Final = b"\\*?[]"

KINDS_BY_ERROR: Final[dict[type[RedisError], str]] = {
    OutOfMemoryError: "full",
    ReadOnlyError: "read_only",
    NoPermissionError: "forbidden",
    AuthenticationError: "password",
}
KINDS_BY_SIGN: Final = {
    "OOM ": "full",
    "READONLY ": "read_only",
    "NOREPLICAS ": "too_few_replicas",
    "MISCONF ": "no_disk",
    "NOPERM ": "forbidden",
    "ACL failure in script": "forbidden",
}
"""Where the library has no error of its own, and where an older server wraps the error of a script in its words."""

HELD: Final = """
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then held = false end
"""
"""A key that holds no text is not ours and counts as nothing."""
GET: Final = f"""{HELD}
local now = redis.call('TIME')
return {{held, now[1], now[2]}}
"""
SWAP: Final = f"""{HELD}
if ARGV[1] == '' then
  if held then return 0 end
elseif held ~= ARGV[2] then return 0 end
if ARGV[3] == '' then redis.call('DEL', KEYS[1])
elseif ARGV[5] == '' then redis.call('SET', KEYS[1], ARGV[4])
else redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5]) end
return 1
"""
"""Compare and set in one step of the server."""


class RedisSharedStore:
    """Made with a URL of redis-py: redis, rediss or unix. Works with Redis 6 and later, and with Valkey.

    Nothing is tried twice: a change whose answer was lost may have been made. Whatever goes wrong raises
    `SharedStateUnavailable` within about a second: a server that is gone, paused, loading, full or a replica.
    """

    def __init__(self, url: str, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        """Raises `NotConfigured` if the URL is malformed; its text is not shown, for it may hold a password."""
        self._answer_seconds = answer_seconds
        self._free = asyncio.Semaphore(MOST_CONNECTIONS)
        self._silences = 0
        # redis-py leaves the method for a plain command without types.
        self._redis: Any = Redis(connection_pool=_pool(url, answer_seconds))

    async def get(self, key: str) -> StoredValue:
        """Return the value, None where there is none or where it has expired."""
        async with self._answered():
            value, seconds, microseconds = await self._redis.execute_command("EVAL", GET, 1, PREFIX + key_bytes(key))
        return StoredValue(value, int(seconds) + int(microseconds) / 1e6)

    async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
        """Replace `old` by `new` if the key still holds `old`; None means absent. Return whether it was done."""
        milliseconds = "" if ttl_seconds is None else max(1, round(ttl_seconds * 1000))
        arguments = ("" if old is None else 1, old or b"", "" if new is None else 1, new or b"", milliseconds)
        async with self._answered():
            return bool(await self._redis.execute_command("EVAL", SWAP, 1, PREFIX + key_bytes(key), *arguments))

    async def remove(self, prefix: str) -> int:
        """Remove every key that begins with the prefix; return how many."""
        pattern = _literally(PREFIX + key_bytes(prefix)) + b"*"
        cursor, removed = b"0", 0
        while True:
            async with self._answered():
                cursor, keys = await self._redis.execute_command(
                    "SCAN", cursor, "MATCH", pattern, "COUNT", REMOVED_AT_ONCE
                )
                if keys:
                    removed += await self._redis.execute_command("UNLINK", *keys)
            if int(cursor) == 0:
                return removed

    async def eviction_policy(self) -> str | None:
        """Return what the server does when it is full (`noeviction` is required); None if it does not say."""
        try:
            async with self._answered():
                told = await self._redis.execute_command("INFO", "memory")
        except SharedStateUnavailable:
            return None
        policy = told.get("maxmemory_policy")
        return None if policy is None else str(policy)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._redis.aclose()
        await self._redis.connection_pool.disconnect()

    @asynccontextmanager
    async def _answered(self) -> AsyncIterator[None]:
        """Wait for a free connection, then for the server, but not long: only the server's time is counted."""
        silences = self._silences
        async with self._free:
            if self._silences != silences:  # it let down those in front: the rest need not find out one by one
                raise _unavailable(TimeoutError())
            try:
                async with stall_tolerant_timeout(self._answer_seconds):
                    yield
            except ResponseError as error:
                raise _unavailable(error) from None
            except (RedisError, OSError, EOFError, TimeoutError, UnicodeError) as error:
                self._silences += 1
                raise _unavailable(error) from None


def _pool(url: str, answer_seconds: float) -> BlockingConnectionPool:
    if not _well_formed(url):
        raise _malformed()
    try:
        pool = BlockingConnectionPool.from_url(
            _without_options(url),
            max_connections=MOST_CONNECTIONS,
            timeout=answer_seconds * BEYOND_PATIENCE,
            socket_timeout=answer_seconds * BEYOND_PATIENCE,
            socket_connect_timeout=answer_seconds * BEYOND_PATIENCE,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        pool.connection_class(**pool.connection_kwargs)  # what it does not understand it tells here, not at a call
    except (ValueError, TypeError, RedisError):
        raise _malformed() from None
    return pool


def _without_options(url: str) -> str:
    """The address with those of its options that say how to reach the server; the rest is decided here."""
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name == "db" or name.startswith("ssl_")]
    return urlunsplit(parts._replace(query=urlencode(kept)))


def _well_formed(url: str) -> bool:
    try:
        parts = urlsplit(url)
        database = parts.path.removeprefix("/")
        if parts.scheme == "unix":
            return bool(parts.path)
        return bool(
            parts.scheme in {"redis", "rediss"}
            and parts.hostname
            and parts.port != 0
            and (not database or database.isdecimal())
        )
    except ValueError:
        return False


def _malformed() -> NotConfigured:
    return NotConfigured("REDIS_URL is no address of a Redis server: write it as redis://HOST:PORT/0")


def _unavailable(error: Exception) -> SharedStateUnavailable:
    """The server's own words stay away: they may name users and addresses."""
    message = f"Redis cannot be used: {type(error).__name__}"
    return SharedStateUnavailable(message, retry_after=RETRY_SECONDS, kind=_kind_of(error))


def _kind_of(error: Exception) -> str:
    for sort, kind in KINDS_BY_ERROR.items():
        if isinstance(error, sort):
            return kind
    if not isinstance(error, ResponseError):
        return "silent"
    return next((kind for sign, kind in KINDS_BY_SIGN.items() if sign in str(error)), "refused")


def _literally(text: bytes) -> bytes:
    """A text as a pattern that fits itself alone."""
    return b"".join(b"\\" + bytes([each]) if each in SPECIAL else bytes([each]) for each in text)
