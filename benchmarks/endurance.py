"""A thousand runs under a thousand faults: `python -m benchmarks.endurance [--runs 1000] [--seed 39]`.

Runs come in pieces of at most 20 minutes. A piece is a deployment of its own: two worker processes with all pools, a
Temporal server, a made-up web on loopback, a model whose calls take 1 to 3 s. Two pieces of three have Valkey and an
object store, one has all in files. Every few seconds two runs start, of the five strategies in turns, and have a fault
of their own (`benchmarks.faults`) that all open runs suffer. Every fourth run waits for an approval, which a person
gives after a while. A live report that has ended is refreshed on the server, its pages changed.

What a piece found is a file of the folder. The same command goes on with the pieces that are missing; several of them
share the work; with `--report` one prints the table alone. However a command ends, no process of it stays.

An answer is *asked again* if the endpoint delivered it more than once. Counted apart: it was on its way when a worker
was killed and not yet in the journal (at most as many as the endpoint's book then had more answers than the journal),
or its worker stood still for longer than the server waits (`standstill`). Exit code 1 unless no run is lost, stuck,
unfinished, failed or partial, every audit finds no difference, every approval and refresh is whole, no other answer was
asked again, and those on their way are at most one of a thousand.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from benchmarks.fake_processes import question, subject
from benchmarks.faults import (
    FAULTS_AHEAD,
    STOPS,
    STRATEGIES,
    Deployment,
    Fault,
    Kill,
    Spell,
    Store,
    can_mount,
    deployed,
    draw_faults,
    find_faketime,
    paid_again,
    until,
)
from benchmarks.processes import adopt_orphans, end_descendants, end_with_parent
from client.client_errors import ClientError, NoWorker, RunClosed, ServerUnreachable
from client.handle import ResearchClient, ResearchHandle
from contracts.messages import refresh_schedule
from contracts.outcome import ResearchResult, ResearchStatus
from contracts.plan import APPROVAL_PHRASE
from contracts.request import ResearchRequest
from contracts.vocabulary import Outcome, RunStatus
from tests.fakes.messages_api import Call
from tests.unit.client.cli.command_line import research
from workers.dev_server import FileLock
from workers.own_process import exit_process, run_to_end

T = TypeVar("T")

FAULTS_OF_A_PIECE: Final = 130
PIECES_WITHOUT_CLOCK: Final = 4
"""One piece of so many has wrong clocks."""
RUNS_OF_A_FAULT: Final = 2
"""Runs that start with a fault."""
BURST: Final = 8
"""Runs that are started at once where the fault is a full queue."""
AT_ONCE: Final = 20
"""Runs that may work at once: most of them wait for a fault to pass."""
MOST_OPEN: Final = 60
"""Open runs beyond which no further run is started: a busy machine gets fewer runs, not later ones. While Valkey or the
server is away for minutes none of them goes on, and other faults strike.
"""
LAST_SECONDS: Final = 90.0
"""Seconds before the end of a piece in which a run must have gone on, lest it counts as stuck."""
STARTING_SECONDS: Final = 720.0
"""No run or fault begins later in a piece."""
PASSING_SECONDS: Final = 840.0
"""By then every fault has passed: those that would last longer are cut."""
ENDING_SECONDS: Final = 360.0
"""Seconds after the last fault by which every run must have ended."""
LOOK_SECONDS: Final = 1.0
APPROVAL_SECONDS: Final = (2.0, 60.0)
LIMITS: Final = {"deadline_seconds": 3_600, "max_iterations": 1}
DEPTHS: Final = ("light", "light", "medium")
NOT_ENDED: Final = ("lost", "stuck", "unfinished")
AWAY: Final = (RPCError, ServerUnreachable, NoWorker)
"""What a client sees of a server or workers that are away."""
MOST_ASKED_AGAIN: Final = 0.001
SOON: Final = 20.0
"""Seconds after a kill by which a call under way is made again while another worker lives."""


@dataclass
class Run:
    """A run and what became of it."""

    name: str
    strategy: str
    kind: str
    seconds: float
    """Of its fault."""
    store: Store
    outcome: str = "stuck"
    """An outcome, or `lost`, `stuck`, or `unfinished`: at work when the time of its piece was over."""
    reason: str = ""
    wall: float = 0.0
    audit: str = ""
    """The first line of what an audit found; empty for nothing."""
    approval: str = ""
    """`whole`, or what was wrong with it; empty for a run that waits for none."""
    refresh: str = ""
    """The outcome of the refresh of a live report; empty for a run without one."""


@dataclass
class Piece:
    """What a piece found."""

    number: int
    seed: int
    runs: list[Run] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    """How often each kind struck."""
    at_work: list[int] = field(default_factory=list)
    """Open runs when each of them struck."""
    seconds: float = 0.0
    load: float = 0.0
    answered: int = 0
    asked_again: int = 0
    on_their_way: int = 0
    stood_still: int = 0
    made_again: list[float] = field(default_factory=list)
    """For each call under way during a kill that another worker outlived: seconds until it was made again, from the
    kill or the end of the last fault since then.
    """
    made_again_alone: list[float] = field(default_factory=list)
    """The same where all workers were killed."""
    ended_alone: int = 0


# --- one piece -------------------------------------------------------------------------------------------------------
def store_of(piece: int, kinds: Sequence[str] = ()) -> Store:
    """Return where the deployment of a piece has its state; the full disk of everything needs files."""
    return "file" if piece % 3 == 2 or "disk" in kinds else "redis"


def plan_of(seed: int, piece: int, count: int, kinds: Sequence[str], *, mounts: bool) -> list[Fault]:
    """Draw the faults of a piece; `kinds` are the only ones, if there are any."""
    unusable = {"disk"} if not mounts else set()
    has_turn = piece % PIECES_WITHOUT_CLOCK == 0 or "clock" in kinds  # the library slows its worker down
    if find_faketime() is None or not has_turn:
        unusable.add("clock")
    return draw_faults(
        seed,
        piece,
        count,
        store_of(piece, kinds),
        lambda kind: kind not in unusable and (not kinds or kind in kinds),
    )


def request_of(number: int, strategy: str) -> dict[str, Any]:
    """Return a request about a subject that no other run of the piece has."""
    return {
        "query": question(number),
        "strategy": strategy,
        "depth": DEPTHS[number % 3],
        "limits": LIMITS | {"max_sources": 4 + number % 3},
        "search": {"providers": ["searxng"]},
        "gates": {"approve": "plan" if waits(number) else "none"},
    }


def strategy_after(strategy: str, place: int) -> str:
    """Return the strategy so many places after another one."""
    return STRATEGIES[(STRATEGIES.index(strategy) + place) % len(STRATEGIES)]


def waits(number: int) -> bool:
    """Return whether a run waits for an approval."""
    return number % 4 == 1


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call again as long as server or workers are away, as a person does."""
    while True:
        try:
            return await call()
        except AWAY:
            await asyncio.sleep(1.0)


