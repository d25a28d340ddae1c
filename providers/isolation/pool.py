"""Killable child processes for work that may hang, crash or exhaust memory.

Native parsers cannot be interrupted from Python, so threads do not help: a child is killed and replaced.
"""

import asyncio
import contextlib
import os
import pickle
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import structlog
from pydantic import TypeAdapter

from contracts.defects import Defect, checked_frames
from contracts.sentences import Text
from providers.errors import InputUnprocessable, ProcessStalled, ProviderError
from providers.isolation.child import LENGTH, RAISED

ENVIRONMENT: Final = {"PYTHONHASHSEED": "0", "MALLOC_ARENA_MAX": "2", "MIMALLOC_ARENA_RESERVE": "65536"}
"""Of a child. The allocators of libraries reserve little address space ahead (64 MB in place of 1 GB, in KB): it counts
towards the limit of memory."""
MEMORY_BYTES: Final = 1_610_612_736  # 1.5 GB of address space for one child: four fit into a machine of 8 GB
MAX_NAME_CHARACTERS: Final = 100
MAX_FRAME_BYTES: Final = 512 * 1024 * 1024
WALL_FACTOR: Final = 12.0
"""Wall time of a call for each second of processor time that it may use: with 25 processes ready to run on two
processors, each gets a twelfth of one."""
START_GRACE_SECONDS: Final = 120.0
"""Time for a child to start, in addition to that of its first call: the interpreter has to load."""
RECYCLE_AFTER: Final = 1_000
"""Calls after which a child is replaced. Loading its code takes as long as reading a hundred pages."""
STALLED: Final = "a process that reads texts from outside got no processor time: let the machine do less, and try again"
TEMPORARY_PREFIX: Final = "research-reader-"
STRINGS: Final = TypeAdapter(list[Text])

T = TypeVar("T")

log = structlog.get_logger()


def ended_by(kind: str) -> InputUnprocessable:
    """Return the error for a text whose child was killed or died."""
    return InputUnprocessable(kind, f"work on a text from outside ended its process: {kind}")


class SubprocessPool:
    """At most `size` children that run `module:function` with plain arguments, each call under its own limits.

    Children are replaced after a kill, after `recycle_after` calls, and after a call that failed or wrote more than its
    answer: a text that did this much may have done more. They inherit no environment variables, and are confined.
    """

    def __init__(
        self,
        size: int,
        *,
        cpu_seconds: float = 10,
        memory_bytes: int = MEMORY_BYTES,
        wall_factor: float = WALL_FACTOR,
        recycle_after: int = RECYCLE_AFTER,
    ) -> None:
        self._wall_factor = wall_factor
        self._cpu_seconds = cpu_seconds
        self._memory_bytes = memory_bytes
        self._recycle_after = recycle_after
        self._slots = asyncio.Semaphore(size)
        self._idle: list[_Child] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def call(self, function: str, *arguments: Any, returns: TypeAdapter[T], seconds: float | None = None) -> T:
        """Run a function; cancelling the caller kills the child. `seconds` replaces the limit of processor time.

        `returns` is the type of its result, which arrives as JSON: use `Base64UrlBytes` for bytes.
        A text is given up after it ended two children: the first may have died because the machine ran out of memory.
        Raises the errors of `RAISED` as the function raised them, `ProcessStalled` for a child that has stalled (a
        paused or overloaded machine: the text is not the cause), and `InputUnprocessable` for anything else.
        """
        cpu_seconds = self._cpu_seconds if seconds is None else seconds
        wall_seconds = cpu_seconds * self._wall_factor
        call = function, arguments, cpu_seconds
        try:
            return await self._call(call, wall_seconds, returns)
        except InputUnprocessable as error:
            if error.kind not in {"memory", "crash"}:
                raise
        return await self._call(call, wall_seconds, returns)

    async def _call(self, call: tuple[Any, ...], wall_seconds: float, returns: TypeAdapter[T]) -> T:
        """Make a call in any child."""
        async with self._slots:
            child = await self._take()
            try:
                result = read_answer(await child.call(call, wall_seconds), returns)
            except BaseException:
                await child.kill()
                raise
            if child.calls < self._recycle_after and not isinstance(result, InputUnprocessable):
                self._idle.append(child)
            else:
                await child.kill()
        if isinstance(result, ProviderError):
            raise result
        return result

    async def close(self) -> None:
        """End all children and wait for them. The owners of running calls have to cancel them first."""
        self._recycle_after = 0  # a call that is not cancelled ends its own child
        while self._idle:
            await self._idle.pop().kill()

    async def _take(self) -> "_Child":
        while self._idle:
            child = self._idle.pop()
            if child.process.returncode is None and child.is_silent:
                return child
            await child.kill()
        temporary = await asyncio.to_thread(tempfile.mkdtemp, prefix=TEMPORARY_PREFIX)
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", f"{__package__}.child", str(self._memory_bytes)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={"PYTHONPATH": import_path(), "LANG": "C.UTF-8", "TMPDIR": temporary} | ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            await asyncio.to_thread(shutil.rmtree, temporary, ignore_errors=True)
            reason = (error.strerror or type(error).__name__).lower()
            problem = (
                f"no process that reads documents can be started ({reason}): check the rights and limits of this user"
            )
            raise OSError(error.errno, problem) from None
        return _Child(process, temporary)


