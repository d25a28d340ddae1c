"""Calls of activities: how long they may take, how their failures are named, and payloads of other clients."""

from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeout

from activities.failures import BEAT_SECONDS
from activities.journal import LEASE_SECONDS, RENEW_SECONDS
from contracts import failures
from contracts.outcome import Usage
from tests.fakes.host import activity_error
from workers.pools import HEARTBEAT_THROTTLE
from workflows.run.calls import (
    HEARTBEAT,
    RETRY,
    describe_unstarted,
    is_cancelled,
    is_given_up,
    is_outage,
    reason_of,
    spent_by,
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


@pytest.mark.parametrize(
    ("cause", "reason", "outage", "given_up"),
    [
        (ApplicationError("x", {"kind": "not_found"}, type="SourceUnreadable"), "not_found", False, False),
        (ApplicationError("x", type=failures.STORAGE_FULL), failures.STORAGE_FULL, True, False),
        (ApplicationError("x", "words", type=failures.WORKER_LOST), failures.WORKER_LOST, False, True),
        (ApplicationError("x"), "failed", False, False),
        (timeout(None), "TimeoutError", True, False),
    ],
)
def test_a_failure_has_a_short_reason(cause: Any, reason: str, outage: bool, given_up: bool) -> None:
    """The kind of an unreadable source, else the type of the failure."""
    error = activity_error("any", cause)
    assert (reason_of(error), is_outage(error), is_given_up(error)) == (reason, outage, given_up)
    assert not is_cancelled(error)


def test_a_call_that_failed_or_ran_out_of_time_says_what_it_spent() -> None:
    """What the attempts reported is known even if the engine ended the last one."""
    spent = Usage(cost_usd=0.03)
    details = {"usage": spent.model_dump(mode="json")}
    late, silent = timeout(TimeoutType.SCHEDULE_TO_CLOSE, details), timeout(TimeoutType.SCHEDULE_TO_CLOSE)
    refused = ApplicationError("no search", details, type=failures.SEARCH_REJECTED)
    assert [spent_by(activity_error("search", cause)) for cause in (late, silent, refused)] == [spent, Usage(), spent]


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
