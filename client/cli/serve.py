"""`serve` and `worker`: processes that work for runs."""

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Final

import typer

from client.cli.context import NO_SERVER
from client.cli.corpus import SET_HOME, ensure_folder
from client.cli.errors import CommandError, ExitCode
from client.cli.options import Commands, ConfigFile, ModelName, ModelUrl
from client.cli.output import print_hint, print_progress, print_result
from workers.dev_server import describe_server
from workers.pools import choose_pools
from workers.process import ProcessOptions, WorkerProcess, run
from workers.settings.loading import Flags, load_settings
from workers.telemetry import LogFormat, configure_logging

DRAIN: Final = timedelta(seconds=10)
"""A person waits at the terminal; calls that are cut off are made again by the next worker."""
HealthPort = Annotated[
    int, typer.Option("--health-port", min=0, max=65_535, help="where /healthz and /livez are served; 0: a free port")
]
MetricsPort = Annotated[
    int, typer.Option("--metrics-port", min=0, max=65_535, help="where Prometheus metrics are served; 0: a free port")
]
LogForm = Annotated[LogFormat, typer.Option("--log-format", metavar="console|json", help="the form of log lines")]
Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="the interface of health and metrics")]

commands = Commands()


@commands.command("worker")
async def worker(
    *,
    pool: Annotated[
        str, typer.Option("--pool", metavar="NAMES", help="pools, separated by commas")
    ] = "workflows,models,search,reading,records",
    host: Host = "127.0.0.1",
    health_port: HealthPort = 0,
    metrics_port: MetricsPort = 0,
    log_format: LogForm = "console",
    model: ModelName = None,
    model_url: ModelUrl = None,
    config: ConfigFile = None,
) -> int:
    """Run worker pools until stopped, against TEMPORAL_ADDRESS or the server that runs on this machine.

    Indexes of known corpora are brought up to date first. Prints the addresses of health and metrics.

    research worker
    research worker --pool models,search
    research worker --log-format json --host 0.0.0.0 --health-port 8080 --metrics-port 9090
    """
    pools = choose_pools(pool)
    settings = load_settings(Flags(model=model, model_url=model_url, config=config))
    if not settings.uses_cluster and describe_server(settings.home) is None:
        raise CommandError(NO_SERVER, ExitCode.FAILED)
    configure_logging(log_format, logging.INFO, secrets=settings.secrets())
    ready = f"polling as {', '.join(pools)}; Ctrl-C drains and stops"
    options = ProcessOptions(host, health_port, metrics_port)
    await run(settings, pools, options, ready=lambda process: _print_ready(process, ready, log_format))
    return ExitCode.COMPLETED


@commands.command("serve")
async def serve(
    *,
    host: Host = "127.0.0.1",
    health_port: HealthPort = 0,
    metrics_port: MetricsPort = 0,
    log_format: LogForm = "console",
    model: ModelName = None,
    model_url: ModelUrl = None,
    config: ConfigFile = None,
) -> int:
    """Run the server and all pools on this machine until stopped; prints the addresses.

    Indexes of known corpora are brought up to date first; start it again after a folder has changed, or use
    `research corpus add`, which does the same while it runs.

    research serve
    research start "…" --corpus manual       (in another terminal)
    """
    settings = load_settings(Flags(model=model, model_url=model_url, config=config))
    ensure_folder(settings.home, SET_HOME)
    if log_format == "console":
        print_progress(f"starting server and workers on {settings.home}; {settings.model_reason}")
    configure_logging(log_format, logging.INFO, secrets=settings.secrets())
    ready = 'ready: research start "…" --corpus NAME in another terminal; Ctrl-C drains and stops'
    options = replace(ProcessOptions(host, health_port, metrics_port), drain=DRAIN, ui=True)
    await run(settings, choose_pools(None), options, ready=lambda process: _print_ready(process, ready, log_format))
    return ExitCode.COMPLETED


def _print_ready(process: WorkerProcess, ready: str, log_format: LogFormat) -> None:
    """Print the addresses, one a line; a log in JSON has them in its events."""
    if log_format != "console":
        return
    print_result(f"server   {process.connection.address}")
    if process.connection.ui_url:
        print_result(f"web UI   {process.connection.ui_url}")
    if process.health:
        print_result(f"health   http://{process.health}/healthz")
    if process.metrics:
        print_result(f"metrics  http://{process.metrics}/metrics")
    print_hint(ready)
