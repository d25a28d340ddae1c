"""What only the SQLite file does."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from providers.errors import NotConfigured, SharedStateUnavailable, StorageFull
from providers.shared.paid_calls import SharedCallStore
from providers.shared.stores import sqlite_store
from providers.shared.stores.sqlite_store import PATIENCE_SECONDS, SqliteSharedStore, pauses

BRIEFLY = 0.25
SOON = 60.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteSharedStore]:
    """A durable store in a folder that does not exist yet."""
    opened = SqliteSharedStore(tmp_path / "data" / "shared.sqlite3", durable=True)
    yield opened
    await opened.close()


async def rows(path: Path) -> int:
    """How many rows the file holds, expired ones too."""

    def blocking() -> int:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            return int(connection.execute("SELECT count(*) FROM shared").fetchone()[0])

    return await asyncio.to_thread(blocking)


@contextlib.contextmanager
def held(path: Path) -> Iterator[sqlite3.Connection]:
    """Another writer's connection that has the file until it is rolled back."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as hog:
        hog.execute("BEGIN IMMEDIATE")
        yield hog


async def pragma(store: SqliteSharedStore, name: str) -> object:
    """A setting of the store's own connection."""
    return await store._run(lambda: store._open().execute(f"PRAGMA {name}").fetchone()[0])


async def test_only_the_journal_waits_for_the_disk(store: SqliteSharedStore) -> None:
    """Durable means written through to the disk at each change; limits and caches need not be (invariant 12)."""
    quick = SqliteSharedStore(store.path, durable=False)
    assert [await pragma(each, "synchronous") for each in (store, quick)] == [2, 1]
    assert await pragma(store, "journal_mode") == "wal"
    await store.swap("k", None, b"1")
    assert (await quick.get("k")).value == b"1"
    await quick.close()


