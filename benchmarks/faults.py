"""A deployment of real processes that suffers faults drawn by a seed; `benchmarks.endurance` counts what runs lose.

Kinds of faults, most of them for 5 to 240 s:

- `worker`, `workers`: one worker process, or all of them, get SIGKILL during a call, and are started again;
- `reader`: a process that reads documents gets SIGKILL;
- `pause`: a worker stands still (SIGSTOP) for 10 s; `standstill`: for 30 to 90 s, longer than its server waits for it;
- `clock`: the clock of one worker is wrong by minutes, hours or a day, then right again (libfaketime);
- `no-POOL`: no worker serves one of the pools;
- `upgrade`: workers of a next version with other workflow code are started, and that version is promoted; those of the
  version before end with its last run;
- `queue`: more runs are started at once than may work at once;
- `server`: the Temporal server gets SIGKILL, and is away;
- `model-…`, `search-…`, `pages-…`: the service answers 503 or 429, hangs, resets connections, or has its port closed;
- `objects-503`, `objects-refused`: the object store, where sessions and documents are, does so;
- `redis`: Valkey gets SIGKILL, and is away; `redis-disk`: its own disk is full, then all workers get SIGKILL;
- `everything`: workers, the server and the store are killed at once, and started again after a while;
- `disk`: the disk of journal, sessions and server is full, then all workers get SIGKILL.

Faults of different places overlap, at most `FAULTS_AT_ONCE` of them, and each place has a rest after a fault. The next
one is the first of the plan whose places are free.
"""

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from redis.exceptions import RedisError
from temporalio.client import Client
from temporalio.service import RPCError

from benchmarks.fake_processes import pages_of_subjects
from benchmarks.outages import FailingWeb, UnevenApi
from benchmarks.processes import tree
from benchmarks.web_deployment import WebDeployment
from tests.acceptance.test_upgrade import write_second_build
from tests.acceptance.topology import PYTHON, RESEARCH, ROOT
from tests.fakes.object_store import ObjectStoreServer
from tests.fakes.valkey import ValkeyServer
from tests.integration.server_homes import kill_server, running
from workers.dev_server import ServerDescription, ServerError, ServerFiles, detach_server, ensure_server
from workers.shared_state import SHARED_FILE, SPOOL_FOLDER
from workers.versions import list_versions, pollers_by_version, set_current

Store = Literal["redis", "file"]
"""Valkey and an object store, as many hosts have them, or files of the home alone."""

STRATEGIES: Final = ("supervisor", "reflective", "orchestrator", "living", "recursive")
POOLS: Final = ("workflows", "models", "search", "reading", "records")
SERVICES: Final = {
    "model": ("503", "429", "hang", "reset", "refused"),
    "search": ("503", "429", "hang", "reset"),
    "pages": ("503", "429", "hang", "reset"),
}
KILLS: Final = ("worker", "workers", "reader", "everything")
STOPS: Final = ("pause", "standstill")
EVERYWHERE: Final = (
    *KILLS, *STOPS, "worker", "server", "upgrade", "queue", "clock",
    *(f"no-{pool}" for pool in POOLS),
    *(f"{place}-{how}" for place, ways in SERVICES.items() for how in ways),
)  # fmt: skip
OF_STORE: Final[dict[Store, tuple[str, ...]]] = {
    "redis": ("redis", "redis-disk", "objects-503", "objects-refused"),
    "file": ("disk", "disk"),
}
SCENARIOS: Final = {"503": "status:503", "429": "status:429", "hang": "slow", "reset": "reset"}
OUTAGE_SECONDS: Final = (5.0, 240.0)
DISK_SECONDS: Final = (5.0, 60.0)
"""Of the disk of everything: the server's database is on it, too."""
PAUSE_SECONDS: Final = 10.0
STANDSTILL_SECONDS: Final = (30.0, 90.0)
CLOCK_STEPS: Final = (-86_400, -3_600, -120, 120, 3_600, 86_400)
LATEST_STRIKE: Final = 6.0
"""Seconds after the start of a run until its fault at the latest."""
GAP_SECONDS: Final = (1.0, 4.0)
"""From the start of runs until that of the next ones."""
FAULTS_AT_ONCE: Final = 6
FAULTS_AHEAD: Final = 16
"""Faults of the plan among which one with free places is looked for."""
REST_SECONDS: Final = 10.0
"""From the end of a fault until the next one at its place: what has passed is over for a while."""
ON_ITS_WAY: Final = 1.5
"""Seconds before a kill in which an answer can have been sent without being in the journal."""
READY_SECONDS: Final = 120.0
RESTART_SECONDS: Final = 10.0
"""Pause before a worker is started again that ended by itself, as one does that finds no server."""
HOME_MEGABYTES: Final = 800
WORKERS: Final = 2
PAGES_OF_A_SUBJECT: Final = 12
PORTS: Final = (28_000, 31_999)
"""Below the range from which the kernel takes those of connections: nobody takes one while its server is away."""
ROWS: Final = b"research:calls/*/answer/*"
KEPT: Final = (
    "--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory", "512mb", "--maxmemory-policy", "noeviction"
)  # fmt: skip
FIRST_BUILD: Final = "build-1"
STARTED: Final = b"pools.started"
"""What a worker logs when it asks for work."""
CLOCK_FILE: Final = "clock"
LIBRARIES_OF_FAKETIME: Final = ("/usr/lib/*/faketime", "/usr/lib/faketime", "/usr/local/lib/faketime")


