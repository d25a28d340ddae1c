"""`steer`, `stop`, `cancel`, `delete`: talk to a run, end it, remove it."""

# ruff: noqa: PLC0415 - what a command does is loaded when it is called, so that `--help` is instant

from typing import Annotated

import typer

from client.cli.options import RunId, finish


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("steer", help=STEER_HELP)(steer)
    app.command("stop", help="Ask a run to write its report now, from what it has.")(stop)
    app.command("cancel", help="Stop a run without a report; its state is kept and `research resume` goes on.")(cancel)
    app.command("delete", help=DELETE_HELP)(delete)


STEER_HELP = """Tell a running run what to look at; the next phase obeys.

\b
  research steer last "Leave version 9 out, look at the settings of version 16"
"""


def steer(
    research_id: RunId, text: Annotated[str, typer.Argument(metavar="TEXT", help="what the run should do")]
) -> None:
    """Send guidance."""
    from client.cli.messages import steer as work

    finish(work(research_id, text))


def stop(research_id: RunId = "last") -> None:
    """Ask for the report now."""
    from client.cli.messages import stop as work

    finish(work(research_id))


def cancel(research_id: RunId = "last") -> None:
    """Cancel a run."""
    from client.cli.messages import cancel as work

    finish(work(research_id))


DELETE_HELP = """Remove a run: session, journal of calls, history, and stored documents that no other run uses.

Reports that were written to a folder stay, and documents while any run is going on: the next delete removes them.
"""


def delete(
    research_id: RunId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
) -> None:
    """Delete a run."""
    from client.cli.delete import delete as work

    finish(work(research_id, yes=yes))
