"""A workflow that decides by its clock: `python -m tests.toy.timed ADDRESS` runs its worker."""

import asyncio
import sys
from datetime import timedelta
from functools import partial

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from temporalio.client import Client

    from contracts.names import POOLS
    from workers.pools import PoolContents, run_pools


@workflow.defn(name="timed")
class Timed:
    """Makes one call, and another one unless its clock went on meanwhile."""

    @workflow.run
    async def run(self, name: str) -> str:
        limit = timedelta(seconds=30)
        call = partial(workflow.execute_activity, name, task_queue=POOLS["models"], start_to_close_timeout=limit)
        before = workflow.now()
        await call()
        if workflow.now() > before:
            await workflow.sleep(0.01)
            return "later"
        await call()
        return "at once"

    @workflow.query(name="phase")
    def phase(self) -> str:
        return "calling"


async def main(address: str) -> None:
    """Run the pool of workflows until the process is killed."""
    client = await Client.connect(address)
    async with run_pools(client, PoolContents(workflows=[Timed]), ("workflows",)):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
