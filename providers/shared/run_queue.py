"""The queue of runs: how many run at once, in total and per tenant, and which one starts next.

A waiting run polls; one that stops polling loses its place, and so does an admitted run that the server no longer lists
as open.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final

import structlog
from pydantic import BaseModel

from contracts.base import CheckedModel
from contracts.messages import QueueTurn
from providers.errors import ProviderError
from providers.interfaces import SharedStore
from providers.shared.shared_value import SharedValue

KEY: Final = "runs/queue"
MAX_RUN_SECONDS: Final = 90_000.0  # a run lasts a day at most; an admitted run is forgotten after this time
GRACE_SECONDS: Final = 30.0
"""Time allowed for a waiting run to poll again, and for the server to list a new run."""
OPEN_RUNS_INTERVAL_SECONDS: Final = 10.0
MIN_PAUSE_SECONDS: Final = 1.0
MAX_PAUSE_SECONDS: Final = 15.0

OpenRuns = Callable[[], Awaitable[Collection[str]]]
"""Returns the ids of all open runs. Raises `ProviderError` if the server does not answer."""

log = structlog.get_logger()


@dataclass(frozen=True)
class QueueLimits:
    """Number of runs that may be active at once."""

    at_once: int = 20
    at_once_per_tenant: int | None = None
    """None: as many as in total."""


class QueuedRun(CheckedModel):
    """An active or a waiting run."""

    id: str
    tenant: str
    since: float
    until: float
    """Time at which it is forgotten unless it polls again."""


class QueueState(BaseModel):
    """The queue. Times are seconds since the epoch by the store's clock."""

    running: list[QueuedRun] = []
    waiting: list[QueuedRun] = []
    looked: float = 0.0
    """Time at which the list of open runs was last read."""


def ask(state: QueueState, research_id: str, tenant: str, limits: QueueLimits, now: float) -> QueueTurn:
    """Admit a run or return its place, changing the state. An active run is admitted again."""
    state.running = [run for run in state.running if run.until > now]
    state.waiting = [run for run in state.waiting if run.until > now]
    if any(run.id == research_id for run in state.running):
        return QueueTurn()
    own = next((run for run in state.waiting if run.id == research_id), None)
    if own is None:
        own = QueuedRun(id=research_id, tenant=tenant, since=now, until=now)
        state.waiting.append(own)
    ranks = ranks_of(state, limits)
    place = sorted(ranks.values()).index(ranks[research_id]) + 1
    has_room = not ranks[research_id][0]
    if has_room and place <= limits.at_once - len(state.running):
        state.waiting.remove(own)
        state.running.append(own.with_fields(since=now, until=now + MAX_RUN_SECONDS))
        return QueueTurn()
    # The first in line poll often, so that no room stays unused.
    pause = min(MAX_PAUSE_SECONDS, max(MIN_PAUSE_SECONDS, place / 4))
    own.until = now + pause + GRACE_SECONDS
    return QueueTurn(place=place, waiting=len(state.waiting), pause_seconds=pause)


def ranks_of(state: QueueState, limits: QueueLimits) -> dict[str, tuple[bool, int, float, str]]:
    """Rank waiting runs: those whose tenant has room first, then by the number of runs of the tenant before them."""
    tenant_limit = limits.at_once if limits.at_once_per_tenant is None else limits.at_once_per_tenant
    counts = Counter(run.tenant for run in state.running)
    ranks = {}
    for run in sorted(state.waiting, key=lambda run: (run.since, run.id)):
        ahead = counts[run.tenant]
        counts[run.tenant] += 1
        ranks[run.id] = (ahead >= tenant_limit, ahead, run.since, run.id)
    return ranks


def release(state: QueueState, research_id: str) -> QueueState:
    """Remove a run that has ended, and return the same state."""
    state.running = [run for run in state.running if run.id != research_id]
    state.waiting = [run for run in state.waiting if run.id != research_id]
    return state


def forget_lost(state: QueueState, open_runs: Collection[str], now: float) -> list[str]:
    """Remove active runs that are not open, except those that just began; return their ids."""
    lost = [run.id for run in state.running if run.id not in open_runs and now - run.since > GRACE_SECONDS]
    state.running = [run for run in state.running if run.id not in lost]
    return lost


class RunQueue:
    """The queue in a shared store."""

    def __init__(self, store: SharedStore, limits: QueueLimits, open_runs: OpenRuns) -> None:
        self._queue = SharedValue(store, QueueState, MAX_RUN_SECONDS)
        self._limits = limits
        self._open_runs = open_runs

    async def take(self, research_id: str, tenant: str) -> QueueTurn:
        """Admit the run or return its place, and forget lost runs. Raises `RateLimited` under sustained contention."""

        def step(state: QueueState, now: float) -> tuple[QueueState, tuple[QueueTurn, bool]]:
            turn = ask(state, research_id, tenant, self._limits, now)
            is_due = turn.place > 0 and now - state.looked >= OPEN_RUNS_INTERVAL_SECONDS
            state.looked = now if is_due else state.looked
            return state, (turn, is_due)

        turn, is_due = await self._queue.update(KEY, step)
        if not is_due:
            return turn
        try:
            open_runs = await self._open_runs()
        except ProviderError:
            return turn
        lost = await self._queue.update(KEY, lambda state, now: (state, forget_lost(state, open_runs, now)))
        if lost:
            log.info("queue.lost_runs_forgotten", runs=len(lost))
            turn, _ = await self._queue.update(KEY, step)
        return turn

    async def release(self, research_id: str) -> None:
        """Free the run's place for the next one."""
        await self._queue.update(KEY, lambda state, _: (release(state, research_id), None))
