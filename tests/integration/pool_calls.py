"""A workflow of one call, and calls that tell the test what happens to them."""

import asyncio
from datetime import timedelta

from temporalio import activity, workflow

from activities.failures import MODELS, attempt
from contracts.names import POOLS
from workers.pools import PoolContents


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
