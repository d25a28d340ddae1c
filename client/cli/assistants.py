"""`mcp`, the tools for an assistant that starts this program."""

import asyncio
import logging
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final

from typer import Option

from client.cli.context import CommandContext
from client.cli.corpus import SET_HOME
from client.cli.options import Commands, ConfigFile, ModelName, ModelUrl
from client.cli.output import CommandError, ExitCode, ensure_folder, print_progress
from contracts.names import WORKFLOWS_QUEUE
from workers.settings.loading import Flags
from workers.telemetry import configure_logging

IDLE_MINUTES: Final = 30
"""Time without an open run after which a server in the background ends."""
START_SECONDS: Final = 40.0

commands = Commands()


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
    serve = ["serve", "--no-mcp", "--no-chat", "--no-page", "--idle-minutes", str(IDLE_MINUTES)]
    command = [sys.executable, "-P", "-m", str(__package__), *serve]
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
