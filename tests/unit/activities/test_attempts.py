"""What counts as a try, and what does not."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.attempts import MOST_FAILURES, count_attempts, past_of
from activities.failure_translation import READING, RECORDS, translate_errors
from contracts import failures
from contracts.outcome import Usage
from providers import errors


async def tried(
    error: Exception | None, attempt: int = 1, details: tuple[Any, ...] = ()
) -> tuple[object, list[tuple[Any, ...]]]:
    """What came of one attempt, and what it told with its last heartbeat."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=attempt, heartbeat_details=details)
    beats: list[tuple[Any, ...]] = []
    environment.on_heartbeat = lambda *told: beats.append(told)

    async def body() -> str:
        async with count_attempts(READING):
            if error is not None:
                raise error
        return "done"

    try:
        return await environment.run(body), beats
    except ApplicationError as failure:
        return failure, beats


@pytest.mark.parametrize(
    ("attempt", "details", "expected"),
    [
        (1, (), (0, 0, 0)),
        (4, (2, 1), (2, 1, 0)),
        (4, (1, 0), (1, 0, 2)),
        (3, ("x",), (0, 0, 2)),
        (2, (5, 5), (5, 5, 0)),
    ],
)
def test_what_is_not_accounted_for_was_lost(
    attempt: int, details: tuple[object, ...], expected: tuple[int, int, int]
) -> None:
    """An attempt that told nothing ended with its worker."""
    past = past_of(attempt, details)
    assert (past.failures, past.waits, past.losses) == expected


@pytest.mark.parametrize("error", [errors.RateLimited("wait", retry_after=3), errors.CallInFlight("wait")])
async def test_being_told_to_wait_never_uses_up_a_call(error: errors.Retryable) -> None:
    """However often it happened before, another attempt may follow."""
    failure, beats = await tried(error, attempt=90, details=(2, 87))
    assert isinstance(failure, ApplicationError)
    assert not failure.non_retryable
    assert beats[-1][:2] == (2, 88)


async def test_passing_failures_are_given_up_in_the_end() -> None:
    """The third one is final; the first two are counted."""
    for before in range(MOST_FAILURES):
        failure, beats = await tried(errors.Unavailable("down"), attempt=before + 1, details=(before, 0))
        assert isinstance(failure, ApplicationError)
        assert failure.non_retryable is (before == MOST_FAILURES - 1)
        assert beats[-1][:2] == (before + 1, 0)


@pytest.mark.parametrize("translated", [True, False])
@pytest.mark.parametrize("waits", [0, 1, 40])
async def test_a_full_disk_is_waited_for(waits: int, translated: bool) -> None:
    """However often it was full before, another attempt follows soon, wherever in a call the disk was found full."""
    beats: list[tuple[Any, ...]] = []

    async def body() -> None:
        async with count_attempts(READING):
            if not translated:
                raise errors.StorageFull("full")
            with translate_errors(RECORDS):
                raise errors.StorageFull("full")

    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=waits + 1, heartbeat_details=(0, waits))
    environment.on_heartbeat = lambda *told: beats.append(told)
    with pytest.raises(ApplicationError) as caught:
        await environment.run(body)
    assert (caught.value.type, caught.value.non_retryable) == (failures.STORAGE_FULL, False)
    assert caught.value.next_retry_delay is not None
    assert timedelta(seconds=1) <= caught.value.next_retry_delay <= timedelta(seconds=10)
    assert beats[-1][:2] == (0, waits + 1)


async def test_book_keeping_does_not_wait_for_room_for_ever() -> None:
    """Without a deadline of its own it gives up so many seconds after it was asked for."""
    for age, final in ((1, False), (61, True)):

        async def body() -> None:
            async with count_attempts(RECORDS, full_disk_seconds=60):
                raise errors.StorageFull("full")

        environment = ActivityEnvironment()
        asked = datetime.now(UTC) - timedelta(seconds=age)
        environment.info = replace(environment.info, scheduled_time=asked)
        with pytest.raises(ApplicationError) as caught:
            await environment.run(body)
        assert caught.value.non_retryable is final


