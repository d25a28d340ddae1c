"""Make a `ResearchResult` for every end of a run, and describe it."""

from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError

from contracts import failures
from contracts.outcome import ResearchResult, ResearchStatus, carried_result
from contracts.state import ResearchState
from contracts.vocabulary import NATURAL_STOPS, Completeness, Outcome, RunStatus, StopReason

MAX_SHORTCOMINGS = 3
"""Limitations printed for a partial report, which itself lists them all."""
STOP_REASONS = {
    Outcome.REFUSED: StopReason.INVALID_INPUT,
    Outcome.TIMED_OUT: StopReason.BUDGET_TIME,
    Outcome.CANCELLED: StopReason.USER_CANCELLED,
    Outcome.FAILED: StopReason.INTERNAL_ERROR,
}
"""Stop reason of an ending that has none of its own."""
SESSION_STOP_REASONS = STOP_REASONS | {Outcome.REFUSED: StopReason.NO_PROVIDERS}
"""The same for a run with a session, which an invalid request never has."""


def result_of_failure(research_id: str, cause: BaseException | None) -> ResearchResult:
    """Make the result of a run that returned none; `cause` is the cause of the failure on the server."""
    if isinstance(cause, ApplicationError):
        if (carried := carried_result(cause.details)) is not None:
            return carried
        if cause.type in {reason.value for reason in StopReason}:  # the failure type of a refused run
            refused = bare_result(research_id, Outcome.REFUSED, cause.message)
            return refused.with_fields(stop_reason=StopReason(cause.type))
        outcome = Outcome.TIMED_OUT if cause.type == failures.TIMED_OUT else Outcome.FAILED
        return bare_result(research_id, outcome, cause.message)
    if isinstance(cause, CancelledError):
        return bare_result(research_id, Outcome.CANCELLED)
    if isinstance(cause, TerminatedError):
        ended = "the run was terminated from outside"
    else:
        ended = "the server closed the run"
    return bare_result(research_id, Outcome.FAILED, ended)


def bare_result(research_id: str, outcome: Outcome, explanation: str = "") -> ResearchResult:
    """Make a result without a report."""
    return ResearchResult(
        research_id=research_id,
        outcome=outcome,
        stop_reason=STOP_REASONS[outcome],
        completeness=Completeness.EMPTY,
        limitations=[explanation] if explanation else [],
    )


def checkpoint_result(research_id: str, state: ResearchState, outcome: Outcome) -> ResearchResult:
    """Make a result without a report from the last checkpoint of a run."""
    return ResearchResult(
        research_id=research_id,
        outcome=outcome,
        stop_reason=SESSION_STOP_REASONS[outcome],
        completeness=Completeness.EMPTY,
        counts=state.counts(),
        usage=state.accounts.usage,
        degraded=state.work.degraded,
        failed_branches=state.work.failed_branches,
        limitations=list(filter(None, [*state.work.limitations, state.work.last_failure])),
        started_at=state.clock.started_at,
        resumable=True,
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
    """Return the stored result, with the outcome and the explanation of the server."""
    if stored is None:
        return result
    limitations = list(dict.fromkeys([*stored.limitations, *result.limitations]))
    merged = stored.with_fields(limitations=limitations)
    if stored.outcome is result.outcome:
        return merged
    return merged.with_fields(outcome=result.outcome, stop_reason=result.stop_reason)


def reasons_of(result: ResearchResult) -> list[str]:
    """List why a run ended without a report; empty for one with a report."""
    reasons = [] if result.report else [*result.limitations, *result.failed_branches]
    return list(dict.fromkeys(line.strip() for text in reasons for line in text.splitlines() if line.strip()))


def shortcomings_of(result: ResearchResult) -> list[str]:
    """List failed branches, degraded roles, and why there is no report or a partial one."""
    reasons = reasons_of(result)
    if result.report and result.outcome is Outcome.PARTIAL and result.stop_reason in NATURAL_STOPS:
        reasons = [" ".join(line.split()) for line in result.limitations[:MAX_SHORTCOMINGS]]
    return list(dict.fromkeys([*result.failed_branches, *result.degraded, *reasons]))


def resume_hint(research_id: str) -> str:
    """Describe how to continue a run that has a session."""
    return f"its state is saved: research resume {research_id}"


def refusal_of(result: ResearchResult) -> str:
    """Describe a refused run: the reason and the remedy."""
    reason = "; ".join(reasons_of(result)) or result.stop_reason.text
    final = "it cannot be resumed: correct this and start a new run"
    remedy = result.advice or (resume_hint(result.research_id) if result.resumable else final)
    return f"the run {result.research_id} was refused: {reason}\n{remedy}"
