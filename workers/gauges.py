"""What a worker process shows of itself in its metrics, besides what it does."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from temporalio.common import MetricMeter

from workers.disk_space import free_bytes

MEASURED_EVERY_SECONDS: Final = 10.0


async def measure_now_and_then(meter: MetricMeter, folder: Path, degraded: Callable[[], bool]) -> None:
    """Renew the gauges until cancelled."""
    free = meter.create_gauge("research_free_bytes", "Room left where the process writes", "By")
    away = meter.create_gauge("research_shared_state_degraded", "1 while Redis cannot be used, else 0")
    while True:
        room = await asyncio.to_thread(free_bytes, folder)
        if room is not None:
            free.set(room)
        away.set(int(degraded()))
        await asyncio.sleep(MEASURED_EVERY_SECONDS)
