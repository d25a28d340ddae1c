"""`serve` and `worker`: processes that execute runs."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Annotated, Final
from urllib.parse import urlencode, urlsplit

import structlog
from temporalio.service import RPCError
from typer import BadParameter, Option

from client.cli.context import NO_SERVER, OPEN_RUNS, list_runs
from client.cli.corpus import SET_HOME
from client.cli.http_doors import CHAT, PAGE, TOOLS, listen_for_chats
from client.cli.options import Commands, ConfigFile, ModelName, ModelUrl
from client.cli.output import CommandError, ExitCode, ensure_folder, print_hint, print_progress, print_result
from client.cli.preflight import RUN_MARK, is_gone
from client.handle import ResearchClient
from client.page.key import KEY_FILE, KEY_PARAMETER, stored_key
from contracts.names import POOLS, WORKFLOWS_QUEUE
from contracts.state import ResearchState
from providers.errors import ProviderError
from providers.interfaces import SessionStore
from workers.dev_server import describe_server, detach_server
from workers.pools import choose_pools
from workers.process import ProcessOptions, WorkerProcess, run
from workers.settings.loading import Flags, Settings, load_settings
from workers.stores import open_stores
from workers.telemetry import LogFormat, configure_logging

DRAIN_TIME: Final = timedelta(seconds=10)
"""Short, because a person waits at the terminal; calls cut off are retried by the next worker."""

IDLE_CHECK_SECONDS: Final = 30.0
MAX_COMPARED_RUNS: Final = 500
"""Open runs whose settings a starting process compares with its own."""

_tasks: set["asyncio.Task[None]"] = set()  # the event loop has only weak references


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Options of `worker` and `serve`."""

    host: Annotated[str, Option(help="interface for health and metrics")] = "127.0.0.1"
    health_port: Annotated[int, Option(min=0, max=65_535, help="port of /healthz and /livez; 0: a free one")] = 0
    metrics_port: Annotated[int, Option(min=0, max=65_535, help="port of Prometheus metrics; 0: a free one")] = 0
    log_format: Annotated[LogFormat, Option(help="format of log lines")] = "console"
    model: ModelName = None
    model_url: ModelUrl = None
    config: ConfigFile = None

    def settings(self) -> Settings:
        """Load the settings of the process. Raises `SettingsError`."""
        return load_settings(Flags(model=self.model, model_url=self.model_url, config=self.config))

    def process(self) -> ProcessOptions:
        """Return the addresses of the process."""
        return ProcessOptions(self.host, self.health_port, self.metrics_port)


commands = Commands()
logger = structlog.get_logger("workers")


@commands.command("worker")
async def worker(
    options: ServeOptions,
    *,
    pool: Annotated[str, Option(metavar="NAMES", help="pools, separated by commas")] = ",".join(POOLS),
) -> None:
    """Run worker pools until stopped, against TEMPORAL_ADDRESS or the server that runs on this machine.

    Updates the indexes of known corpora first, and prints the addresses of health and metrics.

    research worker --pool models,search
    research worker --log-format json --host 0.0.0.0 --health-port 8080 --metrics-port 9090
    """
    pools = choose_pools(pool)
    settings = options.settings()
    log_format = options.log_format
    if not settings.uses_cluster and describe_server(settings.home) is None:
        raise CommandError(NO_SERVER, ExitCode.FAILED)
    configure_logging(log_format, logging.INFO, secrets=settings.secrets())
    ready = f"polling as {', '.join(pools)}; Ctrl-C drains and stops"
    await run(settings, pools, options.process(), partial(_announce, settings, ready, log_format))


def check_page_url(url: str) -> str:
    """Check the address of the page behind a proxy. Raises `BadParameter`."""
    address = urlsplit(url)
    if url and (address.scheme not in ("http", "https") or not address.netloc or address.path.strip("/")):
        raise BadParameter("write it as https://HOST, without a path")
    return url


