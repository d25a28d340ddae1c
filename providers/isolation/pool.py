"""Killable child processes for work that may hang, crash or eat memory: extraction, and long computations.

Native parsers cannot be interrupted from Python, so threads are no answer: a child is killed and replaced.
"""

import asyncio
import contextlib
import io
import os
import pickle
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

from providers.errors import InvalidCall, ProviderError, SourceUnreadable
from providers.isolation.child import LENGTH, RAISED, READY

KillKind = Literal["timeout", "memory", "crash"]

MEMORY_BYTES: Final = 1_610_612_736
"""1.5 GB of address space for one child."""
MAX_FRAME_BYTES: Final = 512 * 1024 * 1024
START_GRACE_SECONDS: Final = 30.0
"""Time for a child to start, apart from the time of its first item: the interpreter has to load."""
RECYCLE_AFTER: Final = 1_000
"""Items after which a child is replaced. Loading its code takes as long as a hundred pages."""
TRUSTED_PACKAGES: Final = ("providers.", "contracts.")


class TaskKilled(ProviderError):
    """A child had to be killed or died: `kind` is timeout, memory or crash."""

    def __init__(self, kind: KillKind) -> None:
        super().__init__(f"the task was ended: {kind}")
        self.kind: KillKind = kind


class TaskFailed(ProviderError):
    """The function raised something unexpected; only type and place are known."""

    def __init__(self, type_name: str, place: str) -> None:
        super().__init__(f"the task raised {type_name} at {place}")
        self.type_name = type_name


@dataclass(frozen=True)
class TaskOutcome:
    """What became of one item: a value, or the error that `call` would have raised."""

    value: Any = None
    error: ProviderError | None = None


class _AnswerUnpickler(pickle.Unpickler):
    """Unpickles plain data and classes of ours: a child that was taken over must not reach further."""

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name) if module.startswith(TRUSTED_PACKAGES) else None
        if not isinstance(found, type):
            raise pickle.UnpicklingError("an answer holds something that is no plain data")
        return found


def outcome_of(frame: Any) -> TaskOutcome:
    """Translate an answer frame of the child."""
    match frame:
        case ("value", value):
            return TaskOutcome(value=value)
        case ("raised", str(type_name), str(message), str(kind)) if type_name in RAISED:
            return TaskOutcome(error=_rebuild_error(type_name, message, kind))
        case ("memory",):
            return TaskOutcome(error=TaskKilled("memory"))
        case ("failed", str(type_name), str(place)):
            return TaskOutcome(error=TaskFailed(type_name, place))
        case _:
            return TaskOutcome(error=TaskKilled("crash"))


def _rebuild_error(type_name: str, message: str, kind: str) -> ProviderError:
    error = RAISED[type_name]
    if error is SourceUnreadable:
        return SourceUnreadable(kind, message)
    return InvalidCall(message, kind=kind) if error is InvalidCall else error(message)


def import_path() -> str:
    """Where the child finds the same modules; its working directory is never one of the places."""
    return os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)


@dataclass(frozen=True)
class _Limits:
    """Of one item."""

    cpu_seconds: float
    wall_seconds: float


