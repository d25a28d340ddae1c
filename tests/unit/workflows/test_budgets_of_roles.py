"""Roles under limits: whole runs over a model that bills, fails and is asked side by side."""

import asyncio
from typing import Any

from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.call_sizes import CallSize, worst_call
from contracts.outcome import CallAccount, Usage
from contracts.request import Gates
from contracts.resolved import EffectiveLimits, ModelPrice
from contracts.roles import AnalyzeInput, AnalyzerResult, RoleSpec
from contracts.state import ResearchState
from contracts.strategies import declared_roles
from contracts.vocabulary import EngineKind, Outcome, StopReason, ThinkMode, Tier
from tests.fakes import states
from tests.fakes.random_world import RandomWorld
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

PRICE = ModelPrice(input=3.0, output=15.0)
ROLE_OF: dict[type, RoleSpec[Any, Any]] = {role.input: role for role in declared_roles()}
BUDGET_REASONS = {StopReason.BUDGET_CALLS, StopReason.BUDGET_TOKENS, StopReason.BUDGET_COST}


class BillingWorld(RandomWorld):
    """Bills each call of the model a share of the most it may need, also those whose answer is of no use."""

    def __init__(self, seed: int, *, trouble: float = 0.2, share: float = 1.0) -> None:
        super().__init__(seed, trouble=trouble)
        self.share = share
        self.bill = Usage()
        self.asked: list[str] = []
        self.under_way = self.most_under_way = 0

    def charged(self, request: Any) -> Usage:
        """What one call costs."""
        most = worst_call(ROLE_OF[type(request)], request)
        size = CallSize(int(most.input_tokens * self.share), int(most.output_tokens * self.share))
        usage = Usage(
            model_calls=1,
            input_tokens=size.input_tokens,
            output_tokens=size.output_tokens,
            cost_usd=round((size.input_tokens * PRICE.input + size.output_tokens * PRICE.output) / 1e6, 9),
        )
        self.bill = self.bill.plus(usage)
        return usage

    def account(self, request: Any) -> CallAccount:
        if request.engine is EngineKind.EXTRACTIVE:
            return CallAccount()
        self.asked.append(request.operation)
        usage = self.charged(request)
        if self.chance("unusable", request.operation).random() < self.trouble:
            details = {"usage": usage.model_dump(mode="json"), "problem": "no JSON"}
            raise ApplicationError("no use", details, type=failures.INVALID_MODEL_OUTPUT, non_retryable=True)
        return CallAccount(engine=EngineKind.MODEL, model="m", usage=usage)

    async def analyze_sources(self, request: AnalyzeInput) -> AnalyzerResult:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            for _ in range(self.chance("slow", request.operation).randint(0, 5)):
                await asyncio.sleep(0)
            return await super().analyze_sources(request)
        finally:
            self.under_way -= 1


def beginning(*, think: ThinkMode = ThinkMode.RULES, iterations: int = 2, **limits: object) -> ResearchState:
    allowed = states.resolved().limits.model_copy(
        update={"max_iterations": iterations, "max_sources": 8, "max_new_sources": 6, "max_cost_usd": None, **limits}
    )
    resolved = states.resolved(
        limits=allowed,
        gates=Gates(think=think),
        engine=EngineKind.MODEL,
        model_prices={tier.value: PRICE for tier in Tier},
    )
    made = states.state(resolved=resolved)
    made.clock_started_at = 1_795_262_400.0
    made.deadline_at = made.clock_started_at + 1e9
    return made


def conduct(world: RandomWorld, state: ResearchState) -> Outcome:
    return asyncio.run(Driver(ResearchRun(state, Inbox(), world.host()), SupervisorStrategy()).conduct())


def within(limits: EffectiveLimits, bill: Usage) -> bool:
    calls = limits.max_model_calls is None or bill.model_calls <= limits.max_model_calls
    tokens = limits.max_tokens is None or bill.tokens <= limits.max_tokens
    return calls and tokens and (limits.max_cost_usd is None or bill.known_cost_usd <= limits.max_cost_usd + 1e-8)


def quiet(**changes: Any) -> BillingWorld:
    return BillingWorld(4, trouble=0.0, **changes)


def test_calls_wait_for_room_that_others_give_back() -> None:
    """Too little for all reservations at once, enough for what the calls really need: one after another, all done."""
    free, tight = quiet(share=0.05), quiet(share=0.05)
    conduct(free, beginning(iterations=1))
    state = beginning(iterations=1, max_cost_usd=0.6)
    conduct(tight, state)
    assert sorted(tight.asked) == sorted(free.asked)
    assert tight.most_under_way < free.most_under_way
    assert state.result.stop_reason not in BUDGET_REASONS


def test_a_share_that_is_used_up_ends_no_research() -> None:
    """Planning and reflecting go on without the model, and the outcome names the share (S0-165)."""
    world = quiet(share=0.05)
    state = beginning(iterations=1, max_tokens=60_000, think=ThinkMode.MODEL)
    conduct(world, state)
    assert "planner: done without the model (budget_tokens: share of planning)" in state.degraded
    assert any("share of refinement" in line for line in state.degraded)
    assert state.engine_by_role["synthesizer"] == "model"
    assert within(state.resolved.limits, world.bill)
