"""The `research` command: the top layer; it may import every package, lazily per command."""

import sys
from pathlib import Path
from typing import NoReturn

ABORTED = 130
"""Exit code of the parser for Ctrl-C before the command starts."""
STOPPED = 5
"""`ExitCode.CANCELLED`, without importing it."""


def main() -> NoReturn:
    """Entry point of the console script."""
    try:
        code = _run()
    except KeyboardInterrupt:
        code = ABORTED
    if code == ABORTED:
        sys.stderr.write("research: stopped\n")
        code = STOPPED
    if "temporalio.bridge" in sys.modules:
        from workers.own_process import exit_process  # noqa: PLC0415

        exit_process(code)
    sys.exit(code)


def _import_nothing_from_here() -> None:
    """Remove the working directory from the import path: its `contracts/` or `activities/` may be a person's own."""
    product = Path(__file__).parents[__name__.count(".") + 1]
    here = Path.cwd()
    if here != product:
        sys.path[:] = [entry for entry in sys.path if Path(entry).absolute() != here]


def _run() -> int:
    _import_nothing_from_here()
    from client.cli.app import app  # noqa: PLC0415  importing this package must not cost a command line
    from workers.settings.places import is_completing, join_split_words  # noqa: PLC0415

    try:
        if not is_completing():
            from workers.own_process import restrict_files_to_owner  # noqa: PLC0415

            restrict_files_to_owner()
            app()
        elif join_split_words():
            from client.cli.completion import complete_after_equals  # noqa: PLC0415

            complete_after_equals(app)
        else:
            app()
    except SystemExit as end:
        if not isinstance(end.code, int):
            return 0
        return end.code
    return 0
