"""What the handle sends."""

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from client.handle import SAME_MESSAGE_SECONDS, Reuse, message_id, refusal_text, static_summary
from contracts import failures, names


@pytest.mark.parametrize(
    ("question", "summary"),
    [("How?", "How?"), ("  two\n lines ", "two lines"), ("x" * 300, "x" * 179 + "…")],
)
def test_the_summary_is_one_short_line(question: str, summary: str) -> None:
    """The engine's web UI shows the question beside the id."""
    assert static_summary(question) == summary


@pytest.mark.parametrize("question", ["ä" * 400, "数据库" * 100, "🙂" * 90])
def test_the_summary_fits_the_engines_limit_in_bytes(question: str) -> None:
    """200 bytes are allowed, quotes of the JSON text included; a sign is never cut in two."""
    summary = static_summary(question)
    assert len(summary.encode()) <= 198
    assert set(summary) <= set(question) | {"…"}


def test_an_id_is_used_again_only_when_it_may() -> None:
    """A plain start never replaces a run (interfaces, section 1)."""
    assert Reuse.NEW.value.name == "REJECT_DUPLICATE"
    assert Reuse.AFTER_FAILURE.value.name == "ALLOW_DUPLICATE_FAILED_ONLY"
    assert Reuse.AFTER_ANY.value.name == "ALLOW_DUPLICATE"


def test_the_same_words_soon_after_are_one_message() -> None:
    """Who was told of no answer may say them again; an hour later they are a message of their own."""

    def said(update: str, *arguments: object, at: float = 1.0) -> str:
        return message_id(update, arguments, clock=lambda: at)

    assert said(names.STEER, "look at 16") == said(names.STEER, "look at 16", at=SAME_MESSAGE_SECONDS - 1.0)
    later = said(names.STEER, "look at 16", at=3_600.0)
    others = {said(names.STEER, "look at 17"), said(names.STOP_AND_REPORT), later, said(names.STEER, "look at 16")}
    assert len(others) == 4


def test_a_refusal_is_told_in_the_words_of_the_run() -> None:
    """It begins with the field, without the type of the failure, which is for programs."""
    cause = ApplicationError("version: 1 is older than the plan that there is", type=failures.INVALID_REQUEST)
    assert refusal_text(WorkflowUpdateFailedError(cause)) == "version: 1 is older than the plan that there is"
    assert refusal_text(WorkflowUpdateFailedError(ValueError("odd"))) == "odd"