class _Child:
    """One running child and the number of items it has done."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.items_done = 0
        self._ready = False

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def send(self, function: str, items: Sequence[tuple[Any, ...]], limits: _Limits) -> None:
        task = (function, list(items), limits.cpu_seconds, limits.wall_seconds)
        body = pickle.dumps(task, pickle.HIGHEST_PROTOCOL)
        pipe = self.process.stdin
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # `receive` reports the death
            pipe.write(LENGTH.pack(len(body)))
            pipe.write(body)
            await pipe.drain()

    async def started(self) -> None:
        """Wait until it takes items. Raises `TimeoutError`, `asyncio.IncompleteReadError` if it died."""
        if not self._ready:
            async with asyncio.timeout(START_GRACE_SECONDS):
                self._ready = await self._frame() == READY

    async def receive(self) -> TaskOutcome:
        """The next answer. Raises `asyncio.IncompleteReadError` if the child died."""
        frame = await self._frame()
        self.items_done += 1
        return outcome_of(frame)

    async def _frame(self) -> Any:
        """What the child says next, None if it is not understood."""
        pipe = self.process.stdout
        assert pipe is not None
        (length,) = LENGTH.unpack(await pipe.readexactly(LENGTH.size))
        if length > MAX_FRAME_BYTES:
            return None
        body = await pipe.readexactly(length)
        try:
            return _AnswerUnpickler(io.BytesIO(body)).load()
        except (pickle.UnpicklingError, AttributeError, EOFError, ImportError, IndexError, TypeError, ValueError):
            return None

    async def cause_of_death(self) -> KillKind:
        """Why the child died by itself: out of processor time counts as timeout."""
        code = await self.process.wait()
        if code in (-signal.SIGXCPU, -signal.SIGALRM):
            return "timeout"
        return "memory" if code == -signal.SIGKILL else "crash"  # only the kernel's memory killer sends that

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    def leave(self) -> None:
        """Let the child end by itself: it exits when its input ends."""
        if self.process.stdin is not None:
            self.process.stdin.close()


class SubprocessPool:
    """At most `size` children that run `module:function` with plain arguments, each item under its own limits.

    Children start when they are first needed, are replaced after a kill and after `recycle_after` items, and hold
    no environment variables of the parent. One pool belongs to one event loop.
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
        self._limits = _Limits(cpu_seconds, wall_seconds)
        self._memory_bytes = memory_bytes
        self._recycle_after = recycle_after
        self._places = asyncio.Semaphore(size)
        self._idle: list[_Child] = []
        self._ending: set[asyncio.Task[int]] = set()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def call(self, function: str, *arguments: Any, seconds: float | None = None) -> Any:
        """Run one function; cancelling the caller kills the child. `seconds` stands for both limits of time.

        Raises the errors of `RAISED` as the function raised them, `TaskKilled` for time, memory and crashes,
        `TaskFailed` for any other exception.
        """
        limits = self._limits if seconds is None else _Limits(seconds, seconds)
        (outcome,) = await self._call_each(function, [arguments], limits)
        if outcome.error is not None:
            raise outcome.error
        return outcome.value

    async def call_each(self, function: str, items: Sequence[tuple[Any, ...]]) -> list[TaskOutcome]:
        """Run the function on each item in one child, in order; an item that kills the child costs only itself."""
        return await self._call_each(function, items, self._limits)

    async def close(self) -> None:
        """End all children and wait for them. Tasks that still run are to be cancelled by their owners first."""
        self._closed = True
        while self._idle:
            self._dismiss(self._idle.pop(), kill=True)
        if self._ending:
            await asyncio.gather(*self._ending)

    async def _call_each(self, function: str, items: Sequence[tuple[Any, ...]], limits: _Limits) -> list[TaskOutcome]:
        outcomes: list[TaskOutcome] = []
        async with self._places:
            while len(outcomes) < len(items):
                outcomes += await self._run(function, items[len(outcomes) :], limits)
        return outcomes

    async def _run(self, function: str, items: Sequence[tuple[Any, ...]], limits: _Limits) -> list[TaskOutcome]:
        """Run items until they are done or the child has gone; at least one outcome."""
        child = await self._take()
        sound = False
        try:
            outcomes = await self._converse(child, function, items, limits)
            last = outcomes[-1].error
            sound = not isinstance(last, TaskKilled)
        finally:
            self._give_back(child, sound=sound)
        return outcomes

    async def _converse(
        self, child: _Child, function: str, items: Sequence[tuple[Any, ...]], limits: _Limits
    ) -> list[TaskOutcome]:
        sending = asyncio.create_task(child.send(function, items, limits))
        outcomes: list[TaskOutcome] = []
        try:
            await child.started()
            for _ in items:
                async with asyncio.timeout(limits.wall_seconds):
                    outcomes.append(await child.receive())
                if isinstance(outcomes[-1].error, TaskKilled):
                    break
        except TimeoutError:
            outcomes.append(TaskOutcome(error=TaskKilled("timeout")))
        except asyncio.IncompleteReadError:
            outcomes.append(TaskOutcome(error=TaskKilled(await child.cause_of_death())))
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        return outcomes

    async def _take(self) -> _Child:
        if self._closed:
            raise RuntimeError("the pool is closed")
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            self._dismiss(child, kill=True)
        return await self._start()

    def _give_back(self, child: _Child, *, sound: bool) -> None:
        if not sound or self._closed:
            self._dismiss(child, kill=True)
        elif child.items_done >= self._recycle_after:
            self._dismiss(child, kill=False)
        else:
            self._idle.append(child)

    def _dismiss(self, child: _Child, *, kill: bool) -> None:
        child.leave()
        if kill:
            child.kill()
        ending = asyncio.get_running_loop().create_task(child.process.wait())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _start(self) -> _Child:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "providers.isolation.child",
            str(self._memory_bytes),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={"PYTHONPATH": import_path(), "PYTHONHASHSEED": "0", "LANG": "C.UTF-8"},
            cwd="/",
            start_new_session=True,
        )
        return _Child(process)
