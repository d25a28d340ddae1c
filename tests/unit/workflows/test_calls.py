"""Calls of activities: how long they may take, how failures are named, and what is reserved and entered for them."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeout

from activities.failures import BEAT_SECONDS
from activities.journal import LEASE_SECONDS, RENEW_SECONDS
from contracts import failures
from contracts.outcome import Usage
from contracts.presets import preset
from contracts.request import Depth
from contracts.resolved import EffectiveLimits, ModelPrice
from contracts.roles import PlanInput
from contracts.state import ResearchState
from contracts.tokens import TokenShare
from contracts.vocabulary import EngineKind, Phase, StopReason
from tests.fakes import states
from tests.fakes.host import activity_error
from workers.pools import HEARTBEAT_THROTTLE
from workflows.run.budget import (
    NOTHING,
    Reservation,
    Reservations,
    account_failure,
    refusal,
    report_reserve,
    reservation,
)
from workflows.run.calls import (
    HEARTBEAT_TIMEOUT,
    RETRY_POLICY,
    describe_unstarted,
    is_cancelled,
    is_given_up,
    is_outage,
    reason_of,
    spent_by,
)
from workflows.run.host import decode_json, payload_json

SECOND = timedelta(seconds=1)


def timeout(kind: TimeoutType | None, *beats: Any) -> ActivityTimeout:
    return ActivityTimeout("too late", type=kind, last_heartbeat_details=list(beats))


def test_a_killed_workers_call_is_made_again_within_twenty_seconds_and_a_pause_of_ten_loses_none() -> None:
    """Heartbeat time-out and first pause; the lease of the call has ended by then; beats come every 2.5 s."""
    assert timedelta(seconds=12) < HEARTBEAT_TIMEOUT + RETRY_POLICY.initial_interval <= timedelta(seconds=17)
    assert timedelta(seconds=BEAT_SECONDS + LEASE_SECONDS) <= HEARTBEAT_TIMEOUT
    assert timedelta(seconds=BEAT_SECONDS + 10) < HEARTBEAT_TIMEOUT
    assert LEASE_SECONDS >= 2 * RENEW_SECONDS
    assert HEARTBEAT_THROTTLE < BEAT_SECONDS * SECOND


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
    assert [decode_json(value) for value in values] == [{"a": [1, None]}, None, None]
    assert [payload_json(value) for value in values] == [b'{"a": [1, null]}', b"null", b"null"]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (sent(b"\x00\x01", b"binary/plain"), "no JSON"),
        (RawValue(Payload(data=b"1")), "no JSON"),
        (sent(b"[" * 200_000), "nested too deeply"),
        (sent(b"{"), "Expecting property name"),
    ],
)
def test_text_that_is_no_json_is_named_as_such(value: RawValue, problem: str) -> None:
    """A ValueError with the problem, whatever was sent: nothing of it ends a workflow task."""
    with pytest.raises(ValueError, match=problem):
        decode_json(value)


# --- the ledger ------------------------------------------------------------------------------------------------------
PRICE = ModelPrice(input=2.0, output=10.0)
REPORT = Usage(input_tokens=12_000, output_tokens=8_000)
UNLIMITED = preset("supervisor", Depth.MEDIUM).model_copy(update={"max_cost_usd": None})


def limits(**changes: object) -> EffectiveLimits:
    return UNLIMITED.model_copy(update=changes)


LIMITS = st.builds(
    limits,
    max_model_calls=st.none() | st.integers(0, 12),
    max_tokens=st.none() | st.integers(0, 60_000),
    max_cost_usd=st.none() | st.floats(0, 0.5),
)
SIZES = st.builds(Usage, input_tokens=st.integers(1, 8_000), output_tokens=st.integers(1, 8_000))
SHARES = st.floats(0, 1)
EVENTS = st.lists(
    st.tuples(st.just("start"), SIZES, st.booleans(), SHARES)
    | st.tuples(st.sampled_from(["settled", "failed", "lost", "uncounted"]), st.integers(0, 5), st.none(), SHARES),
    max_size=60,
)


def billed(size: Usage, priced: bool, share: float) -> Usage:
    """What a call really needed: never more than what was reserved for it."""
    tokens_in, tokens_out = int(size.input_tokens * share), int(size.output_tokens * share)
    cost = (tokens_in * PRICE.input + tokens_out * PRICE.output) / 1e6
    return Usage(model_calls=1, input_tokens=tokens_in, output_tokens=tokens_out, cost_usd=cost if priced else None)


def within(allowed: EffectiveLimits, spent: Usage) -> bool:
    calls = allowed.max_model_calls is None or spent.model_calls <= allowed.max_model_calls
    tokens = allowed.max_tokens is None or spent.tokens <= allowed.max_tokens
    cost = allowed.max_cost_usd is None or spent.known_cost_usd <= allowed.max_cost_usd + 1e-8
    return calls and tokens and cost


@given(LIMITS, EVENTS, st.booleans())
def test_whatever_ends_in_whatever_order_no_limit_is_exceeded(allowed, events, keep) -> None:
    """Calls side by side, failed, given up or without counts: what is billed stays within each limit (invariant 6)."""
    reservations, used, bill = Reservations(), Usage(), Usage()
    open_calls: list[tuple[int, Reservation, Usage]] = []
    kept = report_reserve(allowed, REPORT, PRICE) if keep else NOTHING
    for kind, what, priced, share in events:
        if kind == "start":
            wanted = reservation(what, PRICE if priced else None)
            if refusal(allowed, used, reservations.total, wanted, kept) is None:
                open_calls.append((reservations.open(wanted, TokenShare.ANALYSIS), wanted, billed(what, priced, share)))
        elif open_calls:
            number, wanted, real = open_calls.pop(what % len(open_calls))
            if kind == "settled":
                used, bill, left = used.plus(real), bill.plus(real), wanted.unexplained_by(real)
            elif kind == "failed":
                left = wanted.unexplained_by(Usage())
            elif kind == "uncounted":
                told = Usage(model_calls=1, cost_usd=None)
                used, bill, left = used.plus(told), bill.plus(real), wanted.unexplained_by(told)
            else:
                bill, left = bill.plus(real), wanted
            reservations.close(number, left)
        everything = bill
        for _, _, real in open_calls:
            everything = everything.plus(real)
        assert within(allowed, everything)


def test_a_small_limit_leaves_something_to_research() -> None:
    """Of each limit at most 35 % is kept for the synthesis, and never less than one call."""
    kept = report_reserve(limits(max_model_calls=3, max_tokens=10_000, max_cost_usd=0.1), REPORT, PRICE)
    assert (kept.calls, kept.tokens) == (1, 3_500)
    assert kept.cost_usd == pytest.approx(0.035)
    assert report_reserve(limits(max_model_calls=1), REPORT, PRICE).calls == 1


@pytest.mark.parametrize(
    ("changes", "used", "reason"),
    [
        ({"max_model_calls": 5}, Usage(model_calls=4), StopReason.BUDGET_CALLS),
        ({"max_model_calls": 6}, Usage(model_calls=4), None),
        ({"max_tokens": 2_000}, Usage(input_tokens=400, output_tokens=601), StopReason.BUDGET_TOKENS),
        ({"max_tokens": 2_000}, Usage(input_tokens=400, output_tokens=600), None),
        ({"max_cost_usd": 0.02}, Usage(cost_usd=0.0101), StopReason.BUDGET_COST),
        ({"max_cost_usd": 0.02}, Usage(cost_usd=0.01), None),
        ({"max_cost_usd": 0.02}, Usage(cost_usd=None, partial_cost_usd=0.0101), StopReason.BUDGET_COST),
        ({"max_cost_usd": 0.02}, Usage(searches=4, cost_usd=0.0101), StopReason.BUDGET_COST),
        ({"max_cost_usd": 0.0}, Usage(), StopReason.BUDGET_COST),
    ],
)
def test_the_limit_that_says_no_is_named(changes, used, reason) -> None:
    """Half the room is held by a call under way; what searches cost counts, too, and so does the known part."""
    held, wanted = Reservation(1, 500, 0.005), Reservation(1, 500, 0.005)
    assert refusal(limits(**changes), used, held, wanted) is reason


def test_an_unusable_answer_that_is_replayed_is_paid_once() -> None:
    """After cancel and resume the call store gives it again; also when the session was stored in between (S0-131)."""
    paid = Usage(model_calls=1, input_tokens=300, output_tokens=40, cost_usd=0.0003)
    given_fields = {"research_id": "r-1", "operation": "plan/1", "engine": EngineKind.MODEL, "date": "2026-11-22"}
    request = PlanInput(**given_fields, query="what is it?")
    state = states.state(phase=Phase.PLANNING)
    account_failure(state, "planner", request, paid)
    again = ResearchState.unpack(state.pack())
    account_failure(again, "planner", request.model_copy(update={"time_limit_seconds": 7.0}), paid)
    assert again.accounts.usage == paid
    assert again.accounts.usage_by_role == {"planner": paid}
    assert again.accounts.usage_by_phase == {"planning": paid}
