"""A workflow of two versions whose commands differ."""

from datetime import timedelta

from temporalio import workflow

NAME = "of-two-versions"


@workflow.defn(name=NAME)
class Earlier:
    """Waits for a timer."""

    @workflow.run
    async def run(self) -> None:
        await workflow.sleep(timedelta(hours=1))

    @workflow.query(name="status")
    def status(self) -> str:
        return "waiting"


@workflow.defn(name=NAME)
class Later:
    """Calls an activity where the earlier version waits."""

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity("anything", start_to_close_timeout=timedelta(hours=1))

    @workflow.query(name="status")
    def status(self) -> str:
        return "calling"