async def suffer_all(number: int, seed: int, count: int, kinds: Sequence[str], folder: Path) -> Piece:
    """Start run after run, each with its fault; wait for all, and check them."""
    began, piece = time.monotonic(), Piece(number, seed)
    faults, store = plan_of(seed, number, count, kinds, mounts=can_mount()), store_of(number, kinds)
    bursts = sum(fault.kind == "queue" for fault in faults)
    runs = RUNS_OF_A_FAULT * len(faults) + bursts * BURST
    async with deployed(folder, store, faults, runs, AT_ONCE) as deployment:
        client = await deployment.made.client()
        chance = random.Random(f"{seed}/{number}/people")
        following: list[asyncio.Task[None]] = []
        striking: list[asyncio.Task[None]] = []

        def elapsed() -> float:
            return time.monotonic() - began

        def open_runs() -> int:
            return sum(not task.done() for task in following)

        def due() -> Fault | None:
            return deployment.choose(faults[:FAULTS_AHEAD]) if open_runs() < MOST_OPEN else None

        def begin(fault: Fault) -> None:
            run_number = len(piece.runs)
            run = Run(f"r-{number}-{run_number}", fault.strategy, fault.kind, fault.seconds, store)
            piece.runs.append(run)
            pause = chance.uniform(*APPROVAL_SECONDS)
            following.append(asyncio.create_task(follow(deployment, client, run, run_number, pause)))

        async def strike(fault: Fault) -> None:
            await asyncio.sleep(fault.after)
            seconds = min(fault.seconds, max(0.0, PASSING_SECONDS - elapsed()))
            await deployment.suffer(replace(fault, seconds=seconds), open_runs)

        while faults and elapsed() < STARTING_SECONDS:
            await until(lambda: due() is not None, STARTING_SECONDS - elapsed())
            fault = due()
            if fault is None:
                break
            faults.remove(fault)
            deployment.reserve(fault)
            for place in range(RUNS_OF_A_FAULT + BURST * (fault.kind == "queue")):
                begin(replace(fault, strategy=strategy_after(fault.strategy, place)))
            striking.append(asyncio.create_task(strike(fault)))
            await asyncio.sleep(fault.gap)
        await asyncio.gather(*striking)
        await asyncio.wait(following, timeout=ENDING_SECONDS - LAST_SECONDS)
        lengths = {
            run.name: (await describe(client, run.name)).length
            for run, task in zip(piece.runs, following, strict=True)
            if not task.done()
        }
        await asyncio.wait(following, timeout=LAST_SECONDS)
        for run, task in zip(piece.runs, following, strict=True):
            if task.done() and (problem := task.exception()) is not None:
                run.outcome, run.reason = "stuck", f"{type(problem).__name__}: {problem}"[:300]
            elif not task.done():
                task.cancel()
                shown = await describe(client, run.name)
                run.outcome, run.reason = shown.outcome_after(lengths.get(run.name, 0)), shown.words
        piece.load = os.getloadavg()[0]
        close_books(piece, deployment)
        for run in piece.runs:
            run.audit = await audit(deployment, run.name) if run.outcome not in NOT_ENDED else ""
    piece.seconds = time.monotonic() - began
    return piece


