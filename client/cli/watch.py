"""`watch`, `status` and `list`: the state of runs, live, once, and in a table."""

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from rich.text import Text
from typer import Option

from client.cli.context import MAX_LISTED_RUNS, OUTCOMES, PAGE_RUNS, RUNNING, CommandContext, RunInfo, ServerRun
from client.cli.options import AsJson, Commands, Quiet, RunId
from client.cli.output import CommandError, ExitCode, SafeConsole, print_hint, print_json, print_progress, print_result
from client.cli.reports import deliver_report
from client.client_errors import ClientError, NoWorker
from client.handle import CLOSING_SECONDS, DEFAULT_TENANT, ResearchHandle
from client.run_results import SESSION_STOP_REASONS, bare_status, reasons_of, resume_hint
from client.view.console import Ask, PlainSink, Sink, TerminalSink, follow, status_rows
from client.view.words import local_time, pasteable, printable
from contracts.messages import QueueTurn
from contracts.outcome import ResearchResult, ResearchStatus
from contracts.vocabulary import AWAITING, RunStatus
from providers.storage.sessions import UNREADABLE
from workers.own_process import user_umask

HINT: Final = 'Ctrl-C detaches · research stop {id} (report now) · research steer {id} "…"'
SHOW_CURSOR: Final = "\x1b[?25h"
SERVER_STATUSES: Final = {"terminated": "failed", "canceled": "cancelled"}
"""Server statuses that have a different name here."""
AWAITING_VALUES: Final = frozenset(awaiting.value for awaiting in AWAITING)
INTERRUPTED: Final = "interrupted"
UNKNOWN: Final = "unknown"
LISTING_SECONDS: Final = 1.0
"""Timeout for a run's answer about its place in the queue; without a worker there is no answer."""
T = TypeVar("T")

commands = Commands()


