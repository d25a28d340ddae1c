"""Ctrl-C: the first one asks for an orderly end, the second one leaves at once."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from client.cli.exit_codes import ExitCode

SHOW_CURSOR = "\x1b[?25h"
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@asynccontextmanager
async def first_interrupt() -> AsyncIterator[asyncio.Event]:
    """An event that the first Ctrl-C sets (SIGTERM counts, too); a second one ends the process."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        if asked.is_set():
            if sys.stderr.isatty():
                sys.stderr.write(SHOW_CURSOR)
            sys.stderr.write("\n")
            sys.stderr.flush()
            os._exit(ExitCode.CANCELLED)
        asked.set()

    for number in SIGNALS:
        loop.add_signal_handler(number, interrupt)
    try:
        yield asked
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
