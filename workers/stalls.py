"""Ends a process whose event loop has stalled, so that another worker retries its calls.

A stall is measured in processor time of the process, as a loaded machine may give it none for a minute; a loop that
waits without using any, for a file or a lock, gets four times as long in looks of a thread. That thread ends the
process with a line on standard error. It cannot run while C code keeps the interpreter to itself, as an endless regular
expression does: then a signal ends the process after twice the processor time, with the stacks on standard error.
"""

import asyncio
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, TextIO

STALL_SECONDS: Final = 30.0
"""Processor time; far longer than any callback takes."""
IDLE_FACTOR: Final = 4
"""How many times as long a loop may stand still without using processor time."""
SIGNAL_FACTOR: Final = 2
LOOK_SECONDS: Final = 1.0

End = Callable[[str], None]
"""Ends the process; the argument is a clause that says what stood still for how long."""


@asynccontextmanager
async def end_if_stalled(
    log: TextIO | None = None, limit_seconds: float = STALL_SECONDS, end: End | None = None
) -> AsyncIterator[None]:
    """End this process if its event loop stalls during the block: by `end`, else with a line and exit code 1.

    The stacks of all threads go to `log` (default: standard error) first.
    """
    watch = _Watch(log or sys.__stderr__ or sys.stderr, limit_seconds, end or _end_with_a_line)
    faulthandler.register(signal.SIGPROF, file=sys.__stderr__ or sys.stderr, all_threads=True, chain=True)
    task = asyncio.create_task(watch.tick_periodically())
    watch.start()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        watch.stop()
        faulthandler.unregister(signal.SIGPROF)


class _Watch(threading.Thread):
    """A thread that looks at the ticks of the event loop."""

    def __init__(self, log: TextIO, limit_seconds: float, end: End) -> None:
        super().__init__(name="stall-watch", daemon=True)
        self._log = log
        self._limit = limit_seconds
        self._end = end
        self._interval = min(LOOK_SECONDS, limit_seconds / 5)
        self._over = threading.Event()
        self._used_at_tick = time.process_time()
        self._looks = 0

    async def tick_periodically(self) -> None:
        """Show that the event loop runs, again and again."""
        while True:
            self._used_at_tick = time.process_time()
            self._looks = 0
            signal.setitimer(signal.ITIMER_PROF, self._limit * SIGNAL_FACTOR)
            await asyncio.sleep(self._interval)

    def run(self) -> None:
        """Look until the watch is stopped or the loop has stalled."""
        while not self._over.wait(self._interval):
            self._looks += 1
            used = time.process_time() - self._used_at_tick
            waited = self._looks * self._interval
            if has_stalled(used, waited, self._limit):
                signal.setitimer(signal.ITIMER_PROF, 0)  # another program that takes this process's place keeps it
                faulthandler.dump_traceback(self._log, all_threads=True)
                self._end(f"its event loop stood still for {waited:.0f} s ({used:.0f} s of processor time)")
                return

    def stop(self) -> None:
        """End the watch."""
        self._over.set()
        signal.setitimer(signal.ITIMER_PROF, 0)
        self.join()


def has_stalled(used: float, waited: float, limit: float) -> bool:
    """Return whether a loop that did not tick has stalled; all in seconds.

    `used` is the processor time of its process since the last tick, `waited` what the looks of a thread add up to.
    """
    return used > limit or waited > limit * IDLE_FACTOR


def _end_with_a_line(what: str) -> None:
    remedy = "start it again, and report the stacks in its log; other workers retry its calls"
    sys.stderr.write(f"research: this worker ends: {what}: {remedy}\n")
    sys.stderr.flush()
    os._exit(1)
