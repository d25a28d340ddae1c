"""`serve` and `worker`: processes that work for runs."""

import logging
from dataclasses import dataclass, replace
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
from workers.settings.loading import Flags, Settings, load_settings
from workers.telemetry import LogFormat, configure_logging

DRAIN: Final = timedelta(seconds=10)
"""A person waits at the terminal; calls that are cut off are made again by the next worker."""


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Options of `worker` and `serve`."""

    host: Annotated[str, typer.Option(help="the interface of health and metrics")] = "127.0.0.1"
    health_port: Annotated[int, typer.Option(min=0, max=65_535, help="of /healthz and /livez; 0: a free port")] = 0
    metrics_port: Annotated[int, typer.Option(min=0, max=65_535, help="of Prometheus metrics; 0: a free port")] = 0
    log_format: Annotated[LogFormat, typer.Option(help="the form of log lines")] = "console"
    model: ModelName = None
    model_url: ModelUrl = None
    config: ConfigFile = None

    def settings(self) -> Settings:
        """Load the settings of the process. Raises `SettingsError`."""
        return load_settings(Flags(model=self.model, model_url=self.model_url, config=self.config))

    def process(self) -> ProcessOptions:
        """Give the addresses of the process."""
        return ProcessOptions(self.host, self.health_port, self.metrics_port)


commands = Commands()


@commands.command("worker")
async def worker(
    options: ServeOptions,
    *,
    pool: Annotated[
        str, typer.Option("--pool", metavar="NAMES", help="pools, separated by commas")
    ] = "workflows,models,search,reading,records",
) -> int:
    """Run worker pools until stopped, against TEMPORAL_ADDRESS or the server that runs on this machine.

    Indexes of known corpora are brought up to date first. Prints the addresses of health and metrics.

    research worker
    research worker --pool models,search
    research worker --log-format json --host 0.0.0.0 --health-port 8080 --metrics-port 9090
    """
    pools = choose_pools(pool)
    settings, log_format = options.settings(), options.log_format
    if not settings.uses_cluster and describe_server(settings.home) is None:
        raise CommandError(NO_SERVER, ExitCode.FAILED)
    configure_logging(log_format, logging.INFO, secrets=settings.secrets())
    ready = f"polling as {', '.join(pools)}; Ctrl-C drains and stops"
    await run(settings, pools, options.process(), ready=lambda process: _print_ready(process, ready, log_format))
    return ExitCode.COMPLETED


@commands.command("serve")
async def serve(options: ServeOptions) -> int:
    """Run the server and all pools on this machine until stopped; prints the addresses.

    Indexes of known corpora are brought up to date first; start it again after a folder has changed, or use
    `research corpus add`, which does the same while it runs.

    research serve
    research start "…" --corpus manual       (in another terminal)
    """
    settings, log_format = options.settings(), options.log_format
    ensure_folder(settings.home, SET_HOME)
    if log_format == "console":
        print_progress(f"starting server and workers on {settings.home}; {settings.model_reason}")
    configure_logging(log_format, logging.INFO, secrets=settings.secrets())
    ready = 'ready: research start "…" --corpus NAME in another terminal; Ctrl-C drains and stops'
    process = replace(options.process(), drain=DRAIN, ui=True)
    await run(settings, choose_pools(None), process, ready=lambda process: _print_ready(process, ready, log_format))
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
