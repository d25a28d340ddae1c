"""The journal of paid calls over each kind of store, alone and shared by several real processes."""

import asyncio
import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest
from redis.exceptions import OutOfMemoryError

from providers.errors import CallInFlight, SharedStateUnavailable, StorageFull
from providers.interfaces import SharedStore
from providers.shared import paid_calls
from providers.shared.paid_calls import CallLease, CallStore, ReservedRoom
from providers.shared.stores.redis_store import RedisSharedStore
from tests.fakes.shared_stores import BrokenStore, MemorySharedStore, Opener, processes
from tests.fakes.valkey import running_valkey
from tests.unit.providers.shared.conftest import everywhere, shared_by_processes

SOON = 40.0

BEGINNER = """
import asyncio, sys
from providers.errors import CallInFlight
from providers.shared.paid_calls import CallStore
from tests.fakes.shared_stores import opener
async def main():
    calls = CallStore(opener(sys.argv[1])())
    await calls.forget("nobody")
    print("ready", flush=True)
    sys.stdin.readline()
    won = []
    for number in range(int(sys.argv[2])):
        try:
            if not isinstance(await calls.begin(f"key-{number}", "r-1", 60.0), str):
                won.append(number)
        except CallInFlight:
            pass
    print(*won, flush=True)
    sys.stdin.readline()
asyncio.run(main())
"""


class Journals:
    """Two journals on the same values, as two processes have them."""

    def __init__(self, open_store: Opener) -> None:
        self.store = open_store()
        self.calls = CallStore(self.store)
        self.other = CallStore(open_store())


@pytest.fixture
def journals(open_store: Opener) -> Journals:
    return Journals(open_store)


async def begun(calls: CallStore, key: str = "k", research_id: str = "r-1") -> CallLease:
    lease = await calls.begin(key, research_id, 60.0)
    assert isinstance(lease, CallLease)
    return lease


async def expire(store: SharedStore, key: str = "k") -> None:
    place = f"calls/r-1/lease/{key}"
    assert await store.swap(place, (await store.get(place)).value, None)


async def test_an_answer_outlives_every_run_and_not_for_ever() -> None:
    """It stays longer than a run can last, and is then forgotten."""
    now = [1_000_000.0]
    calls = CallStore(MemorySharedStore(lambda: now[0]))
    await calls.finish(await begun(calls), "answer")
    now[0] += 2 * 86_400
    assert await calls.begin("k", "r-1", 60.0) == "answer"
    now[0] += 86_400 + 1
    await begun(calls)


@everywhere
async def test_an_answered_call_is_never_made_again(journals: Journals) -> None:
    """The first attempt gets the call, later ones wait for it, and then get its answer (invariant 12)."""
    lease = await begun(journals.calls)
    for _ in range(2):
        await journals.calls.renew(lease, 60.0)
        with pytest.raises(CallInFlight):
            await journals.other.begin("k", "r-1", 60.0)
    await journals.calls.finish(lease, '{"answer": "ü"}')
    assert await journals.calls.begin("k", "r-1", 60.0) == '{"answer": "ü"}'
    assert await journals.other.begin("k", "r-1", 60.0) == '{"answer": "ü"}'


@everywhere
async def test_a_lease_that_ran_out_frees_the_call(journals: Journals) -> None:
    """The next attempt gets what a killed process had begun; the late answer of the first one still counts (F1)."""
    first = await begun(journals.calls)
    await expire(journals.store)
    await journals.calls.renew(first, 60.0)
    with pytest.raises(CallInFlight):
        await journals.other.begin("k", "r-1", 60.0)
    await expire(journals.store)
    second = await begun(journals.other)
    await journals.calls.renew(first, 0.0)
    await journals.calls.release(first)
    with pytest.raises(CallInFlight):
        await journals.calls.begin("k", "r-1", 60.0)
    await journals.calls.finish(first, "first")
    await journals.other.finish(second, "second")
    assert await journals.other.begin("k", "r-1", 60.0) == "first"


@everywhere
@pytest.mark.parametrize("turns", [0, 1, 3, 8])
async def test_a_cancelled_begin_leaves_no_lease(journals: Journals, turns: int) -> None:
    """Cancelling an attempt at any moment while it begins does not block the call for the length of a lease."""
    beginning = asyncio.create_task(journals.calls.begin("k", "r-1", 600.0))
    for _ in range(turns):
        await asyncio.sleep(0)
    beginning.cancel()
    (outcome,) = await asyncio.gather(beginning, return_exceptions=True)
    if isinstance(outcome, CallLease):  # it was quicker
        await journals.calls.release(outcome)
    async with asyncio.timeout(SOON):
        while await refused(journals.other):  # a server may make the change after its client has left
            await journals.other.forget("r-1")


async def refused(calls: CallStore) -> bool:
    try:
        await begun(calls)
    except CallInFlight:
        return True
    return False


@everywhere
async def test_forgetting_removes_a_run_and_no_other(journals: Journals) -> None:
    """A deleted run leaves no rows behind, a late answer does not bring it back, and it may begin again."""
    others = (("c", "r-2"), ("d", "r-1/"), ("e", "r-10"), ("f", ""))
    answered, late = await begun(journals.calls, "a"), await begun(journals.calls, "b")
    for key, research_id in others:
        await begun(journals.calls, key, research_id)
    await journals.calls.finish(answered, "answer")
    assert await journals.other.forget("r-1") == 1, "one of its calls was answered"
    assert await journals.other.forget("r-1") == 0
    await journals.calls.renew(late, 60.0)
    await journals.calls.finish(late, "late")
    again = await begun(journals.other, "b")
    for key, research_id in others:
        with pytest.raises(CallInFlight):
            await journals.other.begin(key, research_id, 60.0)
    await journals.other.finish(again, "answer")
    assert await journals.calls.begin("b", "r-1", 60.0) == "answer"


