"""The queue of runs: who goes on next, and that each run gets exactly one place, whoever is killed."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable

import pytest

from contracts.messages import QueueTurn
from providers.errors import Unavailable
from providers.interfaces import StoredValue
from providers.shared import run_queue
from providers.shared.run_queue import (
    CHECK_SECONDS,
    KEY,
    LEASE_SECONDS,
    LINE_OF_NEWS,
    NEWS_SECONDS,
    QueueFull,
    QueueLimits,
    QueueState,
    RunQueue,
    TenantPlaces,
    ask,
    enter,
    is_news,
    read_places,
    release,
)
from tests.fakes.shared_stores import MemorySharedStore

START = 1_000_000.0


# --- rules -----------------------------------------------------------------------------------------------------------
class Hall:
    """A queue with its time in hand."""

    def __init__(self, limits: QueueLimits) -> None:
        self.limits, self.state, self.now = limits, QueueState(), START

    def place(self, research_id: str, tenant: str = "a", priority: int = 3) -> int:
        self.now += 0.1
        return ask(self.state, research_id, tenant, self.limits, self.now, priority).place

    def enter(self, research_id: str, tenant: str = "a") -> int:
        self.now += 0.1
        state = self.state.model_copy(deep=True)  # as a store that is not written when the step fails
        place = enter(state, research_id, tenant, self.limits, self.now).place
        self.state = state
        return place

    def running(self) -> Counter[str]:
        return Counter(run.tenant for run in self.state.running)


def test_no_more_runs_continue_than_there_is_room_for() -> None:
    """The others get their places, keep them without asking, and go on in the order in which they came."""
    hall = Hall(QueueLimits(at_once=2))
    assert [hall.place(name) for name in "abcde"] == [0, 0, 1, 2, 3]
    assert [hall.place(name) for name in "edcba"] == [3, 2, 1, 0, 0]
    hall.now += 1e6
    release(hall.state, "a")
    assert hall.place("e") == 2
    assert [run.id for run in hall.state.running] == ["b", "c"]
    assert [hall.place(name) for name in "ed"] == [2, 1]


def test_a_tenant_does_not_wait_for_all_of_another() -> None:
    """Twenty runs of one tenant, then one of another: it is the next to begin."""
    hall = Hall(QueueLimits(at_once=3))
    for number in range(20):
        hall.place(f"a-{number}")
    assert hall.place("b-0", "b") == 1
    assert hall.place("a-3") == 2
    release(hall.state, "a-0")
    assert hall.place("a-3") == 1
    assert hall.place("b-0", "b") == 0


def test_a_tenant_has_a_limit_of_its_own() -> None:
    """Room stays free for others, and whoever waits for its own tenant stands behind those who wait for room."""
    hall = Hall(QueueLimits(at_once=4, at_once_per_tenant=2))
    assert [hall.place(f"a-{number}") for number in range(4)] == [0, 0, 1, 2]
    assert [hall.place(f"b-{number}", "b") for number in range(2)] == [0, 0]
    assert hall.running() == {"a": 2, "b": 2}
    assert hall.place("c", "c") == 1
    assert hall.place("a-2") == 2
    release(hall.state, "a-0")
    assert hall.place("c", "c") == 0


def test_a_tenant_may_have_other_numbers_than_every_tenant() -> None:
    """More or fewer at once and in line; what is not named of it is as of the others, and a refusal names the setting."""
    own = {"b": TenantPlaces(at_once=2, queued=0), "c": TenantPlaces(queued=2)}
    hall = Hall(QueueLimits(at_once=6, at_once_per_tenant=1, queued_per_tenant=1, tenants=own))
    assert [hall.enter(f"{tenant}-{number}", tenant) for tenant in "abc" for number in range(2)] == [0, 1, 0, 0, 0, 2]
    for refused, setting in (("a", "runs.queued_per_tenant"), ("b", "runs.tenants.b.queued")):
        with pytest.raises(QueueFull, match=re.escape(f"(the operator's {setting})")):
            hall.enter(f"{refused}-2", refused)
    assert hall.enter("c-2", "c") == 3


async def test_a_higher_priority_goes_first() -> None:
    """Within a priority the order of arrival and the fairness between tenants hold."""
    hall = Hall(QueueLimits(at_once=1))
    hall.place("work")
    for name, tenant, priority in (("a", "a", 3), ("b", "a", 3), ("c", "b", 3), ("d", "a", 1), ("e", "a", 5)):
        hall.place(name, tenant, priority)
    store = MemorySharedStore()
    assert await read_places(store, hall.limits) is None
    await store.swap(KEY, None, hall.state.model_dump_json().encode())
    places = await read_places(store, hall.limits) or {}
    assert [(name, turn.place) for name, turn in places.items()] == [("d", 1), ("c", 2), ("a", 3), ("b", 4), ("e", 5)]


def test_a_higher_priority_is_the_first_to_use_the_room_of_its_tenant() -> None:
    """An earlier run of the same tenant does not take that room in its place."""
    hall = Hall(QueueLimits(at_once=2, at_once_per_tenant=1))
    assert [hall.place("work", "b"), hall.place("more", "c")] == [0, 0]
    assert [hall.place("early", "a"), hall.place("urgent", "a", 1)] == [1, 1]
    release(hall.state, "work")
    assert [hall.place("early", "a"), hall.place("urgent", "a", 1)] == [1, 0]


def test_a_line_is_as_long_as_the_operator_allows() -> None:
    """One run more is refused and leaves no trace; those that wait, or have begun, keep their places."""
    hall = Hall(QueueLimits(at_once=1, queued=3, queued_per_tenant=2))
    assert [hall.enter(name) for name in "abc"] == [0, 1, 2]
    with pytest.raises(QueueFull, match=r"2 runs of the tenant a may wait \(.*runs\.queued_per_tenant\)"):
        hall.enter("d")
    assert hall.enter("e", "b") == 1
    with pytest.raises(QueueFull, match=r"3 runs may wait \(.*runs\.queued\)"):
        hall.enter("f", "c")
    assert [hall.enter(name) for name in "ab"] == [0, 2]
    assert hall.place("d") == 4  # a run with work that is done waits for its turn again
    assert hall.enter("b") == 2
    release(hall.state, "a")
    release(hall.state, "d")
    assert hall.enter("f", "c") == 2


def test_no_run_need_wait() -> None:
    """With no place in line a run begins at once or is refused."""
    hall = Hall(QueueLimits(at_once=1, queued=0))
    assert hall.enter("a") == 0
    with pytest.raises(QueueFull, match="no run may wait"):
        hall.enter("b")


PLACES = [*((*known, True) for known in ((1, 2), (20, 0), (16, 20), (3, 4), (30, 20)))]
PLACES += [*((*known, False) for known in ((20, 20), (18, 20), (22, 20), (1, 1)))]


@pytest.mark.parametrize(("place", "known", "news"), PLACES)
def test_only_news_of_a_place_are_signalled(place: int, known: int, news: bool) -> None:
    """The first place, another or a near one: a long queue must not cost a task for each run at each step."""
    assert is_news(place, known) is news


# --- the queue -------------------------------------------------------------------------------------------------------
class Server:
    """A server with open runs that counts what it is asked."""

    def __init__(self, *names: str) -> None:
        self.open = set(names)
        self.told: list[tuple[str, QueueTurn]] = []
        self.looked: list[str] = []
        self.is_away = False

    async def is_open(self, research_id: str) -> bool:
        self._check()
        self.looked.append(research_id)
        return research_id in self.open

    async def signal(self, research_id: str, turn: QueueTurn) -> bool:
        self._check()
        if research_id in self.open:
            self.told.append((research_id, turn))
        return research_id in self.open

    async def list_open(self) -> list[str]:
        self._check()
        return sorted(self.open)

    def _check(self) -> None:
        if self.is_away:
            raise Unavailable("away")

    def turns(self) -> list[str]:
        """Runs that got a place by signal, in order."""
        return [name for name, turn in self.told if turn.ticket and not turn.place]


class CountingStore(MemorySharedStore):
    """A store that notes what is read."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.read: list[str] = []

    async def get(self, key: str) -> StoredValue:
        self.read.append(key)
        return await super().get(key)


