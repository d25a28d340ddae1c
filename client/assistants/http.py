"""The tools over streamable HTTP, on a socket of the loopback interface that listens already."""

import logging
import socket
from typing import Final

from mcp.server.transport_security import TransportSecuritySettings

from client.assistants.runs import Desk
from client.assistants.server import AssistantServer
from client.http_server import QuietServer, WholeRequests, make_server

PATH: Final = "/mcp"
REFUSALS: Final = "mcp.server.transport_security"
"""Logger that has a warning for each request that is refused, some in the words of the sender."""


def http_server(desk: Desk, listener: socket.socket) -> QuietServer:
    """Make the server; only requests that name its own address are answered, and no web page of another origin.

    No session is remembered: after a restart, a client continues as before.
    """
    port = listener.getsockname()[1]
    hosts = [f"{host}:{port}" for host in ("127.0.0.1", "localhost")]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
    app = AssistantServer(desk).streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, transport_security=security
    )
    logging.getLogger(REFUSALS).setLevel(logging.ERROR)
    return make_server(WholeRequests(app))
