"""The journal of paid calls, over any shared store."""

import asyncio
import fcntl
import hashlib
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import structlog

from providers.errors import CallInFlight, ContentCorrupt, ProviderError, SharedStateUnavailable, StorageFull
from providers.interfaces import SharedStore
from providers.shared.answer_spool import SPOOLED_SECONDS, AnswerSpool
from providers.shared.shared_value import key_bytes, quote_part

RETRY_SECONDS: Final = 2.0  # until an attempt checks again on a call that another one is making
DELIVERY_SECONDS: Final = 3.0  # between attempts to write the answers that the store refused
STANDSTILL_SECONDS: Final = 120.0  # without a sign of life, after which a process that lives is not waited for
ORPHANED_SECONDS: Final = 86_400.0  # age of the lock file of a call that was never made again
STORED_SECONDS: Final = 3 * 86_400.0  # retention of an answer: a run lasts a day at most, and is resumed soon

log = structlog.get_logger()


class CallLock:
    """The lock of a process on the file of a call; without a file it locks nothing."""

    def __init__(self, path: Path | None = None, descriptor: int = -1) -> None:
        self._path = path
        self._descriptor = descriptor

    def renew(self) -> None:
        """Show that the process is at work."""
        if self._descriptor >= 0:
            with suppress(OSError):
                os.utime(self._descriptor)

    def free(self) -> None:
        """Give up the lock; no effect if that was done before."""
        descriptor = self._descriptor
        self._descriptor = -1
        if descriptor >= 0 and self._path is not None:
            with suppress(OSError):
                self._path.unlink()
            os.close(descriptor)


class CallLocks:
    """Files that the processes of a machine lock while they make calls: a stopped one is not taken for dead.

    That a lease has expired says that no process has shown itself for a while. That a lock is free says that there is
    none: the kernel frees it when a process ends, however that ends. It is one more guard: where no file can be locked,
    leases decide.
    """

    def __init__(self, folder: Path) -> None:
        """Have the files in `folder`, which is made when it is needed."""
        self._folder = folder

    def take(self, answer_key: str) -> CallLock:
        """Lock the file of a call.

        Raises `CallInFlight` if a process of this machine makes the call and has shown itself in `STANDSTILL_SECONDS`.
        """
        path = self._folder / hashlib.sha256(key_bytes(answer_key)).hexdigest()[:32]
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            lock = None
            while lock is None:
                lock = _lock(path)
        except OSError:
            return CallLock()
        return lock

    def sweep(self) -> None:
        """Remove the files of killed processes whose calls were never made again."""
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > ORPHANED_SECONDS:
                    Path(entry.path).unlink(missing_ok=True)


def _lock(path: Path) -> CallLock | None:
    """Lock a file; None if its owner has just removed it. Raises `CallInFlight`, OSError."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    is_locked = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.utime(descriptor)
        is_locked = _is_at(path, descriptor)
    except BlockingIOError:
        silent = time.time() - os.fstat(descriptor).st_mtime
        if abs(silent) > STANDSTILL_SECONDS:  # also after the clock was set back
            return CallLock()
        raise CallInFlight("a process that stands still makes this call", retry_after=RETRY_SECONDS) from None
    finally:
        if not is_locked:
            os.close(descriptor)
    return CallLock(path, descriptor) if is_locked else None


def _is_at(path: Path, descriptor: int) -> bool:
    """Return whether a path leads to an open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@dataclass(frozen=True)
class CallLease:
    """The right of one attempt to make a call; both keys are those of the shared store."""

    research_id: str
    answer_key: str
    lease_key: str
    owner: bytes
    lock: CallLock = field(default_factory=CallLock, compare=False)


