"""A workflow for measurements alone: so many activities at once, on a pool's task queue."""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow

QUEUE = "benchmark-fan-out"


@workflow.defn(name="fan-out")
class FanOut:
    """Returns when all activities have; one that fails ends the measurement."""

    @workflow.run
    async def run(self, activity: str, task_queue: str, arguments: list[dict[str, Any]]) -> int:
        """The number of activities that were done."""
        limit = timedelta(minutes=10)
        done = await asyncio.gather(
            *(
                workflow.execute_activity(
                    activity,
                    argument,
                    task_queue=task_queue,
                    start_to_close_timeout=limit,
                    heartbeat_timeout=timedelta(seconds=30),
                )
                for argument in arguments
            )
        )
        return len(done)
