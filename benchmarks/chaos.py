"""Runs of every strategy under seeded faults: `python -m benchmarks.chaos [--seed 36] [--runs 25] [--store redis]`.

Two worker processes with all pools research a made-up web on loopback with a model whose calls take 1 to 3 s. The runs
are divided among deployments: one has its journal in Valkey, which writes its changes to a file as the deployed one
does, one in the file of its home. Every run has a fault of its own, which strikes some seconds after the model first
answered in it, while earlier runs are still at work. Kinds:

- `worker`, `workers`: one worker process, or all of them, get SIGKILL during a call, and are started again;
- `reader`: a process that reads documents gets SIGKILL;
- `pause`: a worker stands still (SIGSTOP) for 10 s;
- `server`: the Temporal server gets SIGKILL, and is away for the given seconds;
- `model-…`, `search-…`, `pages-…`: the service answers 503, hangs or resets connections;
- `everything`: workers, the server and the store are killed at once, and started again after a while;
- `redis`: Valkey gets SIGKILL, and is away;
- `redis-disk`: Valkey's own disk is full, then all workers get SIGKILL; needs Linux;
- `disk`: the disk of journal and server is full, then all workers get SIGKILL; needs root, for a file system of its
  own.

An answer is *paid twice* if the endpoint delivered it more than once. One exception: it was on its way when a worker
was killed, and not yet in the journal. For each kill there are at most as many of these as the endpoint's book then had
more answers than the journal. Exit code 1 unless every run ended in time, none failed, each partial outcome names its
reason, every audit finds no difference, and no answer was paid twice.
"""

import argparse
import asyncio
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from temporalio.client import Client, WorkflowFailureError
from temporalio.service import RPCError

from benchmarks.outages import FailingWeb, UnevenApi
from benchmarks.processes import tree
from benchmarks.web_deployment import WebDeployment
from client.handle import ResearchClient
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome
from tests.acceptance.topology import PYTHON, RESEARCH, ROOT, Process
from tests.fakes.many_pages import QUESTION, pages
from tests.fakes.valkey import ValkeyServer
from tests.integration.runs import start
from tests.integration.server_homes import running, stop_server
from workers.dev_server import ServerDescription, ServerFiles, detach_server, ensure_server
from workers.own_process import exit_process, run_to_end
from workers.shared_state import SHARED_FILE, SPOOL_FOLDER

