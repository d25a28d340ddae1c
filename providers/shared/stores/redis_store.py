"""A shared store in Redis or Valkey, for workers on several machines."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from providers.errors import NotConfigured, SharedStateUnavailable
from providers.interfaces import StoredValue
from providers.shared.shared_value import key_bytes

PREFIX: Final = b"research:"  # of every key, so that the server can serve other applications, too
ANSWER_SECONDS: Final = 1.0
QUEUE_FACTOR: Final = 10  # a call waits this many times as long for a free connection: bursts are not outages
RETRY_SECONDS: Final = 5.0
MAX_CONNECTIONS: Final = 32
REMOVAL_BATCH: Final = 1_000
SPECIAL: Final = re.compile(rb"[\\*?\[\]]")  # special characters of key patterns

SEARCHED_CHARACTERS: Final = 300
REFUSALS: Final = (
    ("MISCONF", "cannot save to its own disk and takes no writes", "make room on that disk, or see the server's log"),
    ("OutOfMemoryError", "is full", "raise its maxmemory, or remove what other programs keep in it"),
    ("OOM ", "is full", "raise its maxmemory, or remove what other programs keep in it"),
    ("ReadOnlyError", "is a replica that takes no writes", "name the primary in REDIS_URL"),
    ("READONLY", "is a replica that takes no writes", "name the primary in REDIS_URL"),
    ("BusyLoadingError", "is still loading its data", "wait until it has"),
    ("AuthenticationError", "refuses the user or password", "check REDIS_URL"),
    ("NOAUTH", "refuses the user or password", "check REDIS_URL"),
    ("NoPermissionError", "refuses a command to this user", "give it +eval +get +set +del +time +scan +unlink"),
)
"""Words in the class or message of an error, the problem that they mean, and its remedy."""

CURRENT: Final = """
local current = redis.pcall('GET', KEYS[1])
if type(current) == 'table' then current = false end
"""
"""A key that is not a string is not ours, and counts as absent."""
GET: Final = f"""{CURRENT}
local now = redis.call('TIME')
return {{current, now[1], now[2]}}
"""
SWAP: Final = f"""{CURRENT}
if ARGV[1] == '' then
  if current then return 0 end
elseif current ~= ARGV[2] then return 0 end
if ARGV[3] == '' or ARGV[6] ~= '' then redis.call('DEL', KEYS[1]) end
if ARGV[3] == '' then return 1
elseif ARGV[5] == '' then redis.call('SET', KEYS[1], ARGV[4])
else redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[5]) end
return 1
"""
"""Compare and swap in one step of the server.

At `maxmemory` a server refuses the first write of a script that needs memory, and no write after one that needs none:
a script is done whole or not at all. A removal in front of it thus lets a value exceed the limit.
"""


class RedisSharedStore:
    """A store at a URL of redis-py (redis, rediss or unix): Redis 6 and later, or Valkey.

    No change is retried: one whose answer was lost may have been made. A server that is gone, paused, loading, full or
    a replica raises `SharedStateUnavailable`, within about a second if a connection is free.
    """

    def __init__(self, url: str, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        """Check the URL, without connecting. Raises `NotConfigured` for a malformed one, which may have a password."""
        try:
            pool = BlockingConnectionPool.from_url(
                url,
                max_connections=MAX_CONNECTIONS,
                timeout=QUEUE_FACTOR * answer_seconds,
                socket_timeout=answer_seconds,
                socket_connect_timeout=answer_seconds,
                retry=Retry(NoBackoff(), 0),
                protocol=2,
            )
            pool.connection_class(**pool.connection_kwargs)  # reports invalid options now, not at a call
        except (ValueError, TypeError, RedisError):
            message = "REDIS_URL is no address of a Redis server: write it as redis://HOST:PORT/0"
            raise NotConfigured(message) from None
        # redis-py has no types for the method that sends a plain command.
        self._redis: Any = Redis(connection_pool=pool)

    async def get(self, key: str) -> StoredValue:
        """Return the value; None if there is none or it has expired."""
        async with _translated():
            value, seconds, microseconds = await self._redis.execute_command("EVAL", GET, 1, PREFIX + key_bytes(key))
        return StoredValue(value, int(seconds) + int(microseconds) / 1e6)

    async def swap(
        self,
        key: str,
        old: bytes | None,
        new: bytes | None,
        ttl_seconds: float | None = None,
        *,
        over_limit: bool = False,
    ) -> bool:
        """Replace `old` by `new` if it is the current value; None means absent. Return whether it was replaced.

        With `over_limit` the value is written even if the server has reached its `maxmemory`.
        """
        milliseconds = "" if ttl_seconds is None else max(1, round(ttl_seconds * 1000))
        arguments = (
            "" if old is None else 1,
            old or b"",
            "" if new is None else 1,
            new or b"",
            milliseconds,
            1 if over_limit else "",
        )
        async with _translated():
            return bool(await self._redis.execute_command("EVAL", SWAP, 1, PREFIX + key_bytes(key), *arguments))

    async def remove(self, prefix: str) -> int:
        """Remove every key that starts with the prefix; return their number."""
        literal = SPECIAL.sub(rb"\\\g<0>", key_bytes(prefix))
        cursor = b"0"
        removed = 0
        async with _translated():
            while True:
                scan = ("SCAN", cursor, "MATCH", PREFIX + literal + b"*", "COUNT", REMOVAL_BATCH)
                cursor, keys = await self._redis.execute_command(*scan)
                if keys:
                    removed += await self._redis.execute_command("UNLINK", *keys)
                if int(cursor) == 0:
                    return removed

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()
        await self._redis.connection_pool.disconnect()


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        yield
    except (RedisError, OSError, EOFError, TimeoutError, UnicodeError) as error:
        raise _unavailable(error) from None


def _unavailable(error: Exception) -> SharedStateUnavailable:
    # The server's own message is not shown: it may contain users and addresses. Errors in scripts have their code
    # behind other words in some versions.
    text = f"{type(error).__name__} {error}"[:SEARCHED_CHARACTERS]
    for code, problem, remedy in REFUSALS:
        if code in text:
            return SharedStateUnavailable(f"Redis {problem}", remedy=remedy, retry_after=RETRY_SECONDS)
    problem = f"Redis cannot be used ({type(error).__name__})"
    return SharedStateUnavailable(problem, remedy="check REDIS_URL and the server's log", retry_after=RETRY_SECONDS)
