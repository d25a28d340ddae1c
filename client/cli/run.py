"""`run`, `start`, `resume` and `refresh`: from a question to the files of its report."""

import asyncio
import logging
import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn

import structlog
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError
from typer import Option

from activities.preparation import merge
from activities.reporting.references import without_markers
from client.cli.context import CommandContext, RunInfo, new_id
from client.cli.corpus import SET_HOME, index_corpus, summary
from client.cli.options import Commands, RunId, RunOptions
from client.cli.output import (
    CommandError,
    ExitCode,
    complain,
    ensure_folder,
    print_bytes,
    print_hint,
    print_json,
    print_progress,
    print_result,
)
from client.cli.preflight import RUN_MARK, RequestedRun, build_request, parse_assignments, preflight, read_request
from client.cli.reports import default_folder, deliver_report
from client.cli.talk import asker
from client.cli.watch import SHOW_CURSOR, first_interrupt, follow_run, sink_for
from client.client_errors import PreviewRefused
from client.handle import CLOSING_SECONDS, ResearchClient, ResearchHandle
from client.run_results import refusal_of
from client.view.console import TerminalSink
from client.view.words import printable
from contracts.addresses import normalized_text
from contracts.evidence import ReportDraft
from contracts.names import POOLS, RESEARCH_NOTICE, WORKFLOWS_QUEUE
from contracts.outcome import ResearchResult
from contracts.request import ResearchRequest
from contracts.strategies import declaration
from contracts.vocabulary import Outcome, StopReason
from workers.dev_server import describe_server
from workers.own_process import exit_process, files_of_user
from workers.settings.loading import Settings
from workers.stalls import End, end_if_stalled
from workers.telemetry import configure_logging

if TYPE_CHECKING:
    from workers.pools import PoolGroup

HINT: Final = '{key} · report now: research stop {id} · research steer {id} "…"'
GRACE: Final = timedelta(seconds=2)
"""Short, because the command's own run is over by then; work cut off for other runs is done again."""
PATIENCE: Final = timedelta(minutes=3)
"""For calls to a model that other runs have under way, as their answers are paid for."""
UNDER_WAY: Final = (
    "calls to a model are under way for other runs: waiting up to 3 minutes for their answers, which are paid for "
    "(Ctrl-C leaves at once)"
)
LOG_BYTES: Final = 5_000_000
NOTICE_WAIT_SECONDS: Final = 3.0
NOTICE_POLL_SECONDS: Final = 0.1
INTERVAL: Final = re.compile(r"(\d{1,4})([mhd])")
UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
MIN_INTERVAL = timedelta(minutes=10)
MAX_INTERVAL = timedelta(days=366)

commands = Commands()
logger = structlog.get_logger("workers")


@commands.command("run")
async def run(context: CommandContext, options: RunOptions) -> int:
    """Start a run, show it live, write the report.

    Starts the dev server and workers if none are running, and updates the index of the folder. Press Ctrl-C once to
    cancel (the state is saved), twice to leave at once. On a cluster Ctrl-C only detaches.

    research run "How does vacuum work?" --corpus ./manual
    research run "Which heat pumps are quiet?" --web --exclude example.com --exclude "gas boilers"
    research run "…" --corpus ./manual --set limits.max_iterations=2 --set limits.deadline_seconds=120
    research run "…" --corpus ./manual --protect care/cleaning.md --protect https://example.org/faq
    echo "How does vacuum work?" | research run --corpus ./manual
    research run --request request.json --json > result.json        (or --request - < request.json)

    With --id it joins a running run, resumes an unfinished one, and prints the stored report of a finished one. Another
    question under the same id is refused.
    """
    return await _begin(context, options)


def follow_up_options(options: RunOptions, question: str, earlier_run: RunInfo) -> RunOptions:
    """Return the options of a follow-up question. Raises `CommandError` if the earlier run has no session."""
    resolved = earlier_run.stored_resolution()
    private = [] if options.web else resolved.private_providers
    confined = [f"search.providers={','.join(private)}"] if private else []  # its question must not reach the web
    return replace(
        options,
        question=question,
        strategy=options.strategy or resolved.strategy,
        corpus=options.corpus or (resolved.corpus.name if resolved.corpus is not None else None),
        web=options.web or resolved.web,
        assignments=[*confined, *(options.assignments or ()), f"follow_up_of={earlier_run.research_id}"],
    )


