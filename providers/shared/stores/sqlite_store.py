"""A shared store in one SQLite file, for all worker processes of a machine."""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

import structlog

from providers.errors import NotConfigured, ProviderError, SharedStateUnavailable, StorageFull
from providers.interfaces import StoredValue
from providers.shared.shielded_tasks import ShieldedTasks
from providers.shared.store_keys import end_of_prefix, key_bytes

T = TypeVar("T")

PATIENCE_SECONDS: Final = 5.0
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.001, 0.1
RETRY_SECONDS: Final = 1.0
LOOKED_EVERY_SECONDS: Final = 30.0
PRUNED_EVERY_SECONDS: Final = 30.0
PRUNED_AT_ONCE: Final = 500
CHECKPOINT_AFTER: Final = 1_000
"""Changes after which a store that waits for no disk has the log copied into the file."""

NOW: Final = "((julianday('now') - 2440587.5) * 86400.0)"
"""Seconds since the epoch by SQLite's own clock: the same one for every process of the machine."""
LIVE: Final = "(expires IS NULL OR expires > NOW)"

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS shared (key BLOB PRIMARY KEY, value BLOB NOT NULL, expires REAL);
CREATE INDEX IF NOT EXISTS shared_expires ON shared (expires) WHERE expires IS NOT NULL;
"""


def _statement(text: str) -> str:
    return text.replace("LIVE", LIVE).replace("NOW", NOW)


GET: Final = _statement("SELECT NOW, (SELECT value FROM shared WHERE key = ? AND LIVE)")
HOLDS: Final = _statement("SELECT 1 FROM shared WHERE key = ? AND LIVE")
INSERT: Final = _statement(
    """
    INSERT INTO shared (key, value, expires) VALUES (?, ?, NOW + ?)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires WHERE NOT LIVE
    """
)
UPDATE: Final = _statement("UPDATE shared SET value = ?, expires = NOW + ? WHERE key = ? AND value = ? AND LIVE")
DELETE: Final = _statement("DELETE FROM shared WHERE key = ? AND value = ? AND LIVE")
PRUNE: Final = _statement(
    "DELETE FROM shared WHERE rowid IN (SELECT rowid FROM shared WHERE expires <= NOW LIMIT :most)"
)
PRUNE_PREFIX: Final = _statement("DELETE FROM shared WHERE key >= ? AND key < ? AND NOT LIVE")
REMOVE: Final = "DELETE FROM shared WHERE key >= ? AND key < ?"

FULL: Final = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

log = structlog.get_logger()


def _is_busy(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF in BUSY


def pauses(patience_seconds: float) -> Iterator[float]:
    """Seconds to wait between tries, growing, so many in all; a standstill of this process counts as one of them."""
    pause, left = FIRST_PAUSE_SECONDS, patience_seconds
    while left > 0:
        yield min(pause, left)
        left -= pause
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


class SqliteSharedStore:
    """Every change is one statement, and so atomic; several stores, in any process, may have the same file open.

    With `durable`, what was changed is on disk when a method returns; without, a crash of the machine (not of the
    process) may lose the last changes. Beside what the Protocol says, every method raises `NotConfigured` when the
    file cannot be used at all.

    A statement takes some ten microseconds and two hops between threads take some hundred, so statements that wait for
    no disk are executed where they are called. The disk is waited for in a thread: of a durable store by every
    statement, of another one by the copying of the log alone.
    """

    def __init__(self, path: Path, *, durable: bool, patience_seconds: float = PATIENCE_SECONDS) -> None:
        """`patience_seconds`: how long each change waits for a file that another writer holds."""
        self.path = path
        self._durable = durable
        self._patience_seconds = patience_seconds
        self._connection: sqlite3.Connection | None = None
        self._file = (0, 0)
        """Device and number of the file that the connection is to."""
        self._look_at = 0.0
        self._prune_at = 0.0
        self._changes = 0
        """Since the log was last copied."""
        self._tasks = ShieldedTasks()
        # One thread: SQLite has one writer anyway, and what a caller gives up is then undone in order. No call waits
        # for a file that is locked: all later calls would wait behind it.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="shared-store")

    async def get(self, key: str) -> StoredValue:
        """Return the value, None where there is none or where it has expired."""
        return await self._run(lambda: self._get(key_bytes(key)))

    async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
        """Replace `old` by `new` if the key still holds `old`; None means absent. Return whether it was done."""
        done = await self._run(lambda: self._swap(key_bytes(key), old, new, ttl_seconds))
        self._changes += 1
        if not self._durable and self._changes >= CHECKPOINT_AFTER:
            self._changes = 0
            self._tasks.start(self._copy_log())
        return done

    async def remove(self, prefix: str) -> int:
        """Remove every key that begins with the prefix; return how many."""
        return await self._run(lambda: self._remove(key_bytes(prefix)))

    async def close(self) -> None:
        """Close the file, after all that was begun; nothing happens the second time."""
        await self._tasks.close()
        try:
            await self._run(self._close)
        except RuntimeError:  # the thread has ended already
            return
        self._thread.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        return await self._tasks.start(self._tried(work))

    async def _tried(self, work: Callable[[], T]) -> T:
        """Retry while another process locks the file: a refused statement has changed nothing."""
        for pause in pauses(self._patience_seconds):
            try:
                return await self._once(work)
            except SharedStateUnavailable:
                await asyncio.sleep(pause)
        return await self._once(work)

    async def _once(self, work: Callable[[], T]) -> T:
        if not self._durable:
            return self._translated(work)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._translated, work)

    async def _copy_log(self) -> None:
        """Copy the log into the file, beside all that goes on; what is in use stays in the log for the next time."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._translated, self._checkpoint)
        except ProviderError as error:
            log.warning("shared_state.log_not_copied", error=type(error).__name__)

    def _checkpoint(self) -> None:
        there = f"{self.path.absolute().as_uri()}?mode=rw"  # a file that was removed is not made anew
        with contextlib.closing(sqlite3.connect(there, timeout=0, isolation_level=None, uri=True)) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _translated(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except sqlite3.Error as error:
            raise self._problem(error) from None

    def _problem(self, error: sqlite3.Error) -> ProviderError:
        code = getattr(error, "sqlite_errorcode", None)
        if code in FULL or "disk is full" in str(error):
            return StorageFull("no space is left for the shared state: make room where RESEARCH_HOME is")
        if _is_busy(error):
            return SharedStateUnavailable("the file of the shared state is busy", retry_after=RETRY_SECONDS)
        return NotConfigured(
            f"the shared state in {self.path.name} cannot be used: {getattr(error, 'sqlite_errorname', '')}"
        )

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._is_elsewhere():
            # An unlinked file is not shared with processes that start later.
            log.warning("shared_state.file_replaced", file=self.path.name)
            self._close()
        if self._connection is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self.path.touch(mode=0o600, exist_ok=True)
                self._file = self._named()
            except OSError as error:
                raise NotConfigured(f"the shared state cannot be kept: {error.strerror}") from None
            self._connection = self._connected()
        return self._connection

    def _is_elsewhere(self) -> bool:
        """Whether the name has come to mean another file, or none; looked up now and then."""
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + LOOKED_EVERY_SECONDS
        try:
            return self._named() != self._file
        except FileNotFoundError:
            return True
        except OSError:  # not known, and the connection may well be good
            return False

    def _named(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_dev, found.st_ino

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=0, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'NORMAL'}")
            connection.execute("PRAGMA secure_delete = ON")  # what is removed is overwritten, not only unlinked
            if not self._durable:
                connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.executescript(f"BEGIN IMMEDIATE;{SCHEMA}COMMIT;")
        except BaseException:
            connection.close()
            raise
        return connection

    def _get(self, key: bytes) -> StoredValue:
        now, value = self._open().execute(GET, (key,)).fetchone()
        return StoredValue(value, now)

    def _swap(self, key: bytes, old: bytes | None, new: bytes | None, ttl_seconds: float | None) -> bool:
        connection = self._open()
        self._prune(connection)
        if new is None:
            if old is None:
                return connection.execute(HOLDS, (key,)).fetchone() is None
            return connection.execute(DELETE, (key, old)).rowcount == 1
        if old is None:
            return connection.execute(INSERT, (key, new, ttl_seconds)).rowcount == 1
        return connection.execute(UPDATE, (new, ttl_seconds, key, old)).rowcount == 1

    def _remove(self, prefix: bytes) -> int:
        span = (prefix, end_of_prefix(prefix))
        connection = self._open()
        connection.execute(PRUNE_PREFIX, span)
        removed = connection.execute(REMOVE, span).rowcount
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()  # else the log still holds what was removed
        return removed

    def _prune(self, connection: sqlite3.Connection) -> None:
        if time.monotonic() >= self._prune_at:
            self._prune_at = time.monotonic() + PRUNED_EVERY_SECONDS
            connection.execute(PRUNE, {"most": PRUNED_AT_ONCE})

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
