"""The command line itself: help, version, and the commands of three files."""

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from client.cli.options import CommandLine
from client.cli.process_commands import processes
from client.cli.read_commands import reading
from client.cli.run_commands import runs

DISTRIBUTION = "durable-research"
HELP = """Deep research on your own machine: a question goes in, a report comes out whose every citation
resolves to an exact passage of an archived source.

\b
First steps:
  research run "How does vacuum work?" --corpus ./manual
  research open last
  research audit last

\b
An id (r-20261121-7k3f) may be shortened to any unique beginning, to its end (7k3f), or be written `last`.

\b
Exit codes: 0 completed, 1 internal error or a difference found by audit, 2 invalid usage or request, 3 partial,
4 failed, 5 cancelled, 6 timed out without a report, 7 no model or search provider available,
8 nothing in the sources answers, 9 waits for a person (--no-wait), 12 stalled and was ended: the message says how
to continue.
"""

app = CommandLine(
    name="research",
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
for commands in (runs, reading, processes):
    app.add_typer(commands)


def installed_version() -> str:
    """The version of the installed product."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "not installed"


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"research {installed_version()}")
        raise typer.Exit


@app.callback()
def research(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="the version, and nothing else")
    ] = False,
) -> None:
    """Take the options that stand before a command."""
    del show_version
