"""HTTP servers of commands: requests are whole, limited in size, time and number, and foreign ones are told apart."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import uvicorn
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CLOSING_SECONDS: Final = 2
MAX_BODY_BYTES: Final = 262_144
"""Of a request: four times what a run takes in a message."""
BODY_SECONDS: Final = 20.0
"""Until a request has arrived; a client of this machine needs milliseconds."""
MAX_CONNECTIONS: Final = 128
"""At once; a client has one or two. Further ones are answered with 503."""
CLOSE: Final = {"connection": "close"}
OWN_SITE: Final = ("same-origin", "none")
"""Values of `Sec-Fetch-Site` of requests that no page of another site has made."""

Refuse = Callable[[int, str], Response]
"""Makes the answer to a request that is refused, of a status and a reason."""


def refuse_in_words(status: int, reason: str) -> Response:
    """Answer with the reason as plain text."""
    return PlainTextResponse(reason, status, CLOSE)


class Foreign(Enum):
    """What is foreign about a request."""

    NAME = auto()
    """It calls the server by a name that is not its own, as a name of others that leads to this address."""
    PAGE = auto()
    """A web page of another origin has made it."""


@dataclass(frozen=True)
class OwnNames:
    """What a server is called, and whose web pages may ask it."""

    hosts: frozenset[str]
    """Values of `Host` in small letters; a name without a port stands for all of its ports."""
    origins: frozenset[str] = frozenset()
    """Origins of pages that may ask it, beside that of the name by which it is called."""

    def objection(self, headers: Headers) -> Foreign | None:
        """Return what is foreign about a request with these headers; None: nothing."""
        host = headers.get("host", "").lower()
        if host not in self.hosts and host.rpartition(":")[0] not in self.hosts:
            return Foreign.NAME
        origin = headers.get("origin")
        if origin in self.origins:
            return None
        if origin is not None and origin.partition("://")[2].lower() != host:
            return Foreign.PAGE
        if headers.get("sec-fetch-site", OWN_SITE[0]) not in OWN_SITE:
            return Foreign.PAGE
        return None


@dataclass(frozen=True)
class WholeRequests:
    """An application that sees only requests that have arrived whole, within their limits of size and time.

    A client that goes away before leaves no line in the log.
    """

    app: ASGIApp
    max_bytes: int = MAX_BODY_BYTES
    refuse: Refuse = refuse_in_words

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, or answer it with 408 or 413."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await self._read_body(receive)
        except TimeoutError:
            return await self.refuse(408, "Request too slow")(scope, receive, send)
        if body is None:
            return None
        if len(body) > self.max_bytes:
            return await self.refuse(413, "Request body too large")(scope, receive, send)
        arrived = [body]

        async def receive_whole() -> Message:
            if arrived:
                return {"type": "http.request", "body": arrived.pop(), "more_body": False}
            return await receive()

        return await self.app(scope, receive_whole, send)

    async def _read_body(self, receive: Receive) -> bytes | None:
        """Return a body, or the beginning of one that is too large; None if the client is gone."""
        body = bytearray()
        goes_on = True
        while goes_on and len(body) <= self.max_bytes:
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


def make_server(app: ASGIApp) -> QuietServer:
    """Make the server of an application, which logs no request, not even those that it refuses."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    return QuietServer(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on",
            timeout_graceful_shutdown=CLOSING_SECONDS,
            limit_concurrency=MAX_CONNECTIONS,
            ws="none",
        )
    )
