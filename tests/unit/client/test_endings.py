"""What a handle gives for a run that did not return a result."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError

from client.run_results import (
    reasons_of,
    refusal_of,
    result_of_failure,
    shortcomings_of,
    with_stored,
)
from contracts import failures
from contracts.outcome import Counts, ResearchResult, Usage
from contracts.vocabulary import Outcome, StopReason


def failure(kind: str, *details: Any) -> ApplicationError:
    """A failure as the workflow raises it."""
    return ApplicationError("why it ended", *details, type=kind, non_retryable=True)


def test_the_result_in_the_details_wins() -> None:
    """A failed run carries its result; nothing of it is lost."""
    result = ResearchResult(
        research_id="r", outcome=Outcome.TIMED_OUT, stop_reason=StopReason.BUDGET_TIME, report="# What there is"
    )
    assert result_of_failure("r", failure(failures.TIMED_OUT, result.model_dump(mode="json"))) == result


@pytest.mark.parametrize(
    ("cause", "outcome", "reason"),
    [
        (failure("invalid_input"), Outcome.REFUSED, StopReason.INVALID_INPUT),
        (failure("no_providers"), Outcome.REFUSED, StopReason.NO_PROVIDERS),
        (failure(failures.TIMED_OUT), Outcome.TIMED_OUT, StopReason.BUDGET_TIME),
        (failure(failures.RESEARCH_FAILED, "no result"), Outcome.FAILED, StopReason.INTERNAL_ERROR),
        (failure("SomethingElse"), Outcome.FAILED, StopReason.INTERNAL_ERROR),
        (CancelledError("x"), Outcome.CANCELLED, StopReason.USER_CANCELLED),
        (TerminatedError("x"), Outcome.FAILED, StopReason.INTERNAL_ERROR),
        (None, Outcome.FAILED, StopReason.INTERNAL_ERROR),
    ],
)
def test_every_ending_gives_a_result(cause: BaseException | None, outcome: Outcome, reason: StopReason) -> None:
    """A handle always returns a result, whatever the engine says."""
    result = result_of_failure("r", cause)
    assert (result.research_id, result.outcome, result.stop_reason, result.report) == ("r", outcome, reason, "")
    assert result.limitations == (["why it ended"] if isinstance(cause, ApplicationError) else result.limitations)


def test_a_run_that_was_ended_from_outside_tells_how_far_it_was() -> None:
    """A terminated run returns nothing; its last checkpoint knows counts, usage and when it began."""
    ended = result_of_failure("r", TerminatedError("x"))
    checkpoint = ResearchResult(
        research_id="r",
        outcome=Outcome.CANCELLED,
        stop_reason=StopReason.USER_CANCELLED,
        counts=Counts(sources=7),
        usage=Usage(model_calls=3),
        started_at="2026-11-21T10:00:00+00:00",
    )
    told = with_stored(ended, checkpoint)
    assert (told.outcome, told.counts.sources, told.usage.model_calls) == (Outcome.FAILED, 7, 3)
    assert told.started_at.startswith("2026-11-21")
    assert told.limitations == ["the run was terminated from outside"]
    assert with_stored(ended, None) == ended
    failed = checkpoint.model_copy(update={"outcome": Outcome.FAILED, "limitations": ["no answer"]})
    assert with_stored(ended, failed).limitations == ["no answer", "the run was terminated from outside"]


def test_a_refusal_says_why_and_what_to_do() -> None:
    """One line with every reason; resuming what never began is not advised."""
    refused = result_of_failure("r", failure("invalid_input"))
    lines = refused.model_copy(update={"limitations": ["depht: unknown key\nquery: required"]})
    assert reasons_of(lines) == ["depht: unknown key", "query: required"]
    said = refusal_of(lines)
    assert said.splitlines()[0] == "the run r was refused: depht: unknown key; query: required"
    assert "research resume" not in said


def test_a_partial_run_that_did_its_work_says_what_its_report_lacks() -> None:
    """The first lines of it; a run that a limit cut short says that in the line of its end, and a whole one nothing."""
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
    assert shortcomings_of(lacking.model_copy(update={"outcome": Outcome.COMPLETED})) == beside
    assert shortcomings_of(lacking.model_copy(update={"report": ""}))[2:] == ["Not answered:", "what it costs", *"bcd"]
