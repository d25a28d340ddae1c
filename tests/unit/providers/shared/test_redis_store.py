"""What only Redis does: addresses, other people's keys, and servers in trouble."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from providers.errors import NotConfigured, SharedStateUnavailable
from providers.interfaces import StoredValue
from providers.shared.stores.redis_store import RedisSharedStore
from tests.fakes.valkey import ValkeyServer, free_port

PASSWORD = "hunter2-secret"
SOON = 30.0
BRIEFLY = 0.3
"""How long a test that needs silence waits for an answer."""


@asynccontextmanager
async def opened(url: str, answer_seconds: float = SOON) -> AsyncIterator[RedisSharedStore]:
    """A store that is closed with the block. It waits long, for a busy machine is no server in trouble."""
    store = RedisSharedStore(url, answer_seconds=answer_seconds)
    try:
        yield store
    finally:
        await store.close()


async def told_of_silence(store: RedisSharedStore) -> None:
    """One call, which raises."""
    with pytest.raises(SharedStateUnavailable):
        await store.get("k")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:6379",
        f"http://:{PASSWORD}@localhost",
        f"redis://:{PASSWORD}@localhost:port/0",
        f"redis://:{PASSWORD}@localhost:99999/0",
        f"redis://:{PASSWORD}@localhost/zero",
        f"redis://:{PASSWORD}@/0",
        f"redis://:{PASSWORD}@[::1/0",
        f"redis://:{PASSWORD}@localhost/?db=many",
        f"redis://:{PASSWORD}@localhost/0?ssl_no_such_option=1",
        "unix://",
    ],
)
def test_an_address_that_is_none_is_told_by_its_variable(url: str) -> None:
    """The message names the variable and shows nothing of its value."""
    with pytest.raises(NotConfigured) as told:
        RedisSharedStore(url)
    assert "REDIS_URL" in str(told.value)
    assert told.value.__cause__ is None
    assert PASSWORD not in repr(told.value)


@pytest.mark.parametrize(
    "query",
    [
        "decode_responses=true",
        "socket_timeout=1000&socket_connect_timeout=1000",
        "protocol=3&max_connections=many&no_such_option=1",
    ],
)
async def test_options_in_the_address_change_no_promise(valkey: ValkeyServer, query: str) -> None:
    """Whatever an address sets, values stay bytes and a server that hangs is given up in time."""
    address = f"{valkey.url}?{query}"
    async with opened(address) as store:
        await store.swap("k", None, b"\xff")
        assert (await store.get("k")).value == b"\xff"
    async with opened(address, BRIEFLY) as store:
        valkey.pause()
        try:
            async with asyncio.timeout(SOON):
                await told_of_silence(store)
        finally:
            valkey.resume()


async def test_keys_are_ours_alone(valkey: ValkeyServer) -> None:
    """Every key has our prefix, and removing everything touches nobody else's; ends are set where asked for."""
    await valkey.tell("SET", "theirs", "1")
    async with opened(valkey.url) as store:
        await store.swap("kept", None, b"1")
        await store.swap("short", None, b"1", 600.0)
        assert sorted(await valkey.tell("KEYS", "*")) == [b"research:kept", b"research:short", b"theirs"]
        assert await valkey.tell("PTTL", "research:kept") == -1
        assert 0 < await valkey.tell("PTTL", "research:short") <= 600_000
        assert await store.remove("") == 2
        assert await valkey.tell("KEYS", "*") == [b"theirs"]


async def test_a_key_of_another_kind_counts_as_nothing(valkey: ValkeyServer) -> None:
    """A list under one of our keys is a miss and is written over (F17)."""
    await valkey.tell("LPUSH", "research:k", "x")
    async with opened(valkey.url) as store:
        assert (await store.get("k")).value is None
        assert await store.swap("k", None, b"1")
        assert (await store.get("k")).value == b"1"


async def test_a_server_that_was_started_again_is_used_at_once(valkey: ValkeyServer) -> None:
    """Connections that a restart has closed, and scripts that it has forgotten, cost no failure."""
    async with opened(valkey.url) as store:
        await asyncio.gather(*(store.get(str(number)) for number in range(10)))
        await valkey.tell("SCRIPT", "FLUSH")
        assert await store.swap("k", None, b"1")
        await asyncio.to_thread(valkey.kill)
        await asyncio.to_thread(valkey.start)
        for number in range(10):
            assert await store.swap(f"k{number}", None, b"1")


async def test_troubles_of_a_server_are_one_error(valkey: ValkeyServer) -> None:
    """Full, a replica, without permission, loading or gone: `SharedStateUnavailable` without the server's words."""
    async with opened(valkey.url) as store:

        async def refused() -> str:
            with pytest.raises(SharedStateUnavailable) as told:
                await store.swap("k", None, b"x" * 100, 60.0)
            assert told.value.retry_after
            return str(told.value)

        await valkey.tell("CONFIG", "SET", "maxmemory", "1")
        assert await refused() == "Redis cannot be used: OutOfMemoryError"
        await valkey.tell("CONFIG", "SET", "maxmemory", "0")
        await valkey.tell("REPLICAOF", "127.0.0.1", free_port())
        assert await refused() == "Redis cannot be used: ReadOnlyError"
        await valkey.tell("REPLICAOF", "NO", "ONE")
        assert await store.swap("k", None, b"1", 60.0)
    for url in (
        f"redis://:{PASSWORD}@127.0.0.1:{valkey.port}/0",
        f"redis://127.0.0.1:{free_port()}",
        f"{valkey.url}9999",
    ):
        async with opened(url) as wrong:
            with pytest.raises(SharedStateUnavailable) as told:
                await wrong.get("k")
            assert PASSWORD not in repr(told.value)


async def test_a_paused_server_holds_up_nobody_for_long(valkey: ValkeyServer) -> None:
    """More callers than connections are all told within the time for one answer, and no connection is lost for it."""
    async with opened(valkey.url) as store:
        await store.swap("k", None, b"1")
    async with opened(valkey.url, BRIEFLY) as store:
        valkey.pause()
        try:
            async with asyncio.timeout(SOON):  # one after another they would take more than a minute
                told = await asyncio.gather(*(store.get("k") for _ in range(8_000)), return_exceptions=True)
        finally:
            valkey.resume()
        assert {type(each) for each in told} == {SharedStateUnavailable}
        async with asyncio.timeout(SOON):
            while not await all_answered(store, 100):
                await asyncio.sleep(BRIEFLY)
    gc.collect()


async def all_answered(store: RedisSharedStore, number: int) -> bool:
    """Whether so many calls at once find the value: never again if connections were lost."""
    found = await asyncio.gather(*(store.get("k") for _ in range(number)), return_exceptions=True)
    return all(isinstance(each, StoredValue) and each.value == b"1" for each in found)
