"""The sandbox that runs workflow code."""

from collections.abc import Sequence

from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

PASSED_THROUGH: Sequence[str] = (
    "contracts",
    "workflows.rules",
    "workflows.run",
    "workflows.phases",
    "workflows.messages",
    "workflows.status",
    "workflows.strategies.protocol",
    "workflows.strategies.units",
    "workflows.strategies.supervisor",
    "workflows.strategies.reflective",
    "workflows.strategies.orchestrator",
)
"""Modules that pass through the workflow sandbox besides the standard library, temporalio and pydantic.

The sandbox imports everything else again for each run: the entry workflow, the driver, and strategies from outside the
product. All of ours took it 17 ms per run, in which the worker did nothing else. `tests/architecture` checks that these
modules use nothing that the sandbox would refuse.
"""


def workflow_runner() -> SandboxedWorkflowRunner:
    """Create the runner of every workflow worker and of the replay tests."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))