@dataclass(frozen=True)
class Fault:
    """A fault of a plan: the strategy of the run that it belongs to, its kind, and when it strikes."""

    strategy: str
    kind: str
    gap: float
    """Seconds from the start of the run before."""
    after: float
    """Seconds from the start of its own run."""
    seconds: float
    step: int = 0
    """Seconds by which a clock is wrong."""


@dataclass
class Kill:
    """A moment at which workers were killed, and what was under way then."""

    at: float
    unwritten: int | None
    """Distinct answers in the endpoint's book that were not in the journal; an upper bound if another worker lives,
    null if the journal was away.
    """
    in_flight: list[str]
    """Requests that the endpoint was working on."""
    left: int = 0
    """Workers of all pools that were not killed, and had begun to work."""


@dataclass(frozen=True)
class Spell:
    """A fault that struck, from when until when in seconds since the epoch."""

    kind: str
    began: float
    over: float
    at_work: int = 0
    """Runs that were open when it struck."""


@dataclass(frozen=True)
class Spec:
    """A worker process that is wanted: its build, and its pools; none stands for all."""

    build: str
    pools: tuple[str, ...] = ()


@dataclass
class Worker:
    """A worker process."""

    spec: Spec
    log: Path
    process: asyncio.subprocess.Process
    ending: bool = False
    """It got SIGTERM."""
    has_clock: bool = False
    """Its clock can be made wrong."""

    started: bool = False

    def works(self) -> bool:
        """Return whether it has begun to ask for work."""
        self.started = self.started or STARTED in self.log.read_bytes()
        return self.started


class SlowApi(UnevenApi):
    """Calls of 1 to 3 s."""

    shortest, longest = 1.0, 3.0


def draw_faults(seed: int, piece: int, count: int, store: Store, usable: Callable[[str], bool]) -> list[Fault]:
    """Draw the faults of a piece: every usable kind before one comes again; the seed decides order and times."""
    chance = random.Random(f"{seed}/{piece}")
    special = [kind for kind in OF_STORE[store] if usable(kind)]
    others = [kind for kind in EVERYWHERE if usable(kind)]
    kinds: list[str] = []
    while len(kinds) < count:
        chance.shuffle(others)
        batch = [*special, *others][: count - len(kinds)]
        chance.shuffle(batch)
        kinds += batch
    first = chance.randrange(len(STRATEGIES))
    return [_draw(chance, STRATEGIES[(first + number) % len(STRATEGIES)], kind) for number, kind in enumerate(kinds)]


def _draw(chance: random.Random, strategy: str, kind: str) -> Fault:
    shortest, longest = DISK_SECONDS if kind == "disk" else OUTAGE_SECONDS
    seconds = round(shortest * (longest / shortest) ** (chance.random() ** 3))  # a half is over within 8 s
    if kind == "pause":
        seconds = round(PAUSE_SECONDS)
    elif kind == "standstill":
        seconds = round(chance.uniform(*STANDSTILL_SECONDS))
    gap, after = chance.uniform(*GAP_SECONDS), chance.uniform(0.0, LATEST_STRIKE)
    return Fault(strategy, kind, round(gap, 1), round(after, 1), seconds, chance.choice(CLOCK_STEPS))


