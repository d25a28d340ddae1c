"""The command line itself: names, options and help. What a command does is loaded only when it is called."""

# ruff: noqa: PLC0415 - what a command does is loaded when it is called, so that `--help` is instant

from pathlib import Path
from typing import Annotated

import typer

from client.cli.options import AsJson, CommandLine, Quiet, RunId, RunOptions, SearchCommandOptions, finish, takes

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
8 nothing in the sources answers, 12 stalled and was ended: the message says how to continue.
"""
ALL_POOLS = "workflows,models,search,reading,records"
NOT_OF_START = ("model_url", "out", "quiet")
NOT_OF_RESUME = (
    "question", "strategy", "depth", "engine", "corpus", "web", "request_file", "research_id", "dry_run"
)  # fmt: skip

app = CommandLine(
    name="research",
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


# --- runs -------------------------------------------------------------------------------------------------------------
@app.command("run")
@takes(RunOptions)
def run(options: RunOptions) -> None:
    """Start a run, show it live, write the report.

    Starts what is missing: the dev server, the index of the folder, the workers. Press Ctrl-C once to cancel
    (the state is kept), twice to leave at once. Against a cluster Ctrl-C only detaches.

    research run "How does vacuum work?" --corpus ./manual
    research run "Compare A and B" --corpus ./papers --depth extended --out ./result
    research run "…" --corpus ./manual --set limits.max_iterations=2 --set limits.deadline_seconds=120
    research run --request request.json --json > result.json

    With --id: a running one is joined, an unfinished one goes on, of a finished one the stored report is printed;
    another question under the same id is refused.
    """
    from client.cli.run import run as work

    finish(work(options))


@app.command("start")
@takes(RunOptions, without=NOT_OF_START)
def start(options: RunOptions) -> None:
    """Start a run and return its id at once; needs a running server with workers (`research serve`).

    research start "How does vacuum work?" --corpus manual
    research watch last

    With --id: a running one is joined, an unfinished one goes on, one that is completed is refused.
    """
    from client.cli.run import start as work

    finish(work(options))


@app.command("watch")
def watch(
    research_id: RunId = "last",
    then: Annotated[str | None, typer.Option("--then", metavar="CMD", help="a command to run afterwards")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show a run live. Ctrl-C only detaches; the exit code is that of the run.

    research watch last
    research watch 7k3f --then "notify-send done"
    """
    from client.cli.watch import watch as work

    finish(work(research_id, then=then, as_json=as_json, quiet=quiet))


@app.command("resume")
@takes(RunOptions, without=NOT_OF_RESUME)
def resume(
    options: RunOptions,
    given: RunId = "last",
    now: Annotated[bool, typer.Option("--now", help="search no further: write the report from what is there")] = False,
) -> None:
    """Go on with a run that was cancelled, failed, timed out or is partial; what was found is kept.

    research resume last
    research resume 7k3f --set limits.max_iterations=5 --set limits.deadline_seconds=1800
    research resume last --now             write the report from what is there
    """
    from client.cli.run import resume as work

    finish(work(given, options, report_now=now))


@app.command("steer")
def steer(
    research_id: RunId, text: Annotated[str, typer.Argument(metavar="TEXT", help="what the run should do")]
) -> None:
    """Tell a running run what to look at; the next phase obeys.

    research steer last "Leave version 9 out, look at the settings of version 16"
    """
    from client.cli.messages import steer as work

    finish(work(research_id, text))


@app.command("stop")
def stop(research_id: RunId = "last") -> None:
    """Ask a run to write its report now, from what it has."""
    from client.cli.messages import stop as work

    finish(work(research_id))


@app.command("cancel")
def cancel(research_id: RunId = "last") -> None:
    """Stop a run without a report; its state is kept and `research resume` goes on."""
    from client.cli.messages import cancel as work

    finish(work(research_id))


@app.command("delete")
def delete(research_id: RunId, yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False) -> None:
    """Remove a run: session, journal of calls, history, and stored documents that no other run uses.

    Reports that were written to a folder stay, and documents while any run is going on: the next delete removes them.
    """
    from client.cli.delete import delete as work

    finish(work(research_id, yes=yes))


# --- what there is ----------------------------------------------------------------------------------------------------
@app.command("status")
def status(research_id: RunId = "last", as_json: AsJson = False) -> None:
    """Where a run stands; also works with no server running."""
    from client.cli.show import status as work

    finish(work(research_id, as_json=as_json))


@app.command("list")
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


@app.command("report")
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


@app.command("open")
def open_report(research_id: RunId = "last") -> None:
    """Open the report of a run in the browser."""
    from client.cli.show import open_report as work

    finish(work(research_id))


@app.command("sources")
def sources(research_id: RunId = "last", as_json: AsJson = False) -> None:
    """The sources of a run: cited, read, skipped, and why."""
    from client.cli.show import sources as work

    finish(work(research_id, as_json=as_json))


