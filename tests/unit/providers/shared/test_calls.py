"""The journal of paid calls over each kind of store, alone and shared by several real processes."""

import asyncio
import sys

import pytest

from providers.errors import CallInFlight, ContentCorrupt, SharedStateUnavailable
from providers.interfaces import SharedStore
from providers.shared.paid_calls import SharedCallStore
from providers.shared.stores.memory_store import MemorySharedStore
from tests.fakes.shared_stores import ROOT, BrokenStore, processes
from tests.unit.providers.shared.conftest import EVERYWHERE, SHARED_BY_PROCESSES, WHERE_IT_CAN_BE_REMOVED, Stores

SOON = 40.0

BEGINNER = """
import asyncio, sys
from providers.errors import CallInFlight
from providers.shared.paid_calls import SharedCallStore
from tests.fakes.shared_stores import opener
async def main():
    calls = SharedCallStore(opener(sys.argv[1])())
    await calls.forget("nobody")
    print("ready", flush=True)
    sys.stdin.readline()
    won = []
    for number in range(int(sys.argv[2])):
        try:
            if await calls.begin(f"key-{number}", "r-1", 60.0) is None:
                won.append(number)
        except CallInFlight:
            pass
    print(*won, flush=True)
    sys.stdin.readline()
asyncio.run(main())
"""

everywhere = pytest.mark.parametrize("kind", EVERYWHERE)
where_it_can_be_removed = pytest.mark.parametrize("kind", WHERE_IT_CAN_BE_REMOVED)
shared_by_processes = pytest.mark.parametrize("kind", SHARED_BY_PROCESSES)


class Journals:
    """Two journals on the same values, as two processes have them."""

    def __init__(self, stores: Stores) -> None:
        self.store = stores.open()
        self.calls = SharedCallStore(self.store)
        self.other = SharedCallStore(stores.open())


@pytest.fixture
def journals(stores: Stores) -> Journals:
    """Journals over the test's kind of store."""
    return Journals(stores)


async def expire(store: SharedStore, key: str = "k") -> None:
    """Let the lease of a call run out, as time does."""
    place = f"calls/r-1/lease/{key}"
    assert await store.swap(place, (await store.get(place)).value, None)


async def begun_soon(calls: SharedCallStore, key: str) -> str | None:
    """Begin a call as soon as it is free."""
    async with asyncio.timeout(SOON):
        while True:
            try:
                return await calls.begin(key, "r-1", 60.0)
            except CallInFlight:
                await asyncio.sleep(0.01)


async def test_an_answer_outlives_every_run_and_not_for_ever() -> None:
    """It is there for longer than a run can last; then it is forgotten."""
    now = [1_000_000.0]
    calls = SharedCallStore(MemorySharedStore(lambda: now[0]))
    assert await calls.begin("k", "r-1", 60.0) is None
    await calls.finish("k", "answer")
    now[0] += 2 * 86_400
    assert await calls.begin("k", "r-1", 60.0) == "answer"
    now[0] += 86_400 + 1
    assert await calls.begin("k", "r-1", 60.0) is None


@everywhere
async def test_an_answered_call_is_never_made_again(journals: Journals) -> None:
    """The first attempt gets the call; every later one, in any process, gets its answer (invariant 12)."""
    assert await journals.calls.begin("k", "r-1", 60.0) is None
    await journals.calls.finish("k", '{"answer": "ü"}')
    assert await journals.calls.begin("k", "r-1", 60.0) == '{"answer": "ü"}'
    assert await journals.other.begin("k", "r-1", 60.0) == '{"answer": "ü"}'


@everywhere
async def test_a_call_under_way_is_waited_for(journals: Journals) -> None:
    """While a lease lives others are told how long to wait: what is left of it, at least a second."""
    await journals.calls.begin("k", "r-1", 60.0)
    with pytest.raises(CallInFlight) as told:
        await journals.other.begin("k", "r-1", 60.0)
    assert told.value.retry_after is not None
    assert 1.0 <= told.value.retry_after <= 60.0
    await journals.calls.renew("k", 0.9)
    with pytest.raises(CallInFlight) as told:
        await journals.other.begin("k", "r-1", 60.0)
    assert told.value.retry_after == 1.0


