"""The folder of the embedded engine: its description, its database, and the locks that say who is alive.

Locks are the truth, because the kernel releases them however a process dies:

- `keeper.lock`, exclusive: held by the one keeper;
- `server.lock`, exclusive: held by the one server, which inherits the open file and so outlives a killed keeper;
- `engine.attached`, shared: held by every process that uses the engine.

This module and the keeper use the standard library alone: the keeper stays small and starts at once.
"""

import contextlib
import fcntl
import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

STARTING: Final = "starting"
READY: Final = "ready"
STOPPED: Final = "stopped"
FAILED: Final = "failed"


class EngineError(Exception):
    """The embedded engine cannot run; the message says why and what to do."""


class EngineMovedError(EngineError):
    """The embedded engine came back at another address, because another program took its port meanwhile."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"the engine came back at {address}, its port was taken: nothing is lost, start this command again"
        )


@dataclass(frozen=True)
class EngineDescription:
    """Content of `engine.json`; ports stay known after a stop, so that a restart is found at the same place."""

    status: str = STOPPED
    port: int = 0
    ui_port: int = 0
    http_port: int = 0
    metrics_port: int = 0
    ui_server_host: str = ""
    """Where the server's own UI listens, behind the gateway at `ui_port`; nothing if it is switched off."""
    ui_server_port: int = 0
    server_pid: int = 0
    keeper_pid: int = 0
    version: str = ""
    moved_aside: str = ""
    """Where the database of another server version was put, if this start found one."""
    error: str = ""

    @property
    def address(self) -> str:
        """`host:port` of the engine."""
        return f"127.0.0.1:{self.port}"

    @property
    def ui_url(self) -> str:
        """Address of the web UI; empty if it is switched off."""
        return f"http://127.0.0.1:{self.ui_port}" if self.ui_server_host else ""

    def with_changes(self, **changes: Any) -> "EngineDescription":
        """The same with other values."""
        return replace(self, **changes)


class FileLock:
    """An advisory lock on a file, by `flock`; released by `release` or by the end of the process."""

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
        """Take the lock now or not at all. Raises `OSError` if the file cannot be opened."""
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
        """Take the lock, trying again for a while: a probe by somebody else lasts microseconds."""
        end = time.monotonic() + seconds
        while not self.acquire(shared=shared):
            if time.monotonic() >= end:
                return False
            time.sleep(0.02)
        return True

    def release(self) -> None:
        """Let go; no error if it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def is_free(self) -> bool:
        """Whether nobody holds it (and then still nobody does)."""
        probe = FileLock(self.path)
        if not probe.acquire(shared=True):
            return False
        probe.release()
        return True


@dataclass(frozen=True)
class EngineFiles:
    """Paths below `RESEARCH_HOME/engine`."""

    home: Path

    @classmethod
    def of(cls, home: Path) -> "EngineFiles":
        """The same files whatever the working directory becomes."""
        return cls(home.absolute())

    @property
    def folder(self) -> Path:
        """Everything of the engine."""
        return self.home / "engine"

    @property
    def description(self) -> Path:
        """`engine.json`."""
        return self.folder / "engine.json"

    @property
    def database(self) -> Path:
        """The server's one SQLite file."""
        return self.folder / "temporal.db"

    @property
    def version(self) -> Path:
        """Which server version wrote the database."""
        return self.folder / "version"

    @property
    def server_log(self) -> Path:
        """What the server says."""
        return self.folder / "server.log"

    @property
    def keeper_log(self) -> Path:
        """What the keeper says."""
        return self.folder / "keeper.log"

    def keeper_lock(self) -> FileLock:
        """Held by the keeper."""
        return FileLock(self.folder / "keeper.lock")

    def server_lock(self) -> FileLock:
        """Held by the server."""
        return FileLock(self.folder / "server.lock")

    def attached_lock(self) -> FileLock:
        """Shared by all users of the engine."""
        return FileLock(self.folder / "engine.attached")

    def prepare(self) -> None:
        """Make the folder, for the owner alone. Raises `EngineError`."""
        try:
            self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.folder.mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise EngineError(f"{self.folder} cannot be made: {error.strerror}; set RESEARCH_HOME") from None

    def read(self) -> EngineDescription:
        """The description; an absent or broken file is one of a stopped, unknown engine."""
        try:
            values = json.loads(self.description.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return EngineDescription()
        known = {field.name for field in fields(EngineDescription)}
        return EngineDescription(**{name: value for name, value in values.items() if name in known})

    def write(self, description: EngineDescription) -> None:
        """Replace the description at one stroke. Raises `OSError`."""
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
