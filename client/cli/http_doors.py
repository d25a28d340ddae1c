"""Ways into `serve` over HTTP. What one needs is imported for its first connection; before, it is a socket alone."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Final

import structlog

from client.cli.context import Stores
from client.cli.output import CommandError
from contracts.names import MODULE_PREFIX
from workers.process import PortUnusableError
from workers.settings.loading import Settings

LOOPBACK: Final = "127.0.0.1"
LOOPBACK_HOSTS: Final = (LOOPBACK, "localhost", "::1")

logger = structlog.get_logger("workers")


@dataclass(frozen=True)
class HttpDoor:
    """A way into `serve` over HTTP."""

    what: str
    """What it serves, in the plural."""
    option: str
    """The option that names its port."""
    port: int
    """Its usual port, so that a client finds it again; any other one if that is taken."""
    path: str
    module: str
    """The module with its function `http_server`, which costs memory and up to two seconds."""

    def listen(self, port: int | None, host: str = LOOPBACK) -> socket.socket:
        """Listen at any port for 0, at the usual one or any for None. Raises `PortUnusableError`."""
        candidates = (self.port, 0) if port is None else (port,)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        for candidate in candidates:
            try:
                return socket.create_server((host, candidate), family=family)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
        raise PortUnusableError(f"{self.what} cannot be served at {host}:{port}: {reason}; choose {self.option}")

    @asynccontextmanager
    async def serve(self, settings: Settings, listener: socket.socket, **options: str) -> AsyncIterator[str]:
        """Serve at the yielded address during the block; `options` are further ones of `http_server`."""
        listener.setblocking(False)
        serving = asyncio.create_task(self._serve_from_first(settings, listener, options))
        serving.add_done_callback(self._note_failure)
        host, port = listener.getsockname()[:2]
        try:
            yield f"http://{f'[{host}]' if ':' in host else host}:{port}{self.path}"
        finally:
            serving.cancel()
            await asyncio.wait({serving})
            listener.close()

    def _note_failure(self, serving: "asyncio.Task[None]") -> None:
        """Log why nothing is served any longer; runs and workers go on."""
        if not serving.cancelled() and (error := serving.exception()) is not None:
            logger.error("door.ended", served=self.what, exc_info=error)

    async def _serve_from_first(self, settings: Settings, listener: socket.socket, options: Mapping[str, str]) -> None:
        """Serve from the first connection on, until cancelled."""
        loop = asyncio.get_running_loop()
        called = asyncio.Event()
        loop.add_reader(listener, called.set)  # the first connection waits until its server is there
        try:
            await called.wait()
        finally:
            loop.remove_reader(listener)
        module = await asyncio.to_thread(import_module, self.module)
        from client.assistants.runs import Desk  # noqa: PLC0415

        async with AsyncExitStack() as stack:
            server = module.http_server(Desk(settings, Stores(settings, stack)), listener, **options)
            serving = asyncio.create_task(server.serve([listener]))
            try:
                await asyncio.shield(serving)
            finally:
                server.should_exit = True
                await serving


TOOLS: Final = HttpDoor("tools for assistants", "--mcp-port", 7236, "/mcp", f"{MODULE_PREFIX}client.assistants.http")
PAGE: Final = HttpDoor("the page", "--page-port", 7238, "/", f"{MODULE_PREFIX}client.page.app")
CHAT: Final = HttpDoor("chat completions", "--chat-port", 7237, "/v1", f"{MODULE_PREFIX}client.chat.http")


def listen_for_chats(settings: Settings, port: int | None) -> socket.socket:
    """Listen for chats at the configured host. Raises `CommandError` for one that others reach without a key."""
    host = settings.serve.chat.host
    if host not in LOOPBACK_HOSTS and settings.chat_key is None:
        raise CommandError(
            f"serve.chat.host: {host} can be reached from other machines: set RESEARCH_CHAT_KEY to a long random text, "
            "leave host out, or switch it off with --no-chat"
        )
    return CHAT.listen(port, host)
