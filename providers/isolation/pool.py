"""Killable child processes for work that may hang, crash or eat memory.

Native parsers cannot be interrupted from Python, so threads are no answer: a child is killed and replaced.
"""

import asyncio
import contextlib
import io
import os
import pickle
import signal
import sys
from pathlib import Path
from typing import Any, Final, Self

from providers.errors import InputUnprocessable
from providers.isolation.child import LENGTH, RAISED

MEMORY_BYTES: Final = 1_610_612_736  # 1.5 GB of address space for one child (reliability-and-security 2.2)
MAX_FRAME_BYTES: Final = 512 * 1024 * 1024
START_GRACE_SECONDS: Final = 30.0
"""Time for a child to start, apart from the time of its first call: the interpreter has to load."""
RECYCLE_AFTER: Final = 1_000
"""Calls after which a child is replaced. Loading its code takes as long as a hundred pages."""


def ended_by(kind: str) -> InputUnprocessable:
    """Make the error for a text whose child was killed or died."""
    return InputUnprocessable(kind, f"work on a text from outside ended its process: {kind}")


class SubprocessPool:
    """At most `size` children that run `module:function` with plain arguments, each call under its own limits.

    Children are replaced after a kill and after `recycle_after` calls, and get no environment variables of the parent.
    """

    def __init__(
        self,
        size: int,
        *,
        cpu_seconds: float = 10,
        memory_bytes: int = MEMORY_BYTES,
        wall_seconds: float = 15,
        recycle_after: int = RECYCLE_AFTER,
    ) -> None:
        if size < 1:
            raise ValueError("a pool needs at least one child")
        self.size = size
        self.wall_seconds = wall_seconds
        self._cpu_seconds = cpu_seconds
        self._memory_bytes = memory_bytes
        self._recycle_after = recycle_after
        self._places = asyncio.Semaphore(size)
        self._idle: list[_Child] = []
        self._ending: set[asyncio.Task[int]] = set()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Any:
        """Run one function; cancelling the caller kills the child. `seconds` replaces both limits of time.

        A text that ends two children is given up: the first one may have died because the machine had no memory left.
        Raises the errors of `RAISED` as the function raised them, `InputUnprocessable` for anything else.
        """
        limits = (self._cpu_seconds, self.wall_seconds) if seconds is None else (seconds, seconds)
        try:
            return result_of(await self._call((function, arguments, *limits)))
        except InputUnprocessable as error:
            if error.kind not in {"memory", "crash"}:
                raise
        return result_of(await self._call((function, arguments, *limits)))

    async def _call(self, call: tuple[Any, ...]) -> Any:
        """Make a call in any child, and return the answer frame."""
        async with self._places:
            child = await self._take()
            sound = False
            try:
                frame = await child.call(call)
                sound = True
            finally:
                if sound and not self._closed and child.calls < self._recycle_after:
                    self._idle.append(child)
                else:
                    self._dismiss(child)
        return frame

    async def close(self) -> None:
        """End all children and wait for them. Calls that still run are to be cancelled by their owners first."""
        self._closed = True
        while self._idle:
            self._dismiss(self._idle.pop())
        if self._ending:
            await asyncio.gather(*self._ending)

    async def _take(self) -> "_Child":
        if self._closed:
            raise RuntimeError("the pool is closed")
        while self._idle:
            child = self._idle.pop()
            if child.process.returncode is None:
                return child
            self._dismiss(child)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "providers.isolation.child", str(self._memory_bytes)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={"PYTHONPATH": import_path(), "PYTHONHASHSEED": "0", "LANG": "C.UTF-8"},
            cwd="/",
            start_new_session=True,
        )
        return _Child(process)

    def _dismiss(self, child: "_Child") -> None:
        with contextlib.suppress(ProcessLookupError):
            child.process.kill()
        ending = asyncio.get_running_loop().create_task(child.process.wait())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


class _Child:
    """One running child and the number of its calls."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.calls = 0

    async def call(self, call: tuple[Any, ...]) -> Any:
        """Return the answer frame. Raises `InputUnprocessable`, after which the child is of no further use."""
        sending = asyncio.create_task(self._send(pickle.dumps(call, pickle.HIGHEST_PROTOCOL)))
        try:
            if self.calls == 0:
                async with asyncio.timeout(START_GRACE_SECONDS):
                    await self._frame()
            self.calls += 1
            async with asyncio.timeout(call[-1]):
                return await self._frame()
        except TimeoutError:
            raise ended_by("timeout") from None
        except asyncio.IncompleteReadError:
            code = await self.process.wait()
            if code in (-signal.SIGXCPU, -signal.SIGALRM):
                raise ended_by("timeout") from None
            # Only the kernel's memory killer sends SIGKILL.
            raise ended_by("memory" if code == -signal.SIGKILL else "crash") from None
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def _send(self, body: bytes) -> None:
        pipe = self.process.stdin
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # reading the answer reports the death
            pipe.write(LENGTH.pack(len(body)))
            pipe.write(body)
            await pipe.drain()

    async def _frame(self) -> Any:
        """Return the next frame. Raises `InputUnprocessable` for one too large, or with foreign objects."""
        pipe = self.process.stdout
        assert pipe is not None
        (length,) = LENGTH.unpack(await pipe.readexactly(LENGTH.size))
        if length > MAX_FRAME_BYTES:
            raise ended_by("crash")
        body = await pipe.readexactly(length)
        try:
            frame = _AnswerUnpickler(io.BytesIO(body)).load()
        except (pickle.UnpicklingError, AttributeError, EOFError, ImportError, IndexError, TypeError, ValueError):
            raise ended_by("crash") from None
        if frame == ("memory",):
            raise ended_by("memory")
        return frame


class _AnswerUnpickler(pickle.Unpickler):
    """Unpickles plain data and classes of ours: a child that was taken over must not reach further."""

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name) if module.startswith(("providers.", "contracts.")) else None
        if not isinstance(found, type):
            raise pickle.UnpicklingError("an answer holds something that is no plain data")
        return found


def result_of(frame: Any) -> Any:
    """Return the value of an answer frame, or raise the error that it states."""
    match frame:
        case ("value", value):
            return value
        case ("raised", str(type_name), tuple(arguments)) if type_name in RAISED:
            raise RAISED[type_name](*arguments)
        case ("failed", str(type_name), str(place)):
            raise InputUnprocessable("failed", f"work on a text from outside raised {type_name} at {place}")
        case _:
            raise ended_by("crash")


def import_path() -> str:
    """Return the places where the child finds the same modules; its working directory is never one of them."""
    return os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
