"""The journal of paid calls in one SQLite file that all worker processes of a machine share."""

import asyncio
import secrets
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from providers.errors import CallInFlight, NotConfigured, ProviderError, StorageFull, Unavailable

T = TypeVar("T")

BUSY_SECONDS = 10.0
SHORTEST_RETRY_SECONDS = 1.0
NOW = "((julianday('now') - 2440587.5) * 86400.0)"
"""Seconds since the epoch by SQLite's own clock: the same one for every process of the machine."""

SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY,
    research_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    leased_until REAL NOT NULL,
    answer TEXT
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS calls_by_research ON calls (research_id);
"""

FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class SqliteCallStore:
    """Who begins a call owns it until its lease runs out; an answer is written once and stays.

    A process that is killed leaves its lease behind: the next attempt gets the call when it has run out. Every method
    raises `StorageFull`, `Unavailable` when other processes keep the file busy, and `NotConfigured` when it cannot
    be used at all.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._owners: dict[str, str] = {}
        # One thread: SQLite has one writer anyway, and what a caller gives up is then undone in order.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="call-store")

    async def begin(self, key: str, research_id: str, lease_seconds: float) -> str | None:
        """Take the call: null if it is ours to make now, else the stored answer.

        Raises `CallInFlight` while another attempt holds a live lease.
        """
        work = self._submit(lambda: self._begin(key, research_id, lease_seconds))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            work.add_done_callback(_ignore_error)
            self._submit(lambda: self._release(key)).add_done_callback(_ignore_error)
            raise

    async def renew(self, key: str, lease_seconds: float) -> None:
        """Keep the lease while the call runs; nothing happens if it is no longer ours."""
        await asyncio.shield(self._submit(lambda: self._renew(key, lease_seconds)))

    async def finish(self, key: str, answer: str) -> None:
        """Write the answer; the first one stays. It is on disk when this returns."""
        await asyncio.shield(self._submit(lambda: self._finish(key, answer)))

    async def release(self, key: str) -> None:
        """Give the call up without an answer; nothing happens if it is no longer ours."""
        await asyncio.shield(self._submit(lambda: self._release(key)))

    async def forget(self, research_id: str) -> int:
        """Remove all rows of a run; the number removed."""
        return await asyncio.shield(self._submit(lambda: self._forget(research_id)))

    async def close(self) -> None:
        """Close the file, after all that was begun."""
        await self._submit(self._close)
        self._thread.shutdown()

    def _submit(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return asyncio.get_running_loop().run_in_executor(self._thread, self._translated, work)

    def _translated(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except sqlite3.Error as error:
            raise self._problem(error) from None

    def _problem(self, error: sqlite3.Error) -> ProviderError:
        code = getattr(error, "sqlite_errorcode", None)
        if code in FULL or "disk is full" in str(error):
            return StorageFull("no space is left for the call store: make room where RESEARCH_HOME is")
        if code is not None and code & 0xFF in BUSY:
            return Unavailable("the call store is busy", retry_after=SHORTEST_RETRY_SECONDS)
        return NotConfigured(
            f"the call store {self.path.name} cannot be used: {getattr(error, 'sqlite_errorname', '')}"
        )

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self.path.touch(mode=0o600, exist_ok=True)
            except OSError as error:
                raise NotConfigured(f"the call store cannot be made: {error.strerror}") from None
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.executescript(f"BEGIN IMMEDIATE;{SCHEMA}COMMIT;")
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run in one transaction that holds the write lock from its beginning."""
        connection = self._open()
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite itself gives up the transaction of a full disk
                connection.execute("ROLLBACK")
            raise
        return result

    def _begin(self, key: str, research_id: str, lease_seconds: float) -> str | None:
        owner = secrets.token_hex(8)

        def take(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(
                f"SELECT answer, leased_until - {NOW} FROM calls WHERE key = ?",  # noqa: S608  a constant
                (key,),
            ).fetchone()
            if row is not None and row[0] is not None:
                return str(row[0])
            if row is not None and row[1] > 0:
                remaining = max(SHORTEST_RETRY_SECONDS, float(row[1]))
                raise CallInFlight("another attempt is making this call", retry_after=remaining)
            connection.execute(
                f"INSERT OR REPLACE INTO calls VALUES (?, ?, ?, {NOW} + ?, NULL)",  # noqa: S608  a constant
                (key, research_id, owner, lease_seconds),
            )
            return None

        answer = self._write(take)
        if answer is None:
            self._owners[key] = owner
        return answer

    def _renew(self, key: str, lease_seconds: float) -> None:
        statement = f"UPDATE calls SET leased_until = {NOW} + ? WHERE key = ? AND owner = ?"  # noqa: S608  a constant
        self._write(lambda connection: connection.execute(statement, (lease_seconds, key, self._owners.get(key, ""))))

    def _finish(self, key: str, answer: str) -> None:
        statement = "UPDATE calls SET answer = ? WHERE key = ? AND answer IS NULL"
        self._write(lambda connection: connection.execute(statement, (answer, key)))
        self._owners.pop(key, None)

    def _release(self, key: str) -> None:
        owner = self._owners.get(key)
        if owner is not None:
            statement = "DELETE FROM calls WHERE key = ? AND owner = ? AND answer IS NULL"
            self._write(lambda connection: connection.execute(statement, (key, owner)))
            self._owners.pop(key, None)

    def _forget(self, research_id: str) -> int:
        statement = "DELETE FROM calls WHERE research_id = ?"
        return self._write(lambda connection: connection.execute(statement, (research_id,)).rowcount)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _ignore_error(work: "asyncio.Future[Any]") -> None:
    """Nobody waits for it any more: the lease then simply runs out."""
    if not work.cancelled():
        work.exception()
