"""The ledger: what is reserved, what remains for the report, which limit says no, and what is entered of each answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.call_sizes import CallSize
from contracts.outcome import Usage
from contracts.presets import preset
from contracts.request import Depth
from contracts.resolved import EffectiveLimits, ModelPrice
from contracts.roles import PlanInput
from contracts.state import ResearchState
from contracts.tokens import TokenShare
from contracts.vocabulary import EngineKind, Phase, StopReason
from tests.fakes import states
from workflows.run.budget import (
    NOTHING,
    Reservation,
    Reservations,
    account_failure,
    refusal,
    report_reserve,
    reservation,
)

PRICE = ModelPrice(input=2.0, output=10.0)
UNLIMITED = preset("supervisor", Depth.MEDIUM).model_copy(update={"max_cost_usd": None})


def limits(**changes: object) -> EffectiveLimits:
    return UNLIMITED.model_copy(update=changes)


LIMITS = st.builds(
    limits,
    max_model_calls=st.none() | st.integers(0, 12),
    max_tokens=st.none() | st.integers(0, 60_000),
    max_cost_usd=st.none() | st.floats(0, 0.5),
)
SIZES = st.builds(CallSize, st.integers(1, 8_000), st.integers(1, 8_000))
SHARES = st.floats(0, 1)
EVENTS = st.lists(
    st.tuples(st.just("start"), SIZES, st.booleans(), SHARES)
    | st.tuples(st.sampled_from(["settled", "failed", "lost", "uncounted"]), st.integers(0, 5), st.none(), SHARES),
    max_size=60,
)


def billed(size: CallSize, priced: bool, share: float) -> Usage:
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
    kept = report_reserve(allowed, 3, PRICE) if keep else NOTHING
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
    kept = report_reserve(limits(max_model_calls=3, max_tokens=10_000, max_cost_usd=0.1), 5, PRICE)
    assert (kept.calls, kept.tokens) == (1, 3_500)
    assert kept.cost_usd == pytest.approx(0.035)
    assert report_reserve(limits(max_model_calls=1), 5, PRICE).calls == 1


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
    assert again.usage == paid
    assert again.usage_by_role == {"planner": paid}
    assert again.usage_by_phase == {"planning": paid}
