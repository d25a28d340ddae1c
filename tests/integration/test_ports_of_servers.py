"""Where dev servers listen: each at its own place, and what happens when that is taken."""

import asyncio
import socket
from pathlib import Path

import pytest

from tests.integration.server_homes import SOON, kill_server, running
from workers.dev_server import attach, ports
from workers.dev_server.attach import detach_server, ensure_server, watch_server
from workers.dev_server.server_files import ServerMovedError

pytestmark = pytest.mark.integration


class Listening:
    """Listen on ports while a block runs, as far as nobody else does already."""

    def __init__(self, *ports: int) -> None:
        self.ports = ports
        self.sockets: list[socket.socket] = []

    def __enter__(self) -> None:
        for port in self.ports:
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.sockets.append(listener)
            try:
                listener.bind(("127.0.0.1", port))
                listener.listen()
            except OSError:
                pass

    def __exit__(self, *_: object) -> None:
        for listener in self.sockets:
            listener.close()


async def test_taken_ports_are_avoided(server_home: Path) -> None:
    """Where another program listens on the usual ports, free ones are taken and kept for the next start."""
    with Listening(ports.USUAL_PORT, ports.USUAL_UI_PORT):
        first = await ensure_server(server_home)
        description = running(server_home)
        assert description.port != ports.USUAL_PORT
        assert description.ui_port != ports.USUAL_UI_PORT
    detach_server(server_home)
    kill_server(server_home)
    second = await ensure_server(server_home)
    assert second.address == first.address


async def test_no_other_home_takes_the_place_of_a_killed_engine(server_home: Path, tmp_path: Path) -> None:
    """Whoever still speaks to a killed server would take the one of another home for it: the port stays its own."""
    first = await ensure_server(server_home)
    kill_server(server_home)
    other = tmp_path / "another home"
    try:
        stranger = await ensure_server(other)
        again = await ensure_server(server_home)
    finally:
        detach_server(other)
        kill_server(other)
    assert stranger.address != first.address
    assert again.address == first.address


async def test_workers_of_an_engine_that_came_back_elsewhere_end(
    server_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another program took the port in between, who used the server is told so instead of asking the program."""
    monkeypatch.setattr(attach, "WATCH_SECONDS", 0.05)
    first = await ensure_server(server_home)
    watching = asyncio.create_task(watch_server(server_home))
    await asyncio.sleep(0)
    kill_server(server_home)
    with Listening(first.port):
        async with asyncio.timeout(SOON):
            with pytest.raises(ServerMovedError, match="start this command again"):
                await watching
    assert running(server_home).address != first.address
