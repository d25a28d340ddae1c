"""The tools over streamable HTTP, on a socket of the loopback interface that listens already."""

import contextlib
import socket
from collections.abc import Iterator
from typing import Final

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from client.assistants.runs import Desk
from client.assistants.server import AssistantServer

PATH: Final = "/mcp"
CLOSING_SECONDS: Final = 2


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
    return QuietServer(
        uvicorn.Config(
            app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=CLOSING_SECONDS, ws="none"
        )
    )
