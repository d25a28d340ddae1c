"""`run`, `ask`, `start` and `resume`: from a question to the files of its report."""

import logging
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, Any, Final

import typer

from client.cli import options as option
from client.cli.context import CommandContext, RunInfo, check_id, new_id
from client.cli.corpus import SET_HOME, ensure_folder, index_corpus, summary
from client.cli.errors import CommandError, ExitCode, exit_code
from client.cli.options import RunOptions
from client.cli.output import print_bytes, print_hint, print_json, print_progress, print_result
from client.cli.preflight import OF_RUN, preflight
from client.cli.reports import default_folder, deliver_report
from client.cli.request import RequestedRun, build_request, merge, parse_assignments, read_request
from client.cli.talk import asker
from client.cli.watch import first_interrupt, follow_run, sink_for
from client.handle import ResearchClient, ResearchHandle
from client.run_results import refusal_of
from client.view.rendering import Frame
from contracts.addresses import normalized_text
from contracts.names import POOLS, WORKFLOWS_QUEUE
from contracts.outcome import ResearchResult
from contracts.request import ResearchRequest
from contracts.resolved import ResolvedResearch
from contracts.vocabulary import Outcome
from workers.composition import compose
from workers.dev_server import describe_server
from workers.own_process import files_of_person
from workers.pools import run_pools
from workers.process import end_if_stalled
from workers.telemetry import configure_logging

HINT: Final = '{key} · report now: research stop {id} · research steer {id} "…"'
GRACE: Final = timedelta(seconds=2)
"""The run of a command that ends is over: only calls of other runs could go on, which their retries repeat."""
LOG_BYTES: Final = 5_000_000

commands = option.Commands()


# --- the commands --------------------------------------------------------------------------------------------------


@commands.command("run")
async def run(context: CommandContext, options: RunOptions) -> int:
    """Start a run, show it live, write the report.

    Starts missing parts: the dev server, the index of the folder, the workers. Press Ctrl-C once to cancel
    (the state is saved), twice to leave at once. Against a cluster Ctrl-C only detaches.

    research run "How does vacuum work?" --corpus ./manual
    research run "Compare A and B" --corpus ./papers --depth extended --out ./result
    research run "Which heat pumps are quiet?" --web --exclude example.com --exclude "gas boilers"
    research run "…" --corpus ./manual --set limits.max_iterations=2 --set limits.deadline_seconds=120
    research run "How is it cleaned?" --corpus ./manual --protect care/cleaning.md --protect https://example.org/faq
    echo "How does vacuum work?" | research run --corpus ./manual
    research run --request request.json --json > result.json        (or --request - < request.json)

    With --id: a running one is joined, an unfinished one is resumed, of a finished one the stored report is printed;
    another question under the same id is refused.
    """
    return await _run(context, options)


@commands.command("ask", without=("question", "request_file", "research_id"))
async def ask(
    context: CommandContext,
    earlier: Annotated[str, typer.Argument(metavar="ID", help="the run that the question follows, or `last`")],
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="what you want to know")],
    options: RunOptions,
) -> int:
    """Ask a follow-up question: a new run that is offered the evidence of an earlier one first.

    Strategy and corpus are those of the earlier run unless others are named.

    research ask last "And what does it cost?"
    research ask 7k3f "How is it in version 16?" --depth light
    """
    return await _run(context, follow_up_options(options, question, await context.find(earlier)))


def follow_up_options(options: RunOptions, question: str, before: RunInfo) -> RunOptions:
    """Give the options of a question that follows an earlier run. Raises `CommandError` if nothing is stored of it."""
    resolved = before.resolved
    if resolved is None:
        raise CommandError(f"nothing is stored of the run {before.research_id}: choose another one of `research list`")
    return replace(
        options,
        question=question,
        strategy=options.strategy or resolved.strategy,
        corpus=options.corpus or (resolved.corpus.name if resolved.corpus is not None else None),
        web=options.web or resolved.web,
        assignments=[*options.assignments, f"follow_up_of={before.research_id}"],
    )


@commands.command("start", without=("out",))
async def start(context: CommandContext, options: RunOptions) -> int:
    """Start a run on a running server with workers (`research serve`) and print its id at once.

    research start "How does vacuum work?" --corpus manual
    research watch last --out ./result

    The workers are asked first where text goes and what the run may cost. With --id: a running one is joined, an
    unfinished one is resumed, of a completed one the stored report is printed.
    """
    return await _run(context, options, follow=False)


NOT_OF_RESUME: Final = (
    *("question", "corpus", "web", "exclude", "protect", "strategy", "depth", "engine", "request_file", "research_id"),
    *("clarify", "approve", "dry_run"),
)
"""Options that a stored run has settled."""