Store = Literal["redis", "file"]
STRATEGIES: Final = ("supervisor", "reflective", "orchestrator", "living", "recursive")
SERVICES: Final = tuple(f"{place}-{how}" for place in ("model", "search", "pages") for how in ("503", "hang", "reset"))
EVERYWHERE: Final = ("worker", "workers", "reader", "pause", "server", "everything", *SERVICES)
OF_STORE: Final[dict[Store, tuple[str, ...]]] = {"redis": ("redis", "redis-disk"), "file": ("disk", "disk")}
ENDED_WELL: Final = (Outcome.COMPLETED, Outcome.PARTIAL)
SCENARIOS: Final = {"503": "status:503", "hang": "slow", "reset": "reset"}
OUTAGE_SECONDS: Final = (15.0, 60.0)
PAUSE_SECONDS: Final = 10.0
LATEST_STRIKE: Final = 6.0
"""Seconds after the first answer of a run until its fault at the latest."""
FIRST_ANSWER_SECONDS: Final = 90.0
LONGEST_END: Final = 600.0
"""Seconds after the last fault by which every run must have ended."""
ON_ITS_WAY: Final = 1.5
"""Seconds before a kill in which an answer can have been sent without being in the journal."""
HOME_MEGABYTES: Final = 300
WORKERS: Final = 2
PAGES, HOSTS = 20, 10
DEPTHS: Final = ("light", "medium")
PORTS: Final = (28_000, 31_999)
"""Below the range from which the kernel takes those of connections: nobody takes one while its server is away."""
ROWS: Final = b"research:calls/*/answer/*"
KEPT: Final = (
    "--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory", "512mb", "--maxmemory-policy", "noeviction"
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """What happens during a run, how many seconds after its first answer, and for how long."""

    strategy: str
    kind: str
    after: float
    seconds: float


@dataclass
class Kill:
    """A moment at which workers were killed, and what was under way then."""

    at: float
    unwritten: int
    """Distinct answers in the endpoint's book that were not in the journal; an upper bound if another worker lives."""
    in_flight: list[str]
    """Requests that the endpoint was working on."""
    over: float
    """When the server was there again, if it was away, too."""
    left: int = 0
    """Workers that were not killed."""


@dataclass
class Part:
    """Runs of one deployment, and what happened to them."""

    store: Store
    faults: list[Fault]
    results: list[ResearchResult | None] = field(default_factory=list)
    walls: list[float] = field(default_factory=list)
    audits: list[str] = field(default_factory=list)
    """The first line of what was found; empty for nothing."""
    kills: list[Kill] = field(default_factory=list)
    answered: int = 0
    on_their_way: int = 0
    paid_twice: int = 0
    ended_alone: int = 0
    """Workers that ended without being killed."""
    made_again: list[tuple[int, float]] = field(default_factory=list)
    """For each call that was under way during a kill: workers that were left, and seconds until it was made again, from
    the kill or the return of the server on."""
    unlisted: int = 0


class ChaosApi(UnevenApi):
    """Calls of 1 to 3 s."""

    shortest, longest = 1.0, 3.0


def draw_faults(seed: int, runs: int, store: Store, *, can_mount: bool) -> list[Fault]:
    """Draw a fault for each run: every kind before one comes again, in an order and for times that the seed decides."""
    chance = random.Random(f"{seed}/{store}")
    special = OF_STORE[store] if store == "redis" or can_mount else ()
    kinds: list[str] = []
    while len(kinds) < runs:
        others = list(EVERYWHERE)
        chance.shuffle(others)
        batch = [*special, *others][: runs - len(kinds)]
        chance.shuffle(batch)
        kinds += batch
    first = chance.randrange(len(STRATEGIES))
    return [
        Fault(
            STRATEGIES[(first + number) % len(STRATEGIES)],
            kind,
            chance.uniform(0.0, LATEST_STRIKE),
            PAUSE_SECONDS if kind == "pause" else round(chance.uniform(*OUTAGE_SECONDS)),
        )
        for number, kind in enumerate(kinds)
    ]


class Chaos:
    """A deployment that can be made to suffer."""

    def __init__(self, part: Part, made: WebDeployment, server_home: Path, redis: ValkeyServer | None) -> None:
        self.part, self.made, self.server_home, self.redis = part, made, server_home, redis
        self.web, self.model = made.world, made.model
        self._killed: set[int] = set()

    # --- workers ---------------------------------------------------------------------------------------------------
    async def keep_workers(self) -> None:
        """Start another worker for each that ended, as a supervisor of services does."""
        while True:
            await asyncio.sleep(1.0)
            for worker in [worker for worker in self.made.workers if worker.running.returncode is not None]:
                self.made.workers.remove(worker)
                if worker.running.pid not in self._killed:
                    self.part.ended_alone += 1
                    print(f"a worker ended with {worker.running.returncode}: {worker.log}", file=sys.stderr)
                await self.start_worker()

    async def start_worker(self) -> None:
        """Start a worker, without waiting until it can get work."""
        log = self.made.home.parent / f"worker-{time.monotonic_ns()}.log"
        with log.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                PYTHON, *RESEARCH, "worker", "--log-format", "json",
                cwd=ROOT, env=self.made.environment(), stdout=file, stderr=file,
            )  # fmt: skip
        self.made.workers.append(Process("", log, process))

    async def kill_workers(self, count: int) -> None:
        """Send SIGKILL to so many workers; the others and the store go on."""
        dying = [worker for worker in self.made.workers if worker.running.returncode is None][:count]
        self._killed |= {worker.running.pid for worker in dying}
        for worker in dying:
            worker.kill()
        at = time.time()
        in_flight = [call.request_hash for call in self.model.calls if call.ended is None]
        for worker in dying:
            await worker.running.wait()
        unwritten = len(self.delivered()) - await asyncio.to_thread(self.journalled)
        self.part.kills.append(Kill(at, unwritten, in_flight, at, WORKERS - len(dying)))

    # --- books -----------------------------------------------------------------------------------------------------
    def delivered(self) -> Counter[str]:
        """How often each request was answered to the end."""
        return Counter(call.request_hash for call in self.model.calls if call.status == 200 and call.delivered)

    def journalled(self) -> int:
        """Answers in the journal, and in the files of those that it has not taken yet."""
        spooled = sum(1 for _ in (self.made.home / SPOOL_FOLDER).glob("[!.]*"))
        if self.redis is not None:
            return spooled + len(self.redis.command("KEYS", ROWS))
        with closing(sqlite3.connect(f"file:{self.made.home / SHARED_FILE}?mode=ro", uri=True, timeout=30)) as database:
            rows = database.execute("SELECT count(*) FROM shared WHERE key LIKE 'calls/%/answer/%'")
            return spooled + int(rows.fetchone()[0])

    def close_books(self) -> None:
        """Count the answers that were delivered again, and how long calls of killed workers waited."""
        part, calls = self.part, self.model.calls
        times: dict[str, list[float]] = {}
        for call in calls:
            if call.status == 200 and call.delivered and call.ended:
                times.setdefault(call.request_hash, []).append(call.ended)
        part.answered = len(times)
        part.paid_twice, part.on_their_way = paid_again(list(times.values()), part.kills)
        for kill in part.kills:
            for request in kill.in_flight:
                later = [call.started for call in calls if call.request_hash == request and call.started > kill.at]
                if later:
                    part.made_again.append((kill.left, min(later) - kill.over))

    # --- faults ----------------------------------------------------------------------------------------------------
    async def suffer(self, fault: Fault) -> None:
        """Let the fault happen, and pass."""
        place, _, how = fault.kind.partition("-")
        if fault.kind in ("worker", "workers"):
            await _until(lambda: any(call.ended is None for call in self.model.calls), OUTAGE_SECONDS[0])
            await self.kill_workers(1 if fault.kind == "worker" else WORKERS)
            await asyncio.sleep(fault.seconds)
        elif fault.kind == "reader":
            await self._kill_reader()
        elif fault.kind == "pause":
            await self._pause(fault.seconds)
        elif place == "model":
            good = self.model.plan
            self.model.plan = replace(good, otherwise=SCENARIOS[how])
            await asyncio.sleep(fault.seconds)
            self.model.plan = good
        elif place in ("search", "pages"):
            assert isinstance(self.web, FailingWeb)
            self.web.failing, self.web.how = place, how
            await asyncio.sleep(fault.seconds)
            self.web.failing = ""
        elif fault.kind == "disk":
            await self._fill_disk(fault.seconds)
        elif fault.kind == "redis-disk":
            await self._fill_disk_of_store(fault.seconds)
        else:
            await self._take_away(fault)

    async def _take_away(self, fault: Fault) -> None:
        server, store = fault.kind in ("server", "everything"), fault.kind in ("redis", "everything")
        if fault.kind == "everything":
            await self.kill_workers(WORKERS)
        if store and self.redis is not None:
            await asyncio.to_thread(self.redis.kill)
        if server:
            os.kill(running(self.server_home).pid, signal.SIGKILL)
        await asyncio.sleep(fault.seconds)
        if server:
            await ensure_server(self.server_home)
        if store and self.redis is not None:
            await asyncio.to_thread(self.redis.start)
        if fault.kind == "everything":
            self.part.kills[-1].over = time.time()

    async def _kill_reader(self) -> None:
        for _ in range(200):
            children = [child for worker in self.made.workers for child in tree(worker.running.pid)[1:]]
            if children:
                with suppress(ProcessLookupError):
                    os.kill(children[0], signal.SIGKILL)
                return
            await asyncio.sleep(0.1)

    async def _pause(self, seconds: float) -> None:
        worker = self.made.workers[0].running
        worker.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        worker.send_signal(signal.SIGCONT)

    async def _fill_disk(self, seconds: float) -> None:
        filler = self.made.home / "filler"
        await asyncio.to_thread(_fill, filler)
        await asyncio.sleep(seconds / 2)
        await asyncio.to_thread(_fill, filler)  # the rest, which something freed
        await self.kill_workers(WORKERS)
        await asyncio.sleep(seconds / 2)
        filler.unlink()
        await ensure_server(self.server_home)

    async def _fill_disk_of_store(self, seconds: float) -> None:
        assert self.redis is not None
        self.redis.fill_disk()
        await asyncio.sleep(seconds / 2)
        await self.kill_workers(WORKERS)
        await asyncio.sleep(seconds / 2)
        self.redis.free_disk()


