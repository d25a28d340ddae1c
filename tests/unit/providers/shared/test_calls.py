"""The journal of paid calls over each kind of store, alone and shared by several real processes."""

import asyncio
import errno
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from redis.exceptions import OutOfMemoryError, RedisError

from providers.errors import CallInFlight, SharedStateUnavailable, StorageFull
from providers.interfaces import SharedStore
from providers.shared import answer_spool, paid_calls
from providers.shared.answer_spool import AnswerSpool, ReservedRoom
from providers.shared.paid_calls import ORPHANED_SECONDS, STANDSTILL_SECONDS, CallLease, CallLocks, CallStore
from providers.shared.shared_value import running
from providers.shared.stores.redis_store import RedisSharedStore
from tests.fakes.shared_stores import BrokenStore, MemorySharedStore, Opener, processes
from tests.fakes.valkey import ValkeyServer, running_valkey
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
        won = await processes(BEGINNER, address, "40", count=2)
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


async def test_every_failure_of_a_store_reaches_the_caller() -> None:
    """Without a spool nothing hides that a call cannot begin, or that its answer is not stored."""
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


def spool_of(folder: Path, size: int = 1_000_000) -> AnswerSpool:
    return AnswerSpool(folder / "answers", ReservedRoom(folder / "room", size))


async def test_an_answer_that_a_store_does_not_take_is_found_by_every_worker_of_the_machine(tmp_path: Path) -> None:
    """It is read from its file while the store is away, and is in the store, and nowhere else, once that is back."""
    store = BrokenStore()
    calls, other = (CallStore(store, spool=spool_of(tmp_path)) for _ in range(2))
    lease = await begun(calls)
    store.error = SharedStateUnavailable("away")
    await calls.finish(lease, "answer \udc80\n of two lines")
    assert await other.begin("k", "r-1", 60.0) == "answer \udc80\n of two lines"
    with pytest.raises(SharedStateUnavailable):
        await other.deliver()
    (file,) = (tmp_path / "answers").iterdir()
    assert file.stat().st_mode & 0o077 == 0
    store.error = None
    assert (await other.deliver(), await calls.deliver()) == (1, 0)
    assert not file.exists()
    assert await CallStore(store).begin("k", "r-1", 60.0) == "answer \udc80\n of two lines"


