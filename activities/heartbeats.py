"""Heartbeats: how the engine sees that an attempt lives, and how a cancellation reaches it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from temporalio import activity

BEAT_SECONDS: Final = 0.5
"""Workers send one beat a second at most, so a cancellation arrives in about a second."""


@asynccontextmanager
async def heartbeating(*details: Any, interval: float = BEAT_SECONDS) -> AsyncIterator[None]:
    """Beat every `interval` seconds until the block ends.

    `details` come back as `activity.info().heartbeat_details` in the next attempt: if there is anything to hand on,
    the first beat goes at once. Otherwise work that is done sooner than that costs the engine no beat at all.
    """
    if any(details):
        activity.heartbeat(*details)
    beating = asyncio.create_task(_beat(interval, details))
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait([beating])
    if not beating.cancelled():
        beating.result()


async def _beat(interval: float, details: tuple[Any, ...]) -> None:
    while True:
        await asyncio.sleep(interval)
        activity.heartbeat(*details)
