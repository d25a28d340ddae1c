"""The queue of runs: how many run at once, in total and per tenant, and which one starts next.

A run asks once for a place and then waits, without any call, for the signal that gives it one. One process of all that
share the store gives the places (`RunQueue.serve`): it moves the next runs in line to those at work, signals them, and
frees the places of runs that have ended without a word. A place is given in the store before its signal is sent, and a
signal is repeated until the server has it, so that a kill at any moment neither loses a run nor starts one twice.
"""

import asyncio
import math
import secrets
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

import structlog
from pydantic import BaseModel

from contracts.base import CheckedModel
from contracts.messages import QueueTurn
from contracts.texts import plural
from providers.errors import ProviderError
from providers.interfaces import SharedStore
from providers.schemas import QUEUE
from providers.shared.shared_value import SharedValue

T = TypeVar("T")

KEY: Final = "runs/queue"
LEASE_KEY: Final = "runs/queue/server"
KNOWN_KEY: Final = "runs/queue/known"
"""Set once all open runs had a chance to enter the list; a store that lost its content has neither."""
DEFAULT_PRIORITY: Final = 3
TICK_SECONDS: Final = 1.0
LEASE_SECONDS: Final = 8.0
CHECK_SECONDS: Final = 10.0
"""Between two looks for runs that have ended without giving their place back."""
CHECKED_IN_LINE: Final = 5
"""Waiting runs that are looked for, too: a place that the next one cannot take would stay empty for a moment."""
CALLS_AT_ONCE: Final = 8
NEWS_SECONDS: Final = 2.0
"""Between two signals about places in line, each of which is a task of a workflow: a long queue has many places."""
LINE_OF_NEWS: Final = 400
"""Runs in line from which on the pause grows with the line: each signal has its whole list read and written."""
EXACT_PLACES: Final = 3
"""Places that are news whenever they change; others are if they change by over 15 %."""

log = structlog.get_logger()


class Runs(Protocol):
    """Open runs, as far as the queue needs them. Every method raises `ProviderError` if the server does not answer."""

    async def is_open(self, research_id: str) -> bool:
        """Return whether the run is open."""

    async def signal(self, research_id: str, turn: QueueTurn) -> bool:
        """Signal a run its place; return false if there is no such open run."""

    async def list_open(self) -> Collection[str]:
        """List the ids of all open runs."""


@dataclass(frozen=True)
class TenantPlaces:
    """Number of runs of one tenant; None: as of any other tenant."""

    at_once: int | None = None
    queued: int | None = None


@dataclass(frozen=True)
class QueueLimits:
    """Number of runs that may be active at once, and that may wait."""

    at_once: int = 20
    at_once_per_tenant: int | None = None
    """None: as many as in total."""
    queued: int = 10_000
    queued_per_tenant: int | None = None
    """None: as many as in total."""
    tenants: Mapping[str, TenantPlaces] = field(default_factory=dict)
    """By tenant that has numbers of its own."""

    def at_once_of(self, tenant: str) -> float:
        """Return how many runs of a tenant may be active at once; infinity: as many as in total."""
        own = self.tenants.get(tenant, TenantPlaces()).at_once
        limit = self.at_once_per_tenant if own is None else own
        return math.inf if limit is None else limit

    def queued_of(self, tenant: str) -> tuple[float, str]:
        """Return how many runs of a tenant may wait, infinity: as many as in total; and the setting that says so."""
        own = self.tenants.get(tenant, TenantPlaces()).queued
        if own is not None:
            return own, f"tenants.{tenant}.queued"
        return math.inf if self.queued_per_tenant is None else self.queued_per_tenant, "queued_per_tenant"


class QueueFull(Exception):
    """A further run would be one more in line than the operator allows; the message names the line and the remedy."""