@commands.command("start", without=("out",))
async def start(context: CommandContext, options: RunOptions) -> int:
    """Start a run on a running server with workers (`research serve`) and print its id at once.

    --id works as for `research run`.

    research start "How does vacuum work?" --corpus manual
    """
    return await _begin(context, options, follow=False)


SETTLED_OPTIONS: Final = (
    *("question", "corpus", "web", "exclude", "protect", "strategy", "depth", "engine", "request_file", "research_id"),
    *("clarify", "approve", "dry_run"),
)
"""Options that the stored run has already settled."""


@commands.command("resume", without=SETTLED_OPTIONS)
async def resume(
    context: CommandContext,
    options: RunOptions,
    run_id: RunId = "last",
    *,
    now: Annotated[bool, Option("--now", help="search no further, write the report from the findings")] = False,
    detach: Annotated[bool, Option("--detach", help="print its id at once; a running server does the work")] = False,
    version: Annotated[
        Literal["new"] | None, Option(metavar="new", help="go on with the current code from the last checkpoint")
    ] = None,
) -> int:
    """Continue a run that was cancelled, failed, timed out or is partial, with its findings.

    With --version new also one that is still open, but whose workers ended with the version of the code that began it:
    it goes on under its id, and calls that were answered are not paid again.

    research resume last
    research resume 7k3f --set limits.max_iterations=5 --set limits.deadline_seconds=1800
    research resume last --now             write the report from the findings so far
    research resume 7k3f --detach          as `start` does: follow it with `research watch 7k3f`
    research resume 7k3f --version new     after an upgrade, where no worker serves the run any more
    """
    run = await context.find(run_id)
    if version is not None and run.open is not None:
        run = await end_execution(context, run)
    if not run.running:
        require_resumable(run, await run.result(), changed=bool(options.assignments or options.model))
    requested = await request_again(run, options)
    command = RunCommand(context, requested, run, options)
    if detach:
        return await command.start(report_now=now)
    return await command.execute(report_now=now)


async def end_execution(context: CommandContext, run: RunInfo) -> RunInfo:
    """End a run on the server at once, without its workers, and return it as its last checkpoint has it.

    Raises `CommandError` for a run without a checkpoint, which nothing could go on from.
    """
    run.stored_resolution()
    handle = run.open
    assert handle is not None
    await handle.terminate()
    end = time.monotonic() + CLOSING_SECONDS
    while time.monotonic() < end:
        if not await handle.is_running():
            break
        await asyncio.sleep(NOTICE_POLL_SECONDS)
    return await context.load_run(run.research_id)


@commands.command("refresh", without=SETTLED_OPTIONS)
async def refresh(
    context: CommandContext,
    options: RunOptions,
    run_id: RunId = "last",
    *,
    every: Annotated[
        str | None, Option(metavar="1d|12h|30m|off", help="refresh this often on the server; off stops it")
    ] = None,
) -> int:
    """Read every source of a finished run of the strategy living again, and update its report where a text differs.

    The run continues under its own id. A source whose text is the same costs no call. report.json names in `changes`
    the claims and sources that differ.

    research refresh last
    research refresh 7k3f --every 1d       from now on once a day, by the running server and its workers
    research refresh 7k3f --every off
    """
    interval = None
    if every not in (None, "off"):
        interval = read_interval(str(every))
    run = await context.find(run_id)
    research_id = run.research_id
    if every == "off":
        if not await (await context.running_client()).unschedule_refresh(research_id):
            raise CommandError(f"{research_id} has no refresh schedule: there is nothing to end")
        print_result(f"{research_id} is no longer refreshed on a schedule")
        return ExitCode.COMPLETED
    require_refreshable(run, scheduled=interval is not None)
    requested = await request_again(run, options, refresh=True, continue_from=research_id)
    if interval is None:
        return await RunCommand(context, requested, run, options).execute()
    client = await context.running_client()
    has_workers = bool(await client.polled_by(WORKFLOWS_QUEUE))
    if has_workers:
        await preview_refreshes(client, requested.request, run, quiet=options.quiet or options.as_json)
    await client.schedule_refresh(requested.request, research_id, interval)
    if options.as_json:
        print_json({"research_id": research_id, "every_seconds": round(interval.total_seconds())})
        return ExitCode.COMPLETED
    print_result(f"{research_id} is refreshed every {every}")
    print_hint(f"end that: research refresh {research_id} --every off")
    if not has_workers:
        print_hint("no worker is running, so no refresh is made: start one with `research serve`")
    return ExitCode.COMPLETED