async def follow(deployment: Deployment, client: Client, run: Run, number: int, pause: float) -> None:
    """Start a run, approve its plan after a pause, wait for its end, and refresh its live report."""
    researcher = ResearchClient(client)
    began = time.monotonic()
    with suppress(RunClosed):  # the server's answer to the start was lost
        await patiently(lambda: researcher.start(request_of(number, run.strategy), run.name))
    handle = researcher.handle(run.name)
    if waits(number):
        run.approval = await approve(handle, pause)
    result = await patiently(handle.result)
    run.wall = time.monotonic() - began
    run.outcome = result.outcome.value
    if result.outcome is not Outcome.COMPLETED:
        run.reason = f"{result.stop_reason.value}: {'; '.join(result.limitations)}"[:300]
    elif run.strategy == "living":
        run.refresh = await refresh(deployment, client, run.name, number)


async def approve(handle: ResearchHandle, pause: float) -> str:
    """Approve the plan of a run once it has waited; return `whole`, or what was wrong."""
    await _until_status(handle, lambda status: status.status is RunStatus.AWAITING_APPROVAL)
    await asyncio.sleep(pause)
    # A run that is asked to move to another version does so while it waits, and has just been created for a moment.
    await _until_status(handle, lambda status: status.status is not RunStatus.CREATED)
    shown = await patiently(handle.status)
    if shown.status is not RunStatus.AWAITING_APPROVAL:
        return f"{shown.status.value} without an approval"
    try:
        await patiently(lambda: handle.approve_plan(1, APPROVAL_PHRASE))
    except ClientError as error:
        return f"{type(error).__name__}: {error}"[:200]
    return "whole"


async def _until_status(handle: ResearchHandle, holds: Callable[[ResearchStatus], bool]) -> None:
    while not holds(await patiently(handle.status)):  # noqa: ASYNC110  another process decides
        await asyncio.sleep(LOOK_SECONDS)


