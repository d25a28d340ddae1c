"""`worker` and `serve`: processes that do the work."""

import logging
from dataclasses import replace
from datetime import timedelta

from client.cli import output
from client.cli.command_context import NO_SERVER
from client.cli.command_errors import CommandError, ExitCode
from client.cli.folders import SET_HOME, ensure_folder
from client.cli.options import command_settings
from workers.dev_server import describe_server
from workers.pools import choose_pools
from workers.process import ProcessOptions, Ready, WorkerProcess, run
from workers.settings.loading import Flags
from workers.telemetry import configure_logging

DRAIN = timedelta(seconds=10)
"""A person waits at the terminal; what is cut off is done again by the next `research serve`."""


async def worker(pools: str, options: ProcessOptions, *, model: str | None, model_url: str | None) -> int:
    """Run pools against the server that is there, until stopped."""
    chosen = choose_pools(pools)
    settings = command_settings(Flags(model=model, model_url=model_url))
    if not settings.uses_cluster and describe_server(settings.home) is None:
        raise CommandError(NO_SERVER, ExitCode.FAILED)
    configure_logging(options.log_format, logging.INFO, secrets=settings.secrets())
    await run(
        settings,
        chosen,
        options,
        ready=_told(options, _polls),
    )
    return ExitCode.COMPLETED


async def serve(options: ProcessOptions, *, model: str | None, model_url: str | None) -> int:
    """Run the server and all pools on this machine, until stopped."""
    settings = command_settings(Flags(model=model, model_url=model_url))
    ensure_folder(settings.home, SET_HOME)
    if options.log_format == "console":
        output.tell(f"starting server and workers on {settings.home}; {settings.model_reason}")
    configure_logging(options.log_format, logging.INFO, secrets=settings.secrets())
    watched = replace(options, drain=DRAIN, ui=True)
    await run(settings, choose_pools(None), watched, ready=_told(options, _serves))
    return ExitCode.COMPLETED


def _told(options: ProcessOptions, ready: Ready) -> Ready | None:
    """What a person is told; a log in JSON has the same in its events."""
    return ready if options.log_format == "console" else None


def _polls(process: WorkerProcess) -> None:
    _addresses(process)
    output.tell(f"polling as {', '.join(process.group.pools)}; Ctrl-C drains and stops")


def _serves(process: WorkerProcess) -> None:
    _addresses(process)
    output.tell('ready: research start "…" --corpus NAME in another terminal; Ctrl-C drains and stops')


def _addresses(process: WorkerProcess) -> None:
    """Where everything is, one address a line; a script may read the second word."""
    output.say(f"server   {process.connection.address}")
    if process.connection.ui_url:
        output.say(f"web UI   {process.connection.ui_url}")
    if process.health:
        output.say(f"health   http://{process.health}/healthz")
    if process.metrics:
        output.say(f"metrics  http://{process.metrics}/metrics")
