"""What a worker's log tells of runs: one line when a run begins, one when it ends. Runs inside the workflow."""

from typing import Any, Final

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from contracts import names
from contracts.outcome import ResearchResult, ResearchStatus, carried_result
from contracts.vocabulary import Outcome, StopReason

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
