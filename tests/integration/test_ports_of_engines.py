"""Where embedded engines listen: each at its own place, and what happens when that is taken."""

import asyncio
import socket
from pathlib import Path

import pytest

from tests.integration.engine_homes import SOON, kill_engine, running
from workers.dev_server import attach, ports
from workers.dev_server.attach import detach_engine, ensure_engine, watch_engine
from workers.dev_server.files import EngineMovedError

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


async def test_taken_ports_are_avoided(engine_home: Path) -> None:
    """Where another program listens on the usual ports, free ones are taken and kept for the next start."""
    with Listening(ports.USUAL_PORT, ports.USUAL_UI_PORT):
        first = await ensure_engine(engine_home)
        description = running(engine_home)
        assert description.port != ports.USUAL_PORT
        assert description.ui_port != ports.USUAL_UI_PORT
    detach_engine(engine_home)
    kill_engine(engine_home)
    second = await ensure_engine(engine_home)
    assert second.address == first.address


async def test_no_other_home_takes_the_place_of_a_killed_engine(engine_home: Path, tmp_path: Path) -> None:
    """Whoever still speaks to a killed engine would take the one of another home for it: the port stays its own."""
    first = await ensure_engine(engine_home)
    kill_engine(engine_home)
    other = tmp_path / "another home"
    try:
        stranger = await ensure_engine(other)
        again = await ensure_engine(engine_home)
    finally:
        detach_engine(other)
        kill_engine(other)
    assert stranger.address != first.address
    assert again.address == first.address


async def test_workers_of_an_engine_that_came_back_elsewhere_end(
    engine_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another program took the port in between, who used the engine is told so instead of asking the program."""
    monkeypatch.setattr(attach, "WATCH_SECONDS", 0.05)
    first = await ensure_engine(engine_home)
    watching = asyncio.create_task(watch_engine(engine_home))
    await asyncio.sleep(0)
    kill_engine(engine_home)
    with Listening(first.port):
        async with asyncio.timeout(SOON):
            with pytest.raises(EngineMovedError, match="start this command again"):
                await watching
    assert running(engine_home).address != first.address
