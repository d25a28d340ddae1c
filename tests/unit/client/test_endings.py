"""What a handle gives for a run that did not return a result, and how it words what it sends."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError

from client.handle import SAME_MESSAGE_SECONDS, message_id
from client.run_results import result_of_failure, shortcomings_of
from contracts import failures, names
from contracts.outcome import ResearchResult
from contracts.vocabulary import Outcome, StopReason


def failure(kind: str, *details: Any) -> ApplicationError:
    return ApplicationError("why it ended", *details, type=kind, non_retryable=True)


RESULT = ResearchResult(
    research_id="r", outcome=Outcome.TIMED_OUT, stop_reason=StopReason.BUDGET_TIME, report="# What there is"
)


@pytest.mark.parametrize(
    ("cause", "outcome", "reason"),
    [
        (failure("invalid_input"), Outcome.REFUSED, StopReason.INVALID_INPUT),
        (failure("no_providers"), Outcome.REFUSED, StopReason.NO_PROVIDERS),
        (failure(failures.TIMED_OUT), Outcome.TIMED_OUT, StopReason.BUDGET_TIME),
        (failure(failures.RESEARCH_FAILED, "no result"), Outcome.FAILED, StopReason.INTERNAL_ERROR),
        (CancelledError("x"), Outcome.CANCELLED, StopReason.USER_CANCELLED),
        (TerminatedError("x"), Outcome.FAILED, StopReason.INTERNAL_ERROR),
        (None, Outcome.FAILED, StopReason.INTERNAL_ERROR),
    ],
)
def test_every_ending_gives_a_result(cause: BaseException | None, outcome: Outcome, reason: StopReason) -> None:
    """A handle always returns one, whatever the engine says; that in the details of a failure wins."""
    result = result_of_failure("r", cause)
    assert (result.research_id, result.outcome, result.stop_reason, result.report) == ("r", outcome, reason, "")
    assert result.limitations == (["why it ended"] if isinstance(cause, ApplicationError) else result.limitations)
    assert result_of_failure("r", failure(failures.TIMED_OUT, RESULT.model_dump(mode="json"))) == RESULT


def test_a_partial_run_that_did_its_work_says_what_its_report_lacks() -> None:
    """The first lines of it; a run that a limit cut short says that in the line of its end."""
    lacking = ResearchResult(
        research_id="r",
        outcome=Outcome.PARTIAL,
        stop_reason=StopReason.NO_OPEN_GAPS,
        report="# T",
        limitations=["Not answered:\nwhat it costs", "b", "c", "d"],
        failed_branches=["a search failed"],
        degraded=["planner: its answer was not used"],
    )
    beside = ["a search failed", "planner: its answer was not used"]
    assert shortcomings_of(lacking) == [*beside, "Not answered: what it costs", "b", "c"]
    assert shortcomings_of(lacking.model_copy(update={"stop_reason": StopReason.BUDGET_TIME})) == beside


def test_the_same_words_soon_after_are_one_message() -> None:
    """Whoever got no answer may repeat them; an hour later they are a message of their own."""

    def sent(update: str, *arguments: object, at: float = 1.0) -> str:
        return message_id(update, arguments, clock=lambda: at)

    first = sent(names.STEER, "look at 16")
    assert first == sent(names.STEER, "look at 16", at=SAME_MESSAGE_SECONDS - 1.0)
    others = {sent(names.STEER, "look at 17"), sent(names.STOP_AND_REPORT), sent(names.STEER, "look at 16", at=3_600.0)}
    assert len(others | {first}) == 4
