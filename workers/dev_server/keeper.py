"""The keeper: a detached process that keeps the dev server up while any process is attached.

`python -m workers.dev_server.keeper HOME IDLE_SECONDS` prints one line: `ready`, `other` (a keeper runs already)
or `failed: why`, and goes on in the background. It restarts a server that died on the same ports, adopts the server of
a keeper that was killed, and stops the server after a time without an attached process, or at SIGTERM.
"""

import contextlib
import errno
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

from workers.dev_server.gateway import Gateway
from workers.dev_server.ports import LOOPBACK, PortLeases, choose_ports
from workers.dev_server.server import (
    PortTakenError,
    ServerProcess,
    find_binary,
    move_other_version_aside,
    read_version,
    set_up_namespace,
    start_server,
)
from workers.dev_server.server_files import (
    FAILED,
    READY,
    STARTING,
    STOPPED,
    FileLock,
    ServerDescription,
    ServerError,
    ServerFiles,
)
from workers.private_files import keep_files_private

TICK_SECONDS = 0.2
LOCK_SECONDS = 1.0
ADOPTION_SECONDS = 3.0
"""How long a running server may take to answer a new keeper: a busy machine is no reason to end it."""
SAME_PORTS_SECONDS = 3.0
OTHER_PORTS_TRIES = 3
LONGEST_PAUSE_SECONDS = 10.0


class IdleClock:
    """Measures how long no process has been attached; the file's time shows an attachment between two looks."""

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock
        self._since: float | None = None
        self._touched = 0

    def idle_seconds(self, now: float) -> float:
        """Seconds since the last attached process ended; 0 while there is one."""
        if not self._lock.acquire():
            self._since = None
            return 0.0
        self._lock.release()
        touched = self._lock.path.stat().st_mtime_ns
        if self._since is None or touched != self._touched:
            self._since, self._touched = now, touched
        return now - self._since


