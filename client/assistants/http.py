"""The tools over streamable HTTP, on a socket of the loopback interface that listens already."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Final

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from client.assistants.runs import Desk
from client.assistants.server import AssistantServer

PATH: Final = "/mcp"
CLOSING_SECONDS: Final = 2
MAX_BODY_BYTES: Final = 262_144
"""Of a request: four times what a run takes in a message."""
BODY_SECONDS: Final = 20.0
"""Until a request has arrived; a client of this machine needs milliseconds."""
MAX_CONNECTIONS: Final = 128
"""At once; an assistant has one or two. Further ones are answered with 503."""
REFUSALS: Final = ("mcp.server.transport_security", "uvicorn.error")
"""Loggers that have a warning for each request that is refused, some in the words of the sender."""


class WholeRequests:
    """An application that sees only requests that have arrived whole, within their limits of size and time.

    A client that goes away before leaves no line in the log.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, or answer it with 408 or 413."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _read_body(receive)
        except TimeoutError:
            return await Response("Request too slow", 408, {"connection": "close"})(scope, receive, send)
        if body is None:
            return None
        if len(body) > MAX_BODY_BYTES:
            return await Response("Request body too large", 413, {"connection": "close"})(scope, receive, send)
        arrived = [body]

        async def receive_whole() -> Message:
            if arrived:
                return {"type": "http.request", "body": arrived.pop(), "more_body": False}
            return await receive()

        return await self._app(scope, receive_whole, send)


async def _read_body(receive: Receive) -> bytes | None:
    """Return a body, or the beginning of one that is too large; None if the client is gone."""
    body = bytearray()
    goes_on = True
    while goes_on and len(body) <= MAX_BODY_BYTES:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        goes_on = message.get("more_body", False)
    return bytes(body)


class QuietServer(uvicorn.Server):
    """A server in a process that handles signals itself."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def http_server(desk: Desk, listener: socket.socket) -> QuietServer:
    """Make the server; only requests that name its own address are answered, and no web page of another origin.

    No session is remembered: after a restart, a client goes on as before.
    """
    port = listener.getsockname()[1]
    hosts = [f"{host}:{port}" for host in ("127.0.0.1", "localhost")]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
    app = AssistantServer(desk).streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, transport_security=security
    )
    for name in REFUSALS:
        logging.getLogger(name).setLevel(logging.ERROR)
    return QuietServer(
        uvicorn.Config(
            WholeRequests(app),
            log_config=None,
            access_log=False,
            lifespan="on",
            timeout_graceful_shutdown=CLOSING_SECONDS,
            limit_concurrency=MAX_CONNECTIONS,
            ws="none",
        )
    )