@commands.command("serve")
async def serve(
    options: ServeOptions,
    *,
    no_mcp: Annotated[bool, Option("--no-mcp", help="serve no tools for assistants")] = False,
    mcp_port: Annotated[
        int | None, Option(min=0, max=65_535, help=f"port of the tools [{TOOLS.port} or a free one]; 0: a free one")
    ] = None,
    no_chat: Annotated[bool, Option("--no-chat", help="serve no chat completions for chat windows")] = False,
    chat_port: Annotated[
        int | None, Option(min=0, max=65_535, help=f"port of the chats [{CHAT.port} or a free one]; 0: a free one")
    ] = None,
    no_page: Annotated[bool, Option("--no-page", help="serve no page for browsers")] = False,
    page_port: Annotated[
        int | None, Option(min=0, max=65_535, help=f"port of the page [{PAGE.port} or a free one]; 0: a free one")
    ] = None,
    page_url: Annotated[
        str, Option(metavar="URL", help="address of the page behind a proxy", callback=check_page_url)
    ] = "",
    page_user_header: Annotated[
        str, Option(metavar="NAME", help="header in which that proxy names the user, who sees only their own runs")
    ] = "",
    idle_minutes: Annotated[
        float | None, Option(metavar="N", min=0, help="end after N minutes without an open run [never]")
    ] = None,
) -> None:
    """Run the server and all pools on this machine until stopped, and print their addresses.

    Updates the indexes of known corpora first. After a folder has changed, restart it or run `research corpus add`.
    Open the address of the page in a browser: it has the key that the page asks for. Assistants find their tools at the
    address that ends with /mcp, chat windows their models at the one with /v1.

    research start "…" --corpus manual       (in another terminal)
    """
    settings = options.settings()
    log_format = options.log_format
    ensure_folder(settings.home, SET_HOME)
    if log_format == "console":
        print_progress(f"starting server and workers on {settings.home}")
    configure_logging(log_format, logging.INFO, secrets=settings.secrets())
    ready = 'ready: research start "…" --corpus NAME in another terminal; Ctrl-C drains and stops'
    process = replace(options.process(), drain=DRAIN_TIME, ui=True, takes_over=True)
    try:
        async with AsyncExitStack() as stack:
            doors = {}
            if not no_mcp:
                doors["tools"] = await stack.enter_async_context(TOOLS.serve(settings, TOOLS.listen(mcp_port)))
            if not no_chat:
                listener = listen_for_chats(settings, chat_port)
                doors["chat"] = await stack.enter_async_context(CHAT.serve(settings, listener))
            if not no_page:
                page = PAGE.serve(settings, PAGE.listen(page_port), page_url=page_url, user_header=page_user_header)
                key = urlencode({KEY_PARAMETER: stored_key(settings.home / KEY_FILE)})
                address = await stack.enter_async_context(page)
                doors["page"] = f"{address}?{key}"
                settings = with_page_address(settings, page_url or address)
            announce = partial(_announce, settings, ready, log_format, doors=doors, idle_minutes=idle_minutes)
            await run(settings, choose_pools(None), process, announce)
    finally:
        detach_server(settings.home)


def with_page_address(settings: Settings, address: str) -> Settings:
    """Return the settings of workers whose notices link to the page at this address, unless another one is set."""
    if settings.notify.page_url is not None:
        return settings
    return settings.with_fields(notify=settings.notify.with_fields(page_url=address))


async def _end_when_idle(client: ResearchClient, minutes: float) -> None:
    """Stop this process, as SIGTERM does, once no run has been open for a time."""
    since = time.monotonic()
    while time.monotonic() - since < 60 * minutes:
        await asyncio.sleep(min(IDLE_CHECK_SECONDS, 60 * minutes))
        try:
            is_busy = (await client.temporal.count_workflows(OPEN_RUNS)).count > 0
        except RPCError:  # the server is restarting
            continue
        if is_busy:
            since = time.monotonic()
    os.kill(os.getpid(), signal.SIGTERM)


async def _announce(
    settings: Settings,
    ready: str,
    log_format: LogFormat,
    process: WorkerProcess,
    *,
    doors: Mapping[str, str] = MappingProxyType({}),
    idle_minutes: float | None = None,
) -> None:
    """Log a warning for anything with other settings; print model and addresses, which a JSON log has as events."""
    sessions = open_stores(settings).sessions
    try:
        notices = await other_settings(settings, ResearchClient(process.connection.client), sessions)
    except (RPCError, ProviderError, ValueError) as error:  # ValueError: a session of another version
        notices = [f"could not check for workers and runs with other settings: {error}"]
    if idle_minutes is not None:
        _tasks.add(asyncio.create_task(_end_when_idle(ResearchClient(process.connection.client), idle_minutes)))
    for notice in notices:
        logger.warning("worker.notice", text=notice)
    if log_format != "console":
        return
    models = ", ".join(dict.fromkeys(settings.models.by_tier().values()))
    if settings.model_configured:
        used = f"{models} at {settings.model_host}"
    else:
        used = f"none, so reports are passages; {settings.model_reason}"
    addresses = {
        "model": used,
        "server": process.connection.address,
        "web UI": process.connection.ui_url,
        "health": process.health and f"http://{process.health}/healthz",
        "metrics": process.metrics and f"http://{process.metrics}/metrics",
        **doors,
    }
    for name, address in addresses.items():
        if address:
            print_result(f"{name:<8} {address}")
    print_hint(ready)


async def other_settings(settings: Settings, client: ResearchClient, sessions: SessionStore) -> list[str]:
    """Return a warning, with its remedy, for workers and for open runs that have other settings."""
    queues = [await client.polled_by(queue, activities=queue != WORKFLOWS_QUEUE) for queue in POOLS.values()]
    marks = {identity: identity.rpartition("/")[2].removesuffix(RUN_MARK) for pollers in queues for identity in pollers}
    foreign = [identity for identity, mark in marks.items() if mark != settings.mark() and not is_gone(identity)]
    others = {identity.partition("-")[2].rpartition("/")[0] for identity in foreign}
    runs = []
    for server_run in (await list_runs(client, MAX_COMPARED_RUNS, (OPEN_RUNS,))).runs:
        text = await sessions.load(server_run.research_id)
        resolved = text and ResearchState.model_validate_json(text).work.resolved
        if resolved and resolved.configuration_digest != settings.digest():
            runs.append(server_run.research_id)
    lines = []
    if others:
        lines.append(
            f"workers with other settings are running here ({', '.join(sorted(others))}): a run may get the model and "
            "limits of either; stop them, or start these with the same --model, --model-url and --config"
        )
    if runs:
        lines.append(
            f"open runs keep the model and limits of other settings: {', '.join(runs)}; calls to a model that is not "
            "configured here fail: `research cancel ID`, then `research resume ID` with workers that have it"
        )
    return lines
