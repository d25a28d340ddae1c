"""From what the server says of a closed run to a `ResearchResult`: a handle always gives one."""

from collections.abc import Sequence

from pydantic import ValidationError
from temporalio.client import WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError

from contracts import failures
from contracts.outcome import ResearchResult, ResearchStatus
from contracts.vocabulary import Completeness, Outcome, RunStatus, StopReason

OUTCOMES = {
    failures.INVALID_REQUEST: Outcome.REFUSED,
    failures.REFUSED: Outcome.REFUSED,
    failures.TIMED_OUT: Outcome.TIMED_OUT,
    failures.RESEARCH_FAILED: Outcome.FAILED,
}
STOP_REASONS = {
    Outcome.REFUSED: StopReason.INVALID_INPUT,
    Outcome.TIMED_OUT: StopReason.BUDGET_TIME,
    Outcome.CANCELLED: StopReason.USER_CANCELLED,
    Outcome.FAILED: StopReason.INTERNAL_ERROR,
}
OUTCOME_BY_STATUS = {
    WorkflowExecutionStatus.CANCELED: Outcome.CANCELLED,
    WorkflowExecutionStatus.TIMED_OUT: Outcome.TIMED_OUT,
}
RESUMABLE = (Outcome.PARTIAL, Outcome.EMPTY, Outcome.CANCELLED, Outcome.TIMED_OUT, Outcome.FAILED)


def carried_result(error: ApplicationError) -> ResearchResult | None:
    """The result in the first detail of a failure, if the run put one there."""
    return _as_result(error.details)


def result_of_failure(research_id: str, cause: BaseException | None, last: ResearchStatus | None) -> ResearchResult:
    """What is known of a run that did not return.

    `cause` is the cause of the server's failure; `last` the last status seen, if any, for the counts.
    """
    if isinstance(cause, ApplicationError):
        carried = carried_result(cause)
        if carried is not None:
            return carried
        outcome = OUTCOMES.get(cause.type or "", Outcome.FAILED)
        return bare_result(research_id, outcome, last, cause.message)
    if isinstance(cause, CancelledError):
        return bare_result(research_id, Outcome.CANCELLED, last, "")
    if isinstance(cause, TerminatedError):
        return bare_result(research_id, Outcome.FAILED, last, "the run was terminated from outside")
    return bare_result(research_id, Outcome.FAILED, last, "the server closed the run")


def bare_result(research_id: str, outcome: Outcome, last: ResearchStatus | None, explanation: str) -> ResearchResult:
    """A result without a report, from the last status that the run gave."""
    stop_reason = (last.stop_reason if last else None) or STOP_REASONS.get(outcome, StopReason.INTERNAL_ERROR)
    known = last or ResearchStatus(research_id=research_id, query="", status=RunStatus.FAILED)
    return ResearchResult(
        research_id=research_id,
        outcome=outcome,
        stop_reason=stop_reason,
        completeness=Completeness.EMPTY,
        counts=known.counts,
        usage=known.usage,
        degraded=known.degraded,
        limitations=[explanation] if explanation else [],
        started_at=known.started_at,
        ended_at=known.ended_at or "",
    )


def with_duration(result: ResearchResult, last: ResearchStatus | None) -> ResearchResult:
    """The result with how long the run worked, from its last status where the result lacks it (a cancelled run)."""
    if last is None or result.usage.active_seconds:
        return result
    usage = result.usage.model_copy(update={"active_seconds": round(last.elapsed_seconds, 3)})
    return result.model_copy(update={"usage": usage})


def _as_result(details: Sequence[object]) -> ResearchResult | None:
    if not details or not isinstance(details[0], dict):
        return None
    try:
        return ResearchResult.model_validate(details[0])
    except ValidationError:
        return None