async def preview_refreshes(client: ResearchClient, request: ResearchRequest, run: RunInfo, *, quiet: bool) -> None:
    """Print what the operator allows each refresh of a schedule.

    Raises `PreviewRefused` for a request that would be refused each time; money that is spent returns the next day.
    """
    try:
        resolved = await client.preview(request, run.research_id)
    except PreviewRefused as refusal:
        if refusal.stop_reason != StopReason.BUDGET_COST:
            raise
        print_hint(f"a refresh now would be refused: {refusal}")
        return
    if not quiet:
        for line in resolved.ceiling_lines:
            print_progress(printable(line))


def read_interval(text: str) -> timedelta:
    """Parse the time between two refreshes. Raises `CommandError`."""
    match = INTERVAL.fullmatch(text)
    interval = int(match[1]) * UNITS[match[2]] if match else timedelta()
    if not MIN_INTERVAL <= interval <= MAX_INTERVAL:
        raise CommandError("--every takes a time from 10m to 366d, as 30m, 12h or 1d, or off")
    return interval


def require_refreshable(run: RunInfo, *, scheduled: bool) -> None:
    """Raise `CommandError` for a run that cannot be refreshed, now or (`scheduled`) periodically."""
    if run.running and not scheduled:
        raise CommandError(f"the run {run.research_id} is still running: see `research watch {run.research_id}`")
    if not declaration(run.stored_resolution().strategy).live_report:
        raise CommandError(
            f"{run.research_id} cannot be refreshed: only runs of the strategy living can; start a new run instead"
        )
    state = run.stored_state()
    is_refreshing = run.running or (state.work.refresh is not None and state.work.ending is None)
    if not is_refreshing and (state.work.result is None or state.work.result.files is None):
        raise CommandError(f"the run {run.research_id} has no finished report yet: `research resume {run.research_id}`")


# --- starting, joining, resuming -----------------------------------------------------------------------------------


async def _begin(context: CommandContext, options: RunOptions, *, follow: bool = True) -> int:
    """Start, join or resume the run of the options, and `follow` it to its report."""
    requested = await read_request(context, options)
    run = RunInfo(new_id())
    if options.research_id is not None:
        run = await context.load_run(options.research_id)
    await check_request(run, requested.request)
    command = RunCommand(context, requested, run, options)
    stored_result = run.state and run.state.work.result
    if stored_result and stored_result.outcome is Outcome.COMPLETED and not options.dry_run:
        return await command.print_stored(stored_result)
    if follow:
        return await command.execute()
    return await command.start()


async def check_request(run: RunInfo, request: ResearchRequest) -> None:
    """Raise `CommandError` if the id of a request belongs to a different question."""
    question = await run.question()
    if question is not None and normalized_text(request.query) != normalized_text(question):
        raise CommandError(f"the id {run.research_id} belongs to another question: leave --id out for a new run")


def require_resumable(run: RunInfo, result: ResearchResult | None, *, changed: bool = False) -> None:
    """Raise `CommandError` for a run that cannot be resumed; `result` is its result.

    A partial or empty run that finished its work continues only with `changed` limits or another model.
    """
    if result is not None and result.outcome is Outcome.REFUSED and not result.resumable:
        raise CommandError(refusal_of(result), ExitCode.of(result.outcome, result.stop_reason))
    run.stored_resolution()
    if result is None or result.resumable or (changed and result.outcome in (Outcome.PARTIAL, Outcome.EMPTY)):
        return
    advice = "" if result.outcome is Outcome.COMPLETED else ", or give it higher limits with --set"
    raise CommandError(
        f"the run {run.research_id} is {result.outcome.value} and has nothing left to do: "
        f"see `research report {run.research_id}`{advice}"
    )