async def test_our_own_store_is_tried_for_longer() -> None:
    """A store that does not answer for some seconds costs no source: the pauses grow, and the tenth failure is final."""
    for before, pause in ((0, 1), (2, 4), (8, 10), (9, None)):

        async def body() -> None:
            async with count_attempts(READING):
                with translate_errors(RECORDS):
                    raise errors.Unavailable("away")

        environment = ActivityEnvironment()
        environment.info = replace(environment.info, attempt=before + 1, heartbeat_details=(before, 0))
        with pytest.raises(ApplicationError) as caught:
            await environment.run(body)
        assert caught.value.non_retryable is (pause is None)
        assert caught.value.next_retry_delay == (None if pause is None else timedelta(seconds=pause))


@pytest.mark.parametrize("stopped", [True, False])
async def test_a_stop_of_the_worker_is_no_failure_of_the_call(stopped: bool) -> None:
    """Another worker takes it up at once, however often it happens; a call that its run cancelled stays cancelled."""
    begun = asyncio.Event()

    async def body() -> None:
        async with count_attempts(READING):
            begun.set()
            await asyncio.sleep(60)

    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=9, heartbeat_details=(0, 8))
    beats: list[tuple[Any, ...]] = []
    environment.on_heartbeat = lambda *told: beats.append(told)
    work = asyncio.ensure_future(environment.run(body))
    await begun.wait()
    environment.cancel(ActivityCancellationDetails(worker_shutdown=stopped, cancel_requested=not stopped))
    if not stopped:
        with pytest.raises(asyncio.CancelledError):
            await work
        assert beats == [(0, 8)]
        return
    with pytest.raises(ApplicationError) as caught:
        await work
    assert (caught.value.type, caught.value.non_retryable) == (failures.WORKER_STOPPED, False)
    assert caught.value.next_retry_delay == timedelta(milliseconds=100)
    past = past_of(10, beats[-1])
    assert (past.failures, past.waits, past.losses) == (0, 9, 0)


async def test_what_kills_its_workers_is_not_tried_for_ever() -> None:
    """Three workers died of it: the fourth does not touch it."""
    failure, _ = await tried(None, attempt=4, details=(0, 0))
    assert isinstance(failure, ApplicationError)
    assert (failure.type, failure.non_retryable) == (failures.WORKER_LOST, True)
    assert (await tried(None, attempt=3, details=(0, 0)))[0] == "done"


@pytest.mark.parametrize("error", [errors.RateLimited("wait"), errors.Unavailable("down"), errors.InvalidCall("no")])
async def test_what_was_paid_for_nothing_is_handed_on(error: errors.ProviderError) -> None:
    """The failure tells what all attempts paid so far, and so does the heartbeat that the next attempt is given."""
    error.usage = Usage(cost_usd=0.25)
    failure, beats = await tried(error, attempt=2, details=(1, 0, Usage(cost_usd=0.5).model_dump(mode="json")))
    assert isinstance(failure, ApplicationError)
    assert Usage.model_validate(failure.details[0]["usage"]) == Usage(cost_usd=0.75)
    assert past_of(3, beats[-1]).spent == Usage(cost_usd=0.75)


async def test_waits_do_not_lengthen_the_pause_after_a_failure() -> None:
    """The pause goes by how often the call failed; a provider that names a time is obeyed."""
    first, _ = await tried(errors.Unavailable("down"), attempt=40, details=(0, 39))
    second, _ = await tried(errors.Unavailable("down"), attempt=41, details=(1, 39))
    told, _ = await tried(errors.Unavailable("down", retry_after=7), attempt=41, details=(1, 39))
    assert all(isinstance(failure, ApplicationError) for failure in (first, second, told))
    delays = [failure.next_retry_delay for failure in (first, second, told) if isinstance(failure, ApplicationError)]
    assert delays == [timedelta(seconds=1), timedelta(seconds=2), timedelta(seconds=7)]
