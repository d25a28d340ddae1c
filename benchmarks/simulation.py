"""A deployment over time, event by event: machines, processes, slots, a provider's limit, runs at work and in line.

`benchmarks.capacity` describes and uses it.
"""

import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

LOCAL_SECONDS: Final = 0.01
"""What a page or a search of the fakes takes besides processor time."""
Action = Callable[[], None]


class Clock:
    """Events in order of time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Action]] = []
        self._order = itertools.count()

    def after(self, seconds: float, action: Action) -> None:
        """Do something later."""
        heapq.heappush(self._due, (self.now + seconds, next(self._order), action))

    def run(self, until: float) -> None:
        """Let time pass."""
        while self._due and self._due[0][0] <= until:
            self.now, _, action = heapq.heappop(self._due)
            action()
        self.now = until


class Machine:
    """Cores that processes share, each using one at most; of 1.5 cores two that work have three quarters each."""

    def __init__(self, clock: Clock, cores: float) -> None:
        self.clock = clock
        self._cores = cores
        self._places = math.ceil(cores)
        self._free = self._places
        self._ready: deque[Process] = deque()

    @property
    def slowness(self) -> float:
        """Seconds that a processor second takes while as many processes work as now."""
        return max(1.0, (self._places - self._free) / self._cores)

    def offer(self, process: "Process") -> None:
        """A process has work."""
        self._ready.append(process)
        self._next()

    def done(self) -> None:
        """A core is free again."""
        self._free += 1
        self._next()

    def _next(self) -> None:
        while self._free and self._ready:
            self._free -= 1
            self._ready.popleft().work()


class Process:
    """Pieces of work, one after the other."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._jobs: deque[tuple[float, Action]] = deque()

    @property
    def length(self) -> int:
        """How many pieces of work there are."""
        return len(self._jobs)

    def do(self, seconds: float, then: Action) -> None:
        """Use processor time, and go on."""
        self._jobs.append((seconds, then))
        if len(self._jobs) == 1:
            self.machine.offer(self)

    def work(self) -> None:
        """Do the first piece on a core."""
        seconds, then = self._jobs[0]

        def end() -> None:
            self._jobs.popleft()
            self.machine.done()
            if self._jobs:
                self.machine.offer(self)
            then()

        self.machine.clock.after(seconds * self.machine.slowness, end)


@dataclass
class Pool:
    """The slots of a pool in one process."""

    process: Process
    slots: int
    active: int = 0


@dataclass
class Work:
    """One activity of a run."""

    pool: str
    after: int
    wait: float
    """Seconds without processor time; of a model call drawn anew."""
    is_call: bool


@dataclass
class Shape:
    """A run: its activities, and processor seconds for each of them by part."""

    works: list[Work]
    cpu: dict[str, float]

    @classmethod
    def measured(cls, run: dict[str, Any], cpu: dict[str, float]) -> "Shape":
        """Return the measured run with processor seconds of a run by pool and of `server` and `fakes`."""
        per_pool: dict[str, int] = {}
        for each in run["activities"]:
            per_pool[each["pool"]] = per_pool.get(each["pool"], 0) + 1
        total = len(run["activities"])
        each_cpu = {pool: seconds / per_pool.get(pool, total) for pool, seconds in cpu.items()}
        works = []
        for each in run["activities"]:
            is_call = each["pool"] == "models" and each["seconds"] > 1.0
            works.append(Work(each["pool"], each["after"], LOCAL_SECONDS, is_call))
        return cls(works, each_cpu)


class Limiter:
    """A provider's requests a minute, evenly spaced after a burst of a second's share."""

    def __init__(self, clock: Clock, per_minute: float) -> None:
        self._clock = clock
        self._gap = 60.0 / per_minute
        self._next = 0.0
        self.waited = 0.0

    def ask(self, then: Action) -> None:
        """Go on when a request may be sent."""
        at = max(self._clock.now - 1.0, self._next)
        self._next = at + self._gap
        wait = max(0.0, at - self._clock.now)
        self.waited = max(self.waited, wait)
        self._clock.after(wait, then)


@dataclass
class Deployment:
    """Processes by pool, the server, and runs at work and in line."""

    clock: Clock
    shape: Shape
    pools: dict[str, list[Pool]]
    server: Process
    fakes: Process
    call: tuple[float, float]
    at_once: float = math.inf
    limiter: Limiter | None = None
    chance: random.Random = field(default_factory=lambda: random.Random(39))
    running: int = 0
    most: int = 0
    line: deque[tuple[float, Action]] = field(default_factory=deque)
    waiting: dict[str, deque[Action]] = field(default_factory=dict)
    ended: list[tuple[float, float]] = field(default_factory=list)
    """When a run ended, and its seconds at work."""
    queued: list[float] = field(default_factory=list)
    """Seconds in line, by run."""

    def arrive(self, then: Action = lambda: None) -> None:
        """A run comes; `then` is done when it has ended."""
        self.line.append((self.clock.now, then))
        self._admit()

    def _admit(self) -> None:
        while self.line and self.running < self.at_once:
            since, then = self.line.popleft()
            self.queued.append(self.clock.now - since)
            self.running += 1
            self.most = max(self.most, self.running)
            Run(self, then).advance()

    def leave(self, began: float, then: Action) -> None:
        """A run has ended."""
        self.running -= 1
        self.ended.append((self.clock.now, self.clock.now - began))
        then()
        self._admit()

    def take(self, pool: str, then: Callable[[Pool], None]) -> None:
        """Go on with a process of the pool that has a free slot."""
        place = min(self.pools[pool], key=lambda each: (each.active, self.chance.random()))
        if place.active >= place.slots:
            self.waiting.setdefault(pool, deque()).append(lambda: self.take(pool, then))
            return
        place.active += 1
        then(place)

    def give(self, pool: str, place: Pool) -> None:
        """Free a slot."""
        place.active -= 1
        if waiting := self.waiting.get(pool):
            waiting.popleft()()


class Run:
    """A run at work."""

    def __init__(self, made: Deployment, then: Action) -> None:
        self.made = made
        self.then = then
        self.began = made.clock.now
        self.done = 0
        self.begun = 0
        self.order = sorted(made.shape.works, key=lambda work: work.after)

    def advance(self) -> None:
        """Schedule the activities that have waited for enough others; end after the last."""
        if self.done == len(self.order):
            self.made.leave(self.began, self.then)
        while self.begun < len(self.order) and self.order[self.begun].after <= self.done:
            self._schedule(self.order[self.begun])
            self.begun += 1

    def _schedule(self, work: Work) -> None:
        made, cpu = self.made, self.made.shape.cpu
        decider = min(made.pools["workflows"], key=lambda each: (each.process.length, made.chance.random())).process

        def end(place: Pool) -> None:
            made.give(work.pool, place)
            made.server.do(cpu["server"] / 2, lambda: decider.do(cpu["workflows"], self._count))

        def call(place: Pool) -> None:
            wait = made.chance.uniform(*made.call) if work.is_call else work.wait
            answered = partial(place.process.do, cpu[work.pool] / 2, partial(end, place))
            made.fakes.do(cpu["fakes"], lambda: made.clock.after(wait, answered))

        def prepared(place: Pool) -> None:
            if work.is_call and made.limiter is not None:
                made.limiter.ask(partial(call, place))
            else:
                call(place)

        def taken(place: Pool) -> None:
            place.process.do(cpu[work.pool] / 2, partial(prepared, place))

        made.server.do(cpu["server"] / 2, partial(made.take, work.pool, taken))

    def _count(self) -> None:
        self.done += 1
        self.advance()
