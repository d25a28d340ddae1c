"""From what the server says of a closed run to a `ResearchResult`: a handle always gives one."""

from temporalio.client import WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError

from contracts import failures
from contracts.outcome import ResearchResult, ResearchStatus, carried_result
from contracts.vocabulary import NATURAL_STOPS, STOP_REASON_TEXTS, Completeness, Outcome, RunStatus, StopReason

OUTCOMES = {
    failures.TIMED_OUT: Outcome.TIMED_OUT,
    failures.RESEARCH_FAILED: Outcome.FAILED,
}
MOST_SHORTCOMINGS = 3
"""Lines about what a partial report lacks; the report has them all."""
REFUSAL_TYPES = frozenset(reason.value for reason in StopReason)
"""The type of a refused run's failure is its stop reason."""
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


def result_of_failure(research_id: str, cause: BaseException | None, last: ResearchStatus | None) -> ResearchResult:
    """What is known of a run that did not return.

    `cause` is the cause of the server's failure; `last` the last status seen, if any, for the counts.
    """
    if isinstance(cause, ApplicationError):
        carried = carried_result(cause.details)
        if carried is not None:
            return carried
        if cause.type in REFUSAL_TYPES:
            refused = bare_result(research_id, Outcome.REFUSED, last, cause.message)
            return refused.model_copy(update={"stop_reason": StopReason(cause.type)})
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


def with_stored(result: ResearchResult, stored: ResearchResult | None) -> ResearchResult:
    """The result with what the session store knows: its own result if that ended alike, else how far the run was."""
    if stored is None:
        return result
    if stored.outcome is result.outcome:
        told = [*stored.limitations, *(text for text in result.limitations if text not in stored.limitations)]
        return stored.model_copy(update={"limitations": told})
    far = ("counts", "usage", "degraded", "failed_branches", "started_at", "resumable")
    return result.model_copy(update={name: getattr(stored, name) for name in far})


def with_duration(result: ResearchResult, last: ResearchStatus | None) -> ResearchResult:
    """The result with how long the run worked, from its last status where the result lacks it (a cancelled run)."""
    if last is None or result.usage.active_seconds:
        return result
    usage = result.usage.model_copy(update={"active_seconds": round(last.elapsed_seconds, 3)})
    return result.model_copy(update={"usage": usage})


def lacks_something(result: ResearchResult) -> bool:
    """Whether a run did all its work and is partial all the same: what its report lacks is why, not what ended it."""
    return result.outcome is Outcome.PARTIAL and result.stop_reason in NATURAL_STOPS


def reasons_of(result: ResearchResult) -> list[str]:
    """Why a run ended without a report, one line each; nothing where the report says it."""
    told = [] if result.report else [*result.limitations, *result.failed_branches]
    return list(dict.fromkeys(line.strip() for text in told for line in text.splitlines() if line.strip()))


def shortcomings_of(result: ResearchResult) -> list[str]:
    """What a terminal says below the line of how the run ended: why there is no report, or what a partial one lacks."""
    told = reasons_of(result)
    if result.report and lacks_something(result):
        told = [" ".join(line.split()) for line in result.limitations[:MOST_SHORTCOMINGS]]
    return list(dict.fromkeys([*result.failed_branches, *result.degraded, *told]))


def refusal_of(result: ResearchResult) -> str:
    """What to say of a refused run: why, and what to do."""
    why = "; ".join(reasons_of(result)) or STOP_REASON_TEXTS[result.stop_reason]
    return f"the run {result.research_id} was refused: {why}\na refused run cannot be resumed: mend this and ask again"