def paid_again(answers: Sequence[Sequence[float]], kills: Sequence[Kill]) -> tuple[int, int]:
    """Count the answers that were paid twice, and those that were on their way when a worker was killed.

    `answers` are the times at which each request was answered, in order, in seconds since the epoch.
    """
    repeated = [before for times in answers for before in times[:-1]]
    excused = sum(any(abs(before - kill.at) <= ON_ITS_WAY for kill in kills) for before in repeated)
    on_their_way = min(excused, sum(max(0, kill.unwritten) for kill in kills))
    return len(repeated) - on_their_way, on_their_way


def _fill(path: Path) -> None:
    """Write until no byte more has room."""
    with path.open("ab", buffering=0) as file, suppress(OSError):
        for size in (1_000_000, 4_096, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))


def can_mount() -> bool:
    """Return whether this process may mount a file system."""
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False).returncode:
            return False
        subprocess.run(["umount", folder], check=True)
        return True


@asynccontextmanager
async def deployed(part: Part, folder: Path, chance: random.Random) -> AsyncIterator[Chaos]:
    """Server, store, web, model and workers; ended with the block."""
    web, model, redis = FailingWeb(pages(PAGES, hosts=HOSTS)), ChaosApi(), None
    home = folder / "home"
    # With a file, all is on one disk, as on a machine of one's own: no answer reaches the server once it is full.
    server_home = home if part.store == "file" else folder / "server"
    home.mkdir(mode=0o700)
    async with AsyncExitStack() as stack:
        if any(fault.kind == "disk" for fault in part.faults):
            options = f"size={HOME_MEGABYTES}m,mode=0700"
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", home], check=True)  # noqa: ASYNC221
            stack.callback(subprocess.run, ["umount", "--lazy", home], check=True)
        await stack.enter_async_context(web)
        await stack.enter_async_context(model)
        files = ServerFiles(server_home)
        files.folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        files.write(ServerDescription(port=chance.randint(*PORTS)))
        address = (await ensure_server(server_home)).address
        stack.callback(detach_server, server_home)
        stack.push_async_callback(stop_server, server_home)
        if part.store == "redis":
            redis = ValkeyServer(folder, *KEPT)
            redis.port = chance.randint(*PORTS)
            redis.url = f"redis://127.0.0.1:{redis.port}/0"
            redis.start()
            stack.callback(redis.kill)
        made = WebDeployment(home, web, model, address, redis.url if redis else None)
        made.configure()
        chaos = Chaos(part, made, server_home, redis)
        stack.push_async_callback(made.end_workers)
        for _ in range(WORKERS):
            await chaos.start_worker()
        keeping = asyncio.create_task(chaos.keep_workers())
        stack.callback(keeping.cancel)
        yield chaos


