"""What a stored session tells when no engine is there to ask. Pure."""

from contracts.outcome import ResearchResult, ResearchStatus
from contracts.state import ResearchState
from contracts.vocabulary import Completeness, Outcome, RunStatus, StopReason
from workflows.deep_research import status_of
from workflows.phases.closing import counts_of

OUTCOME_OF = {
    RunStatus.CANCELLED: (Outcome.CANCELLED, StopReason.USER_CANCELLED),
    RunStatus.TIMED_OUT: (Outcome.TIMED_OUT, StopReason.BUDGET_TIME),
    RunStatus.FAILED: (Outcome.FAILED, StopReason.INTERNAL_ERROR),
    RunStatus.REFUSED: (Outcome.REFUSED, StopReason.INVALID_INPUT),
}
STATUS_OF_ENGINE = {
    "running": RunStatus.RUNNING,
    "completed": RunStatus.COMPLETED,
    "failed": RunStatus.FAILED,
    "terminated": RunStatus.FAILED,
    "canceled": RunStatus.CANCELLED,
    "timed_out": RunStatus.TIMED_OUT,
}
"""What the engine calls the end of a run."""
INTERRUPTED = "interrupted"


def status_at_checkpoint(state: ResearchState) -> ResearchStatus:
    """The status as of the last checkpoint; the clock of a run that was interrupted does not go on."""
    return status_of(state, state.clock_started_at)


def result_of(research_id: str, state: ResearchState) -> ResearchResult | None:
    """The stored result; one without a report for a run that ended without; null while nothing says it ended."""
    if state.result is not None:
        return state.result
    if state.status not in OUTCOME_OF:
        return None
    outcome, reason = OUTCOME_OF[state.status]
    return ResearchResult(
        research_id=research_id,
        outcome=outcome,
        stop_reason=reason,
        completeness=Completeness.EMPTY,
        counts=counts_of(state),
        usage=state.usage,
        degraded=state.degraded,
        failed_branches=state.failed_branches,
        limitations=state.limitations,
        started_at=state.started_at,
    )


def last_outcome(state: ResearchState) -> Outcome:
    """How the last run of a session ended; a session that was never closed counts as failed."""
    result = result_of("", state)
    return Outcome.FAILED if result is None else result.outcome
