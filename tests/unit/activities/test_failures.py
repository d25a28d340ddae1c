"""Failures of calls: their types, what is retried and when, and the history that attempts hand on."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.failures import (
    MODELS,
    READING,
    RECORDS,
    SEARCHING,
    Area,
    application_error,
    attempt,
    attempt_history,
    waiting_for_service,
)
from contracts import failures
from contracts.outcome import Usage
from providers import errors
from providers.shared.shared_value import running
from tests.fakes.noting_meter import NotingMeter

SECOND = timedelta(seconds=1)


class Attempt:
    """One attempt of a call, its heartbeats and counters."""

    def __init__(self, number: int = 1, *details: Any) -> None:
        self.environment = ActivityEnvironment()
        self.environment.metric_meter = self.meter = NotingMeter()  # type: ignore[assignment]
        self.environment.info = replace(self.environment.info, attempt=number, heartbeat_details=details)
        self.beats: list[Any] = []
        self.environment.on_heartbeat = lambda *told: self.beats.append(told)

    async def of(self, error: Exception | None, area: Area = MODELS) -> ApplicationError:
        """The failure that Temporal sees of an error."""

        async def body() -> None:
            async with attempt(area):
                if error is not None:
                    raise error

        with pytest.raises(ApplicationError) as caught:
            await self.environment.run(body)
        return caught.value


@pytest.mark.parametrize(
    ("error", "area", "name", "retried"),
    [
        (errors.RateLimited("wait", retry_after=12), MODELS, failures.RATE_LIMITED, True),
        (errors.CallInFlight("busy", retry_after=4), MODELS, failures.CALL_IN_FLIGHT, True),
        (errors.Unavailable("503"), MODELS, failures.MODEL_UNAVAILABLE, True),
        (errors.Unavailable("503"), SEARCHING, failures.SEARCH_UNAVAILABLE, True),
        (errors.AnswerMalformed("a page"), MODELS, failures.MODEL_UNAVAILABLE, True),
        (errors.Unavailable("reset"), READING, failures.SOURCE_UNAVAILABLE, True),
        (errors.StoreUnavailable("down"), MODELS, failures.STORE_UNAVAILABLE, True),
        (errors.SharedStateUnavailable("down"), SEARCHING, failures.STORE_UNAVAILABLE, True),
        (errors.ProcessStalled("paused"), RECORDS, failures.PROCESS_STALLED, True),
        (errors.StorageFull("full"), RECORDS, failures.STORAGE_FULL, True),
        (errors.NotConfigured("no key"), SEARCHING, failures.SEARCH_NOT_CONFIGURED, False),
        (errors.NotConfigured("no key"), MODELS, failures.MODEL_REJECTED, False),
        (errors.InvalidCall("400"), SEARCHING, failures.SEARCH_REJECTED, False),
        (errors.InvalidCall("404"), MODELS, failures.MODEL_REJECTED, False),
        (errors.CorpusUnknown("none"), READING, failures.CORPUS_UNAVAILABLE, False),
        (errors.SourceUnreadable("encrypted", "locked"), READING, failures.SOURCE_UNREADABLE, False),
        (errors.InputUnprocessable("memory", "huge"), RECORDS, failures.INPUT_UNPROCESSABLE, False),
        (errors.ContentMissing("gone"), MODELS, failures.CONTENT_MISSING, False),
        (errors.ContentCorrupt("changed"), MODELS, failures.CONTENT_CORRUPT, False),
        (errors.InvalidOutput("bad"), MODELS, failures.INVALID_MODEL_OUTPUT, False),
        (errors.AnswerCut("cut"), MODELS, failures.ANSWER_CUT, False),
        (errors.AnswerRefused("no"), MODELS, failures.ANSWER_REFUSED, False),
    ],
)
async def test_every_error_has_its_type_and_its_retry(
    error: errors.ProviderError, area: Area, name: str, retried: bool
) -> None:
    """What may pass is retried however often it happened before, anything else ends the call at once."""
    for number in (1, 90):
        failure = await Attempt(number, {"reported": number - 1}).of(error, area)
        assert (failure.type, not failure.non_retryable) == (name, retried)
    assert (name in failures.TRANSIENT) is retried


@pytest.mark.parametrize(("named", "least"), [(0.0, 0.0), (12.5, 12.5), (10_000.0, 300.0), (-4.0, 0.0)])
def test_a_named_wait_is_obeyed_within_bounds(named: float, least: float) -> None:
    """A Retry-After is the delay of the next attempt, up to a tenth longer, of at most 300 s (S0-054)."""
    delay = application_error(errors.RateLimited("wait", retry_after=named), MODELS).next_retry_delay
    assert delay is not None
    assert least * SECOND <= delay <= 1.1 * least * SECOND


@pytest.mark.parametrize(
    ("number", "least", "most"), [(1, 1.0, 1.1), (3, 4.0, 4.4), (6, 30.0, 33.0), (5_000, 30.0, 33.0)]
)
async def test_backoff_grows_with_jitter(number: int, least: float, most: float) -> None:
    """Without a Retry-After the delay doubles from 1 s to 30 s, and calls that failed together return apart."""
    history = {"reported": number - 1}
    delays = [(await Attempt(number, history).of(errors.Unavailable("down"))).next_retry_delay for _ in range(9)]
    assert all(delay is not None and least * SECOND <= delay <= most * SECOND for delay in delays)
    assert len(set(delays)) > 1


@pytest.mark.parametrize(("seconds", "final"), [(30, False), (70, True)])
async def test_answers_of_another_form_are_asked_for_a_minute(seconds: int, final: bool) -> None:
    """A service that is down is waited for to the end; one that answers something else says so soon."""
    tried = Attempt()
    begun = tried.environment.info.scheduled_time
    tried.environment.info = replace(
        tried.environment.info, current_attempt_scheduled_time=begun + timedelta(seconds=seconds)
    )
    failure = await tried.of(errors.AnswerMalformed("Example: a page"), SEARCHING)
    assert (failure.type, failure.non_retryable) == (failures.SEARCH_MALFORMED, final)
    assert not (await tried.of(errors.Unavailable("Example: 503"), SEARCHING)).non_retryable
    assert failures.SEARCH_MALFORMED not in failures.TRANSIENT


@pytest.mark.parametrize(
    ("number", "details", "losses"),
    [
        (1, (), 0),
        (4, ({"reported": 3},), 0),
        (3, ("x", 2), 0),
        (4, ({"begun": 3, "losses": 1},), 2),
        (4, ({"begun": 3, "losses": 1, "reported": 3},), 1),
        (4, ({"begun": 3, "losses": 1, "waiting": True},), 1),
        (9, ({"begun": 2},), 1),
    ],
)
def test_attempts_that_begin_and_report_nothing_are_lost(number: int, details: tuple[Any, ...], losses: int) -> None:
    """One that is in no heartbeat was never begun, one that waited for a service is nobody's fault; foreign details count
    as none.
    """
    assert attempt_history(number, details).losses == losses


async def test_a_call_that_kills_its_workers_is_given_up() -> None:
    """Three workers died of it that are known to have begun it: the next one does not touch it (F12)."""
    details: tuple[Any, ...] = ()
    for number in range(1, 5):
        tried = Attempt(number, *details)

        async def killed(beats: list[tuple[Any, ...]] = tried.beats) -> list[tuple[Any, ...]]:
            async with attempt(MODELS):
                return list(beats)  # what has left the process when the text ends it

        left = await tried.environment.run(killed)
        details = left[-1] if left else details
    failure = await Attempt(5, *details).of(None)
    assert (failure.type, failure.non_retryable) == (failures.WORKER_LOST, True)


async def test_attempts_that_a_stopped_worker_was_given_are_no_losses() -> None:
    """A worker that stands still begins nothing of what it is given: the call is made by another one, not given up."""
    tried = Attempt(7)

    async def body() -> int:
        async with attempt(MODELS) as history:
            return history.losses

    assert await tried.environment.run(body) == 0


async def test_a_call_that_handles_no_text_outlives_every_restart() -> None:
    """A run that waits for its turn is not poison: restarts for other reasons end it never."""

    async def body() -> str:
        async with attempt(RECORDS, handles_text=False):
            return "taken"

    assert await Attempt(9).environment.run(body) == "taken"


async def test_workers_that_die_while_a_model_works_are_no_losses() -> None:
    """A call to a model is made again however often workers are killed during it; deaths before and after count."""
    tried = Attempt()

    async def body() -> None:
        async with attempt(MODELS) as history:
            with waiting_for_service(history):
                while not tried.beats:
                    await asyncio.sleep(0.01)

    await tried.environment.run(body)
    assert tried.beats == [({"waiting": True, "begun": 1},)]
    details: Any = tried.beats[0]
    for number in range(2, 4):
        again = Attempt(number, *details)

        async def killed_while_waiting(beats: list[tuple[Any, ...]] = again.beats) -> None:
            async with attempt(MODELS) as history:
                assert history.losses == 0
                with waiting_for_service(history):
                    assert beats[-1] == ({"waiting": True, "begun": history.begun},)

        await again.environment.run(killed_while_waiting)
        details = again.beats[-1]
    assert attempt_history(6, details).losses == 0


@pytest.mark.parametrize("error", [errors.RateLimited("wait"), errors.Unavailable("down"), errors.InvalidCall("no")])
async def test_costs_of_failed_attempts_are_handed_on(error: errors.ProviderError) -> None:
    """The failure has the cost of all attempts so far, and so has the heartbeat that the next one is given."""
    error.usage = Usage(cost_usd=0.25)
    before = {"reported": 1, "usage": Usage(cost_usd=0.5).model_dump(mode="json")}
    tried = Attempt(2, before)
    failure = await tried.of(error)
    assert Usage.model_validate(failure.details[0]["usage"]) == Usage(cost_usd=0.75)
    history = attempt_history(3, tried.beats[-1])
    assert (history.reported, history.losses, history.usage) == (2, 0, Usage(cost_usd=0.75))


@pytest.mark.parametrize("stopped", [True, False])
async def test_the_stop_of_a_worker_is_no_failure_of_the_call(stopped: bool) -> None:
    """Another worker continues at once, however often it happens; a call that its run cancelled stays cancelled."""
    begun, tried = asyncio.Event(), Attempt(9, {"reported": 8})

    async def body() -> None:
        async with attempt(READING):
            begun.set()
            await asyncio.sleep(60)

    work = asyncio.ensure_future(tried.environment.run(body))
    await begun.wait()
    tried.environment.cancel(ActivityCancellationDetails(worker_shutdown=stopped, cancel_requested=not stopped))
    if not stopped:
        with pytest.raises(asyncio.CancelledError):
            await work
        return
    with pytest.raises(ApplicationError) as caught:
        await work
    assert (caught.value.type, caught.value.non_retryable) == (failures.WORKER_STOPPED, False)
    assert caught.value.next_retry_delay == timedelta(milliseconds=100)
    assert attempt_history(10, tried.beats[-1]).losses == 0


def test_details_of_failures_are_bounded() -> None:
    """Kind of an unreadable document; problem, cost and model of an unusable answer."""
    paid = Usage(model_calls=1, input_tokens=7, cost_usd=None)
    unusable = application_error(errors.InvalidOutput("x" * 5_000, usage=paid, model="m-1"), MODELS)
    (details,) = unusable.details
    assert (len(unusable.message), len(details["problem"]), details["model"]) == (300, 600, "m-1")
    assert Usage.model_validate(details["usage"]) == paid
    unreadable = application_error(errors.SourceUnreadable("encrypted", "locked"), READING)
    assert unreadable.details == ({"kind": "encrypted"},)


async def test_the_cause_of_a_failure_stays_behind() -> None:
    """It is counted and logged by type; a client library's own message may repeat the request (S0-054)."""
    error, tried = errors.NotConfigured("no key"), Attempt()
    error.__cause__ = ValueError("the whole prompt")
    with capture_logs() as logs:
        failure = await tried.of(error, SEARCHING)
    assert failure.__cause__ is None
    assert [(line["event"], line["failure_reason"]) for line in logs] == [("call.failed", failure.type)]
    assert "the whole prompt" not in str(logs)
    labels = {"activity": "unknown", "type": failures.SEARCH_NOT_CONFIGURED, "final": True}
    assert [(count[1], count[-1]) for count in tried.meter.told] == [("research_call_failures", labels)]


