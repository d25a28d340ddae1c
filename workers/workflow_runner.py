"""The workflow worker's surroundings: the sandbox that runs workflow code, and the log lines of each run."""

from collections.abc import Sequence
from typing import Any, Final

from temporalio import workflow
from temporalio.converter import StorageDriverStoreContext
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInstance,
    WorkflowInterceptorClassInput,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions
from temporalio.workflow import Info

from contracts import names
from contracts.outcome import ResearchResult, ResearchStatus, carried_result
from contracts.vocabulary import Outcome, StopReason

PASSED_THROUGH: Sequence[str] = (
    "contracts",
    "workflows.rules",
    "workflows.run",
    "workflows.phases",
    "workflows.messages",
    "workflows.status",
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


STARTED: Final = "run.started"
ENDED: Final = "run.ended"
REASON_CHARACTERS: Final = 300


class RunLog(Interceptor):
    """Logs the start and the end of each run once, never while a history is replayed."""

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002  the SDK's name
    ) -> type[WorkflowInboundInterceptor]:
        """As the SDK wants it."""
        del input
        return _LoggedRun


class _LoggedRun(WorkflowInboundInterceptor):
    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002  the SDK's name
        """Run the workflow between two lines; a history that starts anew is neither a start nor an end."""
        info = workflow.info()
        if info.workflow_type != names.DEEP_RESEARCH:
            return await super().execute_workflow(input)
        if info.continued_run_id is None:
            workflow.logger.info(STARTED, extra={"research_id": info.workflow_id})
        try:
            result = await super().execute_workflow(input)
        except BaseException as error:
            if is_cancelled_exception(error):
                if workflow.cancellation_reason() is not None:  # else only this worker's copy of the run is dropped
                    _log_end(Outcome.CANCELLED, StopReason.USER_CANCELLED)
            elif isinstance(error, FailureError):
                _log_failure(error)
            raise
        if isinstance(result, ResearchResult):
            _log_end(result.outcome, result.stop_reason, result)
        return result


def _log_failure(error: FailureError) -> None:
    carried = carried_result(error.details) if isinstance(error, ApplicationError) else None
    outcome = carried.outcome if carried else Outcome.FAILED
    stop_reason = carried.stop_reason if carried else StopReason.INTERNAL_ERROR
    _log_end(outcome, stop_reason, carried, reason="; ".join(error.message.splitlines())[:REASON_CHARACTERS])


def _log_end(outcome: Outcome, stop_reason: StopReason, result: ResearchResult | None = None, **told: str) -> None:
    """The time is that of this start of the run, and of the earlier ones where the run counted them."""
    status: ResearchStatus = workflow.instance().status()
    info = workflow.info()
    usage = (result or status).usage
    seconds = usage.active_seconds or (workflow.now() - info.start_time).total_seconds()
    figures: dict[str, float | None] = {
        "seconds": round(seconds, 1),
        "cost_usd": usage.cost_usd,
        "model_calls": usage.model_calls,
    }
    said = {"research_id": info.workflow_id, "outcome": outcome.value, "stop_reason": stop_reason.value}
    workflow.logger.info(ENDED, extra={**said, **figures, **told})