def find_faketime() -> Path | None:
    """Find the library that makes a process see another time; null if it is not installed.

    Not its variant for threads: that takes a lock at each look at any clock, and made workers fifteen times as slow.
    """
    for pattern in LIBRARIES_OF_FAKETIME:
        found = sorted(Path("/").glob(f"{pattern[1:]}/libfaketime.so.1"))
        if found:
            return found[0]
    return None


def can_mount() -> bool:
    """Return whether this process may mount a file system."""
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False).returncode:
            return False
        subprocess.run(["umount", folder], check=True)
        return True


async def until(holds: Callable[[], bool], seconds: float) -> None:
    """Wait for what other processes do, at most so long: there is no event to wait for."""
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:  # noqa: ASYNC110
        await asyncio.sleep(0.1)


@dataclass
class Deployment:
    """Server, stores, web, model and workers, and what has happened to them."""

    made: WebDeployment
    server_home: Path
    redis: ValkeyServer | None
    objects: ObjectStoreServer | None
    second: Path
    """A copy of the product with other workflow code."""
    faketime: Path | None
    wanted: list[Spec] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
    builds: int = 1
    kills: list[Kill] = field(default_factory=list)
    spells: list[Spell] = field(default_factory=list)
    ended_alone: int = 0
    """Workers that ended without being killed or stopped."""
    _killed: set[int] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _taken: set[str] = field(default_factory=set)
    """Places that have a fault, or a rest after one."""
    _faults: int = 0
    """How many are there."""

    @property
    def build(self) -> str:
        """The newest version."""
        return f"build-{self.builds}"

    # --- workers ---------------------------------------------------------------------------------------------------
    async def keep_workers(self) -> None:
        """Start each wanted worker that does not run, as a supervisor of services does, and stop all others."""
        not_before = 0.0
        while True:
            for worker in [worker for worker in self.workers if worker.process.returncode is not None]:
                self.workers.remove(worker)
                if worker.process.pid not in self._killed and not worker.ending:
                    self.ended_alone += 1
                    not_before = time.monotonic() + RESTART_SECONDS
                    print(f"a worker ended with {worker.process.returncode}: {worker.log}", file=sys.stderr)
            missing = Counter(self.wanted)
            for worker in self.workers:
                if worker.ending:
                    continue
                if missing[worker.spec] > 0:
                    missing[worker.spec] -= 1
                else:
                    worker.ending = True
                    worker.process.terminate()
            for spec in missing.elements() if time.monotonic() > not_before else ():
                await self._start_worker(spec)
            await asyncio.sleep(1.0)

    async def _start_worker(self, spec: Spec) -> None:
        """Start a worker, without waiting until it can get work."""
        log = self.made.home.parent / f"worker-{time.time_ns()}.log"
        environment = self.made.environment() | {"RESEARCH_BUILD_ID": spec.build}
        has_clock = any(worker.has_clock for worker in self.workers if not worker.ending)
        if self.faketime is not None and not has_clock:
            environment |= {
                "LD_PRELOAD": str(self.faketime),
                "FAKETIME_TIMESTAMP_FILE": str(self._clock_file()),
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_CACHE_DURATION": "1",
            }
        command = [
            *RESEARCH,
            "worker",
            "--log-format",
            "json",
            *(["--pool", ",".join(spec.pools)] if spec.pools else []),
        ]
        code = ROOT if int(spec.build.rpartition("-")[2]) % 2 else self.second
        with log.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                PYTHON, *command, cwd=code, env=environment, stdout=file, stderr=file
            )
        self.workers.append(Worker(spec, log, process, has_clock="LD_PRELOAD" in environment))

    def _alive(self) -> list[Worker]:
        """The workers that run, those of all pools of the newest version first."""
        alive = [worker for worker in self.workers if worker.process.returncode is None and not worker.ending]
        return sorted(alive, key=lambda worker: worker.spec != Spec(self.build))

    async def _kill_workers(self, count: int) -> None:
        """Send SIGKILL to so many workers; the others and the store go on."""
        alive = self._alive()
        dying = alive[:count]
        self._killed |= {worker.process.pid for worker in dying}
        for worker in dying:
            worker.process.kill()
        at = time.time()
        in_flight = [call.request_hash for call in self.made.model.calls if call.ended is None]
        for worker in dying:
            await worker.process.wait()
        unwritten = None
        with suppress(RedisError, OSError, sqlite3.Error):
            unwritten = len(self.delivered()) - await asyncio.to_thread(self.journalled)
        left = sum(worker.spec == Spec(self.build) and worker.works() for worker in alive[count:])
        self.kills.append(Kill(at, unwritten, in_flight, left))

    async def end(self) -> None:
        """End every worker at once."""
        for task in self._tasks:
            task.cancel()
        for worker in self.workers:
            with suppress(ProcessLookupError):
                worker.process.kill()
        for worker in self.workers:
            await worker.process.wait()

    # --- books -----------------------------------------------------------------------------------------------------
    def delivered(self) -> Counter[str]:
        """Return how often each request was answered to the end."""
        return Counter(call.request_hash for call in self.made.model.calls if call.status == 200 and call.delivered)

    def journalled(self) -> int:
        """Count the answers in the journal, and in the files of those that it has not taken yet."""
        spooled = sum(1 for _ in (self.made.home / SPOOL_FOLDER).glob("[!.]*"))
        if self.redis is not None:
            return spooled + len(self.redis.command("KEYS", ROWS))
        with closing(sqlite3.connect(f"file:{self.made.home / SHARED_FILE}?mode=ro", uri=True, timeout=30)) as database:
            rows = database.execute("SELECT count(*) FROM shared WHERE key LIKE 'calls/%/answer/%'")
            return spooled + int(rows.fetchone()[0])

    # --- faults ----------------------------------------------------------------------------------------------------
    def choose(self, faults: Sequence[Fault]) -> Fault | None:
        """Return the first fault that may be there now; null while there is none."""
        if self._faults >= FAULTS_AT_ONCE:
            return None
        return next((fault for fault in faults if self._taken.isdisjoint(self._places_of(fault.kind))), None)

    def reserve(self, fault: Fault) -> None:
        """Let no other fault come to the places of this one until it has passed."""
        self._taken |= self._places_of(fault.kind)
        self._faults += 1

    async def suffer(self, fault: Fault, at_work: Callable[[], int]) -> None:
        """Let a fault happen that has its places, and pass; `at_work` counts the runs that are open."""
        print(f"{time.strftime('%H:%M:%S')} {fault}", file=sys.stderr, flush=True)
        began, count = time.time(), at_work()
        await self._strike(fault)
        self.spells.append(Spell(fault.kind, began, time.time(), count))
        self._faults -= 1
        # After a kill, others may come at once: kills come as they come.
        seconds = 0.0 if fault.kind in KILLS else REST_SECONDS
        asyncio.get_running_loop().call_later(seconds, self._taken.difference_update, self._places_of(fault.kind))

    def _places_of(self, kind: str) -> set[str]:
        if kind == "disk":
            return {"workers", "pools", "server", "store"}
        if kind in ("everything", "redis-disk"):
            return {"workers", "store", *(["server"] if kind == "everything" else [])}
        if kind in (*KILLS, *STOPS, "clock"):
            return {"workers"}
        if kind == "redis":
            return {"store"}
        if kind == "upgrade" or kind.startswith("no-"):
            return {"pools"}
        return {kind.partition("-")[0]}

    async def _strike(self, fault: Fault) -> None:
        place, _, how = fault.kind.partition("-")
        if fault.kind in ("worker", "workers"):
            await until(lambda: any(call.ended is None for call in self.made.model.calls), 15.0)
            await self._kill_workers(1 if fault.kind == "worker" else len(self.workers))
        elif fault.kind == "reader":
            await self._kill_reader()
        elif fault.kind in STOPS:
            await self._stop(fault.seconds)
        elif fault.kind == "clock":
            await self._set_clock(fault)
        elif place == "no":
            await self._remove_pool(how, fault.seconds)
        elif fault.kind == "upgrade":
            await self._upgrade()
        elif place == "model":
            await self._fail_model(how, fault.seconds)
        elif place in ("search", "pages"):
            assert isinstance(self.made.world, FailingWeb)
            self.made.world.failing[place] = how
            await asyncio.sleep(fault.seconds)
            del self.made.world.failing[place]
        elif place == "objects":
            await self._fail_objects(how, fault.seconds)
        elif fault.kind == "disk":
            await self._fill_disk(fault.seconds)
        elif fault.kind == "redis-disk":
            await self._fill_disk_of_store(fault.seconds)
        elif fault.kind != "queue":  # of which the runs themselves are the fault
            await self._take_away(fault)

    async def _stop(self, seconds: float) -> None:
        await until(lambda: bool(self._alive()), READY_SECONDS)
        worker = self._alive()[0].process
        worker.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        with suppress(ProcessLookupError):
            worker.send_signal(signal.SIGCONT)

    def _clock_file(self) -> Path:
        return self.made.home.parent / CLOCK_FILE

    def set_clock_right(self) -> None:
        """Let the host whose clock can be wrong have the time of this machine."""
        self._clock_file().write_text("+0\n", encoding="utf-8")

    async def _set_clock(self, fault: Fault) -> None:
        self._clock_file().write_text(f"{fault.step:+d}\n", encoding="utf-8")
        await asyncio.sleep(fault.seconds)
        self.set_clock_right()

    async def _remove_pool(self, pool: str, seconds: float) -> None:
        """Have no worker of a pool: the workers are replaced by one without it, then by whole ones that work."""
        before = list(self.wanted)
        others = tuple(other for other in POOLS if other != pool)
        self.wanted = [Spec(self.build, others)]
        if pool != "workflows":
            self.wanted += [spec for spec in before if spec.pools]
        await asyncio.sleep(seconds)
        self.wanted = before
        await until(lambda: self._whole() > 0, READY_SECONDS)

    def _whole(self) -> int:
        """Count the workers of all pools of the newest version that have begun to work."""
        return sum(worker.spec == Spec(self.build) and worker.works() for worker in self._alive())

    async def _upgrade(self) -> None:
        """Have a next version side by side with the one before, promote it, and end the other with its last run."""
        old, new = self.build, f"build-{self.builds + 1}"
        client = await self._connected()
        self.wanted = self.wanted + [Spec(new)] * WORKERS
        while not await self._is_polling(client, new):  # noqa: ASYNC110  another process decides
            await asyncio.sleep(1.0)
        while True:
            try:
                await set_current(client, new)
            except RPCError:
                await asyncio.sleep(1.0)
            else:
                break
        self.builds += 1
        self.wanted = [spec for spec in self.wanted if spec != Spec(old)] + [Spec(old, ("workflows",))]
        task = asyncio.create_task(self._retire(client, old))
        self._tasks.add(task)

    async def _connected(self) -> Client:
        while True:
            try:
                return await self.made.client()
            except (RPCError, RuntimeError):
                await asyncio.sleep(1.0)

    @staticmethod
    async def _is_polling(client: Client, build: str) -> bool:
        try:
            return bool((await pollers_by_version(client)).get(build))
        except RPCError:
            return False

    async def _retire(self, client: Client, build: str) -> None:
        """Stop the workers of a version once it has no open run."""
        while True:
            await asyncio.sleep(3.0)
            try:
                versions = await list_versions(client)
            except RPCError:
                continue
            if not any(version.build_id == build and version.open_runs for version in versions):
                break
        while "pools" in self._taken:  # noqa: ASYNC110  a fault puts its workers back
            await asyncio.sleep(1.0)
        self.wanted = [spec for spec in self.wanted if spec.build != build]

    async def _fail_model(self, how: str, seconds: float) -> None:
        model, good = self.made.model, self.made.model.plan
        if how == "refused":
            await model.__aexit__()
        else:
            model.plan = replace(good, otherwise=SCENARIOS[how])
        await asyncio.sleep(seconds)
        model.plan = good
        if how == "refused":
            await model.__aenter__()

    async def _fail_objects(self, how: str, seconds: float) -> None:
        assert self.objects is not None
        if how == "refused":
            await self.objects.__aexit__()
        self.objects.down = how != "refused"
        await asyncio.sleep(seconds)
        self.objects.down = False
        if how == "refused":
            await self.objects.__aenter__()

    async def _take_away(self, fault: Fault) -> None:
        server, store = fault.kind in ("server", "everything"), fault.kind in ("redis", "everything")
        if fault.kind == "everything":
            await self._kill_workers(len(self.workers))
        if store and self.redis is not None:
            await asyncio.to_thread(self.redis.kill)
        if server:
            os.kill(running(self.server_home).pid, signal.SIGKILL)
        await asyncio.sleep(fault.seconds)
        if server:
            await self._return_server()
        if store and self.redis is not None:
            await asyncio.to_thread(self.redis.start)

    async def _return_server(self) -> None:
        while True:
            try:
                await ensure_server(self.server_home)
            except ServerError as error:
                print(f"the server is not back: {error}", file=sys.stderr)
                await asyncio.sleep(1.0)
            else:
                return

    async def _kill_reader(self) -> None:
        for _ in range(200):
            children = [child for worker in self.workers for child in tree(worker.process.pid)[1:]]
            if children:
                with suppress(ProcessLookupError):
                    os.kill(children[0], signal.SIGKILL)
                return
            await asyncio.sleep(0.1)

    async def _fill_disk(self, seconds: float) -> None:
        filler = self.made.home / "filler"
        await asyncio.to_thread(_fill, filler)
        await asyncio.sleep(seconds / 2)
        await asyncio.to_thread(_fill, filler)  # the rest, which something freed
        await self._kill_workers(len(self.workers))
        await asyncio.sleep(seconds / 2)
        filler.unlink()
        await self._return_server()

    async def _fill_disk_of_store(self, seconds: float) -> None:
        assert self.redis is not None
        self.redis.fill_disk()
        await asyncio.sleep(seconds / 2)
        await self._kill_workers(len(self.workers))
        await asyncio.sleep(seconds / 2)
        self.redis.free_disk()


