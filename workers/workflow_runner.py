"""The workflow worker's surroundings: the sandbox that runs workflow code, and the log lines of each run."""

from collections.abc import Sequence
from typing import Any, Final

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

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
REASON_CHARACTERS: Final = 300


def workflow_runner() -> SandboxedWorkflowRunner:
    """Create the runner of every workflow worker and of the replay tests."""
    return SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH))


class RunLog(Interceptor):
    """Logs the start and the end of each run once, never while a history is replayed."""

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002  the SDK's name
    ) -> type[WorkflowInboundInterceptor]:
        """Return the interceptor."""
        del input
        return _LoggedRun


class _LoggedRun(WorkflowInboundInterceptor):
    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002  the SDK's name
        """Run the workflow between two lines; a history that is continued is neither a start nor an end."""
        info = workflow.info()
        if info.workflow_type != names.DEEP_RESEARCH:
            return await super().execute_workflow(input)
        if info.continued_run_id is None:
            workflow.logger.info("run.started", extra={"research_id": info.workflow_id})
        try:
            result = await super().execute_workflow(input)
        except BaseException as error:
            if is_cancelled_exception(error):
                if workflow.cancellation_reason() is not None:  # else only this worker's copy of the run is dropped
                    _log_end(Outcome.CANCELLED, StopReason.USER_CANCELLED, None)
            elif isinstance(error, FailureError):
                carried = carried_result(error.details) if isinstance(error, ApplicationError) else None
                reason = "; ".join(error.message.splitlines())[:REASON_CHARACTERS]
                _log_end(Outcome.FAILED, StopReason.INTERNAL_ERROR, carried, reason=reason)
            raise
        if isinstance(result, ResearchResult):
            _log_end(result.outcome, result.stop_reason, result)
        return result


def _log_end(outcome: Outcome, stop_reason: StopReason, result: ResearchResult | None, **more: str) -> None:
    """Log the end with outcome and usage of the result if there is one; the time is that of all starts of the run."""
    status: ResearchStatus = workflow.instance().status()
    info, usage = workflow.info(), (result or status).usage
    fields: dict[str, str | float | None] = {
        "research_id": info.workflow_id,
        "outcome": (result.outcome if result else outcome).value,
        "stop_reason": (result.stop_reason if result else stop_reason).value,
        "seconds": round(usage.active_seconds or (workflow.now() - info.start_time).total_seconds(), 1),
        "cost_usd": usage.cost_usd,
        "model_calls": usage.model_calls,
    }
    workflow.logger.info("run.ended", extra={**fields, **more})
