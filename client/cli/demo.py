"""`demo`: two questions about documents that are already on this machine, without a key and without a network."""

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from typer import Option

from client.cli.context import CommandContext, RunInfo, new_id, open_context_with
from client.cli.options import Commands, RunOptions
from client.cli.output import CommandError, ExitCode, ensure_folder, print_hint, print_progress
from client.cli.preflight import read_request
from client.cli.python_documents import count_documents, write_documents
from client.cli.reports import default_folder
from client.cli.run import RunCommand
from contracts.texts import plural
from workers.settings.loading import Settings, load_settings

FOLDER: Final = "demo"
"""Folder of the demo in a home: its documents and its reports."""
DOCUMENTS: Final = "python-docs"


@dataclass(frozen=True)
class DemoQuestion:
    """A question of the demo, and the exit code of its run."""

    text: str
    expected: ExitCode


QUESTIONS: Final = (
    DemoQuestion("How does a context manager suppress an exception?", ExitCode.COMPLETED),
    DemoQuestion("How does PostgreSQL prevent transaction id wraparound?", ExitCode.EMPTY),
)
"""One that the documents answer, and one that they do not."""

commands = Commands()


@commands.command("demo")
async def demo(
    *,
    export: Annotated[
        Path | None, Option(metavar="DIR", help="only write the documents into this folder, and ask nothing")
    ] = None,
) -> int:
    """Ask two questions about the documentation of your Python: one that it answers, and one that it does not.

    No account, no key, no network: nothing leaves this machine. Documents and reports are written below the folder
    `demo` of RESEARCH_HOME, nothing into the current folder. The second time is quicker: documents and index are there.

    research demo
    research demo --export ./python-docs       a folder of documents to try your own questions on
    """
    if export is not None:
        _write_documents(export.expanduser())
        return ExitCode.COMPLETED
    began = time.monotonic()
    users = load_settings()
    folder = users.home / FOLDER
    ensure_folder(users.home, "set RESEARCH_HOME to another folder")
    print_progress(f"the demo writes its documents and reports to {folder}, and nothing into the current folder")
    documents = folder / DOCUMENTS
    _write_documents(documents)
    # The demo is the same for everybody: models, keys, clusters and limits of the user do not change it.
    own = load_settings(environment={"RESEARCH_HOME": str(users.home)}, user_folder=folder)
    async with open_context_with(own) as context:
        first, *_ = [await _ask(context, question, documents, folder) for question in QUESTIONS]
    print_progress("\nthe second question has no answer in these documents: its report cites nothing (exit code 8)")
    print_progress(f"all of it took {time.monotonic() - began:.0f} s; type next:\n")
    for command, meaning in _next_commands(users, first, folder):
        print_hint(f"  {command}\n      {meaning}")
    return ExitCode.COMPLETED


def _write_documents(folder: Path) -> None:
    """Write the documents into a folder, and print how many there are. Raises OSError, `CommandError`."""
    if write_documents(folder):
        print_progress(f"the documentation of this Python is written to {folder}")
    print_progress(f"{plural(count_documents(folder), 'document')} in {folder}")


async def _ask(context: CommandContext, question: DemoQuestion, documents: Path, folder: Path) -> str:
    """Run one question, and return the id of its run. Raises `CommandError` if it does not end as expected."""
    print_progress(f'\n$ research run "{question.text}" --corpus {shlex.quote(str(documents))} --engine extractive\n')
    run = RunInfo(new_id())
    report = folder / default_folder(question.text, run.research_id)
    options = RunOptions(question=question.text, corpus=str(documents), engine="extractive", out=report)
    code = await RunCommand(context, await read_request(context, options), run, options).execute()
    if code == ExitCode.CANCELLED:
        raise KeyboardInterrupt
    if code != question.expected:
        problem = f"the demo failed: exit code {code:d} where {question.expected:d} was expected"
        raise CommandError(f"{problem}; `research doctor` may know why", ExitCode.FAILED)
    return run.research_id


def _next_commands(users: Settings, first: str, folder: Path) -> list[tuple[str, str]]:
    """Return three commands with their meanings; a shared store, as the user may have, lacks the runs of the demo."""
    asking = ('research run "…" --corpus ~/documents', "ask a folder of your own documents")
    if users.uses_cluster or users.content_url is not None:
        reports = shlex.quote(str(folder / "reports"))
        return [
            (f"ls {reports}", "the reports of the demo"),
            ("research doctor", "what your configuration names"),
            asking,
        ]
    return [
        (f"research open {first}", "the first report in your browser"),
        (f"research audit {first}", "check each of its citations"),
        asking,
    ]
