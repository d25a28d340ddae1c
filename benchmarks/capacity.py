"""What a number of runs a day needs: `python -m benchmarks.capacity [--page]`.

A discrete-event model: runs arrive, wait for one of `runs.at_once` places, and then make the activities of a run that was
measured, each after as many others as it waited for there. An activity takes a slot of a process of its pool, processor
time of that process and of the Temporal server, and the time of its call; calls of models besides keep to a limit of
requests a minute. Inputs are in `benchmarks/capacity.json`, which `benchmarks.load` measures. First the measured points
are computed with the machine on which they were measured; then a day of 10 thousand, 100 thousand and a million runs,
with a processor for each process. `--page` writes tables and plots of `docs/capacity.md`.
"""

import argparse
import heapq
import itertools
import json
import math
import random
import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.load import PLACE
from contracts.outcome import Usage
from contracts.strategies import list_selectable
from providers.models.endpoints import PriceTable
from workers.pools import DEFAULT_SLOTS

DOCS: Final = Path(__file__).parents[1] / "docs"
LIKELY: Final = Path(__file__).parents[1] / "activities" / "likely_runs.json"
BEGIN, END = "<!-- computed -->", "<!-- end of what is computed -->"
ALLOWED_ERROR: Final = 0.15
DAY: Final = 86_400.0
DAYS: Final = (10_000, 100_000, 1_000_000)
SIMULATED: Final = 10_000
"""Most runs of a simulated day; of larger days a share is simulated, with the same share of every resource."""
PEAK: Final = 2.0
"""Arrivals in the busiest hour, over the mean of the day; the quietest has none."""
BUSY: Final = 0.7
"""Share of a processor that a worker process may use in the busiest hour."""
ROOM: Final = 1.3
"""Places and slots over what the busiest hour needs on average."""
MODELS: Final = ("claude-haiku-4-5", "claude-sonnet-4-5", "gpt-5-mini")
CHILDREN: Final = "children"
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
    """Cores that processes share, each process using one at most."""

    def __init__(self, clock: Clock, cores: float) -> None:
        self.clock = clock
        self.slowness = max(1.0, math.ceil(cores) / cores)
        self._free = math.ceil(cores)
        self._ready: deque[Process] = deque()

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
        self.busy = 0.0
        self._jobs: deque[tuple[float, Action]] = deque()

    @property
    def length(self) -> int:
        """How many pieces of work there are."""
        return len(self._jobs)

    def do(self, seconds: float, then: Action) -> None:
        """Use processor time, and go on."""
        self._jobs.append((seconds * self.machine.slowness, then))
        if len(self._jobs) == 1:
            self.machine.offer(self)

    def work(self) -> None:
        """Do the first piece on a core."""
        seconds, then = self._jobs[0]
        self.busy += seconds

        def end() -> None:
            self._jobs.popleft()
            if self._jobs:
                self.machine.offer(self)
            self.machine.done()
            then()

        self.machine.clock.after(seconds, end)


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
            wait = max(0.0, each["seconds"] - each_cpu[each["pool"]])
            works.append(Work(each["pool"], each["after"], wait, is_call))
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


def point(shape: Shape, processes: int, at_once: int, cores: float, call: tuple[float, float]) -> tuple[float, float]:
    """Runs a minute and seconds of a run on the machine of the measurement, where a run begins as soon as one ends."""
    clock = Clock()
    machine = Machine(clock, cores)
    workers = [Process(machine) for _ in range(processes)]
    pools = {pool: [Pool(each, slots) for each in workers] for pool, slots in {"workflows": 0, **DEFAULT_SLOTS}.items()}
    made = Deployment(clock, shape, pools, Process(machine), Process(machine), call)

    def again() -> None:
        made.arrive(again)

    for number in range(at_once):
        clock.after(number * 20.0 / at_once, again)
    clock.run(60.0)
    first = len(made.ended)
    clock.run(240.0)
    runs = made.ended[first:]
    return len(runs) / 3.0, statistics.mean(seconds for _, seconds in runs)


def compared(measured: dict[str, Any]) -> list[dict[str, float]]:
    """Each measured point beside what the model says of it.

    Processor seconds of a run are those of the lightest point with the same number of processes.
    """
    rows = []
    for each in measured["points"]:
        light = min(
            (one for one in measured["points"] if one["processes"] == each["processes"]), key=lambda one: one["at_once"]
        )
        shape = Shape.measured(measured["run"], cpu_of(measured["run"], light))
        cores = measured["cores"] - each["other_cores"]
        rate, seconds = point(shape, each["processes"], each["at_once"], cores, tuple(measured["call_seconds"]))
        rows.append(each | {"modelled": rate, "modelled_seconds": seconds, "error": rate / each["runs_a_minute"] - 1})
    return rows