@app.command("source")
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


@app.command("decisions")
def decisions(research_id: RunId = "last", as_json: AsJson = False) -> None:
    """The decisions of a run: who decided what, and why."""
    from client.cli.show import decisions as work

    finish(work(research_id, as_json=as_json))


@app.command("audit")
def audit(
    target: Annotated[str, typer.Argument(metavar="ID|FILE", help="a run, or a report.json")] = "last",
    as_json: AsJson = False,
) -> None:
    """Check every citation of a report against the archived sources; exit code 1 on any difference.

    research audit last
    research audit reports/2026-11-21-how-does-vacuum/report.json
    """
    from client.cli.audit import audit as work

    finish(work(target, as_json=as_json))


# --- parts of a worker ------------------------------------------------------------------------------------------------
@app.command("read")
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


@app.command("search")
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


# --- processes --------------------------------------------------------------------------------------------------------
HealthPort = Annotated[
    int, typer.Option("--health-port", min=0, max=65_535, help="where /healthz and /livez are served; 0: a free port")
]
MetricsPort = Annotated[
    int, typer.Option("--metrics-port", min=0, max=65_535, help="where Prometheus metrics are served; 0: a free port")
]
Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="the interface of health and metrics")]


@app.command("worker")
def worker(
    pool: Annotated[str, typer.Option("--pool", metavar="NAMES", help="pools, separated by commas")] = ALL_POOLS,
    host: Host = "127.0.0.1",
    health_port: HealthPort = 0,
    metrics_port: MetricsPort = 0,
) -> None:
    """Run worker pools until stopped, against TEMPORAL_ADDRESS or the server that runs on this machine.

    Indexes of known corpora are brought up to date first. Prints the addresses of health and metrics.

    research worker
    research worker --pool models,search
    """
    from client.cli.serve import worker as work
    from workers.process import ProcessOptions

    finish(work(pool, ProcessOptions(host, health_port, metrics_port)))


@app.command("serve")
def serve(host: Host = "127.0.0.1", health_port: HealthPort = 0, metrics_port: MetricsPort = 0) -> None:
    """Run the server and all pools on this machine until stopped; prints the addresses.

    Indexes of known corpora are brought up to date first; start it again after a folder has changed, or use
    `research corpus add`, which does the same beside it.

    research serve
    research start "…" --corpus manual       (in another terminal)
    """
    from client.cli.serve import serve as work
    from workers.process import ProcessOptions

    finish(work(ProcessOptions(host, health_port, metrics_port)))


@app.command("doctor")
def doctor(as_json: AsJson = False) -> None:
    """What is configured, reachable, missing; and what to do about it. Exit code 0 or 1."""
    from client.cli.doctor import doctor as work

    finish(work(as_json=as_json))


@app.command("trust")
def trust(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="the file")] = Path("research.toml"),
    *,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="trust it no longer")] = False,
) -> None:
    """Let every key of the research.toml of a folder count, until the file changes.

    Of a file that lies in the working directory only harmless keys count, because anybody may have put it there: see
    docs/configuration.md. This command shows what else the file would set, asks, and remembers path and content.

    research trust                         the research.toml of this folder
    research trust work/research.toml
    research trust --forget
    """
    from client.cli.trust import trust as work

    finish(work(file.absolute(), yes=yes, forget=forget))


# --- corpora ----------------------------------------------------------------------------------------------------------
CORPUS_HELP = """Folders of documents that runs may search.

\b
  research corpus add ./manual --name manual
  research corpus status manual
  research run "…" --corpus manual
"""
CorpusName = Annotated[str, typer.Argument(metavar="NAME", help="the name of the corpus")]
corpus = CommandLine(no_args_is_help=True, rich_markup_mode=None, help=CORPUS_HELP)
app.add_typer(corpus, name="corpus")


@corpus.command("add")
def add_corpus(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="the folder")],
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="[the folder's name]")] = None,
    quiet: Quiet = False,
) -> None:
    """Register a folder under a name and index it."""
    from client.cli.corpus import add as work

    finish(work(folder, name=name, quiet=quiet))


@corpus.command("list")
def list_corpora(as_json: AsJson = False) -> None:
    """The corpora known here."""
    from client.cli.corpus import list_corpora as work

    finish(work(as_json=as_json))


@corpus.command("status")
def corpus_status(name: CorpusName, as_json: AsJson = False) -> None:
    """What the index holds, and which files were left out and why."""
    from client.cli.corpus import status as work

    finish(work(name, as_json=as_json))


@corpus.command("remove")
def remove_corpus(name: CorpusName) -> None:
    """Forget a folder and its index; the documents themselves stay."""
    from client.cli.corpus import remove as work

    finish(work(name))
