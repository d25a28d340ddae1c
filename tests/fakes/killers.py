"""Work that ends no more, for children; and calls of which some go to it."""

import os
import signal
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from providers.errors import ContentMissing
from providers.isolation.child import LENGTH


def die_once(mark: str) -> str:
    """Kill the process at the first call, which leaves a file as its mark."""
    if Path(mark).exists():
        return "alive"
    Path(mark).touch()
    os.abort()


def stop_once(mark: str) -> str:
    """Pause the process at the first call, as a machine does that is paused; the first call leaves a file as its mark."""
    if Path(mark).exists():
        return "alive"
    Path(mark).touch()
    os.kill(os.getpid(), signal.SIGSTOP)
    return "continued"


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