class Keeper:
    """Keeps one server up."""

    def __init__(self, files: ServerFiles, idle_seconds: float) -> None:
        self.files = files
        self.idle_limit = idle_seconds
        self.stopping = threading.Event()
        self.description = ServerDescription()
        self.server: ServerProcess | None = None
        self._attached = files.attached_lock()
        self._leases = PortLeases(files.home)
        self._gateway: Gateway | None = None
        self._gateway_to: tuple[int, str, int] | None = None

    def start(self) -> None:
        """Adopt the server that a killed keeper left, or start one. Raises `ServerError`, `OSError`."""
        binary = find_binary()
        version = read_version(binary)
        known = self.files.read()
        self.description = replace(
            known, status=STARTING, keeper_pid=os.getpid(), error="", moved_aside="", version=version
        )
        self.files.write(self.description)
        if not self.files.server_lock().is_free():
            orphan = ServerProcess(known.server_pid, self.files.server_lock())
            if known.version == version and self._adopt(orphan):
                return
            orphan.stop()
        moved = move_other_version_aside(self.files, version)
        self.description = replace(self.description, moved_aside=moved)
        self._launch(binary, choose_ports(self.description, self._leases), insist_seconds=0.0)

    def run(self) -> None:
        """Watch until a signal, or until no process has been attached for long enough."""
        clock = IdleClock(self._attached)
        pause, next_try = 0.0, 0.0
        while not self.stopping.wait(TICK_SECONDS):
            now = time.monotonic()
            if clock.idle_seconds(now) >= self.idle_limit and self._attached.acquire():
                return
            if self.server is not None and self.server.alive():
                pause = 0.0
            elif now >= next_try:
                pause = min(LONGEST_PAUSE_SECONDS, max(0.5, pause * 2))
                self._restart()
                next_try = time.monotonic() + pause

    def stop(self) -> None:
        """Stop the server and write that down; new users wait for the lock on `engine.attached`, if `run` took it."""
        self._close_gateway()
        if self.server is not None:
            self.server.stop()
        if self.description.status != FAILED:
            self._describe(status=STOPPED, server_pid=0, keeper_pid=0)

    def fail(self, problem: str) -> None:
        """Write down why no server runs."""
        self._describe(status=FAILED, error=problem, server_pid=0, keeper_pid=0)

    def _adopt(self, orphan: ServerProcess) -> bool:
        """Take over a running server; false if it does not answer, or has an unprotected web UI."""
        if not self.description.ui_server_host:
            return False
        end = time.monotonic() + ADOPTION_SECONDS
        while True:
            try:
                set_up_namespace(self.description.http_port)
                self._open_gateway(self.description)
                break
            except (ServerError, OSError):
                if time.monotonic() > end or not orphan.alive():
                    return False
            time.sleep(TICK_SECONDS)
        self.server = orphan
        self._leases.take(self.description.port)
        self._describe(status=READY)
        return True

    def _restart(self) -> None:
        """Start a server that died again; write down the reason of a failure, since `run` tries again."""
        log(f"server {self.description.server_pid} ended; starting it again")
        self._describe(status=STARTING, server_pid=0)
        try:
            self._launch(find_binary(), self.description, insist_seconds=SAME_PORTS_SECONDS)
        except ServerError as error:
            log(f"not started: {error}")
            self._describe(error=str(error))

    def _launch(self, binary: Path, ports: ServerDescription, *, insist_seconds: float) -> None:
        """Start on these ports, trying again while one is still in use, then on others. Raises `ServerError`.

        Another program may take a free port before the server listens, and the server opens further ports of its own.
        """
        insist_until, other_ports = time.monotonic() + insist_seconds, 0
        while True:
            try:
                self._open_gateway(ports)
                self.server = start_server(binary, self.files, ports)
                break
            except PortTakenError:
                if time.monotonic() >= insist_until:
                    if other_ports == OTHER_PORTS_TRIES:
                        raise
                    other_ports += 1
                    ports = choose_ports(ports, self._leases)
                    log(f"a port was taken: trying {ports.address} and others")
                time.sleep(0.1)
        self.description = ports
        self._describe(status=READY, server_pid=self.server.pid, error="")

    def _open_gateway(self, ports: ServerDescription) -> None:
        """Open the address that browsers use. Raises `PortTakenError`, `OSError`."""
        wanted = (ports.ui_port, ports.ui_server_host, ports.ui_server_port)
        if wanted == self._gateway_to:
            return
        self._close_gateway()
        if not ports.ui_server_host:
            return
        try:
            self._gateway = Gateway(LOOPBACK, ports.ui_port, (ports.ui_server_host, ports.ui_server_port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise PortTakenError("the port of the web UI is taken by another program") from None
        self._gateway_to = wanted

    def _close_gateway(self) -> None:
        if self._gateway is not None:
            self._gateway.close()
        self._gateway = self._gateway_to = None

    def _describe(self, **changes: Any) -> None:
        self.description = replace(self.description, **changes)
        try:
            self.files.write(self.description)
        except OSError as error:
            log(f"engine.json cannot be written: {error.strerror}")


def log(text: str) -> None:
    """Write a line to the keeper's log (standard error); a full disk must not end the keeper."""
    with contextlib.suppress(OSError):
        os.write(2, f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n".encode())


def answer_starter(text: str) -> None:
    """Answer the process that started this one, then close the pipe, whose end it waits for."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, text.encode() + b"\n")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.close(nothing)


def keep_server(files: ServerFiles, idle_seconds: float) -> int:
    """Keep the server up until the keeper is no longer needed; the exit code."""
    lock = files.keeper_lock()
    if not lock.acquire_within(LOCK_SECONDS):
        answer_starter("other")
        return 0
    keeper = Keeper(files, idle_seconds)
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: keeper.stopping.set())
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        keeper.start()
    except (ServerError, OSError) as error:
        problem = str(error) if isinstance(error, ServerError) else f"the server cannot start: {error.strerror}"
        keeper.fail(problem)
        lock.release()
        answer_starter(f"failed: {problem}")
        return 1
    answer_starter("ready")
    log(f"server {keeper.description.server_pid} at {keeper.description.address}")
    try:
        keeper.run()
    finally:
        keeper.stop()
    log("stopped")
    return 0


def main() -> int:
    """Go to the background and keep the server up."""
    keep_files_private()
    files = ServerFiles(Path(sys.argv[1]))
    if os.fork():
        return 0
    with files.keeper_log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        code = keep_server(files, float(sys.argv[2]))
    except Exception:  # noqa: BLE001  the edge of the process: the log is all that remains
        log(traceback.format_exc())
        code = 1
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
