"""How calls are scheduled when hardly any time is left, and when there is plenty."""

from datetime import timedelta

import pytest

from activities.attempts import BEAT_SECONDS
from activities.journal import LEASE_SECONDS, RENEW_SECONDS
from contracts.vocabulary import EngineKind
from workers.pools import HEARTBEAT_THROTTLE
from workflows.run.activity_options import (
    FIRST_PAUSE,
    HEARTBEAT,
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


@pytest.mark.parametrize(("left", "model", "extractive"), [(0, 10, 10), (200, 200, 120), (5_000, 600, 120)])
def test_a_role_has_what_is_left_and_ten_seconds_at_least(left: float, model: float, extractive: float) -> None:
    """An attempt of a model may take ten minutes, one without a model two; activities count those that failed."""
    whole = max(10, left)
    assert limits(role_options("a", "s", EngineKind.MODEL, left)) == (model, whole, 3.5)
    assert limits(role_options("a", "s", EngineKind.EXTRACTIVE, left)) == (extractive, whole, 3.5)
    attempts = [role_options("a", "s", kind, left).retry.maximum_attempts for kind in EngineKind]
    assert attempts == [0, 0]


@pytest.mark.parametrize(("left", "alone", "one_of_several"), [(0, (5, 5), (5, 5)), (5_000, (65, 5_000), (65, 75))])
def test_one_provider_of_several_is_not_waited_for_that_long(
    left: float, alone: tuple[float, float], one_of_several: tuple[float, float]
) -> None:
    """A single provider may use all the time that is left."""
    assert limits(search_options("a", "s", left)) == (*alone, 3.5)
    assert limits(search_options("a", "s", left, alone=False)) == (*one_of_several, 3.5)


@pytest.mark.parametrize(("left", "limit"), [(0, 10), (30, 30), (5_000, 60)])
def test_a_hook_has_a_minute_at_most(left: float, limit: float) -> None:
    """It need not beat: its heartbeat is its limit."""
    assert limits(hook_options("a", "q", left)) == (limit, limit, limit)


def test_a_worker_for_a_page_is_waited_for_while_time_is_left() -> None:
    """How long its site is waited for, the activity knows."""
    assert limits(read_options("a", "s", 5_000)) == (65, 5_000, 3.5)


def test_a_killed_worker_s_call_is_made_again_within_five_seconds_and_not_told_to_wait() -> None:
    """Killed right after a beat, or a second later and right after its lease was renewed; the server adds a second."""
    assert timedelta(seconds=4.6) >= HEARTBEAT + FIRST_PAUSE + SECOND
    assert HEARTBEAT_THROTTLE + timedelta(seconds=LEASE_SECONDS) <= HEARTBEAT + FIRST_PAUSE
    assert LEASE_SECONDS >= 2 * RENEW_SECONDS
    assert HEARTBEAT >= 3 * HEARTBEAT_THROTTLE
    assert BEAT_SECONDS * SECOND < HEARTBEAT_THROTTLE
