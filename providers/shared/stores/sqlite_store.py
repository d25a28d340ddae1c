"""A shared store in one SQLite file, for all worker processes of a machine."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from providers.errors import NotConfigured, ProviderError, SharedStateUnavailable, StorageFull
from providers.interfaces import StoredValue
from providers.shared.shared_value import key_bytes

T = TypeVar("T")

BUSY_TIMEOUT_SECONDS: Final = 5.0  # time for which a change waits for another process that is writing to the file
RETRY_SECONDS: Final = 1.0
PRUNE_INTERVAL_SECONDS: Final = 30.0

NOW: Final = "((julianday('now') - 2440587.5) * 86400.0)"
"""Seconds since the epoch by SQLite's own clock, the same for every process of the machine."""
LIVE: Final = f"(expires IS NULL OR expires > {NOW})"
SCHEMA: Final = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS shared (key BLOB PRIMARY KEY, value BLOB NOT NULL, expires REAL);
CREATE INDEX IF NOT EXISTS shared_expires ON shared (expires) WHERE expires IS NOT NULL;
COMMIT;
"""
GET: Final = f"SELECT {NOW}, (SELECT value FROM shared WHERE key = ? AND {LIVE})"  # noqa: S608  constants only
INSERT: Final = f"""
    INSERT INTO shared (key, value, expires) VALUES (?, ?, {NOW} + ?)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires WHERE NOT {LIVE}
"""  # noqa: S608
UPDATE: Final = f"UPDATE shared SET value = ?, expires = {NOW} + ? WHERE key = ? AND value = ? AND {LIVE}"  # noqa: S608
DELETE: Final = f"DELETE FROM shared WHERE key = ? AND value = ? AND {LIVE}"  # noqa: S608
PRUNE: Final = f"DELETE FROM shared WHERE expires <= {NOW}"  # noqa: S608
FULL_CODES: Final = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
BUSY_CODES: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class SqliteSharedStore:
    """A store whose file any process may have open; every change is one statement, and so atomic.

    Without `durable`, a crash of the machine may lose the last changes. Every method also raises `NotConfigured` if the
    file cannot be used at all.
    """

    def __init__(self, path: Path, *, durable: bool, busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS) -> None:
        self.path = path
        self._durable = durable
        self._busy_timeout_seconds = busy_timeout_seconds
        self._connection: sqlite3.Connection | None = None
        self._prune_at = 0.0
        # One thread: SQLite has one writer anyway, and the statements of a cancelled caller stay in order.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="shared-store")

    async def get(self, key: str) -> StoredValue:
        """Return the value; None if there is none or it has expired."""
        now, value = await self._run(lambda connection: connection.execute(GET, (key_bytes(key),)).fetchone())
        return StoredValue(value, now)

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

        `over_limit` has no effect: the file has no limit besides its disk.
        """
        del over_limit
        key_data = key_bytes(key)
        statement: str = UPDATE
        values: tuple[object, ...] = (new, ttl_seconds, key_data, old)
        if new is None:
            statement = DELETE
            values = (key_data, old)
        elif old is None:
            statement = INSERT
            values = (key_data, new, ttl_seconds)

        def swap(connection: sqlite3.Connection) -> bool:
            if time.monotonic() >= self._prune_at:
                self._prune_at = time.monotonic() + PRUNE_INTERVAL_SECONDS
                connection.execute(PRUNE)
            return connection.execute(statement, values).rowcount == 1

        return await self._run(swap)

    async def remove(self, prefix: str) -> int:
        """Remove every key that starts with the prefix; return their number."""
        first = key_bytes(prefix)
        span = (first, first + b"\xff")  # after every key with the prefix: UTF-8 never has this byte

        def remove(connection: sqlite3.Connection) -> int:
            connection.execute(PRUNE)
            removed = connection.execute("DELETE FROM shared WHERE key >= ? AND key < ?", span).rowcount
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()  # the log still has the removed values
            return removed

        return await self._run(remove)

    async def close(self) -> None:
        """Close the file after all work in progress; no effect the second time."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        except RuntimeError:  # the thread has ended already
            return
        self._thread.shutdown()

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            try:
                if self._connection is None:
                    self._connection = self._open()
                return work(self._connection)
            except sqlite3.Error as error:
                raise self._problem(error) from None

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path.touch(mode=0o600, exist_ok=True)
        except OSError as error:
            raise NotConfigured(f"the shared state cannot be stored: {error.strerror}") from None
        connection = sqlite3.connect(
            self.path, timeout=self._busy_timeout_seconds, isolation_level=None, check_same_thread=False
        )
        end = time.monotonic() + self._busy_timeout_seconds
        while True:  # SQLite does not wait if several processes switch a new file to WAL at once
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'NORMAL'}")
                connection.execute("PRAGMA secure_delete = ON")  # deleted bytes are overwritten
                connection.executescript(SCHEMA)
            except sqlite3.Error as error:
                if not _is_busy(error) or time.monotonic() > end:
                    connection.close()
                    raise
                time.sleep(0.01)
            else:
                return connection

    def _problem(self, error: sqlite3.Error) -> ProviderError:
        code = getattr(error, "sqlite_errorcode", None)
        if code in FULL_CODES or "disk is full" in str(error):
            return StorageFull("no space is left for the shared state: make room where RESEARCH_HOME is")
        if _is_busy(error):
            remedy = f"end the program that locks {self.path.name}"
            return SharedStateUnavailable("the shared state is locked", remedy=remedy, retry_after=RETRY_SECONDS)
        name = getattr(error, "sqlite_errorname", "")
        return NotConfigured(f"the shared state in {self.path.name} cannot be used: {name}")

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _is_busy(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF in BUSY_CODES
