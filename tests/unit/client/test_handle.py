"""The handle of a run: results of runs that returned none, messages that it sends, and queries that it repeats."""

from typing import Any

import pytest
from temporalio.client import WorkflowQueryFailedError
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError

from client.client_errors import MessageRefused, RunOfOtherVersion
from client.handle import SAME_MESSAGE_SECONDS, ResearchHandle, message_id
from client.run_results import refusal_of, result_of_failure, shortcomings_of, with_stored
from contracts import failures, names
from contracts.outcome import Counts, EventPage, ResearchResult, Usage
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


def test_a_run_that_was_ended_from_outside_says_how_far_it_was() -> None:
    """A terminated run returns nothing; its last checkpoint knows counts, usage and when it began."""
    ended = result_of_failure("r", TerminatedError("x"))
    stored = {"counts": Counts(sources=7), "usage": Usage(model_calls=3), "started_at": "2026-11-21T10:00:00+00:00"}
    checkpoint = RESULT.model_copy(update=stored | {"outcome": Outcome.CANCELLED})
    result = with_stored(ended, checkpoint)
    assert (result.outcome, result.counts.sources, result.usage.model_calls) == (Outcome.FAILED, 7, 3)
    assert result.started_at.startswith("2026-11-21")
    assert result.limitations == ["the run was terminated from outside"]
    assert with_stored(ended, None) == ended


def test_a_refusal_says_why_and_what_to_do() -> None:
    """One line with every reason; resuming what never began is not advised."""
    refused = result_of_failure("r", failure("invalid_input"))
    words = refusal_of(refused.model_copy(update={"limitations": ["depht: unknown key\nquery: required"]}))
    assert words.splitlines()[0] == "the run r was refused: depht: unknown key; query: required"
    assert "research resume" not in words


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


# --- queries ---------------------------------------------------------------------------------------------------------
class Run:
    """A run whose queries fail so often, each with the next message."""

    def __init__(self, *messages: str) -> None:
        self.messages = list(messages)

    def get_workflow_handle(self, _: str) -> "Run":
        return self

    async def query(self, *_: Any, **__: Any) -> EventPage:
        if self.messages:
            raise WorkflowQueryFailedError(self.messages.pop(0))
        return EventPage(next=7)


async def test_a_run_that_is_being_read_again_is_queried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that comes between an event and its workflow task is made again; any other failure is an error."""
    monkeypatch.setattr("client.handle.QUERY_PAUSE_SECONDS", 0.0)
    handle = ResearchHandle(Run(failures.EVENTS_AFTER_TASK, failures.EVENTS_AFTER_TASK), "r-1")  # type: ignore[arg-type]
    assert (await handle.events()).next == 7
    with pytest.raises(MessageRefused, match="could not answer `events`: broken"):
        await ResearchHandle(Run("broken"), "r-1").events()  # type: ignore[arg-type]
    with pytest.raises(
        RunOfOtherVersion, match=r"^the run r-1 waits for workers of the version .* `research resume r-1 --version new`"
    ):
        await ResearchHandle(Run("[TMPRL1100] Nondeterminism error: x"), "r-1").events()  # type: ignore[arg-type]
