"""A process that serves pools, as run by `research worker` and `research serve`."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Final

import structlog

from workers.composition import compose
from workers.pools import DRAIN_TIMES, PoolHealth, run_pools
from workers.resolution_inputs import product_version
from workers.settings.loading import Settings
from workers.stalls import end_if_stalled
from workers.telemetry import metrics_address, temporal_runtime
from workers.temporal import Connection, open_connection

logger = structlog.get_logger("workers")


class PortUnusableError(Exception):
    """Health or metrics cannot be served at the chosen port."""


@dataclass(frozen=True)
class ProcessOptions:
    """Services of a process besides its pools; port None disables a service, 0 chooses a free port."""

    host: str = "127.0.0.1"
    health_port: int | None = None
    metrics_port: int | None = None
    ui: bool = False
    """True to start a new dev server with the web UI."""
    takes_over: bool = False
    """True to have new runs come to the version of this process if the current version has no workers."""
    drain: timedelta | None = None
    """Time for running calls to finish when the process stops; None: the time of each pool."""


@dataclass(frozen=True)
class WorkerProcess:
    """The connection of running pools, and the addresses (`host:port`) of health and metrics."""

    connection: Connection
    health: str | None
    metrics: str | None


Ready = Callable[[WorkerProcess], Awaitable[None]]


async def run(settings: Settings, pools: Sequence[str], options: ProcessOptions, ready: Ready) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second signal ends the process at once.

    `ready` is called once the pools accept work. Raises `ServerError` if no Temporal server can be reached,
    `PortUnusableError` if a port is taken, and the error that ends a worker before a signal does.
    """
    with stop_signals() as stop:
        serving = asyncio.create_task(_serve(settings, pools, options, ready))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            serving.cancel()  # drains running pools; aborts connecting and indexing
            with suppress(asyncio.CancelledError):
                await serving


async def _serve(settings: Settings, pools: Sequence[str], options: ProcessOptions, ready: Ready) -> None:
    """Connect, index the corpora, and run pools with health and metrics until a worker ends."""
    configured = {"version": product_version(), "model": settings.model_reason, "configuration": settings.describe()}
    logger.info("worker.configured", pools=list(pools), **configured)
    for notice in settings.notices():
        logger.warning("worker.notice", text=notice)
    metrics = None
    try:
        if options.metrics_port is not None:
            metrics = metrics_address(options.host, options.metrics_port)
        runtime = temporal_runtime(metrics)
    except (OSError, ValueError) as error:
        raise _port_error("metrics", options.host, options.metrics_port, error) from None
    drain = DRAIN_TIMES if options.drain is None else dict.fromkeys(pools, options.drain)
    connection = await open_connection(settings, runtime=runtime, ui=options.ui)
    logger.info("worker.connected", server=connection.address, digest=settings.digest(), metrics=metrics)
    async with (
        compose(settings, connection.client, pools, refresh=True, takes_over=options.takes_over) as contents,
        end_if_stalled(),  # after the imports and indexes of a start, which may take a minute on a loaded machine
        run_pools(connection.client, contents, pools, drain=drain) as group,
        AsyncExitStack() as stack,
    ):
        health = None
        if options.health_port is not None:
            try:
                endpoint = serve_health(group.health, options.host, options.health_port)
                health = await stack.enter_async_context(endpoint)
            except OSError as error:
                raise _port_error("health", options.host, options.health_port, error) from None
            logger.info("worker.health", address=health)
        await ready(WorkerProcess(connection, health, metrics))
        await group.failure()


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Yield an event that the first SIGTERM or SIGINT sets; a second signal ends the process at once."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    names = (signal.SIGTERM, signal.SIGINT)

    def on_signal() -> None:
        stop.set()
        for name in names:
            loop.remove_signal_handler(name)
            signal.signal(name, signal.SIG_DFL)

    for name in names:
        loop.add_signal_handler(name, on_signal)
    try:
        yield stop
    finally:
        for name in names:
            loop.remove_signal_handler(name)


def _port_error(service: str, host: str, port: int | None, error: Exception) -> PortUnusableError:
    reason = (getattr(error, "strerror", None) or str(error).rpartition(": ")[2]).lower()
    return PortUnusableError(f"{service} cannot be served at {host}:{port}: {reason}; port 0 takes a free one")


# --- health -----------------------------------------------------------------------------------------------------------
REQUEST_SECONDS: Final = 5.0
MAX_REQUEST_BYTES: Final = 8_192

Health = Callable[[], Awaitable[dict[str, PoolHealth]]]


@asynccontextmanager
async def serve_health(health: Health, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve health at the yielded `host:port` during the block. Raises `OSError` if the port is taken."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
                if method in {"GET", "HEAD"}:
                    writer.write(await _answer(path.partition("?")[0], health))
                    await writer.drain()
        except (TimeoutError, OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # not HTTP, or a closed connection
        finally:
            writer.close()

    server = await asyncio.start_server(serve, host, port, limit=MAX_REQUEST_BYTES)
    async with server:
        yield "{}:{}".format(*server.sockets[0].getsockname()[:2])


async def _answer(path: str, health: Health) -> bytes:
    """Return the HTTP response for a path."""
    status = HTTPStatus.NOT_FOUND
    body = dict[str, object](error="unknown path: use /healthz or /livez")
    if path in {"/healthz", "/livez"}:
        states = await health()
        healthy = all(state.alive and (state.ready or path == "/livez") for state in states.values())
        status = HTTPStatus.OK if healthy else HTTPStatus.SERVICE_UNAVAILABLE
        body = {"ok": healthy, "pools": {name: asdict(state) for name, state in states.items()}}
    text = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(text)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + text