class CallStore:
    """Calls under leases. An attempt owns a call until its lease expires; an answer is written once and stays.

    An answer is written before its lease is released, and read again after a lease is taken, so that a call answered a
    moment ago is not made again. What the store does not take is in the spool until `deliver` has written it.
    """

    def __init__(
        self,
        store: SharedStore,
        leases: SharedStore | None = None,
        *,
        spool: AnswerSpool | None = None,
        locks: CallLocks | None = None,
    ) -> None:
        """Use `store` for the leases, too, unless `leases` is a faster and less durable one."""
        self._store = store
        self._locks = locks
        self._spool = spool
        self._leases = leases or store

    async def begin(self, key: str, research_id: str, lease_seconds: float) -> CallLease | str:
        """Take a lease on the call, or return its stored answer. Raises `CallInFlight` if another attempt has it.

        Raises `StorageFull` if there would be no room for the answer.
        """
        prefix = _prefix(research_id)
        lease = CallLease(research_id, f"{prefix}answer/{key}", f"{prefix}lease/{key}", secrets.token_hex(8).encode())
        answer = await self._answer(lease)
        if answer is not None:
            return answer
        if self._spool is not None:
            await self._spool.reserve()
        if self._locks is not None:
            lease = replace(lease, lock=self._locks.take(lease.answer_key))
        try:
            acquired = await self._leases.swap(lease.lease_key, None, lease.owner, lease_seconds)
            answer = await self._answer(lease) if acquired else None
            if answer is not None:
                await self.release(lease)
        except BaseException:
            with suppress(ProviderError):
                await self.release(lease)
            raise
        if not acquired:
            lease.lock.free()
            raise CallInFlight("another attempt is making this call", retry_after=RETRY_SECONDS)
        return lease if answer is None else answer

    async def renew(self, lease: CallLease, lease_seconds: float) -> None:
        """Extend the lease, even one that expired unnoticed; no effect if another attempt has the call."""
        lease.lock.renew()
        has_expired = not await self._leases.swap(lease.lease_key, lease.owner, lease.owner, lease_seconds)
        if has_expired and not await self._is_forgotten(lease.research_id):
            await self._leases.swap(lease.lease_key, None, lease.owner, lease_seconds)

    async def finish(self, lease: CallLease, answer: str) -> None:
        """Write the answer, unless there is one or the run is forgotten; into the spool if the store refuses it.

        Raises `StorageFull` if the spool has no room either, and the errors of the store if there is no spool.
        """
        try:
            await self._finish(lease, answer)
        except (SharedStateUnavailable, StorageFull):
            if self._spool is None:
                raise
            await self._spool.put(lease.research_id, lease.answer_key, answer)
        finally:
            lease.lock.free()

    async def deliver(self) -> int:
        """Write what is in the spool to the store; return how many answers were written or belong to deleted runs.

        Raises the errors of the store.
        """
        delivered = 0
        if self._spool is None:
            return delivered
        async for spooled in self._spool.answers():
            if not await self._is_forgotten(spooled.research_id):
                await self._write_answer(spooled.answer_key, spooled.answer)
            spooled.path.unlink(missing_ok=True)
            delivered += 1
        return delivered

    async def deliver_always(self) -> None:
        """Deliver as soon as the store takes answers again, until cancelled."""
        if self._locks is not None:
            self._locks.sweep()
        while True:
            try:
                if delivered := await self.deliver():
                    log.info("journal.answers_delivered", answers=delivered)
            except ProviderError as error:
                log.warning("journal.answers_wait", error=type(error).__name__)
            await asyncio.sleep(DELIVERY_SECONDS)

    async def release(self, lease: CallLease) -> None:
        """Give up the call without an answer; no effect if another attempt has it."""
        try:
            await self._leases.swap(lease.lease_key, lease.owner, None)
        finally:
            lease.lock.free()

    async def forget(self, research_id: str) -> int:
        """Remove all rows of a run, and refuse later answers; return the number of removed answers.

        Raises `SharedStateUnavailable`.
        """
        prefix = f"{_prefix(research_id)}answer/"
        removed = await self._store.remove(prefix)  # first, to make room for the mark in a full store
        await self._store.swap(_forgotten_key(research_id), None, b"1", SPOOLED_SECONDS)
        await self._leases.remove(f"{_prefix(research_id)}lease/")
        if self._spool is not None:
            removed += await self._spool.forget(research_id)
        return removed + await self._store.remove(prefix)  # an answer written before the mark

    async def _answer(self, lease: CallLease) -> str | None:
        if (
            self._spool is not None
            and (spooled := await self._spool.get(lease.research_id, lease.answer_key)) is not None
        ):
            return spooled
        stored = (await self._store.get(lease.answer_key)).value
        try:
            if stored is None:
                return None
            return stored.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise ContentCorrupt("the stored answer of a call is no text") from None

    async def _finish(self, lease: CallLease, answer: str) -> None:
        owner = (await self._leases.get(lease.lease_key)).value
        if owner == lease.owner or not await self._is_forgotten(lease.research_id):
            await self._write_answer(lease.answer_key, answer)
        await self.release(lease)

    async def _write_answer(self, answer_key: str, answer: str) -> None:
        data = answer.encode("utf-8", "surrogatepass")
        await self._store.swap(answer_key, None, data, STORED_SECONDS, over_limit=True)

    async def _is_forgotten(self, research_id: str) -> bool:
        return (await self._store.get(_forgotten_key(research_id))).value is not None


def _prefix(research_id: str) -> str:
    return f"calls/{quote_part(research_id)}/"


def _forgotten_key(research_id: str) -> str:
    return f"forgotten/{quote_part(research_id)}"