async def test_answers_are_delivered_as_soon_as_the_store_takes_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A worker tries again for as long as it takes, whatever the store says until then."""
    monkeypatch.setattr(paid_calls, "DELIVERY_SECONDS", 0.01)
    store = BrokenStore()
    calls = CallStore(store, spool=spool_of(tmp_path))
    lease = await begun(calls)
    store.error = StorageFull("full")
    await calls.finish(lease, "answer")
    async with asyncio.timeout(SOON), running(calls.deliver_always()):
        asked = store.asked
        while store.asked < asked + 5:
            await asyncio.sleep(0.01)
        store.error = None
        while list((tmp_path / "answers").iterdir()):
            await asyncio.sleep(0.01)
    assert await CallStore(store).begin("k", "r-1", 60.0) == "answer"


async def test_nothing_is_delivered_for_a_deleted_run_or_after_a_day(tmp_path: Path) -> None:
    """Deletion removes the files of its machine, its mark those of others, and age those that the mark outlived."""
    store = BrokenStore()
    here, elsewhere = (CallStore(store, spool=spool_of(tmp_path / name)) for name in ("here", "elsewhere"))
    for folder in ("here", "elsewhere"):
        (tmp_path / folder).mkdir()
    leases = [await begun(here, "a"), await begun(elsewhere, "b"), await begun(here, "c", "r-old")]
    store.error = SharedStateUnavailable("away")
    for calls, lease in zip((here, elsewhere, here), leases, strict=True):
        await calls.finish(lease, "secret")
    store.error = None
    assert await here.forget("r-1") == 1
    (old,) = (tmp_path / "here" / "answers").iterdir()
    os.utime(old, (0, 0))
    assert (await here.deliver(), await elsewhere.deliver()) == (0, 1)
    assert not [*(tmp_path / "here" / "answers").iterdir(), *(tmp_path / "elsewhere" / "answers").iterdir()]
    assert not [key for key in store._entries if "/answer/" in key]


async def test_a_file_that_is_no_answer_is_left_alone(tmp_path: Path) -> None:
    """What somebody else put into the folder is neither an answer nor removed."""
    folder = tmp_path / "answers"
    folder.mkdir()
    names = ("notes.txt", f"{'a' * 32}-{'b' * 32}")
    for name in names:
        (folder / name).write_bytes(b"[1]\nno answer \xff")
    calls = CallStore(MemorySharedStore(), spool=spool_of(tmp_path))
    assert await calls.deliver() == 0
    await begun(calls)
    assert {path.name for path in folder.iterdir()} == set(names)


HEAD = b'{"research_id": "r-1", "answer_key": "calls/r-1/answer/k"}'
FOREIGN: dict[str, Callable[[Path], object]] = {
    "deep": lambda path: path.write_bytes(b"[" * 8_000),
    "folder": lambda path: path.mkdir(),
    "link": lambda path: path.symlink_to("/dev/zero"),
    "long line": lambda path: path.write_bytes(b" " * 10_000 + HEAD + b"\nforeign"),
    "of another name": lambda path: path.write_bytes(HEAD + b"\nforeign"),
    "pipe": os.mkfifo,
}


@pytest.mark.parametrize("kind", FOREIGN)
async def test_a_foreign_file_keeps_no_answer_from_the_store(tmp_path: Path, kind: str) -> None:
    """A link, a pipe, a folder, deep JSON and the name of another call neither end nor stop the delivery, nor deletion."""
    store = BrokenStore()
    calls = CallStore(store, spool=spool_of(tmp_path))
    lease = await begun(calls)
    store.error = SharedStateUnavailable("away")
    await calls.finish(lease, "paid")
    store.error = None
    foreign = tmp_path / "answers" / f"{answer_spool._short_hash('r-2')}-{'b' * 32}"
    FOREIGN[kind](foreign)
    os.utime(foreign, (time.time() - 60, time.time() - 60), follow_symlinks=False)  # it is looked at first
    async with asyncio.timeout(SOON):
        assert await calls.deliver() == 1
        await calls.forget("r-2")
    assert await CallStore(store).begin("k", "r-1", 60.0) == "paid"


async def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    """A file of the right name that no reply can have made is neither held in memory nor sent to the store."""
    spool = spool_of(tmp_path)
    await spool.put("r-1", "calls/r-1/answer/k", "paid")
    (file,) = (tmp_path / "answers").iterdir()
    os.truncate(file, 1_000_000_000)
    assert await spool.get("r-1", "calls/r-1/answer/k") is None
    assert await CallStore(MemorySharedStore(), spool=spool).deliver() == 0


async def test_many_answers_are_read_one_by_one(tmp_path: Path) -> None:
    """Delivery holds one answer in memory, however many wait."""
    spool = spool_of(tmp_path)
    for number in range(20):
        await spool.put("r-1", f"calls/r-1/answer/{number}", "x" * 1_000_000)
    tracemalloc.start()
    try:
        assert len([spooled.answer_key async for spooled in spool.answers()]) == 20
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


async def test_a_paid_answer_finds_room_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call under way when the disk is full gets its answer written, so that no restart pays for it again."""
    store, room = BrokenStore(), tmp_path / "room"
    calls = CallStore(store, spool=spool_of(tmp_path, 4_000_000))
    leases = [await begun(calls, str(number)) for number in range(50)]
    assert room.stat().st_blocks * 512 >= 4_000_000
    full_at, write = room.stat().st_size, answer_spool._write_durably

    def write_on_a_full_disk(path: Path, data: bytes) -> None:
        """An answer finds room only where reserved room was given up; others take what it leaves."""
        nonlocal full_at
        if full_at - room.stat().st_size < len(data):
            raise OSError(errno.ENOSPC, "no space")
        full_at = room.stat().st_size
        write(path, data)

    monkeypatch.setattr(answer_spool, "_write_durably", write_on_a_full_disk)
    store.error = StorageFull("full")
    for lease in leases:
        await calls.finish(lease, "x" * 20_000)
    assert [await calls.begin(str(number), "r-1", 60.0) for number in range(50)] == ["x" * 20_000] * 50


