"""How calls are scheduled when hardly any time is left, and when there is plenty."""

from datetime import timedelta

import pytest

from activities.failures import BEAT_SECONDS
from activities.journal import LEASE_SECONDS, RENEW_SECONDS
from contracts import names
from workers.pools import HEARTBEAT_THROTTLE
from workflows.run.calls import (
    HEARTBEAT,
    RETRY,
    CallOptions,
    call_options,
    hook_options,
)

SECOND = timedelta(seconds=1)


def limits(options: CallOptions) -> tuple[float, float | None, float]:
    """Seconds of an attempt, of all of them, and between heartbeats."""
    whole = options.schedule_to_close
    return options.start_to_close / SECOND, whole and whole / SECOND, options.heartbeat / SECOND


@pytest.mark.parametrize(
    ("queue", "left", "attempt", "whole"),
    [
        (names.MODELS_QUEUE, 0, 10, 10),
        (names.MODELS_QUEUE, 5_002, 600, 5_000),
        (names.SEARCH_QUEUE, 0, 5, 5),
        (names.READING_QUEUE, 5_000, 65, 4_998),
        (names.RECORDS_QUEUE, 0, 60, 60),
        (names.RECORDS_QUEUE, None, 60, None),
    ],
)
def test_a_call_has_the_time_that_is_left_and_a_least_one(
    queue: str, left: float | None, attempt: float, whole: float | None
) -> None:
    """It ends two seconds before the time for work, so that the run learns what it was waiting for."""
    options = call_options(queue, "a", "s", left)
    assert limits(options) == (attempt, whole, 15)
    assert options.retry.maximum_attempts == 0


@pytest.mark.parametrize(("left", "limit"), [(0, 10), (30, 30), (5_000, 60)])
def test_a_hook_has_a_minute_at_most(left: float, limit: float) -> None:
    """It need not beat: its heartbeat is its limit."""
    assert limits(hook_options("a", "q", left)) == (limit, limit, limit)


def test_a_killed_workers_call_is_made_again_within_twenty_seconds_and_a_pause_of_ten_loses_none() -> None:
    """Heartbeat time-out and first pause; the lease of the call has ended by then; beats come every second."""
    assert timedelta(seconds=12) < HEARTBEAT + RETRY.initial_interval <= timedelta(seconds=17)
    assert HEARTBEAT_THROTTLE + timedelta(seconds=LEASE_SECONDS) <= HEARTBEAT
    assert LEASE_SECONDS >= 2 * RENEW_SECONDS
    assert BEAT_SECONDS * SECOND < HEARTBEAT_THROTTLE
    assert RETRY.maximum_attempts == 0
