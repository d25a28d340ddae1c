"""The door for assistants over HTTP: the size, the time and the number of requests from any process of this machine."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from client import http_server as doors
from client.assistants.http import http_server
from client.assistants.runs import Desk
from client.cli.context import open_context
from client.cli.http_doors import TOOLS
from client.http_server import MAX_BODY_BYTES, MAX_CONNECTIONS
from workers.settings.loading import Flags

LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).encode()
SOON = 30.0


@asynccontextmanager
async def serving() -> AsyncIterator[int]:
    """The tools at the yielded port."""
    async with open_context(Flags()) as context:
        listener = TOOLS.listen(0)
        listener.setblocking(False)
        server = http_server(Desk(context.settings, context.stores), listener)
        task = asyncio.create_task(server.serve([listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await task
            listener.close()


class Caller:
    """A connection that sends what it likes."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def send(self, body: bytes, length: int | None = None, **headers: str) -> None:
        """Send a request whose body is stated to be of `length` bytes."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        named = {
            "Host": f"127.0.0.1:{self.port}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Content-Length": str(len(body) if length is None else length),
            **headers,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        self.writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
        await self.writer.drain()

    async def status(self) -> int:
        """The status of the answer."""
        async with asyncio.timeout(SOON):
            return int((await self.reader.readline()).split()[1])

    async def close(self) -> None:
        """Go away, whatever was promised."""
        self.writer.close()
        await self.writer.wait_closed()


async def status(port: int, body: bytes, length: int | None = None, **headers: str) -> int:
    """The status of the answer to one request."""
    caller = Caller(port)
    await caller.send(body, length, **headers)
    try:
        return await caller.status()
    finally:
        await caller.close()


async def test_a_large_request_is_refused_before_it_has_arrived(home: Path) -> None:
    """One byte more than the limit; the limit itself is a request, though no JSON."""
    async with serving() as port:
        assert await status(port, LIST) == 200
        assert await status(port, b" " * MAX_BODY_BYTES) == 400
        assert await status(port, b" " * (MAX_BODY_BYTES + 1), 3_000_000) == 413


async def test_a_request_that_never_ends_is_answered(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that does not come holds a connection for a limited time."""
    monkeypatch.setattr(doors, "BODY_SECONDS", 0.2)
    async with serving() as port:
        assert await status(port, b"{", 1_000) == 408
        assert await status(port, LIST) == 200


async def test_too_many_connections_leave_room_for_work(home: Path) -> None:
    """Above the limit, a request is refused at once; when the others are gone, the next one is answered."""
    async with serving() as port:
        callers = [Caller(port) for _ in range(MAX_CONNECTIONS)]
        for caller in callers:
            await caller.send(b"{", 1_000)
        assert await status(port, LIST) == 503
        for caller in callers:
            await caller.close()
        async with asyncio.timeout(SOON):
            while await status(port, LIST) == 503:
                await asyncio.sleep(0.05)


async def test_strangers_write_nothing_into_the_log(
    home: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a client that goes away before its request is whole, nor a refused header, nor one connection too many."""
    monkeypatch.setattr(doors, "MAX_CONNECTIONS", 3)
    with caplog.at_level(logging.INFO):
        async with serving() as port:
            caller = Caller(port)
            await caller.send(b"{", 1_000)
            other = Caller(port)
            await other.send(b"{", 1_000)
            assert await status(port, LIST) == 503
            await other.close()
            await caller.close()
            async with asyncio.timeout(SOON):
                while await status(port, LIST) == 503:
                    await asyncio.sleep(0.05)
            assert await status(port, LIST, Host="secret.example.org") == 421
            assert await status(port, LIST, Origin="http://secret.example.org") == 403
            assert await status(port, LIST) == 200
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "secret" not in caplog.text
