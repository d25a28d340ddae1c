"""`mcp`, the tools for an assistant that starts this program, and the same tools over HTTP in `serve`."""

import asyncio
import logging
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Annotated, Final

import structlog
from typer import Option

from client.cli.context import CommandContext, Stores
from client.cli.corpus import SET_HOME
from client.cli.options import Commands, ConfigFile, ModelName, ModelUrl
from client.cli.output import CommandError, ExitCode, ensure_folder, print_progress
from contracts.names import WORKFLOWS_QUEUE
from workers.process import PortUnusableError
from workers.settings.loading import Flags, Settings
from workers.telemetry import configure_logging

LOOPBACK: Final = "127.0.0.1"
DEFAULT_PORT: Final = 7236
"""Port of the tools over HTTP, so that an assistant finds them again; any other port if it is taken."""
IDLE_MINUTES: Final = 30
"""Time without an open run after which a server in the background ends."""
START_SECONDS: Final = 40.0

commands = Commands()
logger = structlog.get_logger("workers")


@dataclass(frozen=True, kw_only=True)
class AssistantOptions:
    """Options of `mcp`."""

    no_start: Annotated[bool, Option("--no-start", help="never start a server in the background")] = False
    model: ModelName = None
    model_url: ModelUrl = None
    config: ConfigFile = None

    def flags(self) -> Flags:
        """Return the options that change settings."""
        return Flags(model=self.model, model_url=self.model_url, config=self.config)

    def words(self) -> list[str]:
        """Return these options for `serve`."""
        config = None
        if self.config is not None:
            config = str(self.config.absolute())
        named = {"--model": self.model, "--model-url": self.model_url, "--config": config}
        return [word for flag, value in named.items() if value is not None for word in (flag, value)]


@commands.command("mcp")
async def mcp(context: CommandContext, options: AssistantOptions) -> None:
    """Serve tools for an assistant on standard input and output, by the Model Context Protocol.

    An assistant starts this command itself. Runs go on when it ends: they belong to the server, which is started in the
    background when it is needed, and ends half an hour after its last run.

    research mcp
    research mcp --no-start                (never start a server: `research serve` runs elsewhere)
    """
    from client.assistants.runs import Desk  # noqa: PLC0415  the SDK costs memory and half a second
    from client.assistants.server import AssistantServer  # noqa: PLC0415

    settings = context.settings
    configure_logging("console", logging.WARNING, secrets=settings.secrets())
    starts = not options.no_start and not settings.uses_cluster
    desk = Desk(settings, context.stores, partial(_start_server, context, options) if starts else None)
    await AssistantServer(desk).run_stdio_async()


async def _start_server(context: CommandContext, options: AssistantOptions) -> None:
    """Start `research serve` in a session of its own, and wait until its workers poll. Raises `CommandError`."""
    settings = context.settings
    ensure_folder(settings.home, SET_HOME)
    log = settings.home / "logs" / "serve.log"
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # -P: a folder `client` of the working directory is not imported.
    command = [sys.executable, "-P", "-m", "client.cli", "serve", "--no-mcp", "--idle-minutes", str(IDLE_MINUTES)]
    with log.open("wb") as output:
        child = subprocess.Popen(  # noqa: ASYNC220, S603  this program itself, no shell; a quick start
            [*command, *options.words()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    print_progress(f"started `research serve` in the background as process {child.pid}; its log is {log}")
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and child.poll() is None:
        await asyncio.sleep(0.3)
        client = await CommandContext(settings, context.stores).client_if_running()
        if client is not None and await client.polled_by(WORKFLOWS_QUEUE):
            return
    raise CommandError(f"`research serve` did not start: see {log}", ExitCode.FAILED)


# --- the tools in `serve` ------------------------------------------------------------------------------------------


def listen(port: int | None) -> socket.socket:
    """Listen on the loopback interface, at any port for 0, at the usual one or any for None.

    Raises `PortUnusableError`.
    """
    candidates = (DEFAULT_PORT, 0) if port is None else (port,)
    for candidate in candidates:
        try:
            return socket.create_server((LOOPBACK, candidate))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
    raise PortUnusableError(f"tools for assistants cannot be served at {LOOPBACK}:{port}: {reason}; choose --mcp-port")


@asynccontextmanager
async def serve_tools(settings: Settings, listener: socket.socket) -> AsyncIterator[str]:
    """Serve the tools at the yielded address during the block; what they need is imported for the first connection."""
    listener.setblocking(False)
    serving = asyncio.create_task(_serve_from_first(settings, listener))
    serving.add_done_callback(_note_failure)
    try:
        yield "http://{}:{}/mcp".format(*listener.getsockname())
    finally:
        serving.cancel()
        await asyncio.wait({serving})
        listener.close()


def _note_failure(serving: asyncio.Task[None]) -> None:
    """Log why tools are served no longer; runs and workers go on."""
    if not serving.cancelled() and (error := serving.exception()) is not None:
        logger.error("assistants.ended", exc_info=error)


async def _serve_from_first(settings: Settings, listener: socket.socket) -> None:
    """Serve from the first connection on, until cancelled."""
    loop = asyncio.get_running_loop()
    called = asyncio.Event()
    loop.add_reader(listener, called.set)  # the first connection waits until its server is there
    try:
        await called.wait()
    finally:
        loop.remove_reader(listener)
    await asyncio.to_thread(import_module, "client.assistants.http")  # two seconds on a loaded machine
    from client.assistants.http import http_server  # noqa: PLC0415
    from client.assistants.runs import Desk  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        server = http_server(Desk(settings, Stores(settings, stack)), listener)
        serving = asyncio.create_task(server.serve([listener]))
        try:
            await asyncio.shield(serving)
        finally:
            server.should_exit = True
            await serving
