"""Commands of the machine: processes that work, folders, what is set up."""

# ruff: noqa: PLC0415 - what a command does is loaded when it is called, so that `--help` is instant

from typing import Annotated, Literal

import typer

from client.cli.options import AsJson, CommandLine, Quiet, finish

ALL_POOLS = "workflows,models,search,reading,records"

processes = CommandLine()


HealthPort = Annotated[
    int, typer.Option("--health-port", min=0, max=65_535, help="where /healthz and /livez are served; 0: a free port")
]
MetricsPort = Annotated[
    int, typer.Option("--metrics-port", min=0, max=65_535, help="where Prometheus metrics are served; 0: a free port")
]
ModelName = Annotated[str | None, typer.Option("--model", metavar="NAME", help="the model for every role")]
ModelUrl = Annotated[
    str | None, typer.Option("--model-url", metavar="URL", help="an endpoint that speaks the Messages API")
]
LogForm = Annotated[
    Literal["console", "json"],
    typer.Option("--log-format", metavar="console|json", help="the form of log lines"),
]
Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="the interface of health and metrics")]


@processes.command("worker")
def worker(
    pool: Annotated[str, typer.Option("--pool", metavar="NAMES", help="pools, separated by commas")] = ALL_POOLS,
    host: Host = "127.0.0.1",
    health_port: HealthPort = 0,
    metrics_port: MetricsPort = 0,
    log_format: LogForm = "console",
    model: ModelName = None,
    model_url: ModelUrl = None,
) -> None:
    """Run worker pools until stopped, against TEMPORAL_ADDRESS or the server that runs on this machine.

    Indexes of known corpora are brought up to date first. Prints the addresses of health and metrics.

    research worker
    research worker --pool models,search
    research worker --log-format json --host 0.0.0.0 --health-port 8080 --metrics-port 9090
    """
    from client.cli.serve import worker as work
    from workers.process import ProcessOptions

    options = ProcessOptions(host, health_port, metrics_port, log_format=log_format)
    finish(work(pool, options, model=model, model_url=model_url))


@processes.command("serve")
def serve(
    host: Host = "127.0.0.1",
    health_port: HealthPort = 0,
    metrics_port: MetricsPort = 0,
    log_format: LogForm = "console",
    model: ModelName = None,
    model_url: ModelUrl = None,
) -> None:
    """Run the server and all pools on this machine until stopped; prints the addresses.

    Indexes of known corpora are brought up to date first; start it again after a folder has changed, or use
    `research corpus add`, which does the same beside it.

    research serve
    research start "…" --corpus manual       (in another terminal)
    """
    from client.cli.serve import serve as work
    from workers.process import ProcessOptions

    options = ProcessOptions(host, health_port, metrics_port, log_format=log_format)
    finish(work(options, model=model, model_url=model_url))


@processes.command("doctor")
def doctor(as_json: AsJson = False) -> None:
    """What is configured, reachable, missing; and what to do about it. Exit code 0 or 1."""
    from client.cli.doctor import doctor as work

    finish(work(as_json=as_json))


CORPUS_HELP = """Folders of documents that runs may search.

\b
  research corpus add ./manual --name manual
  research corpus status manual
  research run "…" --corpus manual
"""
CorpusName = Annotated[str, typer.Argument(metavar="NAME", help="the name of the corpus")]
corpus = CommandLine(no_args_is_help=True, rich_markup_mode=None, help=CORPUS_HELP)
processes.add_typer(corpus, name="corpus")


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
