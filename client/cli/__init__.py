"""The `research` command: the top layer; it may import every package, lazily per command."""

import sys
from typing import NoReturn

ABORTED = 130
"""What the parser of the command line says when Ctrl-C came before the command itself had begun."""


def main() -> NoReturn:
    """Entry point of the console script."""
    from client.cli.app import app  # noqa: PLC0415  importing this package must not cost a command line

    try:
        app()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    else:
        code = 0
    if code == ABORTED:
        from client.cli.failures import stopped  # noqa: PLC0415

        code = stopped()
    if "temporalio.bridge" in sys.modules:
        from workers.leaving import leave  # noqa: PLC0415

        leave(code)
    sys.exit(code)
