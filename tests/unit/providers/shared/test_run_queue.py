"""Who may begin: the rules, and the queue over a store."""

from collections import Counter

from providers.shared.run_queue import (
    GRACE_SECONDS,
    LONGEST_RUN_SECONDS,
    QueueLimits,
    QueueState,
    RunQueue,
    ask,
    forget_lost,
    release,
)
from tests.fakes.memory_store import MemorySharedStore

START = 1_000_000.0


class Hall:
    """A queue with its time in hand."""

    def __init__(self, limits: QueueLimits) -> None:
        self.limits, self.state, self.now = limits, QueueState(), START

    def place(self, research_id: str, tenant: str = "a") -> int:
        """The place that a run is given; 0 admits it."""
        return ask(self.state, research_id, tenant, self.limits, self.now).place

    def running(self) -> Counter[str]:
        """How many runs of each tenant go on."""
        return Counter(run.tenant for run in self.state.running)


def test_no_more_go_on_than_there_is_room_for() -> None:
    """The others are told their places, keep them by asking, and go on in the order in which they came."""
    hall = Hall(QueueLimits(at_once=2))
    assert [hall.place(name) for name in "abcde"] == [0, 0, 1, 2, 3]
    assert [hall.place(name) for name in "edcba"] == [3, 2, 1, 0, 0]
    release(hall.state, "a")
    assert [hall.place(name) for name in "edc"] == [3, 2, 0]
    assert [hall.place(name) for name in "ed"] == [2, 1]


def test_a_tenant_does_not_wait_for_all_of_another() -> None:
    """Twenty runs of one tenant, then one of another: it is the next to begin."""
    hall = Hall(QueueLimits(at_once=3))
    for number in range(20):
        hall.place(f"a-{number}")
        hall.now += 0.1
    assert hall.place("b-0", "b") == 1
    assert hall.place("a-3") == 2
    release(hall.state, "a-0")
    assert hall.place("a-3") == 2
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


def test_who_is_not_heard_of_loses_its_place() -> None:
    """A waiting run that asks no more is forgotten soon, one that goes on when no run could last longer."""
    hall = Hall(QueueLimits(at_once=1))
    assert [hall.place(name) for name in "abc"] == [0, 1, 2]
    hall.now += GRACE_SECONDS + 2
    assert hall.place("c") == 1
    hall.now += LONGEST_RUN_SECONDS
    assert hall.place("c") == 0


def test_a_run_that_is_not_open_any_more_gives_its_place_back() -> None:
    """A terminated run reported no end; one that began just now may not be listed yet."""
    hall = Hall(QueueLimits(at_once=2))
    hall.place("lost")
    hall.now += GRACE_SECONDS + 1
    hall.place("new")
    assert hall.place("next") == 1
    assert forget_lost(hall.state, [], hall.now) == ["lost"]
    assert hall.place("next") == 0


async def test_workers_share_one_queue() -> None:
    """What one worker admits counts for another; the server is asked who is open only while somebody waits."""
    now, asked = [START], []

    async def open_runs() -> list[str]:
        asked.append(now[0])
        return ["one"]

    store = MemorySharedStore(lambda: now[0])
    here, there = (RunQueue(store, QueueLimits(at_once=1), open_runs) for _ in range(2))
    assert (await here.take("one", "a")).place == 0
    assert asked == []
    turn = await there.take("two", "a")
    assert (turn.place, turn.waiting) == (1, 1)
    assert turn.pause_seconds >= 1
    await here.take("two", "a")
    assert asked == [START]
    await there.release("one")
    assert (await here.take("two", "a")).place == 0
    now[0] += GRACE_SECONDS + 1
    assert (await here.take("three", "a")).place == 0