async def test_an_answer_without_any_room_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk refuses writes for another reason, what is reserved stays; the caller learns the reason."""
    store = BrokenStore()
    calls = CallStore(store, spool=spool_of(tmp_path))
    lease = await begun(calls)
    store.error = SharedStateUnavailable("away")

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(answer_spool, "_write_durably", refuse)
    with pytest.raises(StorageFull, match="Read-only file system"):
        await calls.finish(lease, "answer")
    assert (tmp_path / "room").stat().st_size == 1_000_000


async def test_no_call_is_paid_for_without_room_for_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits until the disk has room again; what is reserved stays for the calls under way."""
    room = ReservedRoom(tmp_path / "room", 1_000_000)
    calls = CallStore(MemorySharedStore(), spool=AnswerSpool(tmp_path / "answers", room))
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


@pytest.mark.skipif(sys.platform != "linux", reason="the server's disk is filled with a limit of Linux")
@pytest.mark.parametrize("kept", ["--appendonly yes --appendfsync everysec", "--save 3600 1"])
async def test_a_server_whose_own_disk_is_full_loses_no_paid_answer_and_begins_no_call(
    tmp_path: Path, kept: str
) -> None:
    """Whether it writes a log or snapshots: answers wait in files, and are in the server once it takes writes again."""
    (tmp_path / "server").mkdir()
    with running_valkey(tmp_path / "server", *kept.split()) as server:
        store, other = RedisSharedStore(server.url), RedisSharedStore(server.url)
        try:
            calls = CallStore(store, spool=spool_of(tmp_path))
            leases = [await begun(calls, str(number)) for number in range(20)]
            server.fill_disk()
            await until_refused(server)
            for number, lease in enumerate(leases):
                await calls.finish(lease, f"{number}" * 20_000)
            with pytest.raises(SharedStateUnavailable, match=r"cannot save to its own disk.*make room"):
                await calls.begin("other", "r-1", 60.0)
            assert len(list((tmp_path / "answers").iterdir())) == 20
            server.free_disk()
            async with asyncio.timeout(SOON):
                while list((tmp_path / "answers").iterdir()):
                    await deliver(calls, server)
                    await asyncio.sleep(0.05)
            answers = [await CallStore(other).begin(str(number), "r-1", 60.0) for number in range(20)]
        finally:
            await store.close()
            await other.close()
    assert answers == [f"{number}" * 20_000 for number in range(20)]


async def until_refused(server: ValkeyServer) -> None:
    """Write until the server finds that it cannot save."""
    async with asyncio.timeout(SOON):
        while True:
            try:
                await server.tell("SET", "of-others", "x")
                await server.tell("BGSAVE")
            except RedisError as error:
                if "MISCONF" in str(error):
                    return
            await asyncio.sleep(0.05)


async def deliver(calls: CallStore, server: ValkeyServer) -> None:
    """Deliver what the server takes; with a snapshot it notices that its disk has room."""
    with suppress(RedisError):
        await server.tell("BGSAVE")
    with suppress(SharedStateUnavailable):
        await calls.deliver()


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


