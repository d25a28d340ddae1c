"""`status`, `list`, `report`, `open`, `source`, `sources`, `decisions`, `audit`: read what there is."""

# ruff: noqa: PLC0415 - what a command does is loaded when it is called, so that `--help` is instant

from pathlib import Path
from typing import Annotated

import typer

from client.cli.options import AsJson, RunId, finish


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("status", help="Where a run stands; also works with no engine running.")(status)
    app.command("list", help=LIST_HELP)(list_runs)
    app.command("report", help=REPORT_HELP)(report)
    app.command("open", help="Open the report of a run in the browser.")(open_report)
    app.command("sources", help="The sources of a run: cited, read, skipped, and why.")(sources)
    app.command("source", help=SOURCE_HELP)(source)
    app.command("decisions", help="What was decided in a run, by whom and why.")(decisions)
    app.command("audit", help=AUDIT_HELP)(audit)


def status(research_id: RunId = "last", as_json: AsJson = False) -> None:
    """One status."""
    from client.cli.show import status as work

    finish(work(research_id, as_json=as_json))


LIST_HELP = """All runs, newest first, also those that the engine no longer keeps.

\b
  research list --query vacuum
"""


def list_runs(
    query: Annotated[str, typer.Option("--query", metavar="TEXT", help="only questions that contain this")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="at most so many")] = 50,
    as_json: AsJson = False,
) -> None:
    """Known runs."""
    from client.cli.show import list_runs as work

    finish(work(query, limit=limit, as_json=as_json))


REPORT_HELP = """Print the report of a run, or write it to a file.

\b
  research report last
  research report 7k3f --format html --out report.html
"""


def report(
    research_id: RunId = "last",
    form: Annotated[str, typer.Option("--format", metavar="md|html|json", help="the form")] = "md",
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="write it there")] = None,
) -> None:
    """The report."""
    from client.cli.show import report as work

    finish(work(research_id, form=form, out=out))


def open_report(research_id: RunId = "last") -> None:
    """The report in a browser."""
    from client.cli.show import open_report as work

    finish(work(research_id))


def sources(research_id: RunId = "last", as_json: AsJson = False) -> None:
    """All sources."""
    from client.cli.show import sources as work

    finish(work(research_id, as_json=as_json))


SOURCE_HELP = """Print the archived text of a source, exactly as it was quoted.

\b
  research source last 1                 the source that the report cites as [1]
  research source last src-0a1b2c3d4e5f60718293a4b5c6d7e8f9 --raw > page.html
"""


def source(
    research_id: RunId,
    source_id: Annotated[str, typer.Argument(metavar="SOURCE", help="source id or citation number")],
    raw: Annotated[
        bool, typer.Option("--raw", help="the bytes as fetched; on a terminal as text without control characters")
    ] = False,
) -> None:
    """One archived source."""
    from client.cli.show import source as work

    finish(work(research_id, source_id, raw=raw))


def decisions(research_id: RunId = "last", as_json: AsJson = False) -> None:
    """The decision log."""
    from client.cli.show import decisions as work

    finish(work(research_id, as_json=as_json))


AUDIT_HELP = """Check every citation of a report against the archived sources; exit code 1 on any difference.

\b
  research audit last
  research audit reports/2026-11-21-how-does-vacuum/report.json
"""


def audit(
    target: Annotated[str, typer.Argument(metavar="ID|FILE", help="a run, or a report.json")] = "last",
    as_json: AsJson = False,
) -> None:
    """Re-check the citations."""
    from client.cli.audit import audit as work

    finish(work(target, as_json=as_json))