class _Child:
    """One running child and its number of calls."""

    def __init__(self, process: asyncio.subprocess.Process, temporary: str) -> None:
        """`temporary` is a folder that only this child uses: it must not change what the next one reads."""
        self.process = process
        self._temporary = temporary
        self.calls = 0

    async def call(self, call: tuple[Any, ...], wall_seconds: float) -> bytes:
        """Return the answer. Raises `InputUnprocessable` or `ProcessStalled`; the child then has to be killed."""
        body = pickle.dumps(call, pickle.HIGHEST_PROTOCOL)
        assert self.process.stdin is not None
        self.process.stdin.writelines((LENGTH.pack(len(body)), body))  # a dead child shows when the answer is read
        try:
            if self.calls == 0:
                async with asyncio.timeout(START_GRACE_SECONDS):
                    await self._frame()
            self.calls += 1
            async with asyncio.timeout(wall_seconds):
                return await self._frame()
        except TimeoutError:
            # The kernel ends a child that used up its processor time, so this one did not get it.
            raise ProcessStalled(STALLED) from None
        except asyncio.IncompleteReadError:
            code = await self.process.wait()
            if code == -signal.SIGXCPU:
                raise ended_by("timeout") from None
            # SIGKILL comes only from the kernel's OOM killer, or from a child at its own memory limit.
            raise ended_by("memory" if code == -signal.SIGKILL else "crash") from None

    @property
    def is_silent(self) -> bool:
        """Return whether the child has written nothing since its last answer."""
        assert self.process.stdout is not None
        return not self.process.stdout._buffer  # type: ignore[attr-defined]  # noqa: SLF001  CPython 3.11 to 3.14

    async def kill(self) -> None:
        """End the process, wait for its end, and remove its files."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        await asyncio.to_thread(shutil.rmtree, self._temporary, ignore_errors=True)

    async def _frame(self) -> bytes:
        """Return the body of the next frame. Raises `InputUnprocessable` if it is too large."""
        pipe = self.process.stdout
        assert pipe is not None
        (length,) = LENGTH.unpack(await pipe.readexactly(LENGTH.size))
        if length > MAX_FRAME_BYTES:
            raise ended_by("crash")
        return await pipe.readexactly(length)


def read_answer(answer: bytes, returns: TypeAdapter[T]) -> T | ProviderError:
    """Return the result or the error in an answer. Raises `InputUnprocessable` for a malformed answer."""
    kind, _, content = answer.partition(b"\n")
    try:
        if kind == b"value":
            return returns.validate_json(content)
        if kind == b"raised":
            name, *details = STRINGS.validate_json(content)
            return {error.__name__: error for error in RAISED}[name](*details)
        return _failed(Defect.model_validate_json(content))
    except (AttributeError, LookupError, TypeError, ValueError):
        raise ended_by("crash") from None


def _failed(defect: Defect) -> InputUnprocessable:
    """Log the unforeseen error of a child, and return it. Raises ValueError if it is not a plain description."""
    (place,) = checked_frames([defect.place])
    frames = checked_frames(defect.frames)
    if not defect.error.isidentifier() or len(defect.error) > MAX_NAME_CHARACTERS:
        raise ValueError("not the name of an error")
    log.warning("child.defect", error=defect.error, place=place, frames=frames)
    error = InputUnprocessable("failed", f"work on a text from outside raised {defect.error} at {place}")
    error.defect = defect.with_fields(frames=frames)
    return error


def import_path() -> str:
    """Return the import path of the child; its working directory is never part of it."""
    return os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
