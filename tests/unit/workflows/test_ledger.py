"""The ledger: what is reserved, what remains for the report, which limit says no, and what is entered of each answer."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.call_sizes import CallSize, worst_call
from contracts.outcome import CallAccount, Usage
from contracts.presets import preset
from contracts.request import Depth
from contracts.resolved import EffectiveLimits, ModelPrice
from contracts.roles import AnalyzeInput, AnalyzerResult, PlanInput
from contracts.state import ResearchState
from contracts.strategies import declared_roles
from contracts.vocabulary import EngineKind, Phase, StopReason, Tier
from tests.fakes import states
from tests.fakes.random_world import RandomWorld
from workflows.driver import Driver
from workflows.run.budget import NOTHING, Holdings, Reservation, account_failure, refusal, report_reserve, reservation
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

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
    holdings, used, bill = Holdings(), Usage(), Usage()
    open_calls: list[tuple[int, Reservation, Usage]] = []
    kept = report_reserve(allowed, 3, PRICE) if keep else NOTHING
    for kind, what, priced, share in events:
        if kind == "start":
            wanted = reservation(what, PRICE if priced else None)
            if refusal(allowed, used, holdings.held, wanted, kept) is None:
                open_calls.append((holdings.open(wanted), wanted, billed(what, priced, share)))
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
            holdings.close(number, left)
        everything = bill
        for _, _, real in open_calls:
            everything = everything.plus(real)
        assert within(allowed, everything)


def test_a_small_limit_leaves_something_to_research() -> None:
    """Of each limit at most 35 % is kept for the synthesis, and never less than one call (S0-165)."""
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


class BillingWorld(RandomWorld):
    """Bills each call of the model a twentieth of the most it may need."""

    def __init__(self) -> None:
        super().__init__(4, trouble=0.0)
        self.asked: list[str] = []
        self.seconds: list[float] = []
        """Time limits of the analyses, as they began."""
        self.pause = 0.0
        """Seconds that pass during the first of them."""
        self.clocked = self.host()

    def account(self, request: Any) -> CallAccount:
        if request.engine is EngineKind.EXTRACTIVE:
            return CallAccount()
        self.asked.append(request.operation)
        size = worst_call(next(role for role in declared_roles() if role.input is type(request)), request)
        return CallAccount(engine=EngineKind.MODEL, model="m", usage=billed(size, True, 0.05))

    async def analyze_sources(self, request: AnalyzeInput) -> AnalyzerResult:
        self.seconds.append(request.time_limit_seconds)
        await asyncio.sleep(0)
        self.clocked.clock += timedelta(seconds=self.pause)
        self.pause = 0.0
        return await super().analyze_sources(request)


def conducted(world: BillingWorld, seconds: float = 1e9, **changes: object) -> ResearchState:
    """A run of one iteration under these limits, to its end."""
    small = {"max_iterations": 1, "max_sources": 8, "max_new_sources": 6}
    allowed = states.resolved().limits.model_copy(update={**small, "max_cost_usd": None, **changes})
    prices = {tier.value: PRICE for tier in Tier}
    state = states.state(resolved=states.resolved(limits=allowed, engine=EngineKind.MODEL, model_prices=prices))
    state.clock_started_at = world.clocked.now().timestamp()
    state.deadline_at = state.clock_started_at + seconds
    asyncio.run(Driver(ResearchRun(state, Inbox(), world.clocked), SupervisorStrategy()).conduct())
    return state


def test_calls_wait_for_room_that_others_give_back() -> None:
    """Too little for all reservations at once is enough for what the calls need: one waits, and has less time."""
    free, tight = BillingWorld(), BillingWorld()
    conducted(free)
    tight.pause = 3_600.0
    state = conducted(tight, 3_600 + 400, max_tokens=60_000)
    assert sorted(tight.asked) == sorted(free.asked)
    assert state.result.stop_reason not in (StopReason.BUDGET_CALLS, StopReason.BUDGET_TOKENS, StopReason.BUDGET_COST)
    assert tight.seconds[0] > 500
    assert tight.seconds[1] < 400


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