async def test_the_log_is_copied_into_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that waits for no disk keeps its log short all the same: what it wrote arrives in the file itself."""
    monkeypatch.setattr(sqlite_store, "CHECKPOINT_AFTER", 5)
    store = SqliteSharedStore(tmp_path / "a folder" / "shared.sqlite3", durable=False)
    file = f"{store.path.as_uri()}?immutable=1"  # read without its log

    def rows_without_log() -> int:
        with contextlib.closing(sqlite3.connect(file, uri=True)) as connection:
            return int(connection.execute("SELECT count(*) FROM shared").fetchone()[0])

    for number in range(4):
        await store.swap(str(number), None, b"1")
    with contextlib.suppress(sqlite3.OperationalError):  # there is no table yet
        assert rows_without_log() == 0
    await store.swap("4", None, b"1")
    await store._tasks.close()
    assert rows_without_log() == 5
    await store.close()


async def test_a_full_disk_is_told_as_such(store: SqliteSharedStore) -> None:
    """No space left raises `StorageFull`, loses nothing that was written, and heals when there is space again."""
    await store.swap("k", None, b"value")
    await pragma(store, "max_page_count = 1")
    with pytest.raises(StorageFull):
        await store.swap("more", None, b"x" * 50_000)
    assert (await store.get("k")).value == b"value"
    assert (await store.get("more")).value is None
    await pragma(store, "max_page_count = 1000000")
    assert await store.swap("more", None, b"x" * 50_000)


async def test_a_file_that_others_keep_busy_is_unavailable(tmp_path: Path) -> None:
    """A writer that never ends makes changes fail as `SharedStateUnavailable`; reading goes on."""
    store = SqliteSharedStore(tmp_path / "shared.sqlite3", durable=False, patience_seconds=BRIEFLY)
    await store.swap("k", None, b"1")
    with held(store.path) as hog:
        with pytest.raises(SharedStateUnavailable) as told:
            await store.swap("k", b"1", b"2")
        assert told.value.retry_after == 1.0
        assert (await store.get("k")).value == b"1"
        hog.execute("ROLLBACK")
    assert await store.swap("k", b"1", b"2")
    await store.close()


async def test_all_who_wait_for_a_held_file_wait_at_once(tmp_path: Path) -> None:
    """However many there are, they are told after the patience of one; then whoever comes next may try."""
    store = SqliteSharedStore(tmp_path / "shared.sqlite3", durable=False, patience_seconds=BRIEFLY)
    await store.swap("k", None, b"1")
    with held(store.path):
        async with asyncio.timeout(SOON):  # one after the other they would take more than two minutes
            told = await asyncio.gather(
                *(store.swap(str(number), None, b"1") for number in range(600)), return_exceptions=True
            )
    assert {type(each) for each in told} == {SharedStateUnavailable}
    assert await store.swap("other", None, b"1")
    await store.close()


async def test_nobody_waits_behind_a_change_that_waits(store: SqliteSharedStore) -> None:
    """While changes wait for a held file, values are read; when it is given back, every change is made."""
    await store.swap("k", None, b"1")
    with held(store.path) as hog:
        waiting = [asyncio.create_task(store.swap(str(number), None, b"2")) for number in range(20)]
        await asyncio.sleep(0)
        assert (await store.get("k")).value == b"1"
        assert not any(task.done() for task in waiting)
        hog.execute("ROLLBACK")
    async with asyncio.timeout(SOON):
        assert await asyncio.gather(*waiting) == [True] * 20


async def test_a_paid_answer_waits_for_a_held_file(store: SqliteSharedStore) -> None:
    """A lock that somebody gives back in time costs no answer (invariant 12)."""
    calls = SharedCallStore(store)
    assert await calls.begin("k", "r-1", 60.0) is None
    with held(store.path) as hog:
        finishing = asyncio.create_task(calls.finish("k", "answer"))
        await store.get("anything")
        assert not finishing.done()
        hog.execute("ROLLBACK")
    async with asyncio.timeout(SOON):
        await finishing
    assert await calls.begin("k", "r-1", 60.0) == "answer"


async def test_closing_waits_for_what_was_begun(store: SqliteSharedStore) -> None:
    """A change that waits for a held file is made before the store is closed."""
    await store.swap("k", None, b"1")
    with held(store.path) as hog:
        waiting = asyncio.create_task(store.swap("k", b"1", b"2"))
        await store.get("k")
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(BRIEFLY)
        assert not closing.done()
        hog.execute("ROLLBACK")
    async with asyncio.timeout(SOON):
        assert await waiting
        await closing
    again = SqliteSharedStore(store.path, durable=True)
    assert (await again.get("k")).value == b"2"
    await again.close()


def test_patience_is_spent_in_growing_pauses() -> None:
    """Tries are close together at first and then seldom, and last as long as the patience; none means one try."""
    spent = list(pauses(PATIENCE_SECONDS))
    assert sum(spent) == pytest.approx(PATIENCE_SECONDS)
    assert spent[:-1] == sorted(spent[:-1])
    assert (spent[0], max(spent)) == (0.001, 0.1)
    assert list(pauses(0.0)) == []


@pytest.mark.parametrize("new_one_is_there", [False, True])
async def test_a_file_that_was_removed_is_noticed(
    store: SqliteSharedStore, monkeypatch: pytest.MonkeyPatch, new_one_is_there: bool
) -> None:
    """Who had it open says so and shares the next one with those who start later, without harm to it."""
    monkeypatch.setattr(sqlite_store, "LOOKED_EVERY_SECONDS", 0.0)
    await store.swap("k", None, b"1")
    for path in list(store.path.parent.iterdir()):
        path.unlink()
    other = SqliteSharedStore(store.path, durable=True)
    if new_one_is_there:
        await other.swap("theirs", None, b"2")
    with capture_logs() as logged:
        assert await store.swap("ours", None, b"3")
        assert await store.swap("k", None, b"4")
    assert [(entry["event"], entry["log_level"]) for entry in logged] == [("shared_state.file_replaced", "warning")]
    assert (await other.get("ours")).value == b"3"
    assert (await store.get("theirs")).value == (b"2" if new_one_is_there else None)
    await other.close()
    assert await rows(store.path) == 2 + new_one_is_there


async def test_a_file_that_is_no_store_is_told_as_such(tmp_path: Path) -> None:
    """A damaged file, or a folder that cannot be made, raises `NotConfigured` with the name of the file."""
    (tmp_path / "shared.sqlite3").write_bytes(b"no database" * 100)
    damaged = SqliteSharedStore(tmp_path / "shared.sqlite3", durable=True)
    with pytest.raises(NotConfigured, match=r"shared\.sqlite3 cannot be used"):
        await damaged.get("k")
    await damaged.close()
    impossible = SqliteSharedStore(tmp_path / "shared.sqlite3" / "below" / "shared.sqlite3", durable=True)
    with pytest.raises(NotConfigured):
        await impossible.get("k")
    await impossible.close()


async def test_the_file_is_the_owners_alone(store: SqliteSharedStore) -> None:
    """Answers are not readable for other accounts of the machine."""
    await store.swap("k", None, b"1")
    files = list(store.path.parent.iterdir())
    assert {path.name for path in files} >= {"shared.sqlite3", "shared.sqlite3-wal"}
    assert not any(path.stat().st_mode & 0o077 for path in files)


async def test_what_has_expired_leaves_the_file(store: SqliteSharedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgotten values do not pile up: now and then a change removes them, many at a time."""
    monkeypatch.setattr(sqlite_store, "PRUNED_EVERY_SECONDS", 0.0)
    await asyncio.gather(*(store.swap(f"short/{number}", None, b"1", 0.001) for number in range(60)))
    await store.swap("kept", None, b"1")
    async with asyncio.timeout(20):
        while await rows(store.path) > 1:
            await store.swap("other", None, None)
    assert (await store.get("kept")).value == b"1"


async def test_workers_that_start_at_once_make_one_file(tmp_path: Path) -> None:
    """Of several that turn a new file to WAL at the same moment none is told that it is busy (F17)."""
    for number in range(20):
        stores = [SqliteSharedStore(tmp_path / f"{number}.sqlite3", durable=False) for _ in range(6)]
        await asyncio.gather(*(store.get("k") for store in stores))
        for store in stores:
            await store.close()


async def test_what_is_removed_is_gone_from_the_file(store: SqliteSharedStore) -> None:
    """Neither free pages of the file nor its log hold what was removed: a deleted run is not in a copy of the disk."""
    for number in range(50):
        await store.swap(f"calls/one/{number}", None, b"a question of a person " * 100)
    assert await store.remove("calls/one/") == 50
    files = [path.read_bytes() for path in store.path.parent.glob(f"{store.path.name}*")]
    assert files
    assert not any(b"a question of a person" in data for data in files)
