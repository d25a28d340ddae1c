"""Make a `ResearchResult` of every end of a run, and word it."""

from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError

from contracts import failures
from contracts.outcome import ResearchResult, ResearchStatus, carried_result
from contracts.vocabulary import NATURAL_STOPS, STOP_REASON_TEXTS, Completeness, Outcome, RunStatus, StopReason

OUTCOMES = {
    failures.TIMED_OUT: Outcome.TIMED_OUT,
    failures.RESEARCH_FAILED: Outcome.FAILED,
}
MOST_SHORTCOMINGS = 3
"""Printed limitations of a partial report; the report has them all."""
REFUSAL_TYPES = frozenset(reason.value for reason in StopReason)
"""The type of a refused run's failure is its stop reason."""
STOP_REASONS = {
    Outcome.REFUSED: StopReason.INVALID_INPUT,
    Outcome.TIMED_OUT: StopReason.BUDGET_TIME,
    Outcome.CANCELLED: StopReason.USER_CANCELLED,
    Outcome.FAILED: StopReason.INTERNAL_ERROR,
}


def result_of_failure(research_id: str, cause: BaseException | None, last: ResearchStatus | None) -> ResearchResult:
    """Make the result of a run that did not return one.

    `cause` is the cause of the server's failure, `last` the last status that was read, for the counts.
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
    """Make a result without a report from the last status of a run."""
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


def bare_status(result: ResearchResult, question: str) -> ResearchStatus:
    """Make the status of a run that ended without a session: it was refused, or never started."""
    return ResearchStatus(
        research_id=result.research_id,
        query=question,
        status=RunStatus(result.outcome.value),
        counts=result.counts,
        usage=result.usage,
        last_failure="; ".join(reasons_of(result)),
        outcome=result.outcome,
        stop_reason=result.stop_reason,
        started_at=result.started_at,
        ended_at=result.ended_at or None,
    )


def with_stored(result: ResearchResult, stored: ResearchResult | None) -> ResearchResult:
    """Add the stored result: all of it if it has the same outcome, else its counts and usage."""
    if stored is None:
        return result
    if stored.outcome is result.outcome:
        both = [*stored.limitations, *(text for text in result.limitations if text not in stored.limitations)]
        return stored.model_copy(update={"limitations": both})
    known = ("counts", "usage", "degraded", "failed_branches", "started_at", "resumable")
    return result.model_copy(update={name: getattr(stored, name) for name in known})


def with_duration(result: ResearchResult, last: ResearchStatus | None) -> ResearchResult:
    """Add the active seconds of the last status to a result without them (a cancelled run)."""
    if last is None or result.usage.active_seconds:
        return result
    usage = result.usage.model_copy(update={"active_seconds": round(last.elapsed_seconds, 3)})
    return result.model_copy(update={"usage": usage})


def lacks_something(result: ResearchResult) -> bool:
    """Give whether a run is partial for the limitations of its report, and not for the reason that ended it."""
    return result.outcome is Outcome.PARTIAL and result.stop_reason in NATURAL_STOPS


def reasons_of(result: ResearchResult) -> list[str]:
    """List why a run ended without a report; empty for one with a report."""
    reasons = [] if result.report else [*result.limitations, *result.failed_branches]
    return list(dict.fromkeys(line.strip() for text in reasons for line in text.splitlines() if line.strip()))


def shortcomings_of(result: ResearchResult) -> list[str]:
    """List failed branches, degraded roles, and why there is no report or a partial one."""
    reasons = reasons_of(result)
    if result.report and lacks_something(result):
        reasons = [" ".join(line.split()) for line in result.limitations[:MOST_SHORTCOMINGS]]
    return list(dict.fromkeys([*result.failed_branches, *result.degraded, *reasons]))


def refusal_of(result: ResearchResult) -> str:
    """Word a refused run: why, and what to do."""
    reason = "; ".join(reasons_of(result)) or STOP_REASON_TEXTS[result.stop_reason]
    return f"the run {result.research_id} was refused: {reason}\nit cannot be resumed: correct this and start a new run"
