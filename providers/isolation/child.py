"""The other end of `SubprocessPool`: a child process that runs plain functions under limits.

Frames in both directions are eight bytes of length and a pickle. In: `(function, [arguments, …], processor seconds,
wall seconds)`. Out, once: `("ready",)`; then one frame for each item: `("value", result)`,
`("raised", type, message, kind)`, `("memory",)` or `("failed", type, place)`.
"""

import contextlib
import importlib
import math
import os
import pickle
import queue
import resource
import signal
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

from providers.errors import (
    AnswerCut,
    ContentCorrupt,
    ContentMissing,
    InvalidCall,
    InvalidOutput,
    ProviderError,
    SourceUnreadable,
)

LENGTH = struct.Struct(">Q")
ORPHAN_GRACE_SECONDS = 1.0
"""How much longer than the parent's own limit an orphan may run before its alarm ends it."""

RECURSION_LIMIT = 10_000
"""Walking a tree of 512 levels takes a few frames for each."""

RAISED: dict[str, type[ProviderError]] = {
    error.__name__: error
    for error in (SourceUnreadable, InvalidCall, InvalidOutput, AnswerCut, ContentCorrupt, ContentMissing)
}
"""Errors that come out of a child as they were raised in it: none of them tells words of a page."""

Frame = tuple[Any, ...]
READY: Frame = ("ready",)


def read_frame(stream: BinaryIO) -> Any | None:
    """The next frame, or None at the end of the stream."""
    header = stream.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(header)
    body = stream.read(length)
    return pickle.loads(body) if len(body) == length else None  # noqa: S301  # our own parent wrote it


def write_frame(stream: BinaryIO, body: bytes) -> None:
    """Write a pickle as a frame."""
    stream.write(LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


def limit_process(memory_bytes: int) -> None:
    """Set the limits that hold for the life of the process; a platform that lacks one goes without it."""
    for name, value in (("RLIMIT_CORE", 0), ("RLIMIT_AS", memory_bytes)):
        with contextlib.suppress(ValueError, OSError):
            limit = getattr(resource, name)
            _, hard = resource.getrlimit(limit)
            resource.setrlimit(limit, (value, hard))


def limit_item(cpu_seconds: float, wall_seconds: float) -> None:
    """Give the next item its own processor time, and an alarm in case no parent is left to kill this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    spent = usage.ru_utime + usage.ru_stime
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(spent + cpu_seconds), hard))
    signal.setitimer(signal.ITIMER_REAL, wall_seconds + ORPHAN_GRACE_SECONDS)


def resolve(function: str) -> Callable[..., Any]:
    """The function named `module:name`."""
    module, _, name = function.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def run_item(function: str, arguments: tuple[Any, ...]) -> bytes:
    """Run one item and pack its frame. Errors travel as type and place: a message could hold a page's text."""
    try:
        frame: Frame = ("value", resolve(function)(*arguments))
        return pickle.dumps(frame, pickle.HIGHEST_PROTOCOL)
    except tuple(RAISED.values()) as error:
        frame = ("raised", type(error).__name__, str(error), getattr(error, "kind", ""))
    except MemoryError:
        frame = ("memory",)
    except Exception as error:  # noqa: BLE001  # the edge of the process
        last = traceback.extract_tb(error.__traceback__)[-1]
        frame = ("failed", type(error).__name__, f"{os.path.basename(last.filename)}:{last.lineno}")  # noqa: PTH119
    return pickle.dumps(frame, pickle.HIGHEST_PROTOCOL)


def serve(tasks: "queue.SimpleQueue[Any]", answers: BinaryIO) -> None:
    """Run tasks one after another until the parent goes away."""
    write_frame(answers, pickle.dumps(READY))
    while True:
        function, items, cpu_seconds, wall_seconds = tasks.get()
        for arguments in items:
            limit_item(cpu_seconds, wall_seconds)
            write_frame(answers, run_item(function, arguments))
        signal.setitimer(signal.ITIMER_REAL, 0)


def listen(stream: BinaryIO, tasks: "queue.SimpleQueue[Any]") -> None:
    """Pass tasks on; when the parent closes the pipe or dies, end this process at once, whatever it is doing."""
    while (task := read_frame(stream)) is not None:
        tasks.put(task)
    os._exit(0)


def main() -> None:
    """Entry point: `python -m providers.isolation.child MEMORY_BYTES`."""
    memory_bytes = int(sys.argv[1])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get between the frames
    limit_process(memory_bytes)
    sys.setrecursionlimit(RECURSION_LIMIT)
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=listen, args=(sys.stdin.buffer, tasks), daemon=True).start()
    serve(tasks, answers)


if __name__ == "__main__":
    main()