def cpu_of(run: dict[str, Any], at: dict[str, float]) -> dict[str, float]:
    """Processor seconds of a run by part: those of the workers at a point, shared as pools of their own use them."""
    own = {pool: seconds for pool, seconds in run["cpu"].items() if pool != "server"}
    factor = at["worker_cpu"] / sum(own.values())
    shared = {pool: seconds * factor for pool, seconds in own.items()}
    return shared | {"server": at["server_cpu"], "fakes": at["fakes_cpu"]}


@dataclass
class Need:
    """What a number of runs a day needs, and how a simulated day with that went."""

    runs: int
    peak: float
    """Runs a second in the busiest hour."""
    processes: dict[str, int]
    at_once: int
    requests_a_minute: float
    """Limit of the model's provider."""
    queue_seconds: tuple[float, float] = (0.0, 0.0)
    """Half and 95 of 100 runs wait no longer for a place."""
    run_seconds: tuple[float, float] = (0.0, 0.0)
    limited_seconds: float = 0.0
    """Longest wait of a call for the provider's limit."""
    busiest: float = 0.0
    """Share of its processor that the busiest process used in the busiest two hours."""
    by_hour: list[tuple[float, int, int]] = field(default_factory=list)
    """Hour of the day, runs at work and in line."""


def needed(measured: dict[str, Any], runs: int) -> Need:
    """Work out processes, places and limits from means of the busiest hour."""
    run = measured["run"]
    peak = PEAK * runs / DAY
    low, high = measured["call_seconds"]
    alone = min(measured["points"], key=lambda each: each["at_once"])["run_seconds"]
    held = dict.fromkeys(DEFAULT_SLOTS, 0.0)
    calls = 0
    for each in run["activities"]:
        is_call = each["pool"] == "models" and each["seconds"] > 1.0
        calls += is_call
        held[each["pool"]] += (low + high) / 2 if is_call else each["seconds"]
    processes = {}
    for pool, seconds in run["cpu"].items():
        if pool == "server":
            continue
        by_processor = peak * seconds / BUSY
        by_slots = peak * held[pool] * ROOM / DEFAULT_SLOTS[pool] if pool in held else 0.0
        processes[pool] = max(1, math.ceil(max(by_processor, by_slots)))
    return Need(runs, peak, processes, math.ceil(peak * alone * ROOM + 2), peak * 60 * calls * ROOM + 5)


def simulate(measured: dict[str, Any], need: Need) -> None:
    """Let a day pass with what was worked out; of a large day, a share of it."""
    share = min(1.0, SIMULATED / need.runs)
    clock = Clock()
    shape = Shape.measured(measured["run"], measured["run"]["cpu"] | {"fakes": 0.0})
    pools: dict[str, list[Pool]] = {}
    for pool, count in need.processes.items():
        slots = DEFAULT_SLOTS.get(pool, 0)
        number = max(1, math.ceil(count * share))
        pools[pool] = [Pool(Process(Machine(clock, 1)), slots) for _ in range(number)]
    endless = Machine(clock, 1_000)
    made = Deployment(
        clock,
        shape,
        pools,
        Process(endless),
        Process(endless),
        tuple(measured["call_seconds"]),
        at_once=max(2, math.ceil(need.at_once * share)),
        limiter=Limiter(clock, need.requests_a_minute * share),
    )
    made.shape.cpu["server"] = 0.0  # a cluster: its delay is within the measured seconds
    chance = random.Random(2026)
    mean = need.runs * share / DAY

    def next_arrival() -> None:
        clock.after(chance.expovariate(mean * PEAK), arrival)

    def arrival() -> None:
        hour = clock.now / 3_600
        if chance.random() < (1 - math.cos(2 * math.pi * hour / 24)) / 2:
            made.arrive()
        next_arrival()

    next_arrival()
    before: list[float] = []
    busiest = 0.0
    for quarter in range(96):
        clock.run((quarter + 1) * DAY / 96)
        need.by_hour.append(((quarter + 1) / 4, round(made.running / share), round(len(made.line) / share)))
        busy = [place.process.busy for places in pools.values() for place in places]
        used = [now - was for now, was in zip(busy, before or [0.0] * len(busy), strict=True)]
        busiest = max(busiest, max(used) / (DAY / 96))
        before = busy
    need.busiest = busiest
    need.queue_seconds = _middle_and_95(made.queued)
    need.run_seconds = _middle_and_95([seconds for _, seconds in made.ended])
    need.limited_seconds = made.limiter.waited if made.limiter else 0.0


def _middle_and_95(values: list[float]) -> tuple[float, float]:
    in_order = sorted(values)
    return in_order[len(in_order) // 2], in_order[int(len(in_order) * 0.95)]