class QueuedRun(CheckedModel):
    """An active or a waiting run."""

    id: str
    tenant: str
    since: float
    """Time at which it came to wait."""
    priority: int = DEFAULT_PRIORITY
    """1 is the highest."""
    known_place: int = 0
    """Place in line that the run knows of; 0 for none."""
    knows_turn: bool = False
    """True once an active run knows that it is one."""

    @property
    def ticket(self) -> str:
        """Return the name of this wait, which no other wait of the same run has."""
        return repr(self.since)


class QueueState(BaseModel):
    """The queue. Times are seconds since the epoch by the store's clock."""

    running: list[QueuedRun] = []
    waiting: list[QueuedRun] = []
    looked: float = 0.0
    """Time at which runs that have ended were last looked for."""


# --- rules -----------------------------------------------------------------------------------------------------------
def enter(
    state: QueueState, research_id: str, tenant: str, limits: QueueLimits, now: float, priority: int = DEFAULT_PRIORITY
) -> QueueTurn:
    """Do what `ask` does for a run whose work has not begun. Raises `QueueFull` if it would wait and may not.

    A run that is at work or in line already is never refused.
    """
    knows = any(run.id == research_id for run in (*state.running, *state.waiting))
    turn = ask(state, research_id, tenant, limits, now, priority)
    if knows or not turn.place:
        return turn
    of_tenant = sum(run.tenant == tenant for run in state.waiting)
    allowed, setting = limits.queued_of(tenant)
    if of_tenant > allowed:
        raise QueueFull(_words_of_full(int(allowed), setting, f" of the tenant {tenant}"))
    if len(state.waiting) > limits.queued:
        raise QueueFull(_words_of_full(limits.queued, "queued"))
    return turn


def _words_of_full(limit: int, setting: str, whose: str = "") -> str:
    waiting = f"{plural(limit, 'run')}{whose} may wait" if limit else f"no run{whose} may wait"
    return (
        f"the queue is full: {waiting} (the operator's runs.{setting}): start it again when some of them have begun, "
        f"as `research list` shows"
    )


def ask(
    state: QueueState, research_id: str, tenant: str, limits: QueueLimits, now: float, priority: int = DEFAULT_PRIORITY
) -> QueueTurn:
    """Admit a run or return its place, changing the state. An active run is admitted again."""
    if all(run.id != research_id for run in (*state.running, *state.waiting)):
        own = QueuedRun(id=research_id, tenant=tenant, since=now, priority=priority)
        state.waiting.append(own)
    line = admit(state, limits)
    for place, run in enumerate(line, start=1):
        if run.id == research_id:
            run.known_place = place
            return QueueTurn(place=place, waiting=len(line), ticket=run.ticket)
    for run in state.running:
        run.knows_turn = run.knows_turn or run.id == research_id
    return QueueTurn()


def admit(state: QueueState, limits: QueueLimits) -> list[QueuedRun]:
    """Move the next runs in line to those at work while there is room; return the others, the next one first."""
    ranks = ranks_of(state, limits)
    line = sorted(state.waiting, key=lambda run: ranks[run.id])
    room = max(0, limits.at_once - len(state.running))
    chosen = [run for run in line[:room] if not ranks[run.id][0]]  # the last ones in line are those without room
    state.running += chosen
    line = line[len(chosen) :]
    if chosen:
        state.waiting = sorted(line, key=lambda run: run.since)
    return line


def ranks_of(state: QueueState, limits: QueueLimits) -> dict[str, tuple[bool, int, int, float, str]]:
    """Rank waiting runs: those whose tenant has room first, then by priority.

    Within a priority the run with the fewest runs of its tenant before it comes first, then the one that waits longest.
    """
    counts = Counter(run.tenant for run in state.running)
    ranks = {}
    for run in sorted(state.waiting, key=lambda run: (run.priority, run.since, run.id)):
        ahead = counts[run.tenant]
        counts[run.tenant] += 1
        ranks[run.id] = (ahead >= limits.at_once_of(run.tenant), run.priority, ahead, run.since, run.id)
    return ranks


def release(state: QueueState, research_id: str) -> QueueState:
    """Remove a run that gives its place back, and return the same state."""
    state.running = [run for run in state.running if run.id != research_id]
    state.waiting = [run for run in state.waiting if run.id != research_id]
    return state


