"""How a run ends that a person did not let begin its work. Pure."""

from typing import Final

from contracts.state import ResearchState
from contracts.vocabulary import Outcome, StopReason

WITHOUT_WORK: Final = {
    StopReason.CLARIFICATION_EXPIRED: Outcome.TIMED_OUT,
    StopReason.APPROVAL_EXPIRED: Outcome.TIMED_OUT,
    StopReason.APPROVAL_REJECTED: Outcome.REFUSED,
    StopReason.USER_STOPPED: Outcome.FAILED,
}
WHAT_NEXT: Final = {
    StopReason.CLARIFICATION_EXPIRED: "nobody answered in time: `research resume {id}` asks again",
    StopReason.APPROVAL_EXPIRED: "nobody approved the plan in time: it is kept, and `research resume {id}` asks again",
    StopReason.APPROVAL_REJECTED: "the plan was rejected: it is kept, and `research resume {id}` asks for it again",
    StopReason.USER_STOPPED: "stopped before any work: what was planned is kept, and `research resume {id}` asks again",
}


def outcome_without_work(state: ResearchState, reason: StopReason) -> Outcome | None:
    """The outcome of a run that ends while a person is waited for; None where there is something to report from."""
    if state.waiting is None or state.sources:
        return None
    return WITHOUT_WORK.get(reason)


def explain_unworked(reason: StopReason, research_id: str) -> str:
    """Why there is no report, and what can be done."""
    return WHAT_NEXT[reason].format(id=research_id)