class Process:
    """Processes that share a store whose clock the test moves, and a server."""

    def __init__(self, at_once: int, *names: str) -> None:
        self.now = START
        self.store = CountingStore(lambda: self.now)
        self.server = Server(*names)
        self.limits = QueueLimits(at_once=at_once)

    async def take(self, queue: RunQueue, *names: str) -> list[QueueTurn]:
        turns = []
        for name in names:
            self.now += 0.01
            turns.append(await queue.take(name, "a"))
        return turns

    def queue(self) -> RunQueue:
        return RunQueue(self.store, self.limits, self.server)

    async def after(self, queue: RunQueue, seconds: float) -> None:
        self.now += seconds
        await queue.give()


async def test_a_place_comes_by_signal_once() -> None:
    """The next in line gets the ticket of its wait when a place is free; nothing is sent or read while nothing changes."""
    made = Process(1, "one", "two", "three")
    queue = made.queue()
    await queue.give()
    made.server.told.clear()
    turns = await made.take(queue, "one", "two", "three")
    assert [turn.place for turn in turns] == [0, 1, 2]
    assert await queue.take("two", "a") == turns[1].with_fields(waiting=2)
    for _ in range(5):
        await made.after(queue, 1)
    assert made.server.told == []
    made.now += 1
    reads = len(made.store.read)
    await queue.give()
    assert len(made.store.read) == reads + 2  # no more than the list, as bytes, and the mark of a known store
    await queue.release("one")
    await made.after(queue, 1)
    assert made.server.told[0] == ("two", QueueTurn(ticket=turns[1].ticket))
    assert made.server.told[1:] == [("three", QueueTurn(place=1, waiting=1, ticket=turns[2].ticket))]
    await made.after(queue, 1)
    assert made.server.turns() == ["two"]
    assert (await queue.take("two", "a")).place == 0


