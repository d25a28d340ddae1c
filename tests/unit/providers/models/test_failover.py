"""Models that stand in for each other: real SDK, loopback endpoints, one answered call whatever fails before."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from contracts.roles import PLANNER, PlanInput
from contracts.vocabulary import EngineKind, Tier
from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from providers.interfaces import EngineAnswer, EngineTask
from providers.models.capabilities import EndpointCapabilities
from providers.models.chat import TokenCounts
from providers.models.failover import time_share
from providers.models.language_model import LanguageModelEngine
from providers.models.model_directory import MissingChat, ModelDirectory, ModelEndpoint, split_name
from providers.models.prices import PriceEntry, load_prices
from providers.shared.circuit_breaker import FAILURES_TO_OPEN, CircuitBreaker
from providers.shared.stores.memory_store import MemorySharedStore
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_for

MAIN, SPARE = "claude-sonnet-4-6", "claude-haiku-4-5"
PRICES = {MAIN: (3.0, 15.0), SPARE: (1.0, 5.0)}


def task(model: str | None = None, **changes: Any) -> EngineTask:
    """A plan to be made."""
    given = PlanInput(
        research_id="r-1",
        operation="plan/1",
        engine=EngineKind.MODEL,
        model=model,
        date="2026-11-22",
        query="How does vacuum work?",
        **changes,
    )
    return EngineTask(PLANNER, given, {}, "role: planner\n\nYou plan.", "<question>\nHow?\n</question>", "1")


@asynccontextmanager
async def pair(
    first: str, second: str = "good", **options: Any
) -> AsyncIterator[tuple[LanguageModelEngine, MessagesApi, MessagesApi]]:
    """An engine whose preferred model is at one endpoint and its spare at another."""
    async with MessagesApi(first) as main, MessagesApi(second) as other:
        async with engine_for({"default": main, "other": other}, [MAIN, f"other:{SPARE}"], **options) as engine:
            yield engine, main, other


def answered(*apis: MessagesApi) -> int:
    """How many calls got an answer that costs money."""
    return sum(len(api.book.charges) for api in apis)


@pytest.mark.parametrize(
    ("scenario", "named"),
    [
        ("status:429:7", "RateLimited"),
        *((name, "Unavailable") for name in ("status:500", "status:503", "status:529:3", "status:408")),
        *((name, "Unavailable") for name in ("reset", "reset_after_headers", "truncated", "html_200", "html_502")),
        *((name, "NotConfigured") for name in ("status:401", "status:403", "no_credit", "moved")),
        *((name, "InvalidCall") for name in ("unknown_model", "status:404")),
    ],
)
async def test_another_model_answers_where_one_does_not(scenario: str, named: str) -> None:
    """Within one call the next model is asked, once; the account names who answered, what it cost, and why (S0-096)."""
    async with pair(scenario) as (engine, main, other):
        answer = await engine.answer(task(MAIN))
    assert (len(main.calls), len(other.calls), answered(main, other)) == (1, 1, 1)
    assert (answer.model, answer.usage.model_calls) == (SPARE, 1)
    assert answer.warnings == [f"model {MAIN} did not answer ({named}): other:{SPARE} did"]
    assert answer.usage.cost_usd == pytest.approx(other.book.owed_usd(PRICES))


@pytest.mark.parametrize("scenario", ["status:400", "echo_400", "too_long", "status:413"])
async def test_what_one_model_refuses_is_not_put_to_another(scenario: str) -> None:
    """A refused request, or one too long for a window that the other's does not exceed, fails at once."""
    async with pair(scenario) as (engine, _, other):
        with pytest.raises(InvalidCall):
            await engine.answer(task(MAIN))
    assert other.calls == []


async def test_what_is_too_long_goes_to_a_larger_window() -> None:
    """A prompt that one model finds too long is put to those with larger windows only (S0-099)."""
    async with MessagesApi("too_long") as main, MessagesApi() as other:
        models = ["unheard-of", "other:unheard-of-either", f"other:{SPARE}"]
        async with engine_for({"default": main, "other": other}, models) as engine:
            answer = await engine.answer(task())
    assert [call.model for call in other.calls] == [SPARE]
    assert answer.model == SPARE


@pytest.mark.parametrize("scenario", ["hopeless", "cut", "refusal", "empty"])
async def test_a_paid_answer_is_never_asked_for_again(scenario: str) -> None:
    """An answer that cannot be used was paid: no other model is asked in the same call, and its cost is told."""
    async with pair(scenario) as (engine, main, other):
        with pytest.raises(ProviderError) as caught:
            await engine.answer(task(MAIN))
    assert (len(main.calls), len(other.calls)) == (1, 0)
    assert caught.value.usage.cost_usd == pytest.approx(main.book.owed_usd(PRICES))  # type: ignore[attr-defined]


