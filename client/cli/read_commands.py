"""Commands that read: what there is of runs, and the parts of a worker that read and search."""

# ruff: noqa: PLC0415 - what a command does is loaded when it is called, so that `--help` is instant

from pathlib import Path
from typing import Annotated

import typer

from client.cli.options import AsJson, CommandLine, RunId, SearchCommandOptions, finish, takes

reading = CommandLine()


@reading.command("status")
def status(research_id: RunId = "last", as_json: AsJson = False) -> None:
    """Where a run stands; also works with no server running."""
    from client.cli.show import status as work

    finish(work(research_id, as_json=as_json))


@reading.command("list")
def list_runs(
    text: Annotated[
        str, typer.Option("--text", "--query", metavar="TEXT", help="only questions that contain this")
    ] = "",
    outcomes: Annotated[
        list[str] | None,
        typer.Option("--outcome", metavar="NAME", help="only runs that ended like this, or are running; repeatable"),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DATE", help="only those started then or later; 12h, 3d, 2w: ago")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="at most so many")] = 50,
    as_json: AsJson = False,
) -> None:
    """All runs, newest first, also those that the server no longer keeps, and those that were refused.

    research list --text vacuum
    research list --outcome partial,failed --since 2026-11-20
    research list --outcome running --since 12h --json
    """
    from client.cli.listing import list_runs as work

    finish(work(text, outcomes or [], since, limit=limit, as_json=as_json))


@reading.command("report")
def report(
    research_id: RunId = "last",
    form: Annotated[str, typer.Option("--format", metavar="md|html|json", help="the form")] = "md",
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="write it there")] = None,
) -> None:
    """Print the report of a run, or write it to a file.

    research report last
    research report 7k3f --format html --out report.html
    """
    from client.cli.show import report as work

    finish(work(research_id, form=form, out=out))


@reading.command("open")
def open_report(research_id: RunId = "last") -> None:
    """Open the report of a run in the browser."""
    from client.cli.show import open_report as work

    finish(work(research_id))


@reading.command("sources")
def sources(research_id: RunId = "last", as_json: AsJson = False) -> None:
    """The sources of a run: cited, read, skipped, and why."""
    from client.cli.show import sources as work

    finish(work(research_id, as_json=as_json))


@reading.command("source")
def source(
    research_id: RunId,
    source_id: Annotated[str, typer.Argument(metavar="SOURCE", help="source id or citation number")],
    raw: Annotated[
        bool, typer.Option("--raw", help="the bytes as fetched; on a terminal as text without control characters")
    ] = False,
) -> None:
    """Print the archived text of a source, exactly as it was quoted.

    research source last 1                 the source that the report cites as [1]
    research source last src-0a1b2c3d4e5f60718293a4b5c6d7e8f9 --raw > page.html
    """
    from client.cli.show import source as work

    finish(work(research_id, source_id, raw=raw))


@reading.command("decisions")
def decisions(research_id: RunId = "last", as_json: AsJson = False) -> None:
    """The decisions of a run: who decided what, and why."""
    from client.cli.show import decisions as work

    finish(work(research_id, as_json=as_json))


@reading.command("audit")
def audit(
    target: Annotated[str, typer.Argument(metavar="ID|FILE", help="a run, a report.json, or a bundle.zip")] = "last",
    as_json: AsJson = False,
) -> None:
    """Check a report again: every citation, quote and verdict; exit code 1 on any difference.

    Compares every quote with the archived source, gives every verdict that rules gave once more, and says of each
    difference what it is and what to do. A bundle brings its sources along: it needs no server and no store.

    research audit last
    research audit reports/2026-11-21-how-does-vacuum/report.json
    research audit vacuum.zip
    """
    from client.cli.audit_command import audit as work

    finish(work(target, as_json=as_json))


@reading.command("export")
def export(
    target: Annotated[str, typer.Argument(metavar="ID|FILE", help="a run; for --format also a report.json")] = "last",
    bundle: Annotated[
        Path | None,
        typer.Option("--bundle", metavar="FILE.zip", help="report and archived texts, for `research audit` elsewhere"),
    ] = None,
    quotes_only: Annotated[
        bool, typer.Option("--quotes-only", help="a bundle without the whole texts of the sources")
    ] = False,
    form: Annotated[
        str | None, typer.Option("--format", metavar="docx|pdf|bibtex|csl", help="one format instead")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="write the format there")] = None,
) -> None:
    """Hand a report on: as a bundle that others can audit, as a document, or its sources as a bibliography.

    A bundle is a ZIP file: the report in its three forms, the archived text of each source, and a
    manifest of SHA-256 hashes. Whoever gets it checks it with `research audit FILE.zip`, with nothing else at hand.
    Texts of others may not be yours to pass on: --quotes-only leaves all but the quoted passages out.

    research export last --bundle vacuum.zip
    research export last --bundle vacuum.zip --quotes-only
    research export last --format docx --out vacuum.docx
    research export last --format pdf --out vacuum.pdf
    research export last --format bibtex > vacuum.bib      (or csl: CSL-JSON)
    """
    from client.cli.export_command import export as work

    finish(work(target, bundle=bundle, quotes_only=quotes_only, form=form, out=out))


@reading.command("read")
def read(
    inputs: Annotated[list[str], typer.Argument(metavar="FILE|URL …", help="what to read")],
    as_json: AsJson = False,
) -> None:
    """Read documents exactly as a worker does, and show what comes out; also whether a page shows its content.

    research read manual/vacuum.html
    research read a.pdf b.docx --json      one JSON object a line
    research read https://example.org/     a page; private addresses are refused, see RESEARCH_ALLOW_HOSTS
    """
    from client.cli.read_search import read as work

    finish(work(inputs, as_json=as_json))


@reading.command("search")
@takes(SearchCommandOptions)
def search(options: SearchCommandOptions) -> None:
    """Search exactly as a worker does, and show the hits.

    research search "transaction id wraparound" --corpus manual
    research search "transaction id wraparound" --provider wikipedia
    research search "heat pumps" --provider tavily --type news --from 2026-01 --not-domain example.com

    Providers of the web: tavily, google, semantic_scholar, brave, searxng, wikipedia, anthropic. `research doctor`
    shows which are set up. Options that a provider does not support are named on standard error, and in --json as
    `warnings`.
    """
    from client.cli.read_search import search as work

    finish(work(options))
