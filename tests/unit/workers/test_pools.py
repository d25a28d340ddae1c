"""The runner of workflows: events that no workflow task has handled are refused."""

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance
from temporalio.workflow import Info

from contracts.base import Contract
from contracts.failures import EVENTS_AFTER_TASK
from workers.pools import CheckedInstance, workflow_runner


class Instance(WorkflowInstance):
    """An instance that handles everything."""

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        return WorkflowActivationCompletion(run_id="done")

    def get_serialization_context(self, command_info: object) -> None:
        raise AssertionError

    def get_external_store_context(self, command_info: object) -> None:  # type: ignore[override]
        raise AssertionError

    def get_info(self) -> Info:
        raise NotImplementedError

    def get_thread_id(self) -> int:
        return 7


def activation(seconds: int, length: int, job: str) -> WorkflowActivation:
    made = WorkflowActivation(history_length=length)
    made.timestamp.FromSeconds(seconds)
    getattr(made.jobs.add(), job).SetInParent()
    return made


def test_events_after_a_task_are_refused_without_an_exception() -> None:
    """The SDK logs all frames of an exception, each time that a query comes early; a failed answer is enough."""
    activate = CheckedInstance(Instance()).activate
    assert activate(activation(1, 5, "fire_timer")).run_id == "done"
    refused = activate(activation(1, 7, "resolve_activity"))
    assert refused.failed.failure.message == EVENTS_AFTER_TASK
    assert activate(activation(1, 7, "query_workflow")).run_id == "done"
    assert activate(activation(2, 9, "resolve_activity")).run_id == "done"


def test_an_instance_has_no_payload_contexts() -> None:
    """The SDK compiles and runs code for each of them, and nothing of ours uses them; the thread is that of the SDK."""
    instance = CheckedInstance(Instance())
    assert instance.get_serialization_context(None) is instance.get_external_store_context(None) is None
    assert instance.get_thread_id() == 7


def test_validators_are_made_before_the_first_task() -> None:
    """Those of contracts wait for their first use, but not in a worker: no workflow task waits for one."""

    class Late(Contract):
        number: int = 0

    assert not Late.__pydantic_complete__
    workflow_runner()
    assert Late.__pydantic_complete__