async def request_again(run: RunInfo, options: RunOptions, **overrides: Any) -> RequestedRun:
    """Build the request that continues a run: its question, another model, `--set`. Raises `CommandError`."""
    stored = run.resolved
    values = options.values()
    base = {"query": await run.question(), **overrides}
    if stored is not None:
        base |= {"strategy": stored.strategy, "tenant": stored.tenant, "priority": stored.priority}
        values = {} if set(stored.models.values()) == {options.model} else values
    return RequestedRun(build_request(reduce(merge, (base, values, parse_assignments(options.assignments)))))


# --- the work ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunCommand:
    """Execution of a command for one run, from the first printed lines to the files of its report."""

    context: CommandContext
    requested: RequestedRun
    run: RunInfo
    options: RunOptions
    talks: bool = False
    """Whether it is one question of a conversation: the whole answer is printed, and shown as it is written."""

    async def execute(self, *, report_now: bool = False) -> int:
        """Start the run, show it until it is over or detached from, write its report; return the exit code."""
        context = self.context
        options = self.options
        home = self.context.settings.home
        others = await preflight(context, self.requested, options, self.run)
        if options.dry_run:
            return ExitCode.COMPLETED
        ensure_folder(home, SET_HOME)
        if options.out is not None:
            with files_of_user():
                ensure_folder(options.out, "choose another --out")
        await self._update_index()
        if not options.quiet and not context.settings.uses_cluster and describe_server(home) is None:
            print_progress("starting the server")
        client = await context.connect()
        end = partial(self._try_again, report_now=report_now)
        leaving = Leaving(quiet=options.quiet)
        async with nullcontext() if others else _local_workers(context, client, end, leaving):
            result = await self._follow(client, report_now=report_now)
            if not others and context.settings.notify.url is not None:
                await let_notices_leave(client, self.run.research_id)
            leaving.code = self._detach() if result is None else await self._write_report(result)
        return leaving.code

    async def start(self, *, report_now: bool = False) -> int:
        """Start the run on the running server and print its id; with `report_now` it writes its report at once."""
        options = self.options
        research_id = self.run.research_id
        await preflight(self.context, self.requested, options, self.run, works=False)
        if options.dry_run:
            return ExitCode.COMPLETED
        client = await self.context.running_client()
        await self._update_index()
        handle, how = await self._start(client)
        if report_now:
            await handle.stop_and_report()
        if options.as_json:
            print_json({"research_id": research_id, "how": how})
        else:
            print_result(research_id)
            if not options.quiet:
                print_hint(f"{how} · research watch {research_id}")
        if not await client.polled_by(WORKFLOWS_QUEUE):
            print_hint("no worker is running, so the run waits: start one with `research serve`")
        return ExitCode.COMPLETED

    async def print_stored(self, result: ResearchResult) -> int:
        """Print and write the stored report of a completed run, without starting it."""
        documents = await self.context.report_documents(result)
        if "md" in documents and not self.options.as_json and not self.options.quiet:
            print_bytes(documents["md"] + b"\n")
        return await self._write_report(result)

    async def _start(self, client: ResearchClient) -> tuple[ResearchHandle, str]:
        """Start, join or resume the run; return its handle and which it was. Raises `CommandError`."""
        request = self.requested.request
        research_id = self.run.research_id
        if self.run.resolved is None:
            handle = await client.start(request, research_id, reuse=True)
            how = "started"
        else:
            handle = await client.resume(request, research_id)
            how = "resumed"
        if handle.attached:
            await check_request(replace(self.run, handle=handle), request)
        return handle, "joined" if handle.attached else how

    async def _update_index(self) -> None:
        """Register the folder of the run and update its index; a cluster's workers do that themselves."""
        name = self.requested.request.corpus
        quiet = self.options.quiet
        if name is not None and not self.context.settings.uses_cluster:
            snapshot = await index_corpus(self.context, name, self.requested.folder, quiet=quiet)
            if not quiet:
                print_hint(f"corpus {name}: {summary(snapshot)}")

    async def _follow(self, client: ResearchClient, *, report_now: bool) -> ResearchResult | None:
        """Start the run and show it until it is over; None after Ctrl-C."""
        context = self.context
        options = self.options
        cluster = self.context.settings.uses_cluster
        research_id = self.run.research_id
        async with first_interrupt() as interrupt:
            handle, how = await self._start(client)
            if not options.quiet:
                print_progress(f"{research_id} {how}")
            if how == "joined" and options.assignments:
                print_progress("--set is ignored when joining a run: its limits stay")
            if report_now:
                await handle.stop_and_report()
            key = "Ctrl-C detaches" if cluster else "Ctrl-C cancels, the state is saved"
            hint = HINT.format(key=key, id=research_id)
            address = context.web_address(research_id)
            sink = sink_for(address, hint, quiet=options.quiet, as_json=options.as_json)
            if self.talks and isinstance(sink, TerminalSink):
                sink.read_draft = partial(self._read_draft, handle)
            ask = asker(handle, quiet=options.quiet or options.as_json)
            return await follow_run(handle, sink, interrupt, None if cluster else context.recover, ask)

    async def _read_draft(self, handle: ResearchHandle) -> str:
        """Return the text of the report so far; empty before there is one."""
        report = await handle.report()
        if not isinstance(report, ReportDraft):
            return ""
        if self.context.settings.uses_cluster:
            text = await handle.document("draft.md", tenant=self.requested.request.tenant)
        else:
            text = await self.context.stores.content.get_text(report.document)
        return without_markers(text)

    def _try_again(self, what: str, *, report_now: bool) -> NoReturn:
        """Run the command once more in this process's place, under the run's id; the second time end with code 1.

        `what` is a clause that says how the worker of this command ended.
        """
        research_id = self.run.research_id
        if sys.stderr.isatty():
            sys.stderr.write(SHOW_CURSOR + "\n")
        if self.options.again:
            log = f"report the end of {log_path(self.context.settings)}"
            complain(f"the worker of this run ended again: {what}: {log}, then {self._resume_command}")
            exit_process(ExitCode.INTERNAL)
        complain(f"the worker of this run ended: {what}: trying once more")
        command = ["resume", research_id, "--now"] if report_now else ["run", "--id", research_id]
        with tempfile.TemporaryFile() as file:
            if not report_now:
                file.write(self.requested.request.model_dump_json(exclude_unset=True).encode())
                file.seek(0)
                os.set_inheritable(file.fileno(), True)
                command += ["--request", f"/dev/fd/{file.fileno()}"]
            # -P: a folder `client` of the working directory is not imported.
            again = [sys.executable, "-P", "-m", str(__package__), *command, "--again", *self._repeated_flags()]
            os.execv(sys.executable, again)  # noqa: S606  no shell: this command itself

    def _repeated_flags(self) -> list[str]:
        """Return the options that are no part of the request."""
        options = self.options
        named: dict[str, str | Path | None] = {"--model": options.model, "--model-url": options.model_url}
        named |= {"--config": options.config, "--out": options.out}
        flags = [word for flag, value in named.items() if value is not None for word in (flag, str(value))]
        return flags + ["--json"] * options.as_json + ["--quiet"] * options.quiet

    @property
    def _resume_command(self) -> str:
        """The command that continues the run with its model; an address with a password is replaced by URL."""
        url = self.options.model_url
        flags = {"--model": self.options.model, "--model-url": "URL" if url is not None and "@" in url else url}
        named = "".join(f" {flag} {shlex.quote(value)}" for flag, value in flags.items() if value is not None)
        return f"research resume {self.run.research_id}{named}"

    def _detach(self) -> int:
        """Print how to continue, after Ctrl-C."""
        if self.context.settings.uses_cluster:
            research_id = self.run.research_id
            print_hint(f"detached; the run continues: research watch {research_id} · research cancel {research_id}")
            return ExitCode.COMPLETED
        saved = "the run did not close in time; its state is saved"
        print_hint(f"{saved}: {self._resume_command} · report now: {self._resume_command} --now")
        return ExitCode.CANCELLED

    async def _write_report(self, result: ResearchResult) -> int:
        """Write the files of the report, print its summary; return the exit code."""
        options = self.options
        research_id = self.run.research_id
        folder = options.out or default_folder(self.requested.request.query, research_id)
        resumable = result.resumable and (await self.context.load_run(research_id)).state is not None
        resume = self._resume_command if resumable else ""
        return await deliver_report(
            self.context,
            result,
            folder,
            as_json=options.as_json,
            quiet=options.quiet,
            resume=resume,
            whole=self.talks,
        )