@commands.command("resume", without=NOT_OF_RESUME)
async def resume(
    context: CommandContext,
    options: RunOptions,
    given: option.RunId = "last",
    *,
    now: Annotated[bool, typer.Option("--now", help="search no further: write the report from what is there")] = False,
) -> int:
    """Continue a run that was cancelled, failed, timed out or is partial; its findings are used.

    research resume last
    research resume 7k3f --set limits.max_iterations=5 --set limits.deadline_seconds=1800
    research resume last --now             write the report from what is there
    """
    known = await context.find(given)
    if not known.running:
        require_resumable(known, await known.result(), changed=bool(options.assignments or options.model))
    again = {"query": await known.question()} if known.resolved is None else request_again(known.resolved, options)
    wanted = RequestedRun(build_request(merge(again, parse_assignments(options.assignments))))
    others = await preflight(context, wanted, options, known)
    command = RunCommand(context, wanted, known.research_id, options, others=others, report_now=now)
    return await command.execute()


async def _run(context: CommandContext, options: RunOptions, *, follow: bool = True) -> int:
    """Start, join or resume a run, and `follow` it to its report."""
    wanted = await read_request(context, options)
    known = RunInfo(new_id())
    if options.research_id is not None:
        known = await context.load_run(check_id(options.research_id))
    await check_request(known, wanted.request)
    done = None if known.state is None else known.state.result
    if done is not None and done.outcome is Outcome.COMPLETED and not options.dry_run:
        return await RunCommand(context, wanted, known.research_id, options).print_stored(done)
    others = await preflight(context, wanted, options, known, works=follow)
    command = RunCommand(context, wanted, known.research_id, options, others=others)
    if options.dry_run:
        return ExitCode.COMPLETED
    return await (command.execute() if follow else command.start())


# --- a run before the command works for it -------------------------------------------------------------------------


async def check_request(run: RunInfo, request: ResearchRequest) -> None:
    """Raise `CommandError` where the id of a request belongs to another question."""
    question = await run.question()
    if question is not None and normalized_text(request.query) != normalized_text(question):
        raise CommandError(f"the id {run.research_id} belongs to another question: leave --id out for a new run")


def require_resumable(run: RunInfo, closed: ResearchResult | None, *, changed: bool = False) -> None:
    """Raise `CommandError` for a run that cannot be resumed; `closed` is its result.

    A partial or empty run with nothing left to do goes on only with `changed` limits or another model.
    """
    if closed is not None and closed.outcome is Outcome.REFUSED and not closed.resumable:
        raise CommandError(refusal_of(closed), exit_code(closed.outcome, closed.stop_reason))
    if run.resolved is None:
        raise CommandError(f"nothing is stored of the run {run.research_id}, so it cannot be resumed: start a new run")
    may_go_on = closed is None or closed.resumable or (changed and closed.outcome in (Outcome.PARTIAL, Outcome.EMPTY))
    if closed is not None and not may_go_on:
        more = "" if closed.outcome is Outcome.COMPLETED else ", or give it higher limits with --set"
        raise CommandError(
            f"the run {run.research_id} is {closed.outcome.value} and has nothing left to do: "
            f"see `research report {run.research_id}`{more}"
        )


def request_again(resolved: ResolvedResearch, options: RunOptions) -> dict[str, Any]:
    """Give the request of a resumed run: the same question, with another model if one is named."""
    again = {name: getattr(resolved, name) for name in ("query", "strategy", "tenant", "priority")}
    return again if set(resolved.models.values()) == {options.model} else merge(again, options.values())


