"""`read`, `search`, `worker`, `serve`, `doctor`: the parts one at a time, the processes, and what is wrong."""

# ruff: noqa: PLC0415 - what a command does is loaded when it is called, so that `--help` is instant

from typing import Annotated

import typer

from client.cli.options import AsJson, finish

ALL_POOLS = "workflows,models,search,reading,records"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("read", help=READ_HELP)(read)
    app.command("search", help=SEARCH_HELP)(search)
    app.command("worker", help=WORKER_HELP)(worker)
    app.command("serve", help=SERVE_HELP)(serve)
    app.command("doctor", help="What is configured, reachable, missing; and what to do about it. Exit code 0 or 1.")(
        doctor
    )


READ_HELP = """Read documents exactly as a worker does, and show what comes out; also whether a page shows its content.

\b
  research read manual/vacuum.html
  research read a.pdf b.docx --json      one JSON object a line
  research read https://example.org/     a page; private addresses are refused, see RESEARCH_ALLOW_HOSTS
"""


def read(
    inputs: Annotated[list[str], typer.Argument(metavar="FILE|URL …", help="what to read")],
    as_json: AsJson = False,
) -> None:
    """Read documents."""
    from client.cli.read_search import read as work

    finish(work(inputs, as_json=as_json))


SEARCH_HELP = """Search exactly as a worker does, and show the hits.

\b
  research search "transaction id wraparound" --corpus manual
  research search "transaction id wraparound" --provider wikipedia
  research search "heat pumps" --provider tavily --type news --from 2026-01 --not-domain example.com
Providers of the web: tavily, google, semantic_scholar, brave, searxng, wikipedia, anthropic. `research doctor` shows
which are set up. What a provider cannot do of what is asked is told on standard error, and in --json as `warnings`.
"""


def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="words to look for")],
    provider: Annotated[str, typer.Option("--provider", metavar="NAME", help="who is asked")] = "corpus",
    corpus: Annotated[str | None, typer.Option("--corpus", metavar="DIR|NAME", help="where")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=50, help="at most so many hits")] = 10,
    source_type: Annotated[
        str | None, typer.Option("--type", metavar="web|academic|news", help="what sort of source; else web")
    ] = None,
    domain: Annotated[
        list[str] | None, typer.Option("--domain", metavar="HOST", help="only there and below; repeatable")
    ] = None,
    not_domain: Annotated[
        list[str] | None, typer.Option("--not-domain", metavar="HOST", help="neither there nor below; repeatable")
    ] = None,
    language: Annotated[str | None, typer.Option("--language", metavar="CODE", help="such as en, de")] = None,
    first: Annotated[str | None, typer.Option("--from", metavar="DATE", help="published then or later")] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="DATE", help="published then or earlier")] = None,
    as_json: AsJson = False,
) -> None:
    """Search."""
    from client.cli.options import SearchCommandOptions
    from client.cli.read_search import search as work

    options = SearchCommandOptions(
        provider, corpus, limit, source_type, domain or (), not_domain or (), language, first, last
    )
    finish(work(query, options, as_json=as_json))


HealthPort = Annotated[
    int, typer.Option("--health-port", min=0, max=65_535, help="where /healthz and /livez are served; 0: a free port")
]
MetricsPort = Annotated[
    int, typer.Option("--metrics-port", min=0, max=65_535, help="where Prometheus metrics are served; 0: a free port")
]
Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="the interface of health and metrics")]

WORKER_HELP = """Run worker pools until stopped, against TEMPORAL_ADDRESS or the engine that runs on this machine.

Indexes of known corpora are brought up to date first. Prints the addresses of health and metrics.

\b
  research worker
  research worker --pool models,search
"""


def worker(
    pool: Annotated[str, typer.Option("--pool", metavar="NAMES", help="pools, separated by commas")] = ALL_POOLS,
    host: Host = "127.0.0.1",
    health_port: HealthPort = 0,
    metrics_port: MetricsPort = 0,
) -> None:
    """Run pools."""
    from client.cli.serve import worker as work
    from workers.process import ProcessOptions

    finish(work(pool, ProcessOptions(host, health_port, metrics_port)))


SERVE_HELP = """Run the engine and all pools on this machine until stopped; prints the addresses.

Indexes of known corpora are brought up to date first; start it again after a folder has changed, or use
`research corpus add`, which does the same beside it.

\b
  research serve
  research start "…" --corpus manual       (in another terminal)
"""


def serve(host: Host = "127.0.0.1", health_port: HealthPort = 0, metrics_port: MetricsPort = 0) -> None:
    """Run everything."""
    from client.cli.serve import serve as work
    from workers.process import ProcessOptions

    finish(work(ProcessOptions(host, health_port, metrics_port)))


def doctor(as_json: AsJson = False) -> None:
    """Check everything."""
    from client.cli.doctor import doctor as work

    finish(work(as_json=as_json))
