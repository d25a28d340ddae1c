"""What the handle sends."""

from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from client.handle import SAME_MESSAGE_SECONDS, message_id, refusal_text, static_summary
from contracts import failures, names


def test_the_summary_is_one_short_line() -> None:
    """The server's web UI shows the question beside the id, in at most 200 bytes; a sign is never cut in two."""
    assert [static_summary(text) for text in ("How?", "  two\n lines ", "x" * 300)] == [
        "How?",
        "two lines",
        "x" * 179 + "…",
    ]
    for question in ("ä" * 400, "数据库" * 100, "🙂" * 90):
        summary = static_summary(question)
        assert len(summary.encode()) <= 198
        assert set(summary) <= set(question) | {"…"}


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
