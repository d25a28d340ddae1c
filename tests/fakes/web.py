"""A loopback web server with a script, a resolver that says what a test wants, and a network that keeps a record."""

# ruff: noqa: ASYNC109 - the signatures are those of httpcore2

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import httpcore2

from providers.reading.egress.address_rules import IpAddress
from tests.fakes.loopback import HttpRequest, LoopbackServer, response

PUBLIC_ADDRESS = "93.184.216.34"

Reply = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


def reply(body: bytes | str = b"", status: int = 200, content_type: str | None = "text/html", **headers: str) -> bytes:
    """A whole response as bytes; `headers` are written with underscores."""
    data = body.encode() if isinstance(body, str) else body
    named = {} if content_type is None else {"content-type": content_type}
    return response(status, data, named | {name.replace("_", "-"): value for name, value in headers.items()})


def redirect(location: str, status: int = 302) -> bytes:
    return reply(status=status, Location=location)


def page(*sentences: str, title: str = "A page") -> bytes:
    text = "".join(f"<p>{sentence}</p>" for sentence in sentences)
    return reply(f"<!doctype html><html><head><title>{title}</title></head><body><h1>{title}</h1>{text}</body></html>")


def endless(head: bytes, piece: bytes, pause: float = 0.0) -> Callable[[asyncio.StreamWriter], Awaitable[None]]:
    """A reply that goes on until the client leaves."""

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return write


class WebServer(LoopbackServer):
    """Serves what `pages` says by path; `asked` holds (host header, path) of each request, `heads` its headers."""

    def __init__(self, pages: Mapping[str, Reply], tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls=tls)
        self.pages = dict(pages)
        self.asked: list[tuple[str, str]] = []
        self.heads: list[dict[str, str]] = []

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"http://{self.host}{path}"

    async def serve(self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; false when the connection is to end."""
        self.asked.append((request.headers.get("host", ""), request.target))
        self.heads.append(request.headers)
        answer = self.pages.get(request.target, reply("nothing here", 404))
        if not isinstance(answer, bytes):
            await answer(writer)
            return False
        writer.write(answer)
        await writer.drain()
        return True


class FixedResolver:
    """Answers from a table; a name with several answers gives them one after another, the last one for good."""

    def __init__(self, table: Mapping[str, Sequence[Sequence[str]]] | None = None) -> None:
        self._table = {name: list(answers) for name, answers in (table or {}).items()}
        self.asked: list[str] = []

    def __call__(self, host: str) -> Sequence[IpAddress]:
        """The next answer for a name."""
        self.asked.append(host)
        answers = self._table.get(host)
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return [ipaddress.ip_address(address) for address in answer]


class RecordingNetwork(httpcore2.AsyncNetworkBackend):
    """Notes each connection that is opened; `routes` says to which loopback port an address leads."""

    def __init__(self, routes: Mapping[str, int] | None = None, peer: str | None = None) -> None:
        self.connects: list[tuple[str, int]] = []
        self._routes = dict(routes or {})
        self._peer = peer
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *_: Any, **__: Any
    ) -> httpcore2.AsyncNetworkStream:
        """Connect where the route leads; an address without a route does not answer."""
        self.connects.append((host, port))
        if host not in self._routes:
            raise httpcore2.ConnectError("no route")
        stream = await self._inner.connect_tcp("127.0.0.1", self._routes[host], timeout)
        return cast("httpcore2.AsyncNetworkStream", _Elsewhere(stream, (self._peer or host, port)))


class _Elsewhere:
    """A stream to loopback that says it ends at another address."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, peer: tuple[str, int]) -> None:
        self._stream = stream
        self._peer = peer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def start_tls(self, *arguments: Any, **named: Any) -> "_Elsewhere":
        return _Elsewhere(await self._stream.start_tls(*arguments, **named), self._peer)

    def get_extra_info(self, info: str) -> Any:
        return self._peer if info == "server_addr" else self._stream.get_extra_info(info)