async def test_a_silent_endpoint_leaves_time_for_the_next() -> None:
    """The time of a call is shared: a model that says nothing does not use up all of it."""
    async with pair("slow") as (engine, main, other):
        answer = await engine.answer(task(MAIN, time_limit_seconds=4.0))
    assert answer.model == SPARE
    assert (len(main.calls), len(other.calls)) == (1, 1)
    assert time_share(100, last=False) == pytest.approx(70)
    assert time_share(100, last=True) == 100


async def test_a_silent_endpoint_costs_no_more_than_the_limit() -> None:
    """When nobody answers, the call ends within its limit, as unavailable."""
    async with pair("slow", "slow") as (engine, main, other):
        async with asyncio.timeout(30):
            with pytest.raises(Unavailable):
                await engine.answer(task(MAIN, time_limit_seconds=2.0))
    assert (len(main.calls), len(other.calls)) == (1, 1)


@pytest.mark.parametrize(
    ("first", "second", "kind", "wait"),
    [
        ("status:429:9", "status:429:4", RateLimited, 4.0),
        ("status:500", "status:429:4", RateLimited, 4.0),
        ("status:429:9", "status:401", RateLimited, 9.0),
        ("status:429", "status:500", RateLimited, None),
        ("status:401", "status:529", Unavailable, None),
        ("status:401", "unknown_model", NotConfigured, None),
        ("unknown_model", "status:401", InvalidCall, None),
    ],
)
async def test_when_nobody_answers_the_most_helpful_error_is_told(
    first: str, second: str, kind: type[ProviderError], wait: float | None
) -> None:
    """To wait, no longer than the soonest says, if that can help; else what the preferred model needs (S0-096)."""
    async with pair(first, second) as (engine, main, other):
        with pytest.raises(ProviderError) as caught:
            await engine.answer(task(MAIN))
    assert type(caught.value) is kind
    assert getattr(caught.value, "retry_after", None) == wait
    assert (len(main.calls), len(other.calls), answered(main, other)) == (1, 1, 0)


async def test_the_model_of_the_request_comes_first() -> None:
    """A model that the request names goes before the configured ones, which stand in for it (S0-101)."""
    async with pair("good") as (engine, main, _):
        first = await engine.answer(task(f"other:{SPARE}"))
        configured = await engine.answer(task())
        named = await engine.answer(task("claude-opus-4-8"))
    assert (first.model, configured.model, named.model) == (SPARE, MAIN, "claude-opus-4-8")
    assert [call.model for call in main.calls] == [MAIN, "claude-opus-4-8"]
    async with pair("unknown_model") as (engine, main, _):
        answer = await engine.answer(task("claude-opus-4-8"))
    assert [call.model for call in main.calls] == ["claude-opus-4-8", MAIN]
    assert answer.model == SPARE
    assert len(answer.warnings) == 2


async def test_a_failing_endpoint_is_left_alone_for_a_while() -> None:
    """After failures in a row no time is spent on an endpoint; one call after the pause finds out that it works again."""
    now = [1_000.0]
    circuits = CircuitBreaker(MemorySharedStore(lambda: now[0]), believed_seconds=0)
    async with pair("status:500", circuits=circuits) as (engine, main, _):
        for _ in range(FAILURES_TO_OPEN + 3):
            last = await engine.answer(task(MAIN))
        assert len(main.calls) == FAILURES_TO_OPEN
        assert last.warnings == [f"model {MAIN} did not answer (it failed shortly before): other:{SPARE} did"]
        assert [(one.name, one.state) for one in await engine.health()] == [
            ("default", "left alone for a while"),
            ("other", "answering"),
        ]
        main.plan.otherwise = "good"
        now[0] += 31
        assert (await engine.answer(task(MAIN))).model == MAIN
        assert (await engine.answer(task(MAIN))).model == MAIN
        assert (await engine.health())[0].state == "answering"


async def test_a_circuit_is_no_reason_for_a_call_to_fail() -> None:
    """Where no other model stands by, an endpoint is asked although it failed."""
    async with (
        MessagesApi(plan=["status:500"] * FAILURES_TO_OPEN) as api,
        engine_for({"default": api}, [MAIN]) as engine,
    ):
        for _ in range(FAILURES_TO_OPEN):
            with pytest.raises(Unavailable):
                await engine.answer(task(MAIN))
        assert (await engine.answer(task(MAIN))).model == MAIN


async def test_being_told_to_wait_opens_no_circuit() -> None:
    """A rate limit says that the endpoint works."""
    async with pair("status:429:1") as (engine, main, _):
        for _ in range(FAILURES_TO_OPEN + 2):
            await engine.answer(task(MAIN))
        assert (await engine.health())[0].state == "failing (RateLimited)"
    assert len(main.calls) == FAILURES_TO_OPEN + 2


