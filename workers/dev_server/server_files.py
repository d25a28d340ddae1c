"""The folder of the dev server: its description, its database, and the locks that tell which processes live.

The locks decide, because the kernel releases them however a process dies:

- `keeper.lock`, exclusive: held by the one keeper;
- `server.lock`, exclusive: held by the one server, which inherits the open file and survives its keeper;
- `engine.attached`, shared: held by every process that uses the server.

A lock is shared by its users and inherited by a child, which `filelock` offers neither of. This module and the keeper
use the standard library alone: the keeper stays small and starts at once.
"""

import contextlib
import fcntl
import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Final

STARTING: Final = "starting"
READY: Final = "ready"
STOPPED: Final = "stopped"
FAILED: Final = "failed"


class ServerError(Exception):
    """The server cannot run or be reached; the message names the problem and the remedy."""


class ServerMovedError(ServerError):
    """The dev server came back at another address, because another program took its port."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"the server came back at {address}, because its port was taken: nothing is lost, start this command again"
        )


@dataclass(frozen=True)
class ServerDescription:
    """Content of `engine.json`; it keeps the ports after a stop, so that a restart uses them again."""

    status: str = STOPPED
    port: int = 0
    ui_port: int = 0
    http_port: int = 0
    metrics_port: int = 0
    ui_server_host: str = ""
    """Where the server's own UI listens, behind the gateway at `ui_port`; empty if it is switched off."""
    ui_server_port: int = 0
    server_pid: int = 0
    keeper_pid: int = 0
    version: str = ""
    moved_aside: str = ""
    """The folder that the database of another server version was moved to by this start."""
    error: str = ""

    @property
    def address(self) -> str:
        """`host:port` of the server."""
        return f"127.0.0.1:{self.port}"

    @property
    def ui_url(self) -> str:
        """Address of the web UI; empty if it is switched off."""
        return f"http://127.0.0.1:{self.ui_port}" if self.ui_server_host else ""


class FileLock:
    """A lock on a file by `flock`; the kernel releases it at the latest when the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def fileno(self) -> int:
        """The open file. Raises ValueError if the lock is not held."""
        if self._descriptor is None:
            raise ValueError("the lock is not held")
        return self._descriptor

    def acquire(self, *, shared: bool = False) -> bool:
        """Take the lock now or return false. Raises `OSError` if the file cannot be opened."""
        if self._descriptor is not None:
            return True
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return True

    def acquire_within(self, seconds: float, *, shared: bool = False) -> bool:
        """Take the lock, trying again for a while: a probe by another process lasts microseconds."""
        end = time.monotonic() + seconds
        while not self.acquire(shared=shared):
            if time.monotonic() >= end:
                return False
            time.sleep(0.02)
        return True

    def release(self) -> None:
        """Release the lock; does nothing if it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def is_free(self) -> bool:
        """Whether no process holds the lock."""
        probe = FileLock(self.path)
        if not probe.acquire(shared=True):
            return False
        probe.release()
        return True


class ServerFiles:
    """Paths below `RESEARCH_HOME/engine`, the same ones whatever the working directory becomes."""

    def __init__(self, home: Path) -> None:
        self.home = home.absolute()
        self.folder = self.home / "engine"
        self.description = self.folder / "engine.json"
        self.database = self.folder / "temporal.db"
        self.version = self.folder / "version"
        """Names the server version that wrote the database."""
        self.server_log = self.folder / "server.log"
        self.keeper_log = self.folder / "keeper.log"

    def keeper_lock(self) -> FileLock:
        """The lock that the keeper holds."""
        return FileLock(self.folder / "keeper.lock")

    def server_lock(self) -> FileLock:
        """The lock that the server holds."""
        return FileLock(self.folder / "server.lock")

    def attached_lock(self) -> FileLock:
        """The lock that all users of the server share."""
        return FileLock(self.folder / "engine.attached")

    def prepare(self) -> None:
        """Create the folder, for the owner alone. Raises `ServerError`."""
        try:
            self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.folder.mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise ServerError(
                f"{self.folder} cannot be created: {error.strerror}; set RESEARCH_HOME to another folder"
            ) from None

    def read(self) -> ServerDescription:
        """Read the description; an absent or broken file describes a stopped server."""
        try:
            values = json.loads(self.description.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return ServerDescription()
        known = {field.name for field in fields(ServerDescription)}
        return ServerDescription(**{name: value for name, value in values.items() if name in known})

    def write(self, description: ServerDescription) -> None:
        """Replace the description atomically. Raises `OSError`."""
        shown = {"address": description.address, "ui": description.ui_url} | asdict(description)
        handle, name = tempfile.mkstemp(dir=self.folder, prefix=".engine-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(shown, file, indent=1)
            Path(name).replace(self.description)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