async def let_notices_leave(client: ResearchClient, research_id: str) -> None:
    """Wait a moment until the notices of an ended run are delivered, because its workers end with this command."""
    query = f'WorkflowType="{RESEARCH_NOTICE}" AND WorkflowId STARTS_WITH "{research_id}/"'
    end = time.monotonic() + NOTICE_WAIT_SECONDS
    while time.monotonic() < end:
        notices: list[WorkflowExecutionStatus | None] = []
        with suppress(RPCError):  # the server is restarting
            notices = [notice.status async for notice in client.temporal.list_workflows(query)]
        if notices and WorkflowExecutionStatus.RUNNING not in notices:
            return
        await asyncio.sleep(NOTICE_POLL_SECONDS)
    print_hint("the notice of this run was not delivered yet: `research serve`, or the next run, tries it again")


def log_path(settings: Settings) -> Path:
    """Return the log of commands that run their own workers."""
    return settings.home / "logs" / "research.log"


@dataclass
class Leaving:
    """The end of a command whose own run is over, while calls of other runs may be under way in its process."""

    quiet: bool = False
    code: int = ExitCode.CANCELLED
    """The exit code of the command, also if a person does not wait."""
    grace: timedelta = GRACE

    async def drain(self, group: "PoolGroup", exits: Callable[[int], NoReturn] = exit_process) -> None:
        """Stop the pools; until they have ended, Ctrl-C or SIGTERM calls `exits` with the code."""
        stopping = asyncio.create_task(group.stop())
        async with first_interrupt() as interrupt:
            interrupted = asyncio.create_task(interrupt.wait())
            both = {stopping, interrupted}
            await asyncio.wait(both, timeout=2 * self.grace.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
            if "models" in group.running() and not self.quiet and not interrupt.is_set():
                print_progress(UNDER_WAY)
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            interrupted.cancel()
            if not stopping.done():
                exits(self.code)
        await stopping


@asynccontextmanager
async def _local_workers(
    context: CommandContext, client: ResearchClient, end: End, leaving: Leaving
) -> AsyncIterator[None]:
    """Run all pools in this process, logging to a file because the terminal shows the run.

    `end` ends the process if its event loop stalls or one of the pools ends.
    """
    # They cost half a second, and most commands of this file do no work themselves.
    from workers.composition import compose  # noqa: PLC0415
    from workers.pools import run_pools  # noqa: PLC0415

    settings = context.settings
    pools = tuple(POOLS)
    drain = dict.fromkeys(pools, GRACE) | {"models": PATIENCE}
    path = log_path(settings)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("a", encoding="utf-8") as log:
        if log.tell() > LOG_BYTES:
            log.truncate(0)
        configure_logging("json", logging.INFO, secrets=settings.secrets(), stream=log)
        async with (
            compose(settings, client.temporal, pools, takes_over=True) as contents,
            end_if_stalled(log, end=end),
            run_pools(client.temporal, replace(contents, mark=contents.mark + RUN_MARK), pools, drain=drain) as group,
        ):
            watching = asyncio.create_task(group.failure())
            watching.add_done_callback(partial(_end_with_pool, end))
            try:
                yield
            finally:
                watching.cancel()
                await leaving.drain(group)


def _end_with_pool(end: End, watching: asyncio.Task[None]) -> None:
    """Call `end` for a pool that ended on its own."""
    if not watching.cancelled():
        error = watching.exception()
        logger.error("worker.ended", exc_info=error)
        end("a pool stopped" if error is None else f"a pool failed ({type(error).__name__})")
