"""Arguments and options that several commands share, and the edge where a command becomes an exit code."""

import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from client.cli.configured import NAMED
from client.cli.failures import guarded

RunId = Annotated[str, typer.Argument(metavar="ID", help="the run: its id, a unique part of it, or `last`")]
AsJson = Annotated[
    bool, typer.Option("--json", help="one JSON document on standard output, progress on standard error")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no progress, only the result")]


def finish(work: Coroutine[Any, Any, int]) -> NoReturn:
    """Run a command's work and end the process with its code."""
    from workers.process_exit import run_to_end  # noqa: PLC0415  `--help` needs none of it

    raise typer.Exit(guarded(lambda: run_to_end(work), _home))


def _home() -> Path:
    from workers.settings.loading import Flags, SettingsError, load_settings  # noqa: PLC0415  only after a crash

    try:
        return load_settings(Flags(config=NAMED.get())).home
    except SettingsError:
        return Path(tempfile.gettempdir())
