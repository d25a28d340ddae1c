"""A process whose event loop stalls is ended, and one that waits is not. With real processes."""

import asyncio
import sys
from asyncio.subprocess import PIPE

import pytest

pytestmark = pytest.mark.integration

PROGRAM = """
import asyncio, re, sys
from workers.process import end_if_stalled

async def main(work):
    async with end_if_stalled(limit_seconds=1.5):
        print("ready", flush=True)
        if work == "pattern":
            await asyncio.sleep(0.01)
            re.match(r"(a+)+$", "a" * 64 + "b")
        await asyncio.sleep(2.5)
    print("done", flush=True)

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.parametrize(("work", "code", "output"), [("pattern", 1, b"ready\n"), ("wait", 0, b"ready\ndone\n")])
async def test_only_a_stalled_event_loop_ends_its_process(work: str, code: int, output: bytes) -> None:
    """An endless regular expression ends the process with the stacks in its log; waiting does not."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, work, stdout=PIPE, stderr=PIPE)
    async with asyncio.timeout(60):
        printed, errors = await process.communicate()
    assert (process.returncode, printed) == (code, output)
    assert (b"in main" in errors) == (work == "pattern")