@commands.command("watch")
async def watch(
    context: CommandContext,
    run_id: RunId = "last",
    *,
    out: Annotated[Path | None, Option(metavar="DIR", help="write the report there when the run ends")] = None,
    then: Annotated[str | None, Option(metavar="CMD", help="run this shell command afterwards")] = None,
    events: Annotated[Literal["agent"] | None, Option(help="the seven events of agents as JSON lines instead")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Show a run live. Ctrl-C only detaches; the exit code is that of the run.

    research watch 7k3f --then "notify-send done"
    research watch 7k3f --events agent         one event a line, from the beginning of the run
    """
    if events and (out is not None or as_json or quiet):
        raise CommandError("--events prints its lines alone: use it without --out, --json and --quiet")
    run = await context.find(run_id)
    research_id = run.research_id
    if run.handle is None or not (run.running or events):
        result = None if events else await run.result()
        if result is None:
            remedy = context.server_away or f"research resume {research_id}"
            if events:
                remedy = "the server is not running, or no longer has the run; start `research serve`, and watch again"
            raise CommandError(f"the run {research_id} cannot be watched now: {remedy}", ExitCode.FAILED)
    else:
        async with first_interrupt() as interrupt:
            if events:
                tenant = run.resolved.tenant if run.resolved else DEFAULT_TENANT
                result = await run_until(interrupt, print_agent_events(run.handle, tenant))
            else:
                hint = HINT.format(id=research_id)
                sink = sink_for(context.web_address(research_id), hint, quiet=quiet, as_json=as_json)
                result = await follow_run(run.handle, sink, interrupt)
    if result is None:
        print_hint(f"detached; the run continues: research watch {research_id}")
        return ExitCode.COMPLETED
    if events:
        code: int = ExitCode.of(result.outcome, result.stop_reason)
    else:
        resume = f"research resume {research_id}" if result.resumable else ""
        code = await deliver_report(context, result, out, as_json=as_json, quiet=quiet, resume=resume)
    if then:
        command = partial(subprocess.run, shell=True, check=False, umask=user_umask())  # noqa: S604
        await asyncio.to_thread(command, then)  # the person's own command
    return code


async def print_agent_events(handle: ResearchHandle, tenant: str) -> ResearchResult:
    """Print the seven agent events of a run, one per line, until it is over."""
    async for event in handle.agent_events(tenant=tenant):
        print_json(event.model_dump(mode="json"), indent=None)
    return await handle.result()


def sink_for(web_address: str | None, hint: str, *, quiet: bool, as_json: bool) -> Sink:
    """Make the live view on a terminal, plain lines elsewhere, a silent sink for a quiet command."""
    console = SafeConsole(stderr=True, highlight=False, soft_wrap=False)
    if quiet:
        return PlainSink(write=lambda _: None)
    if console.is_terminal and not as_json:
        return TerminalSink(console, web_address, pasteable(hint))
    return PlainSink(write=print_progress)


async def follow_run(
    handle: ResearchHandle,
    sink: Sink,
    interrupt: asyncio.Event,
    recover: Callable[[], Awaitable[None]] | None = None,
    ask: Ask | None = None,
) -> ResearchResult | None:
    """Show a run until it is over; None if `interrupt` detached from it, or a cancelled run did not close in time.

    With `recover`, which restarts the server, the run ends with this command: the interrupt cancels it.
    """

    async def cancel() -> None:
        sink.notice("cancelling: the state is being saved (Ctrl-C again leaves at once)")
        await handle.cancel()

    with sink:
        following = follow(handle, sink, recover=recover, ask=ask)
        return await run_until(interrupt, following, None if recover is None else cancel)


async def run_until(
    interrupt: asyncio.Event, work: Awaitable[T], cancel: Callable[[], Awaitable[None]] | None = None
) -> T | None:
    """Return the result of an awaitable; None if `interrupt` detached from it, or `cancel` did not end it in time."""
    working = asyncio.ensure_future(work)
    interrupted = asyncio.ensure_future(interrupt.wait())
    try:
        await asyncio.wait({working, interrupted}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done() and cancel is not None:
            await cancel()
            await asyncio.wait({working}, timeout=CLOSING_SECONDS)
        if not working.done():
            return None
        return working.result()
    finally:
        working.cancel()
        interrupted.cancel()
        await asyncio.gather(working, interrupted, return_exceptions=True)


@asynccontextmanager
async def first_interrupt() -> AsyncIterator[asyncio.Event]:
    """Yield an event that the first Ctrl-C or SIGTERM sets; the second one ends the process."""
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if interrupted.is_set():
            sys.stderr.write((SHOW_CURSOR if sys.stderr.isatty() else "") + "\n")
            sys.stderr.flush()
            os._exit(ExitCode.CANCELLED)
        interrupted.set()

    for signal_number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signal_number, interrupt)
    try:
        yield interrupted
    finally:
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(signal_number)


@commands.command("status")
async def status(context: CommandContext, run_id: RunId = "last", *, as_json: AsJson = False) -> None:
    """Print the state of a run; without a server or a worker, that of its last checkpoint."""
    run = await context.find(run_id)
    run_status, note = await find_status(context, run)
    is_interrupted = bool(note) and run.open is None and run_status.outcome is None
    if as_json:
        document = run_status.model_dump(mode="json")
        if is_interrupted:
            document["status"] = INTERRUPTED
        if note:
            document["note"] = note
        print_json(document)
        return
    for row in status_rows(run_status, datetime.now(tz=UTC), INTERRUPTED if is_interrupted else ""):
        print_result(row.line())
    if note:
        print_hint(note)


async def find_status(context: CommandContext, run: RunInfo) -> tuple[ResearchStatus, str]:
    """Return the status of a run, and how to continue an unfinished one. Raises `CommandError`, `ClientError`."""
    why = f"the run was interrupted: research resume {run.research_id}"
    if run.open is not None:
        try:
            return await run.open.status(), ""
        except NoWorker as error:
            if run.state is None:
                raise
            why = str(error)
    if run.state is None and (result := await run.result()) is not None:
        return bare_status(result, await run.question() or ""), ""
    state = run.stored_state()
    sessions = await context.stores.sessions.list()
    saved_at = next(session.saved_at for session in sessions if session.research_id == run.research_id)
    from workflows.status import build_status  # noqa: PLC0415  it loads every strategy, and a list needs none

    run_status = build_status(state, datetime.fromisoformat(saved_at).timestamp())
    if state.work.result is not None or context.server_away:
        return run_status, ""
    if state.work.status not in OUTCOMES:
        return run_status, why
    outcome = OUTCOMES[state.work.status]
    ended = run_status.with_fields(outcome=outcome, stop_reason=SESSION_STOP_REASONS[outcome], ended_at=saved_at)
    return ended, resume_hint(run.research_id)


# --- list ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunRow:
    """A line of `list`."""

    research_id: str
    status: str
    when: str
    """Its last start or save, ISO 8601."""
    query: str
    reason: str = ""


@commands.command("list")
async def list_runs(
    context: CommandContext,
    *,
    query: Annotated[str, Option(metavar="TEXT", help="only questions that contain this")] = "",
    limit: Annotated[int, Option(min=1, metavar="N", help="show at most N runs")] = PAGE_RUNS,
    skip: Annotated[int, Option(min=0, metavar="N", help="leave out the N newest")] = 0,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first, also those that the server no longer has, and those that were refused.

    research list --limit 20 --skip 20
    """
    listed = await list_rows(context, query.casefold(), limit, skip)
    if listed.has_more:
        print_hint(_older(listed, query, limit, skip))
    if as_json:
        print_json([asdict(row) for row in listed.rows])
        return
    if not listed.rows:
        print_hint("no run matches" if listed.total else 'there is no run yet: research run "…" --corpus ./folder')
    if unreadable := [row.research_id for row in listed.rows if row.status == UNREADABLE]:
        print_hint(f"unreadable: `research status {unreadable[0]}` says why, and what to do")
    statuses = [row.status.replace("_", " ") for row in listed.rows]
    width = max((len(row.research_id) for row in listed.rows), default=0)
    status_width = max(map(len, statuses), default=0)
    for row, status in zip(listed.rows, statuses, strict=True):
        line = Text(f"{row.research_id:<{width}}  {status:<{status_width}}  {local_time(row.when)}  ")
        line.append(f"{printable(row.reason)}  " if row.reason else "", "yellow").append(printable(row.query))
        print_result(line, cut=True)


def _older(listed: "Listed", query: str, limit: int, skip: int) -> str:
    """Say which runs a page shows, of how many, and how to list older ones."""
    last = skip + len(listed.rows)
    command = "research list"
    total = ""
    if query:
        command += f" --query {shlex.quote(query)}"
    else:
        total = f" of {listed.total:,}" if listed.is_exact else f" of about {listed.total:,}"
    if limit != PAGE_RUNS:
        command += f" --limit {limit}"
    command += f" --skip {last}"
    return f"runs {skip + 1:,} to {last:,}{total}; older ones: {command}"


@dataclass(frozen=True)
class Listed:
    """A page of the list of runs."""

    rows: Sequence[RunRow]
    has_more: bool = False
    """True if there are older ones that match."""
    total: int = 0
    """Number of all runs, whether they match or not."""
    is_exact: bool = True
    """False if the number is an estimate: it counts a run that was resumed for each time."""


async def list_rows(context: CommandContext, text: str, limit: int, skip: int = 0) -> Listed:
    """Return the newest runs whose question contains a text, after the first `skip` of them.

    The places of queued runs are read at once. Where the queue cannot be read, the runs that are shown are asked. For a
    page the server is asked for a page; for a text, for all its runs, up to `MAX_LISTED_RUNS`.
    """
    wanted = skip + limit + 1
    listed = await context.server_runs(MAX_LISTED_RUNS if text else wanted)
    on_server = {run.research_id: run for run in listed.runs}
    places = None
    if any(run.status == RUNNING for run in on_server.values()):
        places = await context.queue_places()
    sessions = await context.sessions()
    elsewhere: set[str] = set()
    if not listed.is_complete:
        unlisted = [each.research_id for each in sessions if not each.closed and each.research_id not in on_server]
        elsewhere = await context.open_among(unlisted)  # they began before those that are listed
    found: list[RunRow | ServerRun] = []
    for session in sessions:
        run = on_server.pop(session.research_id, None)
        status = session.status
        if session.research_id in elsewhere:
            continue
        if not session.closed and run is not None and run.status == RUNNING:
            status = status if status in AWAITING_VALUES else RUNNING
        elif not session.closed:
            status = UNKNOWN if context.server_away else INTERRUPTED
        when = run.started_at if run is not None else session.saved_at
        row = RunRow(session.research_id, status, when, session.query)
        found.append(_in_line(row, places or {}))
    found += on_server.values()
    found.sort(key=lambda each: datetime.fromisoformat(_when(each)), reverse=True)
    shown: list[RunRow] = []
    position = 0
    while len(shown) < wanted and position < len(found):
        batch = found[position : position + wanted - len(shown)]
        position += len(batch)
        rows = await asyncio.gather(*(_row(context, each, text, places) for each in batch))
        shown += [row for row in rows if row is not None]
    total = max(len(found) + len(elsewhere), listed.total)
    return Listed(shown[skip : wanted - 1], len(shown) == wanted, total, listed.is_complete)


def _when(run: RunRow | ServerRun) -> str:
    if isinstance(run, RunRow):
        return run.when
    return run.started_at


def _in_line(row: RunRow, places: Mapping[str, QueueTurn]) -> RunRow:
    """Return the row with the run's place, if it is open and waits for its turn."""
    turn = places.get(row.research_id)
    if turn is None or row.status != RUNNING:
        return row
    return replace(row, status=RunStatus.QUEUED.value, reason=f"place {turn.place} of {turn.waiting}")


async def _row(
    context: CommandContext, run: RunRow | ServerRun, text: str, places: Mapping[str, QueueTurn] | None
) -> RunRow | None:
    """Return the row of a run whose question contains a text; None for another."""
    if isinstance(run, ServerRun):
        return await _unstored_row(context, run, text, places)
    if text not in run.query.casefold():
        return None
    return run


async def _unstored_row(
    context: CommandContext, run: ServerRun, text: str, places: Mapping[str, QueueTurn] | None
) -> RunRow | None:
    """Return the row of a run that is only on the server (queued, just started or refused), if its question fits."""
    fits = text in run.question.casefold()
    is_whole = bool(run.question) and not run.question.endswith("…")  # the memo has the beginning of a long one
    if places is not None and run.status == RUNNING and (fits or is_whole):
        row = RunRow(run.research_id, run.status, run.started_at, run.question)
        return _in_line(row, places) if fits else None
    status = SERVER_STATUSES.get(run.status, run.status)
    reason = ""
    question = run.question
    try:
        handle = (await context.running_client()).handle(run.research_id)
        if text not in question.casefold() or not question:
            question = await handle.question() or question
        if text not in question.casefold():
            return None
        if run.status != RUNNING:
            result = await handle.result()
            status = result.outcome.value
            reason = "; ".join(reasons_of(result))
        else:
            async with asyncio.timeout(LISTING_SECONDS):
                run_status = await handle.status()
            if run_status.queue_place is not None:
                status = RunStatus.QUEUED.value
                reason = f"place {run_status.queue_place} of {run_status.queue_length}"
    except TimeoutError:
        reason = "no worker answers: whether it is queued is unknown"
    except ClientError as error:  # one unreadable run must not hide the others
        reason = str(error)
    return RunRow(run.research_id, status, run.started_at, question, reason)
