"""The workflow sandbox, and the one list of what passes through it.

Everything else is imported anew for each workflow instance: that isolates runs, and costs 200 ms of CPU and 4 MB per
run for a large library, so workflow files import the standard library, temporalio, pydantic and these alone.
"""

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

PASSED_THROUGH = ("contracts",)


def workflow_runner() -> SandboxedWorkflowRunner:
    """The runner of every workflow worker, of the replay tests too."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))
