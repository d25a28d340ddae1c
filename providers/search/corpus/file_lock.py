"""One writer for each index, across processes: the kernel lets go of the lock when its holder dies."""

import asyncio
import fcntl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

POLL_SECONDS: Final = 0.05


@asynccontextmanager
async def file_lock(path: Path) -> AsyncIterator[None]:
    """Hold an exclusive lock; waiting for it does not block the event loop and can be cancelled."""
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(POLL_SECONDS)
        yield
