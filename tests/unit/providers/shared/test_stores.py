"""Shared stores: the same promises of every kind, races of real processes, and each kind's own troubles."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest
from redis.exceptions import AuthenticationError, BusyLoadingError, NoPermissionError, ResponseError

from providers.errors import NotConfigured, SharedStateUnavailable, StorageFull
from providers.interfaces import SharedStore
from providers.shared.stores import sqlite_store
from providers.shared.stores.redis_store import RedisSharedStore, _unavailable
from providers.shared.stores.sqlite_store import SqliteSharedStore
from tests.fakes.valkey import ValkeyServer, free_port
from tests.unit.providers.shared.conftest import everywhere

SOON = 30.0
BRIEFLY = 0.25
PASSWORD = "hunter2-secret"


async def value_of(store: SharedStore, key: str) -> bytes | None:
    return (await store.get(key)).value


async def until_gone(store: SharedStore, key: str) -> None:
    async with asyncio.timeout(SOON):
        while await value_of(store, key) is not None:
            await asyncio.sleep(0.01)


@everywhere
async def test_a_value_is_replaced_only_if_it_is_the_expected_one(store: SharedStore) -> None:
    """Each way to swap succeeds with the expected value, fails with any other, and then changes nothing."""
    steps: list[tuple[bytes | None, bytes | None, bool, bytes | None]] = [
        (b"1", b"2", False, None),
        (b"1", None, False, None),
        (None, b"1", True, b"1"),
        (None, b"2", False, b"1"),
        (b"2", b"3", False, b"1"),
        (b"2", None, False, b"1"),
        (b"1", b"2", True, b"2"),
        (b"2", None, True, None),
    ]
    for old, new, done, after in steps:
        assert await store.swap("k", old, new) is done, (old, new)
        assert await value_of(store, "k") == after


@everywhere
async def test_values_expire_and_each_change_sets_the_time(store: SharedStore) -> None:
    """An expired value counts as absent; a swap without a time makes a value stay."""
    assert await store.swap("short", None, b"1", 0.03)
    assert await store.swap("shortened", None, b"1", 600.0)
    assert await store.swap("shortened", b"1", b"1", 0.03)
    while not await store.swap("stays", b"1", b"1"):  # on a loaded machine it may have expired in between
        assert await store.swap("stays", None, b"1", 0.03)
    await store.swap("ended", None, b"1", 0.04)
    for key in ("short", "shortened", "ended"):
        await until_gone(store, key)
    assert not await store.swap("short", b"1", b"2")
    assert not await store.swap("short", b"1", None)
    assert await store.swap("short", None, b"2")
    assert await value_of(store, "stays") == b"1"


@everywhere
async def test_a_prefix_removes_its_keys_and_no_other(store: SharedStore) -> None:
    """A prefix is taken literally, however many keys it has; expired ones are not counted."""
    others = ["calls/r1", "calls/r-10/a", "Calls/r-1/a", "a*", "axc", "é"]
    many = [f"calls/r-1/{number}" for number in range(1_100)]  # more than a server lists at once
    await asyncio.gather(*(store.swap(key, None, b"1") for key in [*others, *many, "calls/r-1/\U0010ffff", "a?c"]))
    await store.swap("calls/r-1/expired", None, b"1", 0.01)
    await until_gone(store, "calls/r-1/expired")
    assert await store.remove("calls/r-1/") == 1_101
    assert await store.remove("calls/r-1/") == 0
    assert await store.remove("a?") == 1
    assert [await value_of(store, key) for key in others] == [b"1"] * len(others)


async def test_a_file_that_is_busy_or_full(tmp_path: Path) -> None:
    """A writer that never ends is an outage and a full disk `StorageFull`; nothing is lost, and both heal."""
    path = tmp_path / "shared.sqlite3"
    store = SqliteSharedStore(path, durable=True, busy_timeout_seconds=BRIEFLY)
    patient = SqliteSharedStore(path, durable=True, busy_timeout_seconds=SOON)
    try:
        assert await store.swap("k", None, b"1")
        with contextlib.closing(sqlite3.connect(store.path, isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            with pytest.raises(SharedStateUnavailable) as raised:
                await store.swap("k", b"1", b"2")
            assert raised.value.retry_after == 1.0
            assert await value_of(store, "k") == b"1"
            waiting = asyncio.create_task(patient.swap("k", b"1", b"2"))
            await asyncio.sleep(BRIEFLY)
            assert not waiting.done()
            writer.execute("ROLLBACK")
        assert await waiting
        # No cursor leaves the thread: one that is freed in another thread resets the error of the next statement.
        await store._run(lambda connection: connection.execute("PRAGMA max_page_count = 1").fetchall())
        with pytest.raises(StorageFull):
            await store.swap("more", None, b"x" * 50_000)
        assert await value_of(store, "k") == b"2"
        await store._run(lambda connection: connection.execute("PRAGMA max_page_count = 1000000").fetchall())
        assert await store.swap("more", None, b"x" * 50_000)
    finally:
        await store.close()
        await patient.close()


async def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    """A damaged file, or a folder that cannot be made, raises `NotConfigured`."""
    (tmp_path / "shared.sqlite3").write_bytes(b"no database" * 100)
    for path in (tmp_path / "shared.sqlite3", tmp_path / "shared.sqlite3" / "below" / "shared.sqlite3"):
        store = SqliteSharedStore(path, durable=True)
        try:
            with pytest.raises(NotConfigured, match=r"cannot be (used|stored)"):
                await store.get("k")
        finally:
            await store.close()


async def test_removed_values_leave_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the owner's file nor its log contains removed or expired values; nobody else may read them."""
    monkeypatch.setattr(sqlite_store, "PRUNE_INTERVAL_SECONDS", 0.0)
    store = SqliteSharedStore(tmp_path / "data" / "shared.sqlite3", durable=False)
    try:
        for number in range(50):
            await store.swap(
                f"calls/one/{number}", None, b"a question of a person " * 100, 600.0 if number % 2 else 0.001
            )
        await until_gone(store, "calls/one/48")
        await store.swap("other", None, b"1")
        assert await store.remove("calls/one/") == 25
        files = list(store.path.parent.iterdir())
        assert {path.name for path in files} >= {"shared.sqlite3", "shared.sqlite3-wal"}
        assert not any(path.stat().st_mode & 0o077 for path in files)
        assert not any(b"a question of a person" in path.read_bytes() for path in files)
    finally:
        await store.close()


