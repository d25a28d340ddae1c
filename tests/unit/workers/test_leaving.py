"""Running work to its end and leaving."""

import asyncio
import subprocess
import sys
import threading

import pytest

from workers.process_exit import run_to_end


def test_the_end_does_not_wait_for_a_thread_that_nobody_needs() -> None:
    """A blocking call that goes on for ever holds up neither the loop's end nor the result."""
    never = threading.Event()

    async def work() -> str:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(never.wait, 30), 0.01)
        return "done"

    try:
        assert run_to_end(work()) == "done"
    finally:
        never.set()


@pytest.mark.parametrize("code", [0, 5])
def test_a_process_leaves_with_its_code_and_all_it_said(code: int) -> None:
    """Nothing is lost in a pipe, although the interpreter is not taken apart."""
    program = f"import sys; from workers.process_exit import exit_process as end; sys.stdout.write('x' * 100_000); end({code})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stdout), done.stderr) == (code, 100_000, "")