async def test_a_giver_that_is_killed_before_its_signal_loses_no_run() -> None:
    """The place was given in the store: the next process sends the signal, and no other run gets that place."""
    made = Process(1, "one", "two", "three")
    killed = made.queue()
    await made.take(killed, "one", "two", "three")
    await killed.give()
    await killed.release("one")
    made.server.is_away = True
    with pytest.raises(Unavailable):
        await killed.give()
    made.server.is_away = False
    await made.queue().give()
    assert made.server.turns() == ["two"]


async def test_runs_that_ended_without_a_word_free_their_place_in_ten_seconds() -> None:
    """One that is lost at work, and one that was cancelled in line and is passed over."""
    made = Process(1, "one", "two", "three")
    queue = made.queue()
    await made.take(queue, "one", "two", "three")
    await queue.give()
    made.server.open -= {"one", "two"}
    await made.after(queue, CHECK_SECONDS - 1)
    assert made.server.turns() == []
    await made.after(queue, 1)
    assert made.server.turns() == ["three"]
    state = QueueState.model_validate_json((await made.store.get(KEY)).value or b"")
    assert ([run.id for run in state.running], state.waiting) == (["three"], [])


async def test_a_run_that_was_cancelled_near_the_front_leaves_the_line() -> None:
    """While no place is free, so that the others are not shown a place behind it."""
    made = Process(1, "one", "three")
    queue = made.queue()
    await made.take(queue, "one", "two", "three")
    await queue.give()
    assert await read_places(made.store, made.limits) == {"three": QueueTurn(place=1, waiting=1)}
    assert made.server.turns() == []


async def test_a_run_that_came_again_is_not_removed_with_its_earlier_wait() -> None:
    """It was found ended, and resumed before that was noted."""
    made = Process(1, "one", "two")
    queue = made.queue()
    await made.take(queue, "one", "two")
    await queue.give()
    made.now += CHECK_SECONDS
    made.server.open.discard("two")
    looked = made.server.is_open

    async def resumed(research_id: str) -> bool:
        is_open = await looked(research_id)
        if research_id == "two":
            await queue.release("two")
            made.now += 1
            await queue.take("two", "a")
        return is_open

    made.server.is_open = resumed  # type: ignore[method-assign]
    await queue.give()
    assert await read_places(made.store, made.limits) == {"two": QueueTurn(place=1, waiting=1)}


async def test_a_store_that_lost_its_list_gets_every_run_again() -> None:
    """All open runs are asked to ask again, once; those at work ignore it."""
    made = Process(1, "one", "two")
    queue = made.queue()
    await queue.give()
    assert made.server.told == [("one", QueueTurn()), ("two", QueueTurn())]
    await made.after(queue, 60)
    await made.queue().give()
    assert len(made.server.told) == 2


async def test_a_long_queue_costs_little() -> None:
    """A thousand runs in line and six places free: within a minute at most a signal in five seconds, two looks a second."""
    made = Process(6, *(f"r-{number}" for number in range(1_000)))
    queue = made.queue()
    await queue.give()
    made.server.told.clear()
    line = [{"id": f"r-{number}", "tenant": "a", "since": START + number / 1e3} for number in range(1_000)]
    await made.store.swap(KEY, None, json.dumps({"waiting": line, "looked": made.now}).encode())
    for _ in range(60):
        await made.after(queue, 1)
    assert made.server.turns() == [f"r-{number}" for number in range(6)]
    assert len(made.server.told) <= 6 + 60 / (NEWS_SECONDS * 1_000 / LINE_OF_NEWS) + 1
    assert len(made.server.looked) <= 60 / CHECK_SECONDS * (6 + run_queue.CHECKED_IN_LINE)
    front = {name: turn.place for name, turn in made.server.told if turn.place}
    assert [front[f"r-{number}"] for number in (6, 7, 8)] == [1, 2, 3]


async def test_one_process_gives_places_and_another_takes_over() -> None:
    """The second one gives them when the lease of the first one, which was killed, has expired."""
    made = Process(1, "one")
    first, second = made.queue(), made.queue()
    assert await first._leads()
    assert not await second._leads()
    made.now += LEASE_SECONDS + 1
    second._lease_due = 0.0
    assert await second._leads()


async def test_a_release_in_the_same_process_gives_the_place_at_once() -> None:
    """The next run does not wait for the second of the clock; cancelled, the process gives up its lease."""
    made = Process(1, "one", "two")
    queue = made.queue()
    await made.take(queue, "one", "two")
    serving = asyncio.create_task(queue.serve())
    async with asyncio.timeout(5):
        while not made.server.told:
            await asyncio.sleep(0)
        for _ in range(100):  # it has done what there was to do, and waits for its next second
            await asyncio.sleep(0)
        await queue.release("one")
        for _ in range(100):
            await asyncio.sleep(0)
    assert made.server.turns() == ["two"]
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert await made.queue()._leads()