@shared_by_processes
async def test_processes_that_race_share_the_calls(address: str) -> None:
    """Of several processes that begin the same calls at the same moment, each call is won by exactly one."""
    async with asyncio.timeout(SOON):
        won = await processes(BEGINNER, address, "40", count=3)
    assert sorted(int(number) for line in won for number in line.split()) == list(range(40))


async def test_an_answer_written_while_the_lease_is_taken_is_found() -> None:
    """Between looking for an answer and taking the lease the call may be answered: then it is not made again."""

    class AnsweredMeanwhile(MemorySharedStore):
        first: CallLease | None = None

        async def swap(
            self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None, **options: bool
        ) -> bool:
            if "/lease/" in key and self.first is not None:
                first, self.first = self.first, None
                await CallStore(self).finish(first, "meanwhile")
            return await super().swap(key, old, new, ttl_seconds, **options)

    store = AnsweredMeanwhile()
    store.first = await begun(CallStore(store))
    assert await CallStore(store).begin("k", "r-1", 60.0) == "meanwhile"
    assert not [key for key in store._entries if "/lease/" in key]


async def test_a_store_that_is_away_for_a_moment_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure reaches the caller; a paid answer is written as soon as the store is back."""
    monkeypatch.setattr(paid_calls, "WRITE_PAUSES", (0.01, 0.01))
    store = BrokenStore()
    calls = CallStore(store)
    lease = await begun(calls)
    store.error = SharedStateUnavailable("away")
    for failing in (
        calls.begin("l", "r-1", 60.0),
        calls.renew(lease, 60.0),
        calls.finish(lease, "a"),
        calls.forget("r"),
    ):
        with pytest.raises(SharedStateUnavailable):
            await failing
    finishing = asyncio.create_task(calls.finish(lease, "answer"))
    await asyncio.sleep(0)
    store.error = None
    await finishing
    assert await calls.begin("k", "r-1", 60.0) == "answer"


class FullDisk(MemorySharedStore):
    """A store on a disk that others have filled up: an answer finds room only where reserved room was given up."""

    def __init__(self, room: Path) -> None:
        super().__init__()
        self._room = room
        self._size: int | None = None

    def fill(self) -> None:
        self._size = self._room.stat().st_size

    async def swap(
        self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None, **options: bool
    ) -> bool:
        if self._size is not None and new and "/answer/" in key:
            if self._size - self._room.stat().st_size < len(new):
                raise StorageFull("full")
            self.fill()  # others take what the answer left
        return await super().swap(key, old, new, ttl_seconds, **options)


async def test_a_paid_answer_finds_room_on_a_full_disk(tmp_path: Path) -> None:
    """Each call under way when the disk is full gets its answer written, so that no restart pays for it again."""
    room = tmp_path / "room"
    store = FullDisk(room)
    calls = CallStore(store, MemorySharedStore(), ReservedRoom(room, 4_000_000))
    leases = [await begun(calls, str(number)) for number in range(50)]
    assert room.stat().st_blocks * 512 >= 4_000_000
    store.fill()
    for lease in leases:
        await calls.finish(lease, "x" * 20_000)
    assert [await calls.begin(str(number), "r-1", 60.0) for number in range(50)] == ["x" * 20_000] * 50


async def test_no_call_is_paid_for_without_room_for_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits until the disk has room again; what is reserved stays for the calls under way."""
    room = ReservedRoom(tmp_path / "room", 1_000_000)
    calls = CallStore(MemorySharedStore(), room=room)
    await begun(calls)
    assert room.give_up(400_000)

    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(StorageFull):
        await begun(calls, "other")
    assert (tmp_path / "room").stat().st_size == 600_000
    monkeypatch.undo()
    await begun(calls, "other")
    assert (tmp_path / "room").stat().st_size == 1_000_000


async def begun_when_there_is_room(calls: CallStore, key: str) -> CallLease:
    """Begin a call as soon as the server takes it: memory of connections is freed a while after that of values."""
    async with asyncio.timeout(SOON):
        while True:
            with suppress(SharedStateUnavailable):
                return await begun(calls, key)
            await asyncio.sleep(0.05)


async def test_a_full_server_loses_no_paid_answer_and_begins_no_call(tmp_path: Path) -> None:
    """Calls under way when a server reaches its `maxmemory` get their answers written; others wait until it has room."""
    with running_valkey(tmp_path, "--maxmemory", "8mb", "--maxmemory-policy", "noeviction") as server:
        store = RedisSharedStore(server.url)
        try:
            calls = CallStore(store)
            leases = [await begun(calls, str(number)) for number in range(20)]
            with suppress(OutOfMemoryError):
                for number in range(2_000):
                    server.command("SET", f"of-others:{number}", "x" * 10_000)
            for number, lease in enumerate(leases):
                await calls.finish(lease, f"{number}" * 20_000)
            with pytest.raises(SharedStateUnavailable):
                await calls.begin("other", "r-1", 60.0)
            answers = [await calls.begin(str(number), "r-1", 60.0) for number in range(20)]
            server.flush()
            await begun_when_there_is_room(calls, "other")
        finally:
            await store.close()
    assert answers == [f"{number}" * 20_000 for number in range(20)]
