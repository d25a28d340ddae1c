"""The runner of workflows: events that no workflow task has handled are refused."""

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from contracts.failures import EVENTS_AFTER_TASK
from workers.pools import _refuse_later_events


def activation(seconds: int, length: int, job: str) -> WorkflowActivation:
    made = WorkflowActivation(history_length=length)
    made.timestamp.FromSeconds(seconds)
    getattr(made.jobs.add(), job).SetInParent()
    return made


def test_events_after_a_task_are_refused_without_an_exception() -> None:
    """The SDK logs all frames of an exception, each time that a query comes early; a failed answer is enough."""
    activate = _refuse_later_events(lambda _: WorkflowActivationCompletion(run_id="done"))
    assert activate(activation(1, 5, "fire_timer")).run_id == "done"
    refused = activate(activation(1, 7, "resolve_activity"))
    assert refused.failed.failure.message == EVENTS_AFTER_TASK
    assert activate(activation(1, 7, "query_workflow")).run_id == "done"
    assert activate(activation(2, 9, "resolve_activity")).run_id == "done"
