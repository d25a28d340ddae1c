"""`ask`: one question, or in a terminal one after another, each beginning with what the thread has read."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final

from typer import Argument, Option

from client.cli.context import CommandContext, RunInfo, new_id
from client.cli.options import ALLOWED_ID, Commands, RunOptions
from client.cli.output import CommandError, ExitCode, complain, print_hint, print_progress, reason_of
from client.cli.preflight import read_request
from client.cli.run import RunCommand, follow_up_options
from client.cli.thread import cost_words
from client.client_errors import ClientError
from contracts.vocabulary import Outcome
from providers.errors import ProviderError
from workers.dev_server import ServerError

PROMPT: Final = "? "
FIRST: Final = "Ask a question; an empty line leaves."
ANSWERED: Final = (Outcome.COMPLETED, Outcome.PARTIAL, Outcome.EMPTY)
"""Outcomes of runs that the next question may follow."""
MAX_HISTORY: Final = 1_000
"""Lines of a history file."""

commands = Commands()


@commands.command("ask", without=("question", "request_file", "research_id"))
async def ask(
    context: CommandContext,
    first: Annotated[
        str | None,
        Argument(metavar="ID|QUESTION", help="the run that the question follows, or `last`; or a first question"),
    ] = None,
    question: Annotated[
        str | None, Argument(metavar="QUESTION", help="what you want to know; - for standard input")
    ] = None,
    *,
    history: Annotated[
        Path | None, Option(metavar="FILE", help="keep the lines that you type in this file [no file]")
    ] = None,
    options: RunOptions,
) -> int:
    """Ask a question that begins with what its thread has read; in a terminal, go on until an empty line.

    With ID the question follows that run; without it a thread begins. Pages that an earlier question has read are not
    fetched again, and what they answer is not searched for. Strategy and corpus are those of the run before unless you
    name others; each question has limits of its own. Ctrl-C stops the question at work, a second one leaves; without a
    terminal, and with --json or --quiet, there is one question, which may have several lines.

    research ask last "And what does it cost?"
    research ask "Which heat pumps are quiet?" --web
    research ask last
    """
    is_question = first is not None and first != "last" and not ALLOWED_ID.fullmatch(first)
    if is_question and question is not None:
        raise CommandError('give an ID and a question, or a question alone: research ask last "…"')
    earlier = None
    if first is not None and not is_question:
        earlier = await context.find(first)
        earlier.stored_resolution()  # a run without a session cannot be followed
    asked = first if is_question else question
    alone = options.as_json or options.quiet or options.dry_run or asked == "-"
    if alone or not (sys.stdin.isatty() and sys.stderr.isatty()):
        if asked is None and sys.stdin.isatty():
            raise CommandError('there is no question: research ask last "…"')
        return await TerminalThread(context, options, earlier).answer(asked or "-")
    with _history(history):
        return await TerminalThread(context, options, earlier, goes_on=True).hold(asked)


@dataclass
class TerminalThread:
    """Questions of one thread at this terminal."""

    context: CommandContext
    options: RunOptions
    earlier: RunInfo | None
    """The run that the next question follows."""
    goes_on: bool = False
    ids: list[str] = field(default_factory=list)
    """Of the runs that were started here."""
    costs: list[float | None] = field(default_factory=list)
    """US dollars of these runs; None for an unknown cost."""

    async def hold(self, question: str | None) -> int:
        """Answer one question after another until an empty line; return the exit code of the last one."""
        code: int = ExitCode.COMPLETED
        if question is None:
            print_progress(FIRST)
        while True:
            asked = question if question is not None else read_question()
            question = None
            if not asked:
                break
            try:
                code = await self.answer(asked)
            except (CommandError, ClientError, ProviderError, ServerError) as error:
                if not self.ids:  # nothing was answered yet: the command itself was wrong
                    raise
                complain(str(error))
                code = ExitCode.FAILED
            self._print_costs()
        self._print_end()
        return code

    async def answer(self, question: str) -> int:
        """Answer one question and note its run; return its exit code. Raises `CommandError`."""
        options = replace(self.options, question=question)
        if self.earlier is not None:
            options = follow_up_options(options, question, self.earlier)
        requested = await read_request(self.context, options)
        run = RunInfo(new_id())
        if self.goes_on and self.options.out is not None:
            options = replace(options, out=self.options.out / run.research_id)
        self.ids.append(run.research_id)
        code = await RunCommand(self.context, requested, run, options, talks=self.goes_on).execute()
        if options.dry_run:
            return code
        stored = await self.context.load_run(run.research_id)
        result = await stored.result()
        self.costs.append(result.usage.cost_usd if result is not None else None)
        if stored.resolved is not None and result is not None and result.outcome in ANSWERED:
            self.earlier = stored
        return code

    def _print_costs(self) -> None:
        """Print the cost of the last question and of all questions asked here."""
        if self.costs:
            total = None if None in self.costs else sum(cost for cost in self.costs if cost is not None)
            asked = f"{len(self.costs)} question{'s' * (len(self.costs) > 1)} so far"
            print_progress(f"{cost_words(self.costs[-1])} · {asked}: {cost_words(total)}")

    def _print_end(self) -> None:
        """Print the ids of the runs, and the command that shows the thread."""
        if self.ids:
            print_progress(f"asked: {' '.join(self.ids)}")
            print_hint(
                f"research thread {self.ids[-1]} · one document: research thread {self.ids[-1]} --out thread.html"
            )


# --- the line editor --------------------------------------------------------------------------------------------------
def read_question() -> str:
    """Read a line with the editor of `readline` where there is one; empty at the end of input and after Ctrl-C."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # nothing is at work that a Ctrl-C could stop
    try:
        return input(PROMPT).strip()
    except (EOFError, KeyboardInterrupt):
        sys.stderr.write("\n")
        return ""
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def _history(path: Path | None) -> Iterator[None]:
    """Offer the lines typed before, of this process or of a file for the user alone. Raises `CommandError`."""
    try:
        import readline  # noqa: PLC0415  not on every system, and it changes how `input` reads
    except ImportError:
        yield
        return
    readline.set_auto_history(True)
    if path is None:
        yield
        return
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        readline.read_history_file(path)
        readline.set_history_length(MAX_HISTORY)
    except OSError as error:
        raise CommandError(f"the history {path} cannot be used: {reason_of(error)}") from None
    try:
        yield
    finally:
        readline.write_history_file(path)