@everywhere
async def test_a_lease_ends_by_itself(journals: Journals) -> None:
    """Time alone frees a call that nobody renews."""
    await journals.calls.begin("k", "r-1", 60.0)
    await journals.calls.renew("k", 0.02)
    assert await begun_soon(journals.other, "k") is None


@everywhere
async def test_a_lease_that_ran_out_frees_the_call(journals: Journals) -> None:
    """What a killed process had begun, the next attempt gets; the late answer of the first one still counts."""
    await journals.calls.begin("k", "r-1", 60.0)
    await expire(journals.store)
    assert await journals.other.begin("k", "r-1", 60.0) is None
    await journals.calls.release("k")
    with pytest.raises(CallInFlight):
        await journals.calls.begin("k", "r-1", 60.0)
    await journals.calls.finish("k", "first")
    await journals.other.finish("k", "second")
    assert await journals.other.begin("k", "r-1", 60.0) == "first"


@everywhere
async def test_an_answer_that_comes_after_its_lease_counts(journals: Journals) -> None:
    """A paid answer is kept although the lease had run out and nobody else had taken the call."""
    await journals.calls.begin("k", "r-1", 60.0)
    await expire(journals.store)
    await journals.calls.finish("k", "late")
    assert await journals.other.begin("k", "r-1", 60.0) == "late"


@everywhere
async def test_two_attempts_in_one_process_are_two(journals: Journals) -> None:
    """The first attempt of a process gives up after the second one began: the second one's answer is kept."""
    await journals.calls.begin("k", "r-1", 60.0)
    await expire(journals.store)
    await journals.calls.begin("k", "r-1", 60.0)
    await journals.calls.release("k")
    await journals.calls.finish("k", "second")
    assert await journals.other.begin("k", "r-1", 60.0) == "second"


@everywhere
async def test_renewing_is_for_the_owner(journals: Journals) -> None:
    """A process that lost its lease cannot shorten the new owner's; one whose lease ran out unnoticed gets it back."""
    await journals.calls.begin("k", "r-1", 60.0)
    await expire(journals.store)
    await journals.calls.renew("k", 60.0)
    with pytest.raises(CallInFlight):
        await journals.other.begin("k", "r-1", 60.0)
    await expire(journals.store)
    await journals.other.begin("k", "r-1", 60.0)
    await journals.calls.renew("k", 0.0)
    with pytest.raises(CallInFlight):
        await journals.calls.begin("k", "r-1", 60.0)


@everywhere
async def test_a_released_call_is_free_at_once(journals: Journals) -> None:
    """Giving up without an answer lets the next attempt begin; releasing what is answered changes nothing."""
    await journals.calls.begin("k", "r-1", 60.0)
    await journals.calls.release("k")
    assert await journals.other.begin("k", "r-1", 60.0) is None
    await journals.other.finish("k", "answer")
    await journals.other.release("k")
    assert await journals.calls.begin("k", "r-1", 60.0) == "answer"


@everywhere
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 20])
async def test_a_cancelled_begin_leaves_no_lease(journals: Journals, turns: int) -> None:
    """Cancelling an attempt at any moment while it begins does not block the call for the length of a lease."""
    beginning = asyncio.create_task(journals.calls.begin("k", "r-1", 600.0))
    for _ in range(turns):
        await asyncio.sleep(0)
    if beginning.done():  # an event loop's turn is all that a store in memory needs
        await journals.calls.release("k")
    elif beginning.cancel():
        with pytest.raises(asyncio.CancelledError):
            await beginning
    assert await journals.other.begin("k", "r-1", 60.0) is None


@where_it_can_be_removed
async def test_forgetting_removes_a_run_and_no_other(journals: Journals) -> None:
    """A deleted run leaves no rows behind, answered or not; a late answer does not bring it back."""
    for key, research_id in (("a", "r-1"), ("b", "r-1"), ("c", "r-2"), ("d", "r-1/"), ("e", "r-10"), ("f", "")):
        await journals.calls.begin(key, research_id, 60.0)
    await journals.calls.finish("a", "answer")
    assert await journals.other.forget("r-1") == 1, "one of its calls was answered"
    assert await journals.other.forget("r-1") == 0
    await journals.calls.renew("b", 60.0)
    await journals.calls.finish("b", "late")
    assert await journals.other.begin("b", "r-1", 60.0) is None
    for key, research_id in (("c", "r-2"), ("d", "r-1/"), ("e", "r-10"), ("f", "")):
        with pytest.raises(CallInFlight):
            await journals.other.begin(key, research_id, 60.0)


