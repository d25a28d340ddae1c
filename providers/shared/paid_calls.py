"""The journal of paid calls, over any shared store."""

import asyncio
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from providers.errors import CallInFlight, ContentCorrupt, ProviderError, SharedStateUnavailable, StorageFull
from providers.interfaces import SharedStore
from providers.shared.shared_value import quote_part

RETRY_SECONDS: Final = 2.0  # until an attempt checks again on a call that another one is making
WRITE_PAUSES: Final = (0.5, 2.0)
"""Seconds between attempts to write a paid answer: after a stall, a worker finds its connections timed out."""
FORGOTTEN_SECONDS: Final = 86_400.0  # time for which late answers of a deleted run are refused: longer than any call
STORED_SECONDS: Final = 3 * 86_400.0  # retention of an answer: a run lasts a day at most, and is resumed soon
RESERVED_BYTES: Final = 16_000_000  # for the answers of 200 calls at once, the most that a worker makes
STEP_BYTES: Final = 16_384  # given up for an answer besides its size until it is written: pages of table and log


class ReservedRoom:
    """Room on the disk of the journal: a file that is given up when an answer finds none.

    An answer is paid for before it is written. The workers of a machine share the file, which costs a call nothing:
    it is filled again only after it was given up.
    """

    def __init__(self, path: Path, size: int = RESERVED_BYTES) -> None:
        self._path = path
        self._size = size

    async def ensure(self) -> None:
        """Reserve the room unless it is reserved. Raises `StorageFull`: the call has to wait."""
        if self._reserved() < self._size:
            await asyncio.to_thread(self._fill)

    def give_up(self, size: int) -> bool:
        """Free about `size` bytes for an answer; the rest stays for others. Return false if there is no room left."""
        reserved = self._reserved()
        with suppress(OSError):
            os.truncate(self._path, max(0, reserved - size))
        return reserved > 0

    def _reserved(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0  # not there yet

    def _fill(self) -> None:
        """Allocate the blocks of the file, or leave it as it was. Raises `StorageFull`."""
        reserved, descriptor = self._reserved(), -1
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, self._size)
            else:  # macOS
                os.pwrite(descriptor, bytes(self._size - reserved), reserved)
        except OSError:
            with suppress(OSError):
                os.truncate(self._path, reserved)
            message = "no space is left to write the answers of paid calls: make room where RESEARCH_HOME is"
            raise StorageFull(message) from None
        finally:
            if descriptor >= 0:
                os.close(descriptor)


@dataclass(frozen=True)
class CallLease:
    """The right of one attempt to make a call; both keys are those of the shared store."""

    research_id: str
    answer_key: str
    lease_key: str
    owner: bytes


class CallStore:
    """Calls under leases. An attempt owns a call until its lease expires; an answer is written once and stays.

    An answer is written before its lease is released, and read again after a lease is taken, so that a call answered a
    moment ago is not made again.
    """

    def __init__(self, store: SharedStore, leases: SharedStore | None = None, room: ReservedRoom | None = None) -> None:
        """Use `store` for the leases, too, unless `leases` is a faster and less durable one.

        `room` is on the disk of the store; None for a store without a disk of this machine.
        """
        self._store = store
        self._room = room
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
        if self._room is not None:
            await self._room.ensure()
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
            raise CallInFlight("another attempt is making this call", retry_after=RETRY_SECONDS)
        return lease if answer is None else answer

    async def renew(self, lease: CallLease, lease_seconds: float) -> None:
        """Extend the lease, even one that expired unnoticed; no effect if another attempt has the call."""
        has_expired = not await self._leases.swap(lease.lease_key, lease.owner, lease.owner, lease_seconds)
        if has_expired and not await self._is_forgotten(lease.research_id):
            await self._leases.swap(lease.lease_key, None, lease.owner, lease_seconds)

    async def finish(self, lease: CallLease, answer: str) -> None:
        """Write the answer, unless there is one or the run is forgotten. Raises after a few attempts."""
        for pause in WRITE_PAUSES:
            try:
                return await self._finish(lease, answer)
            except SharedStateUnavailable:
                await asyncio.sleep(pause)
        return await self._finish(lease, answer)

    async def release(self, lease: CallLease) -> None:
        """Give up the call without an answer; no effect if another attempt has it."""
        await self._leases.swap(lease.lease_key, lease.owner, None)

    async def forget(self, research_id: str) -> int:
        """Remove all rows of a run, and refuse later answers; return the number of removed answers.

        Raises `SharedStateUnavailable`.
        """
        prefix = f"{_prefix(research_id)}answer/"
        removed = await self._store.remove(prefix)  # first, to make room for the mark in a full store
        await self._store.swap(_forgotten_key(research_id), None, b"1", FORGOTTEN_SECONDS)
        await self._leases.remove(f"{_prefix(research_id)}lease/")
        return removed + await self._store.remove(prefix)  # an answer written before the mark

    async def _answer(self, lease: CallLease) -> str | None:
        stored = (await self._store.get(lease.answer_key)).value
        try:
            return None if stored is None else stored.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise ContentCorrupt("the stored answer of a call is no text") from None

    async def _finish(self, lease: CallLease, answer: str) -> None:
        owner = (await self._leases.get(lease.lease_key)).value
        if owner == lease.owner or not await self._is_forgotten(lease.research_id):
            data = answer.encode("utf-8", "surrogatepass")
            while True:
                try:
                    await self._store.swap(lease.answer_key, None, data, STORED_SECONDS, over_limit=True)
                    break
                except StorageFull:
                    if self._room is None or not self._room.give_up(len(data) + STEP_BYTES):
                        raise
        await self.release(lease)

    async def _is_forgotten(self, research_id: str) -> bool:
        return (await self._store.get(_forgotten_key(research_id))).value is not None


def _prefix(research_id: str) -> str:
    return f"calls/{quote_part(research_id)}/"


def _forgotten_key(research_id: str) -> str:
    return f"forgotten/{quote_part(research_id)}"