async def refresh(deployment: Deployment, client: Client, name: str, number: int) -> str:
    """Change the pages of a live report, have its schedule refresh it at once, and return the outcome."""
    about = subject(number)
    world = deployment.made.world
    world.show(
        [
            replace(site, body=site.body.replace("degrees", "grades")) if about in site.body else site
            for site in world.sites
        ]
    )
    researcher, handle = ResearchClient(client), client.get_workflow_handle(name)
    before = (await patiently(handle.describe)).run_id
    asked = ResearchRequest.model_validate(
        request_of(number, "living") | {"continue_from": name, "refresh": True, "gates": {"approve": "none"}}
    )
    await patiently(lambda: researcher.schedule_refresh(asked, name, timedelta(days=1)))
    await patiently(client.get_schedule_handle(refresh_schedule(name)).trigger)
    while (await patiently(handle.describe)).run_id == before:  # noqa: ASYNC110  the server starts it
        await asyncio.sleep(1.0)
    result: ResearchResult = await patiently(researcher.handle(name).result)
    await patiently(lambda: researcher.unschedule_refresh(name))
    if result.outcome is Outcome.COMPLETED:
        return result.outcome.value
    return f"{result.outcome.value} ({result.stop_reason.value}: {'; '.join(result.limitations)})"[:300]


@dataclass(frozen=True)
class OpenRun:
    """What the server knows of a run that has not ended."""

    words: str
    length: int = 0
    """Events of its history."""
    is_lost: bool = False
    works_elsewhere: bool = False
    """It waits for agents of its own, or for its turn in the queue."""

    def outcome_after(self, length: int) -> str:
        """Return `lost`, `stuck`, or `unfinished` for one that went on since its history had so many events."""
        if self.is_lost:
            return "lost"
        return "unfinished" if self.length != length or self.works_elsewhere else "stuck"


async def describe(client: Client, name: str) -> OpenRun:
    """Return what the server knows of a run."""
    handle = client.get_workflow_handle(name)
    try:
        shown = await handle.describe(rpc_timeout=timedelta(seconds=10))
    except RPCError as error:
        return OpenRun(error.status.name, is_lost=error.status is RPCStatusCode.NOT_FOUND)
    raw = shown.raw_description
    is_queued = False
    with suppress(*AWAY, ClientError):
        is_queued = (await ResearchClient(client).handle(name).status()).status is RunStatus.QUEUED
    pending = [
        f"{call.activity_type.name} attempt {call.attempt}: {call.last_failure.message}"[:160]
        for call in raw.pending_activities
    ]
    length = raw.workflow_execution_info.history_length
    words = f"{length} events; attempt {raw.pending_workflow_task.attempt} of its task; {'; '.join(pending)}"[:500]
    return OpenRun(words, length, works_elsewhere=is_queued or bool(raw.pending_children))


async def audit(deployment: Deployment, name: str) -> str:
    """Audit the report of a run with the command that a person has; return the first line of what it finds."""
    variables = deployment.made.environment() | {"NO_COLOR": "1"}
    done = await asyncio.to_thread(research, "audit", name, **variables)
    structlog.reset_defaults()
    return "" if done.exit_code == 0 else (done.output.strip().splitlines() or [repr(done.exception)])[0][:160]


def close_books(piece: Piece, deployment: Deployment) -> None:
    """Count the answers that were delivered again, and how long calls of killed workers waited."""
    calls: Sequence[Call] = deployment.made.model.calls
    times: dict[str, list[float]] = defaultdict(list)
    for call in calls:
        if call.status == 200 and call.delivered and call.ended:
            times[call.request_hash].append(call.ended)
    standstills = [spell for spell in deployment.spells if spell.kind == STOPS[1]]
    piece.answered = len(times)
    piece.asked_again, piece.on_their_way, piece.stood_still = paid_again(
        [sorted(ended) for ended in times.values()], deployment.kills, standstills
    )
    started: dict[str, list[float]] = defaultdict(list)
    for call in calls:
        started[call.request_hash].append(call.started)
    for kill in deployment.kills:
        found = piece.made_again if kill.left else piece.made_again_alone
        found += made_again(kill, started, deployment.spells)
    piece.faults = dict(Counter(spell.kind for spell in deployment.spells))
    piece.at_work = [spell.at_work for spell in deployment.spells]
    piece.ended_alone = deployment.ended_alone


def made_again(kill: Kill, started: dict[str, list[float]], spells: Sequence[Spell]) -> list[float]:
    """Return for each call under way during a kill after how many seconds without another fault it was made again.

    A call that is made again while its endpoint answers nothing useful says nothing: workers pause between such calls.
    """
    found = []
    for request in kill.in_flight:
        later = [at for at in started[request] if at > kill.at]
        if later:
            again = min(later)
            if any(spell.kind.startswith("model-") and spell.began < again < spell.over for spell in spells):
                continue
            ends = [spell.over for spell in spells if kill.at < spell.over <= again]
            found.append(round(again - max([kill.at, *ends]), 1))
    return found