@where_it_can_be_removed
async def test_a_forgotten_run_may_begin_again(journals: Journals) -> None:
    """Calls that begin after the deletion are journalled as ever."""
    await journals.calls.begin("k", "r-1", 60.0)
    await journals.calls.forget("r-1")
    assert await journals.calls.begin("k", "r-1", 60.0) is None
    await journals.calls.finish("k", "answer")
    assert await journals.other.begin("k", "r-1", 60.0) == "answer"


@shared_by_processes
async def test_processes_that_race_share_the_calls(kind: str, address: str) -> None:
    """Of several processes that begin the same calls at the same moment, each call is won by exactly one."""
    async with asyncio.timeout(SOON):
        won = await processes(BEGINNER, address, "40", count=3)
    assert sorted(int(number) for line in won for number in line.split()) == list(range(40))


@shared_by_processes
async def test_a_killed_process_frees_its_calls_with_its_lease(address: str, journals: Journals) -> None:
    """After kill -9 the store is sound, the lease holds until it runs out, and then the call can be made."""
    pipe, command = asyncio.subprocess.PIPE, (sys.executable, "-c", BEGINNER, address, "1")
    killed = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, cwd=ROOT)
    async with asyncio.timeout(SOON):
        assert killed.stdin
        assert killed.stdout
        killed.stdin.write(b"\n")
        assert await killed.stdout.readline() == b"ready\n"
        assert await killed.stdout.readline() == b"0\n"
        killed.kill()
        await killed.communicate()
    with pytest.raises(CallInFlight):
        await journals.calls.begin("key-0", "r-1", 60.0)
    await expire(journals.store, "key-0")
    assert await journals.calls.begin("key-0", "r-1", 60.0) is None


@pytest.mark.parametrize("ran_out", [False, True])
async def test_an_answer_written_while_the_lease_is_taken_is_found(ran_out: bool) -> None:
    """Between looking for an answer and taking the lease the call may be answered: then it is not made again."""

    class AnsweredMeanwhile(MemorySharedStore):
        first: SharedCallStore | None = None

        async def swap(self, key: str, old: bytes | None, new: bytes | None, ttl_seconds: float | None = None) -> bool:
            if "/lease/" in key and self.first is not None:
                first, self.first = self.first, None
                await first.finish("k", "meanwhile")
            return await super().swap(key, old, new, ttl_seconds)

    store = AnsweredMeanwhile()
    first = SharedCallStore(store)
    await first.begin("k", "r-1", 60.0)
    if ran_out:
        await expire(store)
    store.first = first
    assert await SharedCallStore(store).begin("k", "r-1", 60.0) == "meanwhile"


async def test_an_answer_that_is_no_text_is_told_as_such() -> None:
    """Somebody else's bytes under a call's key are no answer, and are never evaluated (F17)."""
    store = MemorySharedStore()
    await store.swap("calls/r-1/answer/k", None, b"\x80\x04pickle\xff")
    with pytest.raises(ContentCorrupt):
        await SharedCallStore(store).begin("k", "r-1", 60.0)
    await store.swap("calls/r-1/lease/damaged", None, b"\xff\xff")
    with pytest.raises(CallInFlight):
        await SharedCallStore(store).begin("damaged", "r-1", 60.0)


async def test_a_failing_store_is_told_and_the_call_can_still_be_finished() -> None:
    """A failure reaches the caller; the answer can be written when the store is back."""
    store = BrokenStore()
    calls = SharedCallStore(store)
    await calls.begin("k", "r-1", 60.0)
    store.error = SharedStateUnavailable("away")
    for failing in (calls.begin("l", "r-1", 60.0), calls.renew("k", 60.0), calls.finish("k", "a"), calls.forget("r-2")):
        with pytest.raises(SharedStateUnavailable):
            await failing
    store.error = None
    await calls.finish("k", "answer")
    assert await calls.begin("k", "r-1", 60.0) == "answer"
