"""Ports of dev servers: each home has its own, and no other home takes one while its server restarts.

The port of a server that was just killed looks free. If the server of another home started there, every process still
connected to that address would speak to the wrong one. So each port has a lock file that belongs to a home for as long
as one of its processes holds it: the keeper, and each process that uses the server.
"""

import fcntl
import os
import secrets
import socket
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

from workers.dev_server.server_files import FileLock, ServerDescription

LOOPBACK = "127.0.0.1"
USUAL_PORT = 7233
USUAL_UI_PORT = 8233


class PortLeases:
    """The ports that this process holds for a home, until `release` or its end."""

    def __init__(self, home: Path, folder: Path | None = None) -> None:
        self._home = str(home.absolute())
        self._folder = folder or Path(tempfile.gettempdir()) / f"research-engine-ports-{os.getuid()}"
        self._locks: dict[int, FileLock] = {}

    def take(self, port: int) -> bool:
        """Hold a port; false if it belongs to another home. Without a usable folder every port counts as held."""
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
        """Release all others."""
        for port in self._locks.keys() - set(ports):
            self._locks.pop(port).release()

    def release(self) -> None:
        """Release all."""
        self.keep_only()

    def _usable(self) -> bool:
        """Whether the folder is ours: any user may create a folder of any name among temporary files."""
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


def choose_ports(known: ServerDescription, leases: PortLeases) -> ServerDescription:
    """Choose the ports of last time, else the usual ones, else free ones; each is checked and held."""
    taken: set[int] = set()

    def choose(*wanted: int) -> int:
        usable = (port for port in wanted if port and port not in taken and port_is_free(port) and leases.take(port))
        port = next(usable, 0) or _find_free_port(taken, leases)
        taken.add(port)
        return port

    chosen = replace(
        known,
        port=choose(known.port, USUAL_PORT),
        ui_port=choose(known.ui_port, USUAL_UI_PORT),
        http_port=choose(known.http_port),
        metrics_port=choose(known.metrics_port),
    )
    leases.keep_only(*taken)
    ui_server_host, ui_server_port = _find_hidden_address()
    return replace(chosen, ui_server_host=ui_server_host, ui_server_port=ui_server_port)


def _find_hidden_address() -> tuple[str, int]:
    """Pick one of 2^24 loopback addresses and a port there, which no web page can find by trying.

    Empty where the system has a single loopback address: a page can try all its ports within minutes.
    """
    host = f"127.{secrets.randbelow(254) + 1}.{secrets.randbelow(256)}.{secrets.randbelow(254) + 1}"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return "", 0
        return host, int(probe.getsockname()[1])


def _find_free_port(taken: set[int], leases: PortLeases) -> int:
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((LOOPBACK, 0))
            port = int(probe.getsockname()[1])
        if port not in taken and leases.take(port):
            return port