def take_answers(state: QueueState, answers: Collection["RunAnswer"]) -> QueueState:
    """Note what runs know now and remove those that have ended, unless they came again since; return the state."""
    by_ticket = {(each.run.id, each.run.since): each for each in answers}
    for run in (*state.running, *state.waiting):
        each = by_ticket.get((run.id, run.since))
        if each is not None and each.place is not None:
            run.known_place = each.place
            run.knows_turn = not each.place
    ended = {key for key, each in by_ticket.items() if not each.is_open}
    state.running = [run for run in state.running if (run.id, run.since) not in ended]
    state.waiting = [run for run in state.waiting if (run.id, run.since) not in ended]
    return state


def most_outdated(line: Sequence[QueuedRun]) -> tuple[QueuedRun, int] | None:
    """Return the run in line that knows its place least well, and its place; None if all know enough."""
    outdated = [(place, run) for place, run in enumerate(line, start=1) if is_news(place, run.known_place)]
    if not outdated:
        return None
    place, run = max(outdated, key=lambda each: abs(each[1].known_place - each[0]) / each[0])
    return run, place


def is_news(place: int, known: int) -> bool:
    """Return whether a place is worth a signal: any change in the first three, else over 15 %."""
    if place <= EXACT_PLACES or not known:
        return place != known
    return not 0.85 * known <= place <= known / 0.85


@dataclass(frozen=True)
class RunAnswer:
    """What the server answered about a run."""

    run: QueuedRun
    is_open: bool
    place: int | None = None
    """The place that was signalled, 0 for its turn; None if it was only looked for."""


@dataclass(frozen=True)
class _Step:
    """What is to be done now, and when to look again if nothing changes."""

    chosen: Sequence[QueuedRun]
    """Runs whose turn it is and that do not know it yet."""
    news: tuple[QueuedRun, QueueTurn] | None
    checked: Sequence[QueuedRun]
    """Runs that may have ended."""
    due: float


