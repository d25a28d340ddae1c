"""The child side of `SubprocessPool`: a process that runs plain functions under limits.

Frames in both directions are eight bytes of length and a body. In: the pickle of `(function, arguments, processor
seconds)`. Out: the line `ready` once; then for each call the line `value`, `raised` or `failed` and JSON: the result,
the name and arguments of an error in `RAISED`, or the description of any other (`contracts.defects`). The parent
unpickles none of it, because a document may have compromised the child that parses it.
"""

import contextlib
import gc
import importlib
import math
import os
import pickle
import queue
import resource
import shutil
import signal
import struct
import sys
import tempfile
import threading
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, BinaryIO, Final

from pydantic import TypeAdapter
from pydantic_core import to_json

from contracts.defects import describe_error
from contracts.sentences import AS_DATA, to_data
from providers.errors import ContentMissing, InvalidCall, SourceUnreadable
from providers.isolation.confinement import confine

LENGTH: Final = struct.Struct(">Q")
RECURSION_LIMIT: Final = 10_000  # walking a page takes three frames for each of 512 levels
MAX_TEMPORARY_BYTES: Final = 100_000_000  # of one file; the PDF library unpacks a part of itself, of 8 MB
RAISED: Final = (SourceUnreadable, InvalidCall, ContentMissing)
"""Errors that reach the parent as they were raised: their messages contain no text of a page."""


def read_frame(stream: BinaryIO) -> Any | None:
    """Return the next frame, or None at the end of the stream."""
    header = stream.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(header)
    body = stream.read(length)
    return pickle.loads(body) if len(body) == length else None  # noqa: S301  # our own parent wrote it


def write_frame(stream: BinaryIO, body: bytes) -> None:
    """Write a frame."""
    stream.write(LENGTH.pack(len(body)) + body)
    stream.flush()


def written(value: Any) -> bytes:
    """Return a result as JSON; of a dataclass, by the types of its fields, which say where messages are."""
    kind: type[Any] = type(value)
    if is_dataclass(kind):
        return adapter_of(kind).dump_json(value, context=AS_DATA)
    return to_json(value, bytes_mode="base64", context=AS_DATA)


@lru_cache(maxsize=8)
def adapter_of(kind: type[Any]) -> TypeAdapter[Any]:
    """Return the adapter of a type, whose construction takes milliseconds."""
    return TypeAdapter(kind)


def run(function: str, arguments: tuple[Any, ...]) -> bytes:
    """Run `module:name` and return its answer. Unexpected errors give type and frames: messages may contain a page."""
    try:
        module, _, name = function.partition(":")
        value = getattr(importlib.import_module(module), name)(*arguments)
        return b"value\n" + written(value)
    except RAISED as error:
        return b"raised\n" + to_json([type(error).__name__, *map(to_data, error.args)])
    except MemoryError:
        os.kill(os.getpid(), signal.SIGKILL)  # as the kernel would
        raise
    except Exception as error:  # noqa: BLE001  # the edge of the process
        return b"failed\n" + to_json(describe_error(error))


def listen(stream: BinaryIO, calls: "queue.SimpleQueue[Any]") -> None:
    """Queue calls; when the parent closes the pipe or dies, end this process at once, even during a call."""
    while (call := read_frame(stream)) is not None:
        calls.put(call)
    shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)  # a parent that was killed removes nothing
    os._exit(0)


def main() -> None:
    """Serve calls until the parent ends: `python -m providers.isolation.child MEMORY_BYTES`."""
    confine(sys.path, tempfile.gettempdir())
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of libraries must not get between the frames
    for name, value in (("RLIMIT_CORE", 0), ("RLIMIT_AS", int(sys.argv[1])), ("RLIMIT_FSIZE", MAX_TEMPORARY_BYTES)):
        with contextlib.suppress(ValueError, OSError):  # a platform may lack one of them
            limit = getattr(resource, name)
            resource.setrlimit(limit, (value, resource.getrlimit(limit)[1]))
    sys.setrecursionlimit(RECURSION_LIMIT)
    calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=listen, args=(sys.stdin.buffer, calls), daemon=True).start()
    write_frame(answers, b"ready\n")
    is_first = True
    while True:
        function, arguments, cpu_seconds = calls.get()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        end = math.ceil(usage.ru_utime + usage.ru_stime + cpu_seconds)  # the limit counts from the start of the process
        resource.setrlimit(resource.RLIMIT_CPU, (end, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        write_frame(answers, run(function, arguments))
        if is_first:
            gc.freeze()  # the libraries that the first call loaded: searches for cycles need not look at them again
            is_first = False


if __name__ == "__main__":
    main()