# --- processes -------------------------------------------------------------------------------------------------------
def make_piece(number: int, seed: int, count: int, kinds: Sequence[str], folder: Path) -> int:
    """Make one piece in this process, and write what it found."""
    end_with_parent()
    adopt_orphans()
    place = folder / f"piece-{number}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    piece = run_to_end(suffer_all(number, seed, count, kinds, place))
    record = record_of(folder, number)
    part = record.with_suffix(".part")
    part.write_text(json.dumps(asdict(piece), indent=1), encoding="utf-8")
    part.replace(record)
    if not problems_of([piece]):
        shutil.rmtree(place, ignore_errors=True)
    return 0


def record_of(folder: Path, number: int) -> Path:
    """Return the file of a piece."""
    return folder / f"piece-{number:03}.json"


def read_pieces(folder: Path) -> list[Piece]:
    """Read what all pieces found, in order."""
    pieces = []
    for record in sorted(folder.glob("piece-*.json")):
        found = json.loads(record.read_text(encoding="utf-8"))
        pieces.append(Piece(**found | {"runs": [Run(**run) for run in found["runs"]]}))
    return pieces


def make_pieces(runs: int, most: int, seed: int, count: int, kinds: Sequence[str], folder: Path) -> None:
    """Make the pieces that are missing, each in a process of its own, until there are so many runs."""
    adopt_orphans()
    made = 0
    while made < most and sum(len(piece.runs) for piece in read_pieces(folder)) < runs:
        number = 0
        lock = FileLock(folder / "piece-0.lock")
        while record_of(folder, number).exists() or not lock.acquire():
            number += 1
            lock = FileLock(folder / f"piece-{number}.lock")
        command = [sys.executable, "-m", "benchmarks.endurance", "--piece", str(number), "--seed", str(seed)]
        command += ["--faults", str(count)]
        command += ["--folder", str(folder), *(["--kinds", *kinds] if kinds else [])]
        child = subprocess.Popen(command, start_new_session=True)
        code = child.wait()
        end_descendants()
        if (folder / f"piece-{number}" / "home").is_mount():
            subprocess.run(["umount", "--lazy", folder / f"piece-{number}" / "home"], check=False)
        lock.release()
        if code:
            sys.exit(f"piece {number} ended with {code}: see {folder}/piece-{number}")
        show(read_pieces(folder))
        made += 1


# --- what was found --------------------------------------------------------------------------------------------------
def problems_of(pieces: Sequence[Piece]) -> dict[str, int]:
    """Count what must not be; empty if all is as it must be."""
    runs = [run for piece in pieces for run in piece.runs]
    answered = sum(piece.answered for piece in pieces)
    again = sum(piece.asked_again + piece.on_their_way for piece in pieces)
    counts = {
        **{name: sum(run.outcome == name for run in runs) for name in NOT_ENDED},
        "failed": sum(run.outcome not in (*NOT_ENDED, *(each.value for each in _ENDED_WELL)) for run in runs),
        "partial": sum(run.outcome == Outcome.PARTIAL.value for run in runs),
        "audits that differ": sum(bool(run.audit) for run in runs),
        "approvals that are not whole": sum(run.approval not in ("", "whole") for run in runs),
        "refreshes that are not whole": sum(run.refresh not in ("", Outcome.COMPLETED.value) for run in runs),
        "answers asked again without a kill": sum(piece.asked_again for piece in pieces),
        "too many answers asked again": int(again > MOST_ASKED_AGAIN * answered and again > 1),
        "calls made again late": sum(seconds > SOON for piece in pieces for seconds in piece.made_again),
    }
    return {name: count for name, count in counts.items() if count}


_ENDED_WELL: Final = (Outcome.COMPLETED, Outcome.PARTIAL)