async def test_an_unforeseen_error_is_logged_by_its_frames() -> None:
    """Neither the log nor the history has its message, which may hold text of a page; the call is made again."""

    def read() -> None:
        raise KeyError("words of a page")

    async def body() -> None:
        async with attempt(RECORDS):
            read()

    with capture_logs() as logs, pytest.raises(ApplicationError) as caught:
        await Attempt().environment.run(body)
    failure, line = caught.value, logs[0]
    assert (failure.type, failure.non_retryable) == ("KeyError", False)
    assert "words of a page" not in f"{failure.message}{failure.details}{failure.__cause__}{logs}"
    assert (line["event"], line["error"]) == ("call.defect", "KeyError")
    assert line["frames"][-1] == failure.details[0]["defect"]["frames"][-1]
    assert line["frames"][-1].startswith("tests/unit/activities/test_failures.py:")
    assert line["frames"][-1].endswith(" in read")


@pytest.mark.parametrize(
    ("error", "final"),
    [(ValueError("x"), True), (NameError("x"), True), (ImportError("x"), True), (OSError("disk"), False)],
)
async def test_an_error_of_the_program_is_not_tried_for_ever(error: Exception, final: bool) -> None:
    """Its third attempt is the last one: only the arguments matter to it; a disk or a network may come back."""
    history = [{"reported": 1}, {"reported": 2}]
    assert not (await Attempt(2, history[0]).of(error)).non_retryable
    assert (await Attempt(3, history[1]).of(error)).non_retryable is final


async def test_work_that_swallows_a_cancellation_holds_no_call_up() -> None:
    """The block ends all the same: else a call would wait until its longest time is over."""
    cancelled = 0

    async def stubborn() -> None:
        nonlocal cancelled
        while cancelled < 2:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled += 1

    async with asyncio.timeout(60):
        async with running(stubborn()):
            await asyncio.sleep(0)
    assert cancelled == 2
