"""The journal of paid calls over any shared store."""

import asyncio
import secrets
from contextlib import suppress
from typing import Final

from providers.errors import CallInFlight, ContentCorrupt, ProviderError, SharedStateUnavailable
from providers.interfaces import CallLease, SharedStore
from providers.shared.shared_value import quote_part

SHORTEST_RETRY_SECONDS: Final = 1.0
SHORTEST_LEASE_SECONDS: Final = 0.001
WRITE_PAUSES: Final = (0.5, 2.0)
"""Seconds between the attempts to write a paid answer: a worker that stood still finds its connections timed out."""
FORGOTTEN_SECONDS: Final = 86_400.0
"""How long a late answer of a deleted run is refused: longer than any call takes."""
STORED_SECONDS: Final = 3 * 86_400.0
"""How long an answer stays from the moment it is written: a run lasts a day at most, and is resumed soon."""


class SharedCallStore:
    """Calls under leases. An attempt owns a call until its lease expires; an answer is written once and stays.

    The answer is written before the lease is given back, and looked for again after a lease was taken: so an attempt
    never makes a call that was answered a moment ago. A process that is killed leaves its lease behind: the next
    attempt gets the call when it has expired.
    """

    def __init__(self, store: SharedStore, leases: SharedStore | None = None) -> None:
        """The caller closes the stores. `leases` may be faster and less durable."""
        self._store = store
        self._leases = leases or store

    async def begin(self, key: str, research_id: str, lease_seconds: float) -> CallLease | str:
        """Take the call: a lease if this attempt makes it, else the stored answer.

        Raises `CallInFlight` while another attempt has a live lease. Cancelled, it leaves no lease behind.
        """
        lease = CallLease(key, research_id, secrets.token_hex(8))
        stored = await self._store.get(_answer_key(lease))
        if stored.value is not None:
            return _answer(stored.value)
        try:
            if await self._extend(lease, None, stored.now, lease_seconds):
                stored = await self._store.get(_answer_key(lease))
                if stored.value is None:
                    return lease
                await self.release(lease)
                return _answer(stored.value)
        except BaseException:
            with suppress(ProviderError):
                await self.release(lease)
            raise
        current = await self._leases.get(_lease_key(lease))
        remaining = max(SHORTEST_RETRY_SECONDS, _leased_until(current.value) - current.now)
        raise CallInFlight("another attempt is making this call", retry_after=remaining)

    async def renew(self, lease: CallLease, lease_seconds: float) -> None:
        """Extend the lease, also one that has expired unnoticed; nothing happens if another attempt has the call."""
        current = await self._leases.get(_lease_key(lease))
        lapsed = current.value is None and not await self._is_forgotten(lease.research_id)
        if lapsed or _owner(current.value) == lease.owner:
            await self._extend(lease, current.value, current.now, lease_seconds)

    async def finish(self, lease: CallLease, answer: str) -> None:
        """Write the answer; the first one stays. Nothing happens if the run was forgotten meanwhile.

        Raises what the store raises after a few attempts: the answer was paid for.
        """
        for pause in WRITE_PAUSES:
            try:
                return await self._finish(lease, answer)
            except SharedStateUnavailable:
                await asyncio.sleep(pause)
        return await self._finish(lease, answer)

    async def release(self, lease: CallLease) -> None:
        """Give the call up without an answer; nothing happens if another attempt has it."""
        current = await self._leases.get(_lease_key(lease))
        if _owner(current.value) == lease.owner:
            await self._leases.swap(_lease_key(lease), current.value, None)

    async def forget(self, research_id: str) -> int:
        """Remove all rows of a run; the number of answers removed. An answer that comes later is refused.

        Raises what the store raises when it removes nothing, `SharedStateUnavailable` above all: then try again.
        """
        answers = f"{_prefix(research_id)}answer/"
        answered = await self._store.remove(answers)  # first: this makes room for the mark in a store that is full
        await self._store.swap(_forgotten_key(research_id), None, b"1", FORGOTTEN_SECONDS)
        await self._leases.remove(f"{_prefix(research_id)}lease/")
        return answered + await self._store.remove(answers)  # an answer written before the mark

    async def _finish(self, lease: CallLease, answer: str) -> None:
        current = await self._leases.get(_lease_key(lease))
        if _owner(current.value) == lease.owner or not await self._is_forgotten(lease.research_id):
            written = answer.encode("utf-8", "surrogatepass")
            await self._store.swap(_answer_key(lease), None, written, STORED_SECONDS)
        await self.release(lease)

    async def _extend(self, lease: CallLease, current: bytes | None, now: float, seconds: float) -> bool:
        value = f"{lease.owner} {now + seconds!r}".encode()
        return await self._leases.swap(_lease_key(lease), current, value, max(SHORTEST_LEASE_SECONDS, seconds))

    async def _is_forgotten(self, research_id: str) -> bool:
        return (await self._store.get(_forgotten_key(research_id))).value is not None


def _prefix(research_id: str) -> str:
    return f"calls/{quote_part(research_id)}/"


def _lease_key(lease: CallLease) -> str:
    return f"{_prefix(lease.research_id)}lease/{lease.key}"


def _answer_key(lease: CallLease) -> str:
    return f"{_prefix(lease.research_id)}answer/{lease.key}"


def _forgotten_key(research_id: str) -> str:
    return f"forgotten/{quote_part(research_id)}"


def _owner(value: bytes | None) -> str:
    return (value or b"").partition(b" ")[0].decode("ascii", "replace")


def _leased_until(value: bytes | None) -> float:
    """Return when a lease ends by the store's clock; 0 for one that cannot be read."""
    try:
        return float((value or b"").partition(b" ")[2])
    except ValueError:
        return 0.0


def _answer(stored: bytes) -> str:
    try:
        return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise ContentCorrupt("the stored answer of a call is no text") from None
