"""The journal of paid calls over any shared store."""

import asyncio
import secrets
import time
from collections import OrderedDict
from typing import Final, TypeVar

from providers.errors import CallInFlight, ContentCorrupt
from providers.interfaces import SharedStore
from providers.shared.shielded_tasks import ShieldedTasks
from providers.shared.store_keys import quote_part

T = TypeVar("T")

SHORTEST_RETRY_SECONDS: Final = 1.0
SHORTEST_LEASE_SECONDS: Final = 0.001
MOST_TRIES: Final = 5
FORGOTTEN_SECONDS: Final = 86_400.0
"""How long a late answer of a run that was deleted is kept out: longer than any call takes."""
KEPT_SECONDS: Final = 3 * 86_400.0
"""How long an answer is kept from the moment it is written: a run lasts a day at most, and is resumed soon."""
MOST_BEGUN: Final = 50_000
DONE: Final = b"done"
DONE_SECONDS: Final = 10.0
"""How long a finished call's lease says so: longer than it takes to look for an answer and then take the lease."""


class SharedCallStore:
    """An attempt that begins a call owns it until its lease expires; an answer is written once and stays.

    A lease is a value that the store forgets soon by its own clock, an answer one that it keeps for days. The first
    answered attempt marks the lease as done for a while, then writes the answer: an attempt that has just missed it
    takes no lease. A process that is killed leaves its lease behind: the next attempt gets the call once it ran out.
    """

    def __init__(self, store: SharedStore, leases: SharedStore | None = None) -> None:
        """The caller closes the stores. `leases` may be faster and less durable."""
        self._store = store
        self._lease_store = store if leases is None else leases
        self._begun: OrderedDict[str, str] = OrderedDict()
        self._owners: dict[str, str] = {}
        self._leases: dict[str, bytes] = {}
        """What we wrote last, by key: a lease that still says so is ours."""
        self._tasks = ShieldedTasks()

    async def begin(self, key: str, research_id: str, lease_seconds: float) -> str | None:
        """Take the call: None if this attempt makes it, else the stored answer.

        Raises `CallInFlight` while another attempt holds a live lease. Cancelled, it leaves no lease behind.
        """
        owner = secrets.token_hex(8)
        work = self._tasks.start(self._begin(key, research_id, owner, lease_seconds))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await self._tasks.finish(self._undo(work, key, research_id, owner))
            raise

    async def renew(self, key: str, lease_seconds: float) -> None:
        """Keep the lease while the call runs; nothing happens if it is no longer ours."""
        await self._tasks.finish(self._renew(key, lease_seconds))

    async def finish(self, key: str, answer: str) -> None:
        """Write the answer; the first one stays. Nothing happens if the run was forgotten meanwhile."""
        await self._tasks.finish(self._finish(key, answer))

    async def release(self, key: str) -> None:
        """Give the call up without an answer; nothing happens if it is no longer ours."""
        await self._tasks.finish(self._release(key))

    async def forget(self, research_id: str) -> int:
        """Remove all rows of a run; the number of answers removed. An answer that comes later is not kept.

        Raises what the store raises when it removes nothing, `SharedStateUnavailable` above all: then try again.
        """
        return await self._tasks.finish(self._forget(research_id))

    async def _begin(self, key: str, research_id: str, owner: str, lease_seconds: float) -> str | None:
        for _ in range(MOST_TRIES):
            looked_at = time.monotonic()
            stored = await self._store.get(_answer_key(key, research_id))
            if stored.value is not None:
                return _answer(stored.value)
            lease = _lease(owner, stored.now + lease_seconds)
            if await self._lease_store.swap(_lease_key(key, research_id), None, lease, _ttl(lease_seconds)):
                if time.monotonic() - looked_at > DONE_SECONDS / 2:  # too long ago to rely on
                    await self._give_back(key, research_id, owner)
                    continue
                self._take(key, research_id, owner, lease)
                return None
            held = await self._lease_store.get(_lease_key(key, research_id))
            if held.value is not None and held.value != DONE:
                remaining = max(SHORTEST_RETRY_SECONDS, _leased_until(held.value) - held.now)
                raise CallInFlight("another attempt is making this call", retry_after=remaining)
        raise CallInFlight("other attempts keep taking this call", retry_after=SHORTEST_RETRY_SECONDS)

    def _take(self, key: str, research_id: str, owner: str, lease: bytes) -> None:
        self._begun[key] = research_id
        self._begun.move_to_end(key)
        if len(self._begun) > MOST_BEGUN:
            self._let_go(self._begun.popitem(last=False)[0])
        self._owners[key], self._leases[key] = owner, lease

    def _let_go(self, key: str) -> None:
        self._owners.pop(key, None)
        self._leases.pop(key, None)

    async def _undo(self, work: "asyncio.Task[str | None]", key: str, research_id: str, owner: str) -> None:
        """Give back what a cancelled attempt may have taken, whatever became of it."""
        await asyncio.wait([work])
        await self._give_back(key, research_id, owner)
        if self._owners.get(key) == owner:
            self._let_go(key)

    async def _renew(self, key: str, lease_seconds: float) -> None:
        owner, research_id = self._owners.get(key), self._begun.get(key)
        if owner is None or research_id is None:
            return
        held = await self._lease_store.get(_lease_key(key, research_id))
        if _owner(held.value) == owner or (held.value is None and not await self._is_forgotten(research_id)):
            lease = _lease(owner, held.now + lease_seconds)
            if await self._lease_store.swap(_lease_key(key, research_id), held.value, lease, _ttl(lease_seconds)):
                self._leases[key] = lease

    async def _finish(self, key: str, answer: str) -> None:
        research_id, owner = self._begun.get(key), self._owners.get(key)
        if research_id is None:
            return
        if await self._is_marked_done(key, research_id, owner):
            written = answer.encode("utf-8", "surrogatepass")
            await self._store.swap(_answer_key(key, research_id), None, written, KEPT_SECONDS)
        self._begun.pop(key, None)
        await self._release(key, research_id)

    async def _is_marked_done(self, key: str, research_id: str, owner: str | None) -> bool:
        """Mark the call before its answer is there: an attempt that then misses it takes no lease. False: forgotten."""
        place = _lease_key(key, research_id)
        if key in self._leases and await self._lease_store.swap(place, self._leases.pop(key), DONE, DONE_SECONDS):
            self._let_go(key)
            return True
        if await self._is_forgotten(research_id) and not await self._is_leased(key, research_id, owner):
            return False
        await self._lease_store.swap(place, None, DONE, DONE_SECONDS)  # it had run out; of another attempt, it stays
        return True

    async def _release(self, key: str, research_id: str | None = None) -> None:
        owner, research_id = self._owners.get(key), research_id or self._begun.get(key)
        if owner is not None and research_id is not None:
            await self._give_back(key, research_id, owner)
            self._let_go(key)

    async def _forget(self, research_id: str) -> int:
        answers = f"{_prefix(research_id)}answer/"
        answered = await self._store.remove(answers)  # first: this makes room for the mark in a store that is full
        await self._store.swap(_forgotten_key(research_id), None, b"1", FORGOTTEN_SECONDS)
        for key in [key for key, begun in self._begun.items() if begun == research_id]:
            del self._begun[key]
            self._let_go(key)
        await self._lease_store.remove(f"{_prefix(research_id)}lease/")
        return answered + await self._store.remove(answers)  # an answer written before the mark

    async def _give_back(self, key: str, research_id: str, owner: str) -> None:
        held = await self._lease_store.get(_lease_key(key, research_id))
        if _owner(held.value) == owner:
            await self._lease_store.swap(_lease_key(key, research_id), held.value, None)

    async def _is_leased(self, key: str, research_id: str, owner: str | None) -> bool:
        held = await self._lease_store.get(_lease_key(key, research_id))
        return owner is not None and _owner(held.value) == owner

    async def _is_forgotten(self, research_id: str) -> bool:
        return (await self._store.get(_forgotten_key(research_id))).value is not None


def _prefix(research_id: str) -> str:
    return f"calls/{quote_part(research_id)}/"


def _lease_key(key: str, research_id: str) -> str:
    return f"{_prefix(research_id)}lease/{key}"


def _answer_key(key: str, research_id: str) -> str:
    return f"{_prefix(research_id)}answer/{key}"


def _forgotten_key(research_id: str) -> str:
    return f"forgotten/{quote_part(research_id)}"


def _ttl(lease_seconds: float) -> float:
    return max(SHORTEST_LEASE_SECONDS, lease_seconds)


def _lease(owner: str, until: float) -> bytes:
    return f"{owner} {until!r}".encode()


def _owner(lease: bytes | None) -> str:
    return "" if lease is None else lease.partition(b" ")[0].decode("ascii", "replace")


def _leased_until(lease: bytes) -> float:
    """When a lease ends by the store's clock; of one that cannot be read: long ago."""
    try:
        return float(lease.partition(b" ")[2])
    except ValueError:
        return 0.0


def _answer(stored: bytes) -> str:
    try:
        return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise ContentCorrupt("the stored answer of a call is no text") from None