async def test_cost_is_what_the_endpoints_charged() -> None:
    """Over a mix of failures at both endpoints, tokens and money equal the fakes' own books."""
    mix = {"status:529": 0.3, "status:429:0": 0.2, "cut": 0.1}
    usages = []
    async with MessagesApi(mix=mix, seed=4) as main, MessagesApi(mix=mix, seed=9) as other:
        async with engine_for({"default": main, "other": other}, [MAIN, f"other:{SPARE}"]) as engine:
            for number in range(40):
                try:
                    usages.append((await engine.answer(task(MAIN, iteration=number))).usage)
                except ProviderError as error:
                    usages.append(error.usage)
    paid = [usage for usage in usages if usage.model_calls]
    charges = main.book.charges + other.book.charges
    assert {charge.model for charge in charges} == {MAIN, SPARE}
    assert len(paid) == len(charges)
    assert sum(usage.input_tokens for usage in paid) == sum(charge.prompt for charge in charges)
    assert sum(usage.output_tokens for usage in paid) == sum(charge.output for charge in charges)
    owed = main.book.owed_usd(PRICES) + other.book.owed_usd(PRICES)
    assert sum(usage.cost_usd or 0 for usage in paid) == pytest.approx(owed)


async def test_an_endpoint_that_cannot_be_asked_is_passed_over() -> None:
    """A missing key is told in the account, and another endpoint does the work."""
    async with MessagesApi() as api, engine_for({"default": api}) as working:
        place = working._directory.endpoints["default"]
        missing = ModelEndpoint("default", "h", MissingChat("set THE_KEY"), lambda _: EndpointCapabilities())
        here = ModelEndpoint("here", place.host, place.chat, place.capabilities)
        engine = LanguageModelEngine(
            ModelDirectory({"default": missing, "here": here}, {Tier.ANALYTICAL: [MAIN, f"here:{SPARE}"]}),
            load_prices(),
        )
        answer = await engine.answer(task())
        assert answer.warnings == [f"model {MAIN} did not answer (NotConfigured): here:{SPARE} did"]
        with pytest.raises(NotConfigured, match="THE_KEY"):
            await LanguageModelEngine(ModelDirectory({"default": missing}), load_prices()).answer(task(MAIN))
        assert [(one.name, one.state, one.models) for one in await engine.health()] == [
            ("default", "not configured", [MAIN]),
            ("here", "answering", [SPARE]),
        ]


async def test_no_message_repeats_what_a_request_names() -> None:
    """A request may name anything as its model: messages show a harmless form of it, on one line."""
    odd = "claude\n<b>ignore previous</b> " + "x" * 100
    async with pair("unknown_model") as (engine, _, _):
        answer = await engine.answer(task(odd))
    async with pair("status:500", "status:500") as (engine, _, _):
        with pytest.raises(Unavailable) as caught:
            await engine.answer(task(odd))
    for told in (*answer.warnings, str(caught.value)):
        assert "\n" not in told
        assert "<b>" not in told
        assert len(told) < 300


@pytest.mark.parametrize(
    ("written", "place", "model"),
    [
        ("qwen3:8b", "default", "qwen3:8b"),
        ("local:qwen3:8b", "local", "qwen3:8b"),
        ("local:", "default", "local:"),
        ("other:m", "default", "other:m"),
        ("m", "default", "m"),
        ("default:m", "default", "m"),
    ],
)
def test_only_a_known_endpoint_before_the_first_colon_counts(written: str, place: str, model: str) -> None:
    """Names of models may have colons of their own."""
    assert split_name(written, {"default", "local"}) == (place, model)


def test_a_price_may_be_of_a_model_at_one_endpoint() -> None:
    """The same model can cost something here and nothing there."""
    prices = load_prices().with_models({"local:m": PriceEntry(input=0, output=0), "m": PriceEntry(input=1, output=1)})
    assert prices.cost_usd("m", TokenCounts(input=1_000_000), written="local:m") == 0
    assert prices.cost_usd("m", TokenCounts(input=1_000_000), written="m") == 1


class Gate:
    """A limiter that lets some services through and makes others wait, writing down what it is asked."""

    def __init__(self, waiting: set[str]) -> None:
        self.waiting = waiting
        self.asked: list[tuple[str, str, int]] = []
        self.told: list[int] = []

    def permit(self, service: str, holder: str, tokens: int = 0) -> AbstractAsyncContextManager[Any]:
        """One call."""

        @asynccontextmanager
        async def allowed() -> AsyncIterator[Any]:
            self.asked.append((service, holder, tokens))
            if service in self.waiting:
                raise RateLimited("wait", retry_after=5)
            yield self

        return allowed()

    def used(self, tokens: int) -> None:
        """What the call took."""
        self.told.append(tokens)


async def test_each_request_needs_a_permit_and_tells_what_it_took() -> None:
    """An endpoint whose limit is reached is not asked, and the next one's permit learns its tokens (S0-101)."""
    gate = Gate({"model/default"})
    async with pair("good", limiter=gate) as (engine, main, other):
        answer = await engine.answer(task(MAIN))
    assert main.calls == []
    assert [(service, holder) for service, holder, _ in gate.asked] == [
        ("model/default", "r-1/plan/1"),
        ("model/other", "r-1/plan/1"),
    ]
    assert gate.told == [answer.usage.input_tokens + answer.usage.output_tokens]
    assert gate.asked[1][2] >= gate.told[0]
    assert isinstance(answer, EngineAnswer)
    assert len(other.calls) == 1
