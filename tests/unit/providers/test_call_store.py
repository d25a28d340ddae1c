"""The journal of paid calls, alone and shared by several real processes."""

import asyncio
import contextlib
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from providers.call_store import SqliteCallStore
from providers.errors import CallInFlight, NotConfigured, StorageFull

ROOT = Path(__file__).resolve().parents[3]
SOON = 30.0

BEGINNER = """
import asyncio, sys
from pathlib import Path
from providers.call_store import SqliteCallStore
from providers.errors import CallInFlight
async def main():
    store = SqliteCallStore(Path(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    won = []
    for number in range(int(sys.argv[2])):
        try:
            if await store.begin(f"key-{number}", "r-1", 60.0) is None:
                won.append(number)
        except CallInFlight:
            pass
    print(*won, flush=True)
    sys.stdin.readline()
asyncio.run(main())
"""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteCallStore]:
    """A store in a folder that does not exist yet."""
    opened = SqliteCallStore(tmp_path / "data" / "calls.sqlite3")
    yield opened
    await opened.close()


@contextlib.asynccontextmanager
async def another(store: SqliteCallStore) -> AsyncIterator[SqliteCallStore]:
    """A second store on the same file, as another process has it."""
    opened = SqliteCallStore(store.path)
    try:
        yield opened
    finally:
        await opened.close()


async def expire(store: SqliteCallStore) -> None:
    """Let every lease run out, as time does."""

    def blocking() -> None:
        with contextlib.closing(sqlite3.connect(store.path)) as connection, connection:
            connection.execute("UPDATE calls SET leased_until = 0")

    await asyncio.to_thread(blocking)


async def test_an_answered_call_is_never_made_again(store: SqliteCallStore) -> None:
    """The first attempt gets the call; every later one, in any process, gets its answer (C0-25)."""
    assert await store.begin("k", "r-1", 60.0) is None
    await store.finish("k", '{"answer": "ü"}')
    assert await store.begin("k", "r-1", 60.0) == '{"answer": "ü"}'
    async with another(store) as other:
        assert await other.begin("k", "r-1", 60.0) == '{"answer": "ü"}'


async def test_a_call_under_way_is_waited_for(store: SqliteCallStore) -> None:
    """While a lease lives others are told how long to wait: what is left of it, at least a second."""
    await store.begin("k", "r-1", 60.0)
    async with another(store) as other:
        with pytest.raises(CallInFlight) as told:
            await other.begin("k", "r-1", 60.0)
        assert told.value.retry_after is not None
        assert 1.0 <= told.value.retry_after <= 60.0
        await store.renew("k", 0.2)
        with pytest.raises(CallInFlight) as told:
            await other.begin("k", "r-1", 60.0)
        assert told.value.retry_after == 1.0


async def test_a_lease_that_ran_out_frees_the_call(store: SqliteCallStore) -> None:
    """What a killed process had begun, the next attempt gets; the late answer of the first one still counts."""
    await store.begin("k", "r-1", 60.0)
    await expire(store)
    async with another(store) as other:
        assert await other.begin("k", "r-1", 60.0) is None
        await store.release("k")
        with pytest.raises(CallInFlight):
            await store.begin("k", "r-1", 60.0)
        await store.finish("k", "first")
        await other.finish("k", "second")
        assert await other.begin("k", "r-1", 60.0) == "first"


async def test_renewing_is_for_the_owner(store: SqliteCallStore) -> None:
    """A process that lost its lease cannot shorten or lengthen the new owner's."""
    await store.begin("k", "r-1", 60.0)
    await expire(store)
    async with another(store) as other:
        await other.begin("k", "r-1", 60.0)
        await store.renew("k", 0.0)
        with pytest.raises(CallInFlight):
            await store.begin("k", "r-1", 60.0)


async def test_a_released_call_is_free_at_once(store: SqliteCallStore) -> None:
    """Giving up without an answer lets the next attempt begin; releasing what is answered changes nothing."""
    await store.begin("k", "r-1", 60.0)
    await store.release("k")
    assert await store.begin("k", "r-1", 60.0) is None
    await store.finish("k", "answer")
    await store.release("k")
    assert await store.begin("k", "r-1", 60.0) == "answer"


