"""The watchdog, with real processes: what it ends, and what it leaves alone."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from providers.isolation.pool import import_path
from workers.watchdog import EXIT_CODE
from workers.watchdog_child import Standing, chargeable_seconds

pytestmark = pytest.mark.integration

SAID = "go on with: research resume r-1"
SECRET = "zebra"
LIMIT_SECONDS = 3.0
"""More than the one look that a beat may come too late for."""
STOPPED_SECONDS = 3 * LIMIT_SECONDS

PROGRAM = f"""
import asyncio, re, sys, time
from workers.watchdog import watch_event_loop

async def main(work):
    async with watch_event_loop("json", said={SAID!r}, limit_seconds={LIMIT_SECONDS}):
        print("ready", flush=True)
        await asyncio.sleep(0.01)
        if work == "pattern":
            page = "{SECRET}" + "a" * 64 + "b"
            re.match(r"{SECRET}(a+)+$", page)
        if work == "thread":
            await asyncio.to_thread(re.match, r"(a+)+$", "a" * 64 + "b")
        if work == "sleep":
            time.sleep(100_000)
        await asyncio.to_thread(sys.stdin.readline)
        print("done", flush=True)

asyncio.run(main(sys.argv[1]))
"""

CANCELLED = """
import asyncio
from providers.isolation.killable_calls import KillableCalls
from providers.isolation.pool import SubprocessPool
from tests.fakes.killers import BURN
from workers.process import stop_signals

async def main():
    with stop_signals() as stop:
        async with SubprocessPool(1, wall_seconds=100_000, cpu_seconds=100_000) as pool:
            work = asyncio.create_task(KillableCalls(pool).call(BURN))
            await asyncio.sleep(0.5)
            print("ready", flush=True)
            await stop.wait()
            work.cancel()
            await asyncio.wait([work])
    print("done", flush=True)

asyncio.run(main())
"""


@asynccontextmanager
async def running(program: str, *arguments: str) -> AsyncIterator[Process]:
    """A process that has said that it is ready; it is gone after the block."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, *arguments),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={"PYTHONPATH": import_path(), "PATH": os.environ["PATH"]},
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.parametrize("work", ["pattern", "thread", "sleep"])
async def test_a_silent_loop_is_ended(work: str) -> None:
    """Whoever holds the interpreter, or the loop: one line tells where, without a word of what was worked on."""
    async with running(PROGRAM, work) as process:
        _, errors = await process.communicate()
    assert process.returncode == EXIT_CODE
    line, said = errors.decode().splitlines()
    told = json.loads(line)
    assert (told["event"], told["level"], said) == ("worker.loop_silent", "critical", SAID)
    assert any("match" in place for place in [*told["stack"], *told["other_threads"]]) or work == "sleep"
    assert any(place.endswith(" main") for place in told["stack"])
    assert SECRET not in line


async def test_a_process_that_was_stopped_is_left_alone() -> None:
    """A standstill is nobody's silence: for much longer than the limit, and the process goes on as before."""
    async with running(PROGRAM, "nothing") as process:
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(STOPPED_SECONDS)
        process.send_signal(signal.SIGCONT)
        output, errors = await process.communicate(b"\n")
    assert (process.returncode, output, errors) == (0, b"done\n", b"")


async def test_work_in_a_child_does_not_keep_a_process_from_stopping() -> None:
    """SIGTERM is heard while a child burns, and the child ends with its caller."""
    async with running(CANCELLED) as process:
        process.send_signal(signal.SIGTERM)
        output, _ = await process.communicate()
    assert (process.returncode, output) == (0, b"done\n")


@pytest.mark.parametrize(
    ("before", "now", "seconds"),
    [
        (Standing("S", 5.0), Standing("S", 5.0), 1.0),
        (Standing("R", 5.0), Standing("R", 6.0), 1.0),
        (Standing("R", 5.0), Standing("R", 5.25), 0.25),
        (Standing("R", 5.0), Standing("R", 9.0), 1.0),
        (Standing("S", 5.0), Standing("T", 5.0), 0.0),
        (Standing("S", 5.0), Standing("D", 5.0), 0.0),
        (None, None, 1.0),
    ],
)
def test_silence_counts_in_time_of_ones_own(before: Standing | None, now: Standing | None, seconds: float) -> None:
    """Stopped, starved or waiting for a disk a process could not answer; where the system says nothing, looks count."""
    assert chargeable_seconds(before, now) == seconds
