"""An operator's think-pause hook that holds a run in a phase, so that a test can disturb it exactly there."""

import asyncio
import threading
from pathlib import Path
from typing import Any, Self

from temporalio import activity
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

from contracts.vocabulary import Phase
from tests.integration.runs import BUILD_ID
from workers.dev_server import ServerFiles

CONFIGURATION = '[hooks.hold]\nactivity = "hold"\ntask_queue = "held-runs"\n'
"""For `research.toml`."""
HELD = ("--set", "gates.hook=hold")
"""Options of a run that is to be held, for as long as a hook may take (60 s)."""


class Hold:
    """Serves the hook from a thread, against the embedded engine, as a context manager."""

    def __init__(self, home: Path, phase: Phase) -> None:
        self.reached = threading.Event()
        """Set once a run is held."""
        self._phase = phase
        self._port = ServerFiles(home).read().port
        self._released = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def release(self) -> None:
        self._released.set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._ended.set()
        self._thread.join()

    async def _serve(self) -> None:
        client = await Client.connect(f"127.0.0.1:{self._port}", data_converter=pydantic_data_converter)
        async with Worker(client, task_queue="held-runs", activities=[self._hold], build_id=BUILD_ID):
            await _until(self._ended)

    @activity.defn(name="hold")
    async def _hold(self, state: dict[str, Any], prompt: str) -> None:
        assert prompt
        if state["phase"] == self._phase.value and not self._released.is_set():
            self.reached.set()
            await _until(self._released)


async def _until(event: threading.Event) -> None:
    while not event.is_set():
        await asyncio.sleep(0.05)
