"""A workflow of another program under the name of ours: it returns what is no result."""

from temporalio import workflow
from temporalio.common import RawValue

from contracts.names import DEEP_RESEARCH


@workflow.defn(name=DEEP_RESEARCH, sandboxed=False)
class Strange:
    """Takes anything and returns a text."""

    @workflow.run
    async def run(self, given: RawValue) -> str:
        """Something that drives a terminal."""
        return "\x1b[31mno result"
