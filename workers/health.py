"""Health of a worker process: a tiny HTTP endpoint for probes.

/healthz reports whether all pools can get work, /livez whether they run.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from workers.pools import PoolHealth

REQUEST_SECONDS: Final = 5.0
MAX_REQUEST_BYTES: Final = 8_192

Health = Callable[[], Awaitable[dict[str, PoolHealth]]]


@asynccontextmanager
async def serve_health(health: Health, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve at the yielded address, `host:port`, while the block runs. Raises `OSError` if the port is taken."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
                if method in {"GET", "HEAD"}:
                    writer.write(_response(*await respond(path.partition("?")[0], health)))
                    await writer.drain()
        except (TimeoutError, OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client does not speak HTTP or closed the connection
        finally:
            writer.close()

    server = await asyncio.start_server(serve, host, port, limit=MAX_REQUEST_BYTES)
    async with server:
        yield "{}:{}".format(*server.sockets[0].getsockname()[:2])


async def respond(path: str, health: Health) -> tuple[HTTPStatus, dict[str, object]]:
    """Return status and body of the answer for a path."""
    if path not in {"/healthz", "/livez"}:
        return HTTPStatus.NOT_FOUND, {"error": "unknown path: use /healthz or /livez"}
    states, live = await health(), path == "/livez"
    good = all(state.alive and (state.ready or live) for state in states.values())
    pools = {name: {"alive": state.alive, "ready": state.ready} for name, state in states.items()}
    return (HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE), {"ok": good, "pools": pools}


def _response(status: HTTPStatus, body: dict[str, object]) -> bytes:
    text = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(text)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + text
