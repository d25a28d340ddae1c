"""Ports of embedded engines: each home keeps its own, and no other home takes one while its engine is being restarted.

A port in use says by itself that it is taken. One whose server has just been killed does not, and an engine that
came up there would be taken for the other by every process still connected to that address. So each port has a lock
file that belongs to a home for as long as one of its processes holds it: the keeper, and whoever uses the engine.
"""

import fcntl
import os
import secrets
import socket
import stat
import tempfile
from pathlib import Path

from workers.dev_server.files import EngineDescription, FileLock

LOOPBACK = "127.0.0.1"
USUAL_PORT = 7233
USUAL_UI_PORT = 8233


class PortLeases:
    """The ports that this process holds for a home; they are let go of with `release` or by its end."""

    def __init__(self, home: Path, folder: Path | None = None) -> None:
        self._home = str(home.absolute())
        self._folder = folder or Path(tempfile.gettempdir()) / f"research-engine-ports-{os.getuid()}"
        self._locks: dict[int, FileLock] = {}

    def take(self, port: int) -> bool:
        """Hold a port; false if it belongs to another home. Without a folder of our own nothing can be held."""
        if port in self._locks or not self._usable():
            return True
        lock = FileLock(self._folder / str(port))
        if lock.acquire():
            lock.path.write_text(self._home, encoding="utf-8")
            fcntl.flock(lock.fileno(), fcntl.LOCK_SH)
        elif not lock.acquire(shared=True):
            return False
        if lock.path.read_text(encoding="utf-8") != self._home:
            lock.release()
            return False
        self._locks[port] = lock
        return True

    def keep_only(self, *ports: int) -> None:
        """Let go of all others."""
        for port in self._locks.keys() - set(ports):
            self._locks.pop(port).release()

    def release(self) -> None:
        """Let go of all."""
        self.keep_only()

    def _usable(self) -> bool:
        """Whether the folder is ours: anybody may make a folder of any name among temporary files."""
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            found = self._folder.lstat()
        except OSError:
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def port_is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def choose_ports(known: EngineDescription, leases: PortLeases) -> EngineDescription:
    """The ports of last time, else the usual ones, else free ones: each is checked, and held."""
    taken: set[int] = set()

    def choose(*wanted: int) -> int:
        usable = (port for port in wanted if port and port not in taken and port_is_free(port) and leases.take(port))
        port = next(usable, 0) or _any_free_port(taken, leases)
        taken.add(port)
        return port

    chosen = known.with_changes(
        port=choose(known.port, USUAL_PORT),
        ui_port=choose(known.ui_port, USUAL_UI_PORT),
        http_port=choose(known.http_port),
        metrics_port=choose(known.metrics_port),
    )
    leases.keep_only(*taken)
    ui_server_host, ui_server_port = _hidden_place()
    return chosen.with_changes(ui_server_host=ui_server_host, ui_server_port=ui_server_port)


def _hidden_place() -> tuple[str, int]:
    """An address among the 2^24 of the loopback network and a port there, which no page can try out.

    Nothing where the system has a single loopback address: all its ports can be tried within minutes.
    """
    host = f"127.{secrets.randbelow(254) + 1}.{secrets.randbelow(256)}.{secrets.randbelow(254) + 1}"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return "", 0
        return host, int(probe.getsockname()[1])


def _any_free_port(taken: set[int], leases: PortLeases) -> int:
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((LOOPBACK, 0))
            port = int(probe.getsockname()[1])
        if port not in taken and leases.take(port):
            return port
