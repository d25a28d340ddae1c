"""Following a run from a terminal, with Ctrl-C meaning what the command wants it to mean."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from rich.text import Text

from client.cli import output
from client.cli.command_context import open_context
from client.cli.command_errors import CommandError, ExitCode, exit_code
from client.cli.report_files import remembered_folder, write_all
from client.handle import ResearchHandle
from client.run_results import shortcomings_of
from client.view.console import Ask, PlainSink, QuietSink, Sink, TerminalSink, follow
from client.view.rendering import Frame, render_ending
from contracts.outcome import ResearchResult
from workers.private_files import umask_of_person

CLOSING_SECONDS = 15.0
KEEPS = 'Ctrl-C leaves the run going · research stop last (report now) · research steer last "…"'


def sink_for(frame: Frame, *, quiet: bool, as_json: bool) -> Sink:
    """The live view on a terminal, plain lines elsewhere, nothing when asked for."""
    if quiet:
        return QuietSink()
    console = output.terminal()
    if console.is_terminal and not as_json:
        return TerminalSink(console, frame)
    return PlainSink(write=output.tell)


async def stay_with(
    handle: ResearchHandle,
    sink: Sink,
    asked: asyncio.Event,
    *,
    recover: Callable[[], Awaitable[None]] | None,
    detach: bool,
    ask: Ask | None = None,
) -> ResearchResult | None:
    """Show a run until it is over; None when Ctrl-C (`asked`) detached or a cancelled run did not close in time.

    Without `detach` the first Ctrl-C cancels the run and waits until it is closed.
    """
    with sink:
        following = asyncio.create_task(follow(handle, sink, recover=recover, ask=ask))
        waiting = asyncio.create_task(asked.wait())
        try:
            await asyncio.wait({following, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if following.done():
                return following.result()
            if detach:
                return None
            sink.notice("cancelling: the state is being saved (Ctrl-C again leaves at once)")
            await handle.cancel()
            done, _ = await asyncio.wait({following}, timeout=CLOSING_SECONDS)
            return following.result() if done else None
        finally:
            following.cancel()
            waiting.cancel()
            await asyncio.gather(following, waiting, return_exceptions=True)


async def watch(given: str, *, then: str | None, out: Path | None, as_json: bool, quiet: bool) -> int:
    """Follow a run that goes on elsewhere; how one that is over ended is told at once."""
    async with open_context(reads_only=True) as context:
        research_id = await context.resolve(given)
        client = await context.client_if_running()
        if client is None or not await context.is_running(research_id):
            result = await context.closed_result(research_id)
            if result is None:
                now = "ask again once the server answers" if context.server_away else f"research resume {research_id}"
                raise CommandError(f"the run {research_id} cannot be watched now: {now}", ExitCode.FAILED)
        else:
            question = await context.question(research_id)
            frame = Frame(research_id, question, context.web_address(research_id), hint=KEEPS)
            sink = sink_for(frame, quiet=quiet, as_json=as_json)
            async with first_interrupt() as asked:
                result = await stay_with(client.handle(research_id), sink, asked, recover=None, detach=True)
        if result is None:
            output.tell(f"detached; the run goes on: research watch {research_id}")
            return ExitCode.COMPLETED
        folder = out or remembered_folder(context.settings.home, research_id)
        documents = {} if folder is None else await context.report_documents(result)
    code = tell_ending(result, as_json=as_json)
    if folder is not None and documents:
        paths = write_all(folder, documents, umask=umask_of_person())
        output.tell(str(paths.get("html") or paths["md"]))
    if then:
        own = partial(subprocess.run, shell=True, check=False, umask=umask_of_person())  # noqa: S604
        await asyncio.to_thread(own, then)  # the person's own command
    return code


def tell_ending(result: ResearchResult, *, as_json: bool) -> int:
    """Say how a run ended, and why if there is no report; its exit code."""
    if as_json:
        output.document(result.model_dump(mode="json"))
    else:
        output.say(render_ending(result))
        for line in shortcomings_of(result):
            output.say(Text(f"  {line}", style="yellow"))
    return exit_code(result.outcome, result.stop_reason)


SHOW_CURSOR = "\x1b[?25h"
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@asynccontextmanager
async def first_interrupt() -> AsyncIterator[asyncio.Event]:
    """An event that the first Ctrl-C sets (SIGTERM counts, too); a second one ends the process."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if asked.is_set():
            if sys.stderr.isatty():
                sys.stderr.write(SHOW_CURSOR)
            sys.stderr.write("\n")
            sys.stderr.flush()
            os._exit(ExitCode.CANCELLED)
        asked.set()

    for number in SIGNALS:
        loop.add_signal_handler(number, interrupt)
    try:
        yield asked
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
