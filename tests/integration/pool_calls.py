"""A workflow of one call, and calls that tell the test what happens to them."""

import asyncio
import threading
import time
from datetime import timedelta
from typing import ClassVar

from temporalio import activity, workflow

from activities.failures import MODELS, attempt
from contracts.names import POOLS
from workers.pools import PoolContents

HELD_SECONDS = 25.0
"""Longest time that a start holds its thread."""


@workflow.defn(name="one-call", sandboxed=False)
class OneCall:
    """Calls one activity of a pool."""

    @workflow.run
    async def run(self, name: str) -> str:
        answer: str = await workflow.execute_activity(
            name,
            task_queue=POOLS["models"],
            start_to_close_timeout=timedelta(seconds=30),
            heartbeat_timeout=timedelta(seconds=60),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            result_type=str,
        )
        return answer


@workflow.defn(name="held-up", sandboxed=False)
class HeldUp:
    """Holds its thread once for a time in which nothing can interrupt it, while other work of it waits."""

    seconds: ClassVar[list[float]] = []
    """Times that are left, the next one last."""

    @workflow.run
    async def run(self) -> str:
        waiting = asyncio.ensure_future(workflow.sleep(3_600))
        await workflow.sleep(0.01)
        if self.seconds:
            time.sleep(self.seconds.pop())  # noqa: ASYNC251  stands for a machine that has no time for the thread
        await workflow.sleep(0.01)
        waiting.cancel()
        return "done"


@workflow.defn(name="slow-start", sandboxed=False)
class SlowStart:
    """Holds its thread at the start until the test lets it go."""

    go_on: ClassVar[threading.Event] = threading.Event()

    @workflow.run
    async def run(self) -> None:
        self.go_on.wait(HELD_SECONDS)


@workflow.defn(name="under-way", sandboxed=False)
class UnderWay:
    """Answers."""

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update(name="ping")
    async def ping(self) -> str:
        return "pong"


class Calls:
    """Activities that tell the test what happens to them."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    @activity.defn(name="waits")
    async def waits(self) -> str:
        self.begun.set()
        await self.go_on.wait()
        return f"attempt {activity.info().attempt}"

    @activity.defn(name="counted")
    async def counted(self) -> str:
        """Like a call of the product, until the test says so: the attempts that failed and were lost before."""
        async with attempt(MODELS) as history:
            self.begun.set()
            await self.go_on.wait()
            return f"{history.reported} reported, {history.losses} lost"

    def contents(self) -> PoolContents:
        return PoolContents(workflows=[OneCall], activities={"models": [self.waits, self.counted]})
