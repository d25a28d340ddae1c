"""The sandbox that runs workflow code."""

from collections.abc import Sequence

from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
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


class _Runner(SandboxedWorkflowRunner):
    """The SDK's runner, without the context of payloads.

    The SDK looks it up seven times per activity, by code that it compiles and runs in the sandbox: one twentieth of
    the worker's processor time. Only codecs and external storage use it, and the data converter has neither.
    """

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        instance = super().create_instance(det)
        vars(instance).update(get_serialization_context=lambda _: None, get_external_store_context=lambda _: None)
        return instance


def workflow_runner() -> SandboxedWorkflowRunner:
    """Create the runner of every workflow worker and of the replay tests."""
    return _Runner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))
