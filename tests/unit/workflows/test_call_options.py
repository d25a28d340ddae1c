"""How calls are scheduled when hardly any time is left, and when there is plenty."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from activities.failures import BEAT_SECONDS
from activities.journal import LEASE_SECONDS, RENEW_SECONDS
from contracts.vocabulary import EngineKind
from workers.pools import HEARTBEAT_THROTTLE
from workflows.run.calls import (
    HEARTBEAT,
    RETRY,
    CallOptions,
    hook_options,
    read_options,
    role_options,
    search_options,
)

SECOND = timedelta(seconds=1)


def limits(options: CallOptions) -> tuple[float, float | None, float]:
    """Seconds of an attempt, of all of them, and between heartbeats."""
    whole = options.schedule_to_close
    return options.start_to_close / SECOND, whole and whole / SECOND, options.heartbeat / SECOND


@pytest.mark.parametrize(("left", "model", "extractive"), [(0, 10, 10), (202, 200, 120), (5_002, 600, 120)])
def test_a_role_has_what_is_left_and_ten_seconds_at_least(left: float, model: float, extractive: float) -> None:
    """An attempt of a model may take ten minutes, one without a model two; activities count those that failed."""
    whole = max(10, left - 2)
    assert limits(role_options("a", "s", EngineKind.MODEL, left)) == (model, whole, 15)
    assert limits(role_options("a", "s", EngineKind.EXTRACTIVE, left)) == (extractive, whole, 15)
    attempts = [role_options("a", "s", kind, left).retry.maximum_attempts for kind in EngineKind]
    assert attempts == [0, 0]


@pytest.mark.parametrize(("left", "limit"), [(0, 10), (30, 30), (5_000, 60)])
def test_a_hook_has_a_minute_at_most(left: float, limit: float) -> None:
    """It need not beat: its heartbeat is its limit."""
    assert limits(hook_options("a", "q", left)) == (limit, limit, limit)


@pytest.mark.parametrize("options_of", [read_options, search_options])
def test_searches_and_reads_have_the_time_for_work(options_of: Callable[[str, str, float], CallOptions]) -> None:
    """They end two seconds before it, so that the run learns what it was waiting for."""
    assert limits(options_of("a", "s", 5_000)) == (65, 4_998, 15)
    assert limits(options_of("a", "s", 0)) == (5, 5, 15)


def test_a_killed_workers_call_is_made_again_within_twenty_seconds_and_a_pause_of_ten_loses_none() -> None:
    """Heartbeat time-out and first pause; the lease of the call has ended by then; beats come every second."""
    assert timedelta(seconds=12) < HEARTBEAT + RETRY.initial_interval <= timedelta(seconds=17)
    assert HEARTBEAT_THROTTLE + timedelta(seconds=LEASE_SECONDS) <= HEARTBEAT
    assert LEASE_SECONDS >= 2 * RENEW_SECONDS
    assert BEAT_SECONDS * SECOND < HEARTBEAT_THROTTLE
    assert RETRY.maximum_attempts == 0