# --- the queue -------------------------------------------------------------------------------------------------------
class RunQueue:
    """The queue in a shared store."""

    def __init__(self, store: SharedStore, limits: QueueLimits, runs: Runs) -> None:
        self._store = store
        self._queue = SharedValue(store, QueueState, QUEUE, None)
        self._limits = limits
        self._runs = runs
        self._identity = secrets.token_hex(8).encode()
        self._has_lease = False
        self._lease_due = 0.0
        self._released = asyncio.Event()
        self._slots = asyncio.Semaphore(CALLS_AT_ONCE)
        self._seen: bytes | None = None
        """The stored list with which there was nothing to do."""
        self._due = 0.0
        """Time at which there may be something to do with it."""
        self._news_due = 0.0

    async def take(
        self, research_id: str, tenant: str, priority: int = DEFAULT_PRIORITY, *, has_begun: bool = True
    ) -> QueueTurn:
        """Admit the run or return its place. Raises `RateLimited` under sustained contention.

        Raises `QueueFull` for a run whose work has not begun, if too many wait.
        """
        rule = ask if has_begun else enter

        def step(state: QueueState, now: float) -> tuple[QueueState, QueueTurn]:
            return state, rule(state, research_id, tenant, self._limits, now, priority)

        return await self._queue.update(KEY, step)

    async def release(self, research_id: str) -> None:
        """Free the run's place for the next one."""
        await self._queue.update(KEY, lambda state, _: (release(state, research_id), None))
        self._released.set()

    async def serve(self) -> None:
        """Give places until cancelled, in one process of all that share the store; another takes over in seconds."""
        is_failing = False
        try:
            while True:
                self._released.clear()
                try:
                    if await self._leads():
                        await self.give()
                except ProviderError as error:
                    if not is_failing:
                        log.warning("queue.not_served", error=type(error).__name__)
                    is_failing = True
                else:
                    is_failing = False
                with suppress(TimeoutError):
                    async with asyncio.timeout(TICK_SECONDS):
                        await self._released.wait()
        finally:
            with suppress(ProviderError):
                await self._store.swap(LEASE_KEY, self._identity, None)

    async def give(self) -> None:
        """Give every free place to the next run in line, and signal runs; look for ended ones when that is due.

        Raises the errors of the store and of the server; what was not done then is done the next time.
        """
        await self._greet()
        while True:
            stored = await self._store.get(KEY)
            if stored.value == self._seen and stored.now < self._due:
                return
            step = await self._queue.update(KEY, self._plan)
            calls = [self._signal(run, QueueTurn(ticket=run.ticket)) for run in step.chosen]
            calls += [self._look(run) for run in step.checked]
            if step.news is not None:
                calls.append(self._signal(*step.news))
            if not calls:
                self._seen = stored.value  # read before the step: a later change is seen the next time
                self._due = step.due
                return
            results = await asyncio.gather(*calls, return_exceptions=True)
            answers = [result for result in results if isinstance(result, RunAnswer)]
            await self._queue.update(KEY, lambda state, _: (take_answers(state, answers), None))  # noqa: B023
            if ended := sum(not each.is_open for each in answers):
                log.info("queue.ended_runs_removed", runs=ended)
            for result in results:
                if isinstance(result, BaseException):
                    raise result

    def _plan(self, state: QueueState, now: float) -> tuple[QueueState, _Step]:
        line = admit(state, self._limits)
        if not line:
            chosen = [run for run in state.running if not run.knows_turn]
            return state, _Step(chosen, None, (), math.inf)
        checked: list[QueuedRun] = []
        if now - state.looked >= CHECK_SECONDS:
            state.looked = now
            checked = [*(run for run in state.running if run.knows_turn), *line[:CHECKED_IN_LINE]]
        due = state.looked + CHECK_SECONDS
        news = None
        if (outdated := most_outdated(line)) is not None:
            if now >= self._news_due:
                self._news_due = now + NEWS_SECONDS * max(1.0, len(line) / LINE_OF_NEWS)
                run, place = outdated
                news = (run, QueueTurn(place=place, waiting=len(line), ticket=run.ticket))
            due = min(due, self._news_due)
        chosen = [run for run in state.running if not run.knows_turn]
        return state, _Step(chosen, news, checked, due)

    async def _signal(self, run: QueuedRun, turn: QueueTurn) -> RunAnswer:
        async with self._slots:
            return RunAnswer(run, await self._runs.signal(run.id, turn), turn.place)

    async def _look(self, run: QueuedRun) -> RunAnswer:
        async with self._slots:
            return RunAnswer(run, await self._runs.is_open(run.id))

    async def _greet(self) -> None:
        """Have all open runs ask again, once in the life of a store; those that do not wait ignore it.

        A store that is new, or has lost its content, knows of no run that waits.
        """
        if (await self._store.get(KNOWN_KEY)).value is not None:
            return
        for research_id in await self._runs.list_open():
            await self._runs.signal(research_id, QueueTurn())
        await self._store.swap(KNOWN_KEY, None, b"1")

    async def _leads(self) -> bool:
        now = time.monotonic()
        if now >= self._lease_due:
            self._has_lease = await self._store.swap(LEASE_KEY, self._identity, self._identity, LEASE_SECONDS)
            if not self._has_lease:
                self._has_lease = await self._store.swap(LEASE_KEY, None, self._identity, LEASE_SECONDS)
            part = 1 / 2 if self._has_lease else 1 / 4
            self._lease_due = now + part * LEASE_SECONDS
        return self._has_lease


async def read_places(store: SharedStore, limits: QueueLimits) -> dict[str, QueueTurn] | None:
    """Return the places of all waiting runs by id; None if no run ever came to this store. Raises its errors."""
    state = await SharedValue(store, QueueState, QUEUE, None).read(KEY)
    if state is None:
        return None
    line = admit(state, limits)
    return {run.id: QueueTurn(place=place, waiting=len(line)) for place, run in enumerate(line, start=1)}