def request_of(fault: Fault, number: int) -> dict[str, Any]:
    """Return a request over the web; each run asks for one source more or less, so that no two are alike."""
    limits = {"deadline_seconds": 1_200, "max_iterations": 1, "max_sources": 4 + number % 3}
    search = {"providers": ["searxng"]}
    gates = {"approve": "none"}
    return {
        "query": QUESTION, "strategy": fault.strategy, "depth": DEPTHS[number % 2], "limits": limits, "search": search,
        "gates": gates,
    }  # fmt: skip


async def suffer_all(part: Part, folder: Path, chance: random.Random) -> None:
    """Start run after run, each with its fault; wait for all, and check them."""
    async with deployed(part, folder, chance) as chaos:
        client = await chaos.made.client()
        ending: list[asyncio.Task[tuple[ResearchResult | None, float]]] = []
        for number, fault in enumerate(part.faults):
            before = len(chaos.delivered())
            name = f"r-chaos-{part.store}-{number}"
            await start(client, request_of(fault, number), id=name)
            ending.append(asyncio.create_task(_result(client, name, time.monotonic())))
            await _until(lambda before=before: len(chaos.delivered()) > before, FIRST_ANSWER_SECONDS)
            await asyncio.sleep(fault.after)
            print(f"{time.strftime('%H:%M:%S')} {part.store} {number + 1}: {fault}", file=sys.stderr, flush=True)
            await chaos.suffer(fault)
        await asyncio.wait(ending, timeout=LONGEST_END)
        for task in ending:
            result, wall = task.result() if task.done() else (None, 0.0)
            part.results.append(result)
            part.walls.append(wall)
            task.cancel()
        chaos.close_books()
        part.unlisted = len(part.faults) - await _count(client)
        for number, result in enumerate(part.results):
            name = f"r-chaos-{part.store}-{number}"
            part.audits.append(await _audit(chaos.made, name) if result is not None else "no result")


async def _until(holds: Callable[[], bool], seconds: float) -> None:
    """Wait for what other processes do, at most so long: there is no event to wait for."""
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:  # noqa: ASYNC110
        await asyncio.sleep(0.1)


