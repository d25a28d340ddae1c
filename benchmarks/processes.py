"""What a process and its children take of the machine, from /proc; and their end."""

import asyncio
import ctypes
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

SAMPLE_SECONDS: Final = 0.25
SET_PARENT_DEATH_SIGNAL, SET_CHILD_SUBREAPER = 1, 36
"""Options of Linux's `prctl`."""


class Peak:
    """The most memory that a tree of processes held at once, in megabytes; shared pages count once."""

    def __init__(self) -> None:
        self.megabytes = 0.0


def tree(pid: int) -> list[int]:
    """A process and its descendants that live."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:  # it ended meanwhile
            continue
    found = [pid]
    for known in found:
        found += [child for child, parent in parents.items() if parent == known]
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, of its children that live, and of all that have ended."""
    ticks = 0
    for member in tree(pid):
        try:
            fields = Path(f"/proc/{member}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += sum(int(value) for value in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def stolen_seconds() -> float:
    """Processor time of all cores, since the start, that the machine's host gave to others: it spoils a measurement."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


def megabytes(pid: int) -> float:
    """Memory of the whole tree, each shared page divided among those that share it."""
    kilobytes = 0
    for member in tree(pid):
        try:
            lines = Path(f"/proc/{member}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        kilobytes += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kilobytes / 1024


@asynccontextmanager
async def watched(pid: int) -> AsyncIterator[Peak]:
    """The peak while the block runs, sampled four times a second."""
    peak = Peak()

    async def watch() -> None:
        while True:
            peak.megabytes = max(peak.megabytes, await asyncio.to_thread(megabytes, pid))
            await asyncio.sleep(SAMPLE_SECONDS)

    watching = asyncio.create_task(watch())
    try:
        yield peak
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def end_descendants() -> None:
    """Kill all that this process and its children have started, also what has a session of its own."""
    while left := tree(os.getpid())[1:]:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent has died, and end them all on SIGTERM and SIGINT."""
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def end(number: int, _: object) -> None:
        end_descendants()
        os._exit(128 + number)

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, end)


def end_with_parent() -> None:
    """Have this process get SIGTERM when its parent dies, however that dies."""
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