# --- the work ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunCommand:
    """The work of a command for one run, from its start to the files of its report."""

    context: CommandContext
    wanted: RequestedRun
    research_id: str
    options: RunOptions
    others: bool = False
    """Whether workers of other commands do the work."""
    report_now: bool = False

    async def execute(self) -> int:
        """Start the run, show it until it is over or detached from, write its report; the exit code."""
        context, settings, quiet = self.context, self.context.settings, self.options.quiet
        ensure_folder(settings.home, SET_HOME)
        if self.options.out is not None:
            with files_of_person():
                ensure_folder(self.options.out, "choose another --out")
        await self._update_index()
        if not quiet and not settings.uses_cluster and describe_server(settings.home) is None:
            print_progress("starting the server")
        result = await self._follow(await context.ensured_client())
        return self._detach() if result is None else await self._write_report(result)

    async def start(self) -> int:
        """Start the run on the running server and print its id."""
        client = await self.context.running_client()
        await self._update_index()
        _, how = await start_run(self.context, client, self.wanted.request, self.research_id)
        if self.options.as_json:
            print_json({"research_id": self.research_id, "how": how})
        else:
            print_result(self.research_id)
            if not self.options.quiet:
                print_hint(f"{how} · research watch {self.research_id}")
        if not await client.polled_by(WORKFLOWS_QUEUE):
            print_hint("no worker is running, so the run waits: start one with `research serve`")
        return ExitCode.COMPLETED

    async def print_stored(self, result: ResearchResult) -> int:
        """Print and write the stored report of a completed run, without starting it."""
        documents = await self.context.report_documents(result)
        if "md" in documents and not self.options.as_json and not self.options.quiet:
            print_bytes(documents["md"] + b"\n")
        return await self._write_report(result)

    @property
    def _resume(self) -> str:
        """The command that continues the run, with its model; an address with a password is replaced by URL."""
        url = self.options.model_url
        flags = {"--model": self.options.model, "--model-url": "URL" if url is not None and "@" in url else url}
        named = "".join(f" {flag} {shlex.quote(value)}" for flag, value in flags.items() if value is not None)
        return f"research resume {self.research_id}{named}"

    async def _update_index(self) -> None:
        """Register the folder of the run and update its index; a cluster's workers do that themselves."""
        name, quiet = self.wanted.request.corpus, self.options.quiet
        if name is None or self.context.settings.uses_cluster:
            return
        snapshot = await index_corpus(self.context, name, self.wanted.folder, quiet=quiet)
        if not quiet:
            print_hint(f"corpus {name}: {summary(snapshot)}")

    async def _follow(self, client: ResearchClient) -> ResearchResult | None:
        """Work for the run and show it until it is over; None after Ctrl-C."""
        context, options, cluster = self.context, self.options, self.context.settings.uses_cluster
        workers = nullcontext() if self.others else _local_workers(context, client)
        async with workers, first_interrupt() as interrupt:
            handle, how = await start_run(context, client, self.wanted.request, self.research_id)
            if not options.quiet:
                print_progress(f"{self.research_id} {how}")
            if how == "joined" and options.assignments:
                print_progress("--set is ignored when joining a run: its limits stay")
            if self.report_now:
                await handle.stop_and_report()
            key = "Ctrl-C detaches" if cluster else "Ctrl-C cancels, the state is saved"
            hint = HINT.format(key=key, id=self.research_id)
            frame = Frame(context.web_address(self.research_id), hint=hint)
            sink = sink_for(frame, quiet=options.quiet, as_json=options.as_json)
            ask = asker(handle, quiet=options.quiet or options.as_json)
            recover = None if cluster else context.recover
            return await follow_run(handle, sink, interrupt, recover=recover, detach=cluster, ask=ask)

    def _detach(self) -> int:
        """Print how to continue, after Ctrl-C."""
        if self.context.settings.uses_cluster:
            research_id = self.research_id
            print_hint(f"detached; the run continues: research watch {research_id} · research cancel {research_id}")
            return ExitCode.COMPLETED
        print_hint(
            f"the run did not close in time; its state is saved: {self._resume} "
            f"· report from what is there: {self._resume} --now"
        )
        return ExitCode.CANCELLED

    async def _write_report(self, result: ResearchResult) -> int:
        """Write the files of the report, print its summary; the exit code."""
        options, context = self.options, self.context
        folder = options.out or default_folder(self.wanted.request.query, self.research_id)
        resumable = result.resumable and (await context.load_run(self.research_id)).state is not None
        resume = self._resume if resumable else ""
        return await deliver_report(
            context, result, folder, as_json=options.as_json, quiet=options.quiet, resume=resume
        )


async def start_run(
    context: CommandContext, client: ResearchClient, request: ResearchRequest, research_id: str
) -> tuple[ResearchHandle, str]:
    """Start, join or resume the run of this id; return which. Raises `CommandError` for another question."""
    known = await context.load_run(research_id)
    await check_request(known, request)
    if known.running:
        return client.handle(research_id), "joined"
    if known.resolved is None:
        return await client.start(request, research_id, reuse=True), "started"
    return await client.resume(request, research_id), "resumed"


@asynccontextmanager
async def _local_workers(context: CommandContext, client: ResearchClient) -> AsyncIterator[None]:
    """Run all pools in this process; they log to a file, because the terminal shows the run."""
    settings, pools = context.settings, tuple(POOLS)
    path = settings.home / "logs" / "research.log"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("a", encoding="utf-8") as log:
        if log.tell() > LOG_BYTES:
            log.truncate(0)
        configure_logging("json", logging.INFO, secrets=settings.secrets(), stream=log)
        async with (
            end_if_stalled(log),
            compose(settings, client.temporal, pools) as contents,
            run_pools(client.temporal, replace(contents, mark=contents.mark + OF_RUN), pools, grace=GRACE),
        ):
            yield