async def _result(client: Client, name: str, began: float) -> tuple[ResearchResult, float]:
    """Return the result, however often the server is away while it is waited for."""
    handle = client.get_workflow_handle(name)
    while True:
        try:
            await handle.result()
        except WorkflowFailureError:
            break
        except RPCError:
            await asyncio.sleep(1.0)
            continue
        break
    wall = time.monotonic() - began
    while True:
        try:
            return await ResearchClient(client).handle(name).result(), wall
        except RPCError:
            await asyncio.sleep(1.0)


async def _count(client: Client) -> int:
    """Count the runs that the server lists."""
    return (await client.count_workflows("WorkflowType = 'deep-research'")).count


async def _audit(made: WebDeployment, name: str) -> str:
    """Audit the report of a run with the command that a person has; return the first line of what it finds."""
    process = await asyncio.create_subprocess_exec(
        PYTHON, *RESEARCH, "audit", name,
        cwd=ROOT, env=made.environment() | {"NO_COLOR": "1"}, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    return "" if process.returncode == 0 else (output.decode().strip().splitlines() or ["no output"])[0][:120]


def show(parts: Sequence[Part]) -> bool:
    """Print the table and the totals; return whether everything holds."""
    print("| store | strategy | fault | outage | outcome | wall | reason | audit |\n|---|---|---|---|---|---|---|---|")
    for part in parts:
        for fault, result, wall, found in zip(part.faults, part.results, part.walls, part.audits, strict=True):
            outcome = "stuck" if result is None else result.outcome.value
            complete = result is None or result.outcome is Outcome.COMPLETED
            reason = "" if complete else f"{result.stop_reason.value}: {'; '.join(result.limitations)[:200]}"
            print(
                f"| {part.store} | {fault.strategy} | {fault.kind} | {fault.seconds:g} s | {outcome} | {wall:.0f} s "
                f"| {reason} | {found or 'no difference'} |"
            )
    results = [result for part in parts for result in part.results]
    audits = [found for part in parts for found in part.audits]
    totals = {
        "lost": sum(part.unlisted for part in parts),
        "stuck": sum(result is None for result in results),
        "failed": sum(result is not None and result.outcome not in ENDED_WELL for result in results),
        "partial without a reason": sum(
            result is not None and result.outcome is Outcome.PARTIAL and not result.limitations for result in results
        ),
        "audits with a difference": sum(map(bool, audits)),
        "answers paid twice": sum(part.paid_twice for part in parts),
    }
    print(f"\n{len(results)} runs: {', '.join(f'{count} {name}' for name, count in totals.items())}.")
    print(
        f"{sum(part.answered for part in parts)} calls answered; {sum(part.on_their_way for part in parts)} answers on "
        f"their way when their worker was killed, and paid again; {sum(part.ended_alone for part in parts)} workers "
        "ended by themselves, as the server was away or the disk full."
    )
    for words, is_left in (("while another one worked", True), ("once a worker had started", False)):
        again = sorted(seconds for part in parts for left, seconds in part.made_again if bool(left) is is_left)
        if again:
            print(
                f"A call of a killed worker was made again {words} after {again[0]:.0f} to {again[-1]:.0f} s, "
                f"median {statistics.median(again):.0f} s, of {len(again)}."
            )
    return not any(totals.values())


async def main(seed: int, runs: int, stores: Sequence[Store], folder: Path | None) -> bool:
    """Measure each deployment, then print all."""
    parts, mounts, began = list[Part](), can_mount(), time.monotonic()
    if "file" in stores and not mounts:
        print("no disk is filled: that needs root, for a file system of its own", file=sys.stderr)
    for number, store in enumerate(stores):
        share = runs // len(stores) + (number < runs % len(stores))
        part = Part(store, draw_faults(seed, share, store, can_mount=mounts))
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as place:
            await suffer_all(part, Path(place), random.Random(f"{seed}/{store}/ports/{os.getpid()}"))
        parts.append(part)
    print(f"seed {seed}, {time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}\n")
    return show(parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Runs of every strategy under seeded faults.")
    parser.add_argument("--seed", type=int, default=36)
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--store", nargs="+", choices=("redis", "file"), default=["redis", "file"])
    parser.add_argument("--folder", type=Path, help="where homes and logs are (default: a temporary folder)")
    given = parser.parse_args()
    exit_process(0 if run_to_end(main(given.seed, given.runs, given.store, given.folder)) else 1)