def paid_again(
    answers: Sequence[Sequence[float]], kills: Sequence[Kill], standstills: Sequence[Spell]
) -> tuple[int, int, int]:
    """Count the answers that were paid twice, those on their way when a worker was killed, and those of standstills.

    `answers` are the times at which each request was answered, in order, in seconds since the epoch.
    """
    repeated = [before for times in answers for before in times[:-1]]
    stood = [any(spell.began - ON_ITS_WAY <= at <= spell.over for spell in standstills) for at in repeated]
    repeated = [at for at, is_excused in zip(repeated, stood, strict=True) if not is_excused]
    excused = sum(any(abs(at - kill.at) <= ON_ITS_WAY for kill in kills) for at in repeated)
    bound = sum(len(answers) if kill.unwritten is None else max(0, kill.unwritten) for kill in kills)
    on_their_way = min(excused, bound)
    return len(repeated) - on_their_way, on_their_way, sum(stood)


def _fill(path: Path) -> None:
    """Write until no byte more has room."""
    with path.open("ab", buffering=0) as file, suppress(OSError):
        for size in (1_000_000, 4_096, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))


@asynccontextmanager
async def deployed(
    folder: Path, store: Store, faults: Sequence[Fault], subjects: int, at_once: int
) -> AsyncIterator[Deployment]:
    """Server, stores, web, model and workers in a folder; ended with the block."""
    chance = random.Random(os.getpid())
    web, model = FailingWeb(pages_of_subjects(subjects, PAGES_OF_A_SUBJECT)), SlowApi()
    redis, objects = None, None
    home, kinds = folder / "home", {fault.kind for fault in faults}
    # With files, all is on one disk, as on a machine of one's own: no answer reaches the server once it is full.
    server_home = home if store == "file" else folder / "server"
    home.mkdir(mode=0o700)
    async with AsyncExitStack() as stack:
        if "disk" in kinds:
            options = f"size={HOME_MEGABYTES}m,mode=0700"
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", home], check=True)  # noqa: ASYNC221
            stack.callback(subprocess.run, ["umount", "--lazy", home], check=True)
        if "upgrade" in kinds:
            (folder / "second").mkdir()
            write_second_build(folder / "second")
        await stack.enter_async_context(web)
        await stack.enter_async_context(model)
        files = ServerFiles(server_home)
        files.folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        files.write(ServerDescription(port=chance.randint(*PORTS)))
        address = (await ensure_server(server_home)).address
        stack.callback(detach_server, server_home)
        stack.callback(kill_server, server_home)
        if store == "redis":
            redis = ValkeyServer(folder, *KEPT)
            redis.port = chance.randint(*PORTS)
            redis.url = f"redis://127.0.0.1:{redis.port}/0"
            redis.start()
            stack.callback(redis.kill)
            objects = await stack.enter_async_context(ObjectStoreServer())
        content = objects.environment() if objects else {}
        made = WebDeployment(home, web, model, address, redis.url if redis else None, content)
        made.configure(at_once=at_once)
        faketime = find_faketime() if "clock" in kinds else None
        deployment = Deployment(made, server_home, redis, objects, folder / "second", faketime)
        deployment.set_clock_right()
        deployment.wanted = [Spec(FIRST_BUILD)] * WORKERS
        stack.push_async_callback(deployment.end)
        keeping = asyncio.create_task(deployment.keep_workers())
        stack.callback(keeping.cancel)
        yield deployment
