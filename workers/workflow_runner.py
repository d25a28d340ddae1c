"""How workflow code is run: in the sandbox of the SDK, which imports some of it anew for each run."""

from collections.abc import Sequence
from typing import Any

from temporalio.converter import StorageDriverStoreContext
from temporalio.worker import WorkflowInstance
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import Info

PASSED_THROUGH: Sequence[str] = (
    "contracts",
    "workflows.rules",
    "workflows.run",
    "workflows.phases",
    "workflows.run_status",
    "workflows.strategies.protocol",
    "workflows.strategies.supervisor",
    "workflows.strategies.reflective",
    "workflows.strategies.orchestrator",
)
"""What passes through the workflow sandbox besides the standard library, temporalio and pydantic.

The sandbox imports everything else anew for each run: the entry workflow, the driver, and strategies from outside the
product. All of ours took it 17 ms per run, in which the worker did nothing else. What passes is checked once, by
`tests/architecture`: it names nothing that the sandbox would refuse while a run goes on.
"""


class WorkflowRunner(SandboxedWorkflowRunner):
    """The sandbox, without asking it about each payload."""

    def create_instance(self, det: Any) -> WorkflowInstance:
        """Create the instance of one run in a sandbox of its own."""
        return _WithoutContexts(super().create_instance(det))


class _WithoutContexts(WorkflowInstance):
    """An instance whose payloads need no context: our converter has none, and neither codec nor external storage.

    The SDK asks five times for each payload, and each time compiles and enters the sandbox: a tenth of a millisecond.
    """

    def __init__(self, instance: WorkflowInstance) -> None:
        self._instance = instance

    def activate(self, act: Any) -> Any:
        return self._instance.activate(act)

    def get_serialization_context(self, command_info: Any) -> None:
        del command_info

    def get_external_store_context(self, command_info: Any) -> StorageDriverStoreContext:
        del command_info
        return StorageDriverStoreContext(target=None)

    def get_info(self) -> Info:
        return self._instance.get_info()

    def get_thread_id(self) -> int | None:
        return self._instance.get_thread_id()


def workflow_runner() -> WorkflowRunner:
    """Create the runner of every workflow worker and of the replay tests."""
    return WorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))
