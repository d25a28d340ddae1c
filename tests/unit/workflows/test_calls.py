"""Calls of activities: how long they may take, how their failures are named, and payloads of other clients."""

from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.exceptions import TimeoutError as ActivityTimeout
from temporalio.exceptions import TimeoutType

from activities.failures import BEAT_SECONDS
from activities.journal import LEASE_SECONDS, RENEW_SECONDS
from tests.fakes.host import activity_error
from workers.pools import HEARTBEAT_THROTTLE
from workflows.run.calls import (
    HEARTBEAT,
    RETRY,
    describe_unstarted,
)
from workflows.run.host import json_of, plain

SECOND = timedelta(seconds=1)


def timeout(kind: TimeoutType | None, *beats: Any) -> ActivityTimeout:
    return ActivityTimeout("too late", type=kind, last_heartbeat_details=list(beats))


def test_a_killed_workers_call_is_made_again_within_twenty_seconds_and_a_pause_of_ten_loses_none() -> None:
    """Heartbeat time-out and first pause; the lease of the call has ended by then; beats come every second."""
    assert timedelta(seconds=12) < HEARTBEAT + RETRY.initial_interval <= timedelta(seconds=17)
    assert HEARTBEAT_THROTTLE + timedelta(seconds=LEASE_SECONDS) <= HEARTBEAT
    assert LEASE_SECONDS >= 2 * RENEW_SECONDS
    assert BEAT_SECONDS * SECOND < HEARTBEAT_THROTTLE


@pytest.mark.parametrize(
    ("activity", "kind", "pool"),
    [
        ("prepare_research", TimeoutType.SCHEDULE_TO_START, "records"),
        ("check_providers", TimeoutType.SCHEDULE_TO_CLOSE, "search"),
        ("check_providers", TimeoutType.START_TO_CLOSE, None),
    ],
)
def test_a_pool_without_workers_is_named(activity: str, kind: TimeoutType, pool: str | None) -> None:
    """What nobody took names the pool and both ways to start it; other timeouts are told as they are."""
    assert describe_unstarted(activity_error(activity, timeout(kind))) == (
        f"no worker of the pool {pool} took the run's first work before its deadline: start one with "
        f"`research serve` (this machine) or `research worker --pool {pool}` (a cluster), and ask again"
        if pool
        else "too late"
    )


def sent(data: bytes, encoding: bytes = b"json/plain") -> RawValue:
    return RawValue(Payload(metadata={"encoding": encoding}, data=data))


def test_json_and_nothing_are_read() -> None:
    """Everything that a client of any language may send instead of nothing is nothing."""
    values = sent(b'{"a": [1, null]}'), sent(b"", b"binary/null"), sent(b"null")
    assert [plain(value) for value in values] == [{"a": [1, None]}, None, None]
    assert [json_of(value) for value in values] == [b'{"a": [1, null]}', b"null", b"null"]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (sent(b"\x00\x01", b"binary/plain"), "no JSON"),
        (RawValue(Payload(data=b"1")), "no JSON"),
        (sent(b"[" * 200_000), "nested too deeply"),
        (sent(b"{"), "Expecting property name"),
    ],
)
def test_what_is_no_json_is_said_to_be_none(value: RawValue, problem: str) -> None:
    """A ValueError with the problem, whatever was sent: nothing of it ends a workflow task."""
    with pytest.raises(ValueError, match=problem):
        plain(value)
