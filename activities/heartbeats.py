"""Heartbeats: how the engine sees that an attempt lives, and how a cancellation reaches it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from temporalio import activity

FIRST_BEAT_SECONDS: Final = 1.25
"""Most searches, pages and short calls are done by then. A beat costs the server a sixth of what the whole of a short
activity does (decision 0019)."""
BEAT_SECONDS: Final = 0.5
"""Workers send one beat a second at most, so a cancellation arrives in about a second."""


@asynccontextmanager
async def heartbeating(
    *details: Any, first: float = FIRST_BEAT_SECONDS, interval: float = BEAT_SECONDS
) -> AsyncIterator[None]:
    """Beat after `first` seconds, then every `interval` seconds, until the block ends.

    `details` come back as `activity.info().heartbeat_details` in the next attempt: if there is anything to hand on,
    a beat goes at once.
    """
    if any(details):
        activity.heartbeat(*details)
    beating = asyncio.create_task(_beat(first, interval, details))
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait([beating])
    if not beating.cancelled():
        beating.result()


async def _beat(first: float, interval: float, details: tuple[Any, ...]) -> None:
    await asyncio.sleep(first)
    while True:
        activity.heartbeat(*details)
        await asyncio.sleep(interval)