async def test_a_cancelled_begin_leaves_no_lease(store: SqliteCallStore) -> None:
    """Cancelling an attempt while it begins does not block the call for the length of a lease."""
    await store.begin("other", "r-1", 60.0)
    beginning = asyncio.create_task(store.begin("k", "r-1", 600.0))
    await asyncio.sleep(0)
    beginning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await beginning
    async with another(store) as other:
        await store.renew("other", 60.0)
        assert await other.begin("k", "r-1", 60.0) is None


async def test_forgetting_removes_a_run_and_no_other(store: SqliteCallStore) -> None:
    """A deleted run leaves no rows behind, answered or not; a late answer does not bring it back."""
    for key, research_id in (("a", "r-1"), ("b", "r-1"), ("c", "r-2")):
        await store.begin(key, research_id, 60.0)
    await store.finish("a", "answer")
    assert await store.forget("r-1") == 2
    assert await store.forget("r-1") == 0
    await store.finish("b", "late")
    assert await store.begin("b", "r-1", 60.0) is None
    with pytest.raises(CallInFlight):
        await store.begin("c", "r-2", 60.0)


async def test_processes_that_race_share_the_calls(store: SqliteCallStore) -> None:
    """Of several processes that begin the same calls at the same moment, each call is won by exactly one."""
    count, pipe = 40, asyncio.subprocess.PIPE
    arguments = (sys.executable, "-c", BEGINNER, str(store.path), str(count))
    racers = [await asyncio.create_subprocess_exec(*arguments, stdin=pipe, stdout=pipe, cwd=ROOT) for _ in range(3)]
    async with asyncio.timeout(SOON):
        for racer in racers:
            await racer.stdout.readline()  # type: ignore[union-attr]
        for racer in racers:
            racer.stdin.write(b"\n")  # type: ignore[union-attr]
        won = [int(number) for racer in racers for number in (await racer.stdout.readline()).split()]  # type: ignore[union-attr]
        for racer in racers:
            await racer.communicate(b"\n")
    assert sorted(won) == list(range(count))


async def test_a_killed_process_frees_its_calls_with_its_lease(store: SqliteCallStore) -> None:
    """After kill -9 the file is sound, the lease holds until it runs out, and then the call can be made."""
    pipe = asyncio.subprocess.PIPE
    killed = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", BEGINNER, str(store.path), "1"), stdin=pipe, stdout=pipe, cwd=ROOT
    )
    async with asyncio.timeout(SOON):
        assert killed.stdin
        assert killed.stdout
        killed.stdin.write(b"\n")
        await killed.stdout.readline()
        assert await killed.stdout.readline() == b"0\n"
        killed.kill()
        await killed.communicate()
    with pytest.raises(CallInFlight):
        await store.begin("key-0", "r-1", 60.0)
    await expire(store)
    assert await store.begin("key-0", "r-1", 60.0) is None


async def test_a_full_disk_is_told_as_such(store: SqliteCallStore) -> None:
    """No space left raises `StorageFull`, loses nothing that was written, and heals when there is space again."""
    await store.begin("k", "r-1", 60.0)
    await store.finish("k", "answer")
    await store._submit(lambda: store._open().execute("PRAGMA max_page_count = 1"))
    with pytest.raises(StorageFull):
        await store.begin("more" * 5_000, "r-1", 60.0)
    assert await store.begin("k", "r-1", 60.0) == "answer"
    await store._submit(lambda: store._open().execute("PRAGMA max_page_count = 1000000"))
    assert await store.begin("again", "r-1", 60.0) is None


async def test_a_file_that_is_no_store_is_told_as_such(tmp_path: Path) -> None:
    """A damaged file, or a folder that cannot be made, raises `NotConfigured` with the name of the file."""
    (tmp_path / "calls.sqlite3").write_bytes(b"no database" * 100)
    damaged = SqliteCallStore(tmp_path / "calls.sqlite3")
    with pytest.raises(NotConfigured, match=r"calls\.sqlite3 cannot be used"):
        await damaged.begin("k", "r-1", 60.0)
    await damaged.close()
    impossible = SqliteCallStore(tmp_path / "calls.sqlite3" / "below" / "calls.sqlite3")
    with pytest.raises(NotConfigured):
        await impossible.begin("k", "r-1", 60.0)
    await impossible.close()


async def test_the_journal_is_the_owners_alone(store: SqliteCallStore) -> None:
    """Answers are not readable for other accounts of the machine."""
    await store.begin("k", "r-1", 60.0)
    assert store.path.stat().st_mode & 0o077 == 0
