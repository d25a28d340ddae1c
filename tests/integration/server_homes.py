"""Dev servers of tests: whether they run, and their end."""

import asyncio
import contextlib
import itertools
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from workers.dev_server import ServerDescription, ServerFiles, describe_server

SOON = 60.0
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_ports = itertools.count(20_000 + 1_000 * _worker + os.getpid() % 900)
"""Ports below the range from which the kernel takes those of connections, a thousand for each process of the suite; two
suites on one machine begin at different ones.
"""


def give_port(home: Path) -> None:
    """Give the server of a home a port of its own: no other test takes it while the server is down for a moment."""
    for port in _ports:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            break
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = ServerFiles(home)
    files.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.write(ServerDescription(port=port))


def kill_server(home: Path) -> None:
    """End a server at once: an orderly stop takes seconds, and one test shows it."""
    files = ServerFiles(home)
    while files.folder.is_dir() and not files.server_lock().is_free():
        with contextlib.suppress(ProcessLookupError):
            os.kill(files.read().pid, signal.SIGKILL)


async def stop_server(home: Path) -> bool:
    """Stop a server in good order, even while processes use it, and wait for its end; return whether one ran."""
    files = ServerFiles(home)
    if not files.folder.is_dir() or files.server_lock().is_free():
        return False
    files.write(replace(files.read(), stopping=True))
    os.kill(files.read().pid, signal.SIGTERM)
    await until(files.server_lock().is_free)
    return True


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that must happen soon."""
    async with asyncio.timeout(SOON):
        while not condition():
            await asyncio.sleep(0.02)


def running(home: Path) -> ServerDescription:
    """Return the description of a running server."""
    description = describe_server(home)
    assert description is not None
    return description