# --- processes that stand still -----------------------------------------------------------------------------------------
async def test_a_process_that_does_not_move_has_its_call(tmp_path: Path) -> None:
    """Its lease runs out, and no other process of the machine makes the call again while it lives; a kill frees it at once."""
    store = MemorySharedStore()
    here, there = (CallStore(store, locks=CallLocks(tmp_path / "calls")) for _ in range(2))
    first = await begun(here)
    await expire(store)
    with pytest.raises(CallInFlight, match="stands still"):
        await there.begin("k", "r-1", 60.0)
    os.close(first.lock._descriptor)  # as the kernel does when a process is killed
    second = await begun(there)
    await there.finish(second, "answer")
    assert await here.begin("k", "r-1", 60.0) == "answer"
    assert list((tmp_path / "calls").iterdir()) == []


async def test_the_answer_of_a_stopped_process_is_found(tmp_path: Path) -> None:
    """It is written when the process goes on, also if the store is away, and the call is free after it failed."""
    store = MemorySharedStore()
    here, there = (CallStore(store, locks=CallLocks(tmp_path)) for _ in range(2))
    for text in ("first", None):
        first = await begun(here, str(text))
        await expire(store, str(text))
        with pytest.raises(CallInFlight):
            await there.begin(str(text), "r-1", 60.0)
        await (here.release(first) if text is None else here.finish(first, text))
    assert await there.begin("first", "r-1", 60.0) == "first"
    again = await begun(there, "None")
    with pytest.raises(CallInFlight):
        await here.begin("None", "r-1", 60.0)
    await there.release(again)
    away = BrokenStore()
    away.error = SharedStateUnavailable("away")
    broken = CallStore(away, store)
    with pytest.raises(SharedStateUnavailable):
        await broken.finish(await begun(here, "late"), "late")
    assert list(tmp_path.iterdir()) == []


async def test_a_process_that_never_goes_on_is_not_waited_for(tmp_path: Path) -> None:
    """After two minutes without a sign of life, or if no file can be locked, the lease alone decides."""
    store = MemorySharedStore()
    here, there = (CallStore(store, locks=CallLocks(tmp_path)) for _ in range(2))
    first = await begun(here)
    await expire(store)
    (file,) = tmp_path.iterdir()
    os.utime(file, (0, time.time() - STANDSTILL_SECONDS + 5))
    with pytest.raises(CallInFlight):
        await there.begin("k", "r-1", 60.0)
    for silent in (STANDSTILL_SECONDS + 5, -3_600):
        os.utime(file, (0, time.time() - silent))
        await there.release(await begun(there))
    await here.renew(first, 0.0)
    with pytest.raises(CallInFlight, match="stands still"):
        await there.begin("k", "r-1", 60.0)
    unusable = CallStore(store, locks=CallLocks(file / "no-folder"))
    await unusable.release(await begun(unusable))
    await here.release(first)


async def test_a_call_that_waits_holds_no_file_open(tmp_path: Path) -> None:
    """Attempts every two seconds use up no descriptors; a file that its owner has just removed is no lock."""
    here, there = (CallLocks(tmp_path) for _ in range(2))
    lock = here.take("k")
    (file,) = tmp_path.iterdir()
    free = os.open(file, os.O_RDONLY)
    os.close(free)
    with pytest.raises(CallInFlight):
        there.take("k")
    lowest = os.open(file, os.O_RDONLY)
    lock.free()
    assert not paid_calls._is_at(file, lowest)
    os.close(lowest)
    assert lowest == free


async def test_files_of_killed_processes_do_not_stay(tmp_path: Path) -> None:
    """A file that is a day old is removed when a worker starts, and no younger one."""
    locks = CallLocks(tmp_path)
    for name, age in (("old", ORPHANED_SECONDS + 60), ("young", ORPHANED_SECONDS - 60)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, time.time() - age))
    async with running(CallStore(MemorySharedStore(), locks=locks).deliver_always()):
        await asyncio.sleep(0)
    assert [path.name for path in tmp_path.iterdir()] == ["young"]
