"""Provider errors as Temporal failures."""

from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.failure_translation import (
    MODELS,
    READING,
    RECORDS,
    SEARCHING,
    Area,
    application_error,
    translate_errors,
)
from contracts import failures
from contracts.outcome import Usage
from providers import errors


@pytest.mark.parametrize(
    ("error", "area", "name", "retried"),
    [
        (errors.RateLimited("wait", retry_after=12), MODELS, failures.RATE_LIMITED, True),
        (errors.CallInFlight("busy", retry_after=4), MODELS, failures.CALL_IN_FLIGHT, True),
        (errors.Unavailable("503"), MODELS, failures.MODEL_UNAVAILABLE, True),
        (errors.Unavailable("503"), SEARCHING, failures.SEARCH_UNAVAILABLE, True),
        (errors.NotConfigured("no key"), SEARCHING, failures.SEARCH_NOT_CONFIGURED, False),
        (errors.InvalidCall("400"), SEARCHING, failures.SEARCH_REJECTED, False),
        (errors.Unavailable("reset"), READING, failures.SOURCE_UNREADABLE, True),
        (errors.Unavailable("down"), RECORDS, failures.STORE_UNAVAILABLE, True),
        (errors.NotConfigured("no key"), MODELS, failures.MODEL_REJECTED, False),
        (errors.InvalidCall("400"), MODELS, failures.MODEL_REJECTED, False),
        (errors.CorpusUnknown("none"), READING, failures.CORPUS_UNAVAILABLE, False),
        (errors.SourceUnreadable("encrypted", "locked"), READING, failures.SOURCE_UNREADABLE, False),
        (errors.ContentMissing("gone"), MODELS, failures.CONTENT_MISSING, False),
        (errors.ContentCorrupt("changed"), MODELS, failures.CONTENT_CORRUPT, False),
        (errors.StorageFull("full"), RECORDS, failures.STORAGE_FULL, True),
        (errors.InvalidOutput("bad"), MODELS, failures.INVALID_MODEL_OUTPUT, False),
        (errors.AnswerCut("cut"), MODELS, failures.ANSWER_CUT, False),
        (errors.AnswerRefused("no"), MODELS, failures.ANSWER_REFUSED, False),
        (errors.AnswerUnusable("odd"), MODELS, failures.INVALID_MODEL_OUTPUT, False),
    ],
)
def test_every_error_has_its_type_and_its_retry(error: Any, area: Area, name: str, retried: bool) -> None:
    """Each leaf of the tree becomes a failure of a fixed type that is retried only if trying again may help."""
    failure = application_error(error, area)
    assert (failure.type, not failure.non_retryable) == (name, retried)


@pytest.mark.parametrize(("told", "kept"), [(None, None), (0.0, 0.0), (12.5, 12.5), (10_000.0, 300.0), (-4.0, 0.0)])
def test_a_told_wait_is_kept_within_bounds(told: float | None, kept: float | None) -> None:
    """The time a provider asks for is the delay of the next attempt, at most 300 seconds (S0-054)."""
    delay = application_error(errors.RateLimited("wait", retry_after=told), MODELS).next_retry_delay
    assert delay == (None if kept is None else timedelta(seconds=kept))


def test_texts_are_bounded() -> None:
    """A long message is cut to 300 characters and a problem to 600."""
    failure = application_error(errors.InvalidOutput("x" * 5_000), MODELS)
    assert len(failure.message) == 300
    assert len(failure.details[0]["problem"]) == 600


def test_an_unusable_answer_tells_what_it_cost() -> None:
    """The usage of an unusable answer travels with its failure, so that the run can account for it."""
    paid = Usage(model_calls=1, input_tokens=7, cost_usd=None)
    failure = application_error(errors.AnswerCut("cut", usage=paid, model="m-1"), MODELS)
    assert Usage.model_validate(failure.details[0]["usage"]) == paid
    assert failure.details[0]["model"] == "m-1"


def test_an_unreadable_source_tells_why() -> None:
    """The typed reason of an unreadable document is in the details."""
    assert application_error(errors.SourceUnreadable("encrypted", "locked"), READING).details[0] == {
        "kind": "encrypted"
    }


def test_final_forbids_another_attempt() -> None:
    """A retryable error is not retried once it is called final, and names no delay."""
    failure = application_error(errors.Unavailable("503", retry_after=3), MODELS, final=True)
    assert failure.non_retryable
    assert failure.next_retry_delay is None


def test_the_cause_stays_behind() -> None:
    """What a client library said is not carried along, for it may repeat the request."""
    error = errors.Unavailable("503")
    error.__cause__ = ValueError("the whole prompt")
    with pytest.raises(ApplicationError) as caught, translate_errors(MODELS):
        raise error
    assert caught.value.__cause__ is None


def test_other_exceptions_pass() -> None:
    """A bug of ours is not dressed up as a provider's failure."""
    with pytest.raises(ZeroDivisionError), translate_errors(MODELS):
        raise ZeroDivisionError
