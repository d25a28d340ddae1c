"""Work that ends no more, for children; and calls of which some go to it."""

import ctypes
import os
import platform
import signal
import tempfile
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from providers.errors import ContentMissing
from providers.isolation.child import LENGTH
from providers.isolation.confinement import MACHINES

FORGED = -4711
"""No process has this id."""


def die_as(process: int) -> str:
    """Kill the process of this id; in any other, return."""
    if os.getpid() != process:
        return "alive"
    os.abort()


def stop_as(process: int) -> str:
    """Pause the process of this id, as a machine does that is paused; in any other, return."""
    if os.getpid() != process:
        return "alive"
    os.kill(process, signal.SIGSTOP)
    return "continued"


def leave_file() -> str:
    """Write a file into the temporary folder of this process, and return its path."""
    path = Path(tempfile.gettempdir()) / "code.so"
    path.write_text("code", encoding="utf-8")
    return str(path)


def enter(call: str) -> None:
    """Make a system call that no reader makes."""
    number = MACHINES[platform.machine()][1][call]
    ctypes.CDLL(None).syscall(number, 0, 0, 0, 0)


def chatter() -> str:
    """Write more than the answer, as a document does that prepares the answer to the next call: `FORGED`."""
    answer = b"value\n%d" % FORGED
    timer = threading.Timer(0.05, os.write, (3, LENGTH.pack(len(answer)) + answer))
    timer.start()
    return str(os.getpid())


def pause(seconds: float) -> str:
    """Use no processor time for a while."""
    time.sleep(seconds)
    return "alive"


def forge(answer: bytes) -> None:
    """Write an answer as a document would that has taken over its reader: file 3 is the pipe to the parent."""
    os.write(3, LENGTH.pack(len(answer)) + answer)
    time.sleep(60)


def miss(message: str) -> None:
    raise ContentMissing(message)


class HereCalls:
    """`SubprocessPool` in this process: quick, and nothing can be killed."""

    async def call(self, function: str, *arguments: Any, returns: object, seconds: float | None = None) -> Any:
        del returns, seconds
        module, _, name = function.partition(":")
        return getattr(import_module(module), name)(*arguments)