def show(pieces: Sequence[Piece]) -> None:
    """Print the table of all pieces, what was not as it must be, and the totals."""
    runs = [run for piece in pieces for run in piece.runs]
    struck = sum((Counter(piece.faults) for piece in pieces), Counter[str]())
    print("| fault | struck | runs that had it | completed | not | longest fault | median and longest wall |")
    print("|---|---|---|---|---|---|---|")
    for kind in sorted(struck | Counter(run.kind for run in runs)):
        mine = [run for run in runs if run.kind == kind]
        walls = [run.wall for run in mine if run.wall] or [0.0]
        completed = sum(run.outcome == Outcome.COMPLETED.value for run in mine)
        longest = max((run.seconds for run in mine), default=0.0)
        print(
            f"| {kind} | {struck[kind]} | {len(mine)} | {completed} | {len(mine) - completed} | {longest:g} s "
            f"| {statistics.median(walls):.0f} s, {max(walls):.0f} s |"
        )
    for run in runs:
        bad = (
            run.outcome != Outcome.COMPLETED.value,
            run.audit,
            run.approval not in ("", "whole"),
            run.refresh not in ("", Outcome.COMPLETED.value),
        )
        if any(bad):
            print(
                f"- {run.name} {run.strategy}, {run.store}, {run.kind} {run.seconds:g} s: {run.outcome} {run.reason}; "
                f"audit {run.audit or 'good'}; approval {run.approval or '-'}; refresh {run.refresh or '-'}"
            )
    answered = sum(piece.answered for piece in pieces)
    at_work = sorted(count for piece in pieces for count in piece.at_work) or [0]
    print(
        f"\n{len(pieces)} pieces, {sum(piece.seconds for piece in pieces) / 60:.0f} min, {len(runs)} runs, "
        f"{sum(struck.values())} faults, seeds {sorted({piece.seed for piece in pieces})}; load at the end of a piece "
        f"{min(piece.load for piece in pieces):.1f} to {max(piece.load for piece in pieces):.1f}. A fault struck "
        f"{at_work[0]} to {at_work[-1]} open runs, median {statistics.median(at_work):.0f}."
    )
    print(
        f"{answered} calls answered; asked again: {sum(piece.asked_again for piece in pieces)}, besides "
        f"{sum(piece.on_their_way for piece in pieces)} on their way when their worker was killed, and "
        f"{sum(piece.stood_still for piece in pieces)} whose worker stood still for over 25 s."
    )
    print(
        f"{sum(run.approval == 'whole' for run in runs)} approvals and "
        f"{sum(run.refresh == Outcome.COMPLETED.value for run in runs)} refreshes whole; "
        f"{sum(piece.ended_alone for piece in pieces)} workers ended by themselves and were started again."
    )
    for words, name in (("while another one lived", "made_again"), ("where all were killed", "made_again_alone")):
        again = sorted(seconds for piece in pieces for seconds in getattr(piece, name))
        if again:
            print(
                f"A call of a killed worker was made again {words} after {again[0]:.0f} to {again[-1]:.0f} s, median "
                f"{statistics.median(again):.0f} s, of {len(again)}."
            )
    print(f"Not as it must be: {problems_of(pieces) or 'nothing'}", flush=True)


def main() -> int:
    """Make pieces, or print what they found."""
    parser = argparse.ArgumentParser(description="A thousand runs under a thousand faults.")
    parser.add_argument("--runs", type=int, default=1_000, help="runs in all, also those of earlier commands")
    parser.add_argument("--pieces", type=int, default=1_000, help="at most so many now")
    parser.add_argument("--seed", type=int, default=39)
    parser.add_argument("--faults", type=int, default=FAULTS_OF_A_PIECE, help="faults of a piece")
    parser.add_argument("--kinds", nargs="+", default=[], help="only these faults")
    parser.add_argument(
        "--folder", type=Path, default=Path("build/endurance"), help="what pieces found, and their logs"
    )
    parser.add_argument("--piece", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--report", action="store_true", help="print what earlier commands found")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if given.piece is not None:
        return make_piece(given.piece, given.seed, given.faults, given.kinds, folder)
    if not given.report:
        make_pieces(given.runs, given.pieces, given.seed, given.faults, given.kinds, folder)
    pieces = read_pieces(folder)
    if pieces and given.report:
        show(pieces)
    return int(bool(problems_of(pieces)))


if __name__ == "__main__":
    exit_process(main())
