"""Which runs go on at once, in all and of one tenant, and who begins next: agreed on by all workers.

The rules are pure. A run that may not begin yet asks again and again and so keeps its place; one that is lost loses it,
and so does a run that was admitted and that the server no longer knows as open.
"""

import heapq
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

import structlog
from pydantic import BaseModel

from contracts.messages import QueueTurn
from providers.errors import ProviderError
from providers.interfaces import SharedStore
from providers.shared.shared_value import Change, SharedValue, dump_state, load_state

T = TypeVar("T")

KEY: Final = "runs/queue"
LONGEST_RUN_SECONDS: Final = 90_000.0
"""A run lasts a day at most; whatever was not told of its end is over then."""
GRACE_SECONDS: Final = 30.0
"""How late a waiting run may ask again, and how new a run may be that the server does not list yet."""
LOOKED_EVERY_SECONDS: Final = 10.0
SHORTEST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 15.0

OpenRuns = Callable[[], Awaitable[Collection[str]]]
"""Ids of all runs that the server knows as open. Raises `ProviderError` if it does not tell."""

log = structlog.get_logger()


@dataclass(frozen=True)
class QueueLimits:
    """How many runs may go on at once."""

    at_once: int = 16
    at_once_per_tenant: int | None = None
    """None: as many as in all."""

    @property
    def per_tenant(self) -> int:
        """The limit of one tenant."""
        return self.at_once if self.at_once_per_tenant is None else min(self.at_once, self.at_once_per_tenant)


class Holder(BaseModel):
    """A run that goes on or waits."""

    id: str
    tenant: str
    since: float
    until: float
    """When it is forgotten unless it is heard of."""


class QueueState(BaseModel):
    """What workers share."""

    running: list[Holder] = []
    waiting: list[Holder] = []
    looked: float = 0.0
    """When the server was asked last which runs are open."""


@dataclass(frozen=True)
class QueueAnswer:
    """A turn, and whether it is time to look which of the running ones are lost."""

    turn: QueueTurn
    look: bool = False


def pause_at(place: int) -> float:
    """Seconds after which a run at this place asks again: those in front often, so that no room stays empty."""
    return min(LONGEST_PAUSE_SECONDS, max(SHORTEST_PAUSE_SECONDS, place / 4))


def begin_order(state: QueueState, limits: QueueLimits) -> Iterator[Holder]:
    """Those who wait, in the order in which they may begin if nobody ends: tenants with the fewest runs go first.

    Of one tenant, who waits longest. Tenants that have all they may have are left out.
    """
    counts = Counter(holder.tenant for holder in state.running)
    queues: dict[str, deque[Holder]] = {}
    for holder in sorted(state.waiting, key=lambda one: (one.since, one.id)):
        queues.setdefault(holder.tenant, deque()).append(holder)
    heap = [(counts[tenant], queue[0].since, tenant) for tenant, queue in queues.items()]
    heapq.heapify(heap)
    while heap:
        count, _, tenant = heapq.heappop(heap)
        if count >= limits.per_tenant:
            continue
        yield queues[tenant].popleft()
        if queues[tenant]:
            heapq.heappush(heap, (count + 1, queues[tenant][0].since, tenant))


def ask(state: QueueState, research_id: str, tenant: str, limits: QueueLimits, now: float) -> QueueAnswer:
    """Admit a run or give it its place; changes the state. One that goes on already is admitted again."""
    state.running = [one for one in state.running if one.until > now]
    state.waiting = [one for one in state.waiting if one.until > now]
    if any(one.id == research_id for one in state.running):
        return QueueAnswer(QueueTurn())
    mine = next((one for one in state.waiting if one.id == research_id), None)
    if mine is None:
        mine = Holder(id=research_id, tenant=tenant, since=now, until=now)
        state.waiting.append(mine)
    order = list(begin_order(state, limits))
    place = next((number for number, one in enumerate(order) if one is mine), None)
    if place is not None and place < limits.at_once - len(state.running):
        state.waiting.remove(mine)
        state.running.append(mine.model_copy(update={"since": now, "until": now + LONGEST_RUN_SECONDS}))
        return QueueAnswer(QueueTurn())
    if place is None:  # of a tenant that has all it may have: behind those who only wait for room
        named = {one.id for one in order}
        place = len(order) + [one.id for one in state.waiting if one.id not in named].index(research_id)
    place += 1
    mine.until = now + pause_at(place) + GRACE_SECONDS
    look = now - state.looked >= LOOKED_EVERY_SECONDS
    state.looked = now if look else state.looked
    return QueueAnswer(QueueTurn(place=place, waiting=len(state.waiting), pause_seconds=pause_at(place)), look)


def leave(state: QueueState, research_id: str) -> None:
    """Forget a run that has ended."""
    state.running = [one for one in state.running if one.id != research_id]
    state.waiting = [one for one in state.waiting if one.id != research_id]


def forget_lost(state: QueueState, open_runs: Collection[str], now: float) -> list[str]:
    """Forget the running ones that are not open, but for those that began just now; the ids that were forgotten."""
    lost = [one.id for one in state.running if one.id not in open_runs and now - one.since > GRACE_SECONDS]
    state.running = [one for one in state.running if one.id not in lost]
    return lost


class SharedRunQueue:
    """The queue in a shared store."""

    def __init__(
        self, store: SharedStore, limits: QueueLimits | None = None, open_runs: OpenRuns | None = None
    ) -> None:
        self._value = SharedValue(store)
        self._limits = limits or QueueLimits()
        self._open_runs = open_runs

    async def take(self, research_id: str, tenant: str) -> QueueTurn:
        """Whether the run may begin, else its place. Raises `RateLimited` under lasting contention."""
        answer = await self._change(lambda state, now: ask(state, research_id, tenant, self._limits, now))
        if not answer.look or self._open_runs is None:
            return answer.turn
        try:
            going_on = await self._open_runs()
        except ProviderError:
            return answer.turn
        if lost := await self._change(lambda state, now: forget_lost(state, going_on, now)):
            log.info("queue.lost_runs_forgotten", runs=len(lost))
            return (await self._change(lambda state, now: ask(state, research_id, tenant, self._limits, now))).turn
        return answer.turn

    async def leave(self, research_id: str) -> None:
        """Give the run's place to the next one."""
        await self._change(lambda state, _: leave(state, research_id))

    async def _change(self, step: Callable[[QueueState, float], T]) -> T:
        def decide(value: bytes | None, now: float) -> Change[T]:
            state = load_state(QueueState, value)
            result = step(state, now)
            return Change(dump_state(state), result, LONGEST_RUN_SECONDS)

        return await self._value.change(KEY, decide)
