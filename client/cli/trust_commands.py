"""`trust`: let every key of a working directory's file count."""

# ruff: noqa: PLC0415 - what a command does is loaded when it is called, so that `--help` is instant

from pathlib import Path
from typing import Annotated

import typer

from client.cli.options import finish

TRUST_HELP = """Let every key of the research.toml of a folder count, until the file changes.

Of a file that lies in the working directory only harmless keys count, because anybody may have put it there: see
docs/configuration.md. This command shows what else the file would set, asks, and remembers path and content.

\b
  research trust                         the research.toml of this folder
  research trust work/research.toml
  research trust --forget
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("trust", help=TRUST_HELP)(trust)


def trust(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="the file")] = Path("research.toml"),
    *,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="trust it no longer")] = False,
) -> None:
    """Trust a file."""
    from client.cli.trust import trust as work

    finish(work(file.absolute(), yes=yes, forget=forget))
