"""A server on the loopback interface that speaks HTTP, and that leaves no socket behind."""

import asyncio
import contextlib
import socket
import ssl
import struct
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

TURNS = 5
"""Turns of the loop in which a connection that was just accepted begins, and one that was aborted ends."""
LONGEST_HEAD = 2**24
BACKLOG = 256


@dataclass(frozen=True)
class HttpRequest:
    """One request as it came; the names of headers are in small letters."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class LoopbackServer(ABC):
    """An asynchronous context manager; a subclass says in `serve` how one request is answered."""

    def __init__(self, *, port: int = 0, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self.port = port
        """0 stands for any free one until the server has begun; afterwards it is the one that it listens on, or did."""
        self._host = host
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        """Its address, without a slash at the end."""
        assert self.port
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._accept, self._host, self.port, ssl=self._tls, limit=LONGEST_HEAD, backlog=BACKLOG
        )
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        await close_server(self._server, self._connections)

    @abstractmethod
    async def serve(self, request: HttpRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection may carry another."""

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while await self.serve(await read_request(reader), reader, writer):
                    pass
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError, asyncio.CancelledError):
                await writer.wait_closed()
        finally:
            writer.transport.abort()
            self._connections.discard(connection)


async def read_request(reader: asyncio.StreamReader) -> HttpRequest:
    """One request with its body. Raises `asyncio.IncompleteReadError` if the client has left."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return HttpRequest(method, target, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


def response(status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """A whole response; `headers` win over the length that the body has."""
    announced = {"content-length": str(len(body)), **(headers or {})}
    lines = [f"HTTP/1.1 {status} Fake", *(f"{name}: {value}" for name, value in announced.items()), "", ""]
    return "\r\n".join(lines).encode("utf-8") + body


def reset(writer: asyncio.StreamWriter) -> None:
    """Close so that the other side sees a reset, not an end."""
    linger_for_nothing = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_for_nothing)
    writer.transport.abort()


async def close_server(server: asyncio.Server, connections: Collection["asyncio.Task[None]"]) -> None:
    """Accept no more, end every connection, and let the loop take note of it.

    `connections` is the server's own collection: a connection accepted in this very moment still enters it.
    """
    server.close()
    await _turns()
    ending = list(connections)
    for connection in ending:
        connection.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
    await server.wait_closed()
    await _turns()


async def _turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