async def test_keys_of_others_stay(valkey: ValkeyServer) -> None:
    """Every key has our prefix, and a key of another type counts as nothing and is written over (F17)."""
    await valkey.tell("SET", "theirs", "1")
    await valkey.tell("LPUSH", "research:k", "x")
    store = RedisSharedStore(valkey.url, answer_seconds=SOON)
    try:
        assert await value_of(store, "k") is None
        assert await store.swap("k", None, b"1")
        assert await store.remove("") == 1
    finally:
        await store.close()
    assert await valkey.tell("KEYS", "*") == [b"theirs"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ResponseError("MISCONF Errors writing to the AOF file: No space left"), "Redis cannot save to its own disk"),
        (ResponseError("Error running script (call to f_1): @user_script:5: -MISCONF Redis is"), "Redis cannot save"),
        (ResponseError("Error running script (call to f_1): @user_script:5: -OOM command"), "Redis is full: raise"),
        (ResponseError("Error running script (call to f_1): @user_script:5: -READONLY You"), "Redis is a replica"),
        (BusyLoadingError("Redis is loading the dataset in memory"), "Redis is still loading its data: wait"),
        (AuthenticationError("invalid username-password pair"), "Redis refuses the user or password: check REDIS_URL"),
        (ResponseError("NOAUTH Authentication required."), "Redis refuses the user or password"),
        (NoPermissionError("User x has no permissions to run 'eval'"), "Redis refuses a command to this user: give"),
        (ResponseError(f"unknown {PASSWORD}"), "Redis cannot be used (ResponseError): check REDIS_URL"),
    ],
)
def test_a_refusal_of_any_version_is_named_with_its_remedy(error: Exception, message: str) -> None:
    """Older servers wrap the code of an error in a script into other words; their own words are not shown."""
    shown = str(_unavailable(error))
    assert shown.startswith(message)
    assert PASSWORD not in shown
    assert "user_script" not in shown


async def test_servers_in_trouble_are_outages(valkey: ValkeyServer) -> None:
    """A server that is full, read-only, gone, protected or silent raises in time, and a healed one works again."""
    store = RedisSharedStore(valkey.url, answer_seconds=2.0)
    try:
        assert await store.swap("k", None, b"1")
        await valkey.tell("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(SharedStateUnavailable, match="is full: raise its maxmemory"):
            await store.swap("full", None, b"x" * 1_000)
        await valkey.tell("CONFIG", "SET", "maxmemory", "0")
        await valkey.tell("REPLICAOF", "127.0.0.1", free_port())
        with pytest.raises(SharedStateUnavailable, match=r"is a replica.*name the primary"):
            await store.swap("k", b"1", b"2")
        await valkey.tell("REPLICAOF", "NO", "ONE")
        valkey.pause()
        try:
            async with asyncio.timeout(SOON):  # one after another they would take minutes
                outcomes = await asyncio.gather(*(store.get("k") for _ in range(100)), return_exceptions=True)
        finally:
            valkey.resume()
        assert {type(each) for each in outcomes} == {SharedStateUnavailable}
        async with asyncio.timeout(SOON):
            while any(isinstance(each, Exception) for each in await asyncio.gather(
                *(store.get("k") for _ in range(100)), return_exceptions=True
            )):  # fmt: skip
                await asyncio.sleep(BRIEFLY)
    finally:
        await store.close()
    with pytest.raises(NotConfigured, match="REDIS_URL") as misspelled:
        RedisSharedStore(f"redis://:{PASSWORD}@localhost:99999/0")
    assert PASSWORD not in repr(misspelled.value)
    for url in (f"redis://:{PASSWORD}@127.0.0.1:{valkey.port}/0", f"redis://127.0.0.1:{free_port()}"):
        wrong = RedisSharedStore(url)
        with pytest.raises(SharedStateUnavailable) as raised:
            await wrong.get("k")
        assert PASSWORD not in repr(raised.value)
        await wrong.close()
