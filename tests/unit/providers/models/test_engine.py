"""The engine with the real SDK against loopback endpoints: requests, bad answers, caches, and failover."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from activities.roles.prompt_rendering import render_role
from contracts.addresses import digest
from contracts.evidence import DocumentRef
from contracts.outcome import Usage
from contracts.plan import PlanNode
from contracts.resolved import ModelPrice
from contracts.roles import (
    ANALYZER,
    PLANNER,
    SYNTHESIZER,
    AnalyzeInput,
    PlanInput,
    RoleInput,
    RoleSpec,
    SourceExtract,
    WriteInput,
)
from contracts.supervisor_roles import REFINER, SUPERVISOR, RefineInput, ReflectInput
from contracts.vocabulary import Phase
from providers.errors import (
    AnswerCut,
    AnswerRefused,
    AnswerUnusable,
    InvalidCall,
    InvalidOutput,
    NotConfigured,
    ProviderError,
    RateLimited,
    ReservationTooSmall,
    Unavailable,
)
from providers.interfaces import EngineTask, RenderedPrompt
from providers.models.chat import ChatMode
from providers.models.endpoints import EndpointCapabilities, PriceTable
from providers.models.language_model import LanguageModelEngine
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import OpenLimiter, engine_for
from tests.fakes.model_tokens import TokenBook
from tests.unit.activities.scripted import common

QUESTION = "How does PostgreSQL prevent transaction ID wraparound?"
SENTENCE = "Vacuuming marks old rows as frozen, so that transaction ID wraparound cannot hide them."
MAIN, SPARE = "claude-sonnet-4-6", "claude-haiku-4-5"
PRICES = {MAIN: (3.0, 15.0), SPARE: (1.0, 5.0)}
COMMON: dict[str, Any] = common(model=SPARE, query=QUESTION)
SOURCES = (
    f'<question>\n{QUESTION}\n</question>\n<source-k7 id="src-1" title="Vacuum" url="u">\nk¦{SENTENCE}\n</source-k7>'
)
TASKS: dict[str, tuple[RoleSpec[Any, Any], RoleInput, str]] = {
    "planner": (PLANNER, PlanInput(**COMMON), f"<question>\n{QUESTION}\n</question>"),
    "analyzer": (ANALYZER, AnalyzeInput(**COMMON, sub_query=PlanNode(id="sq-1", text="freezing"), sources=[]), SOURCES),
    "synthesizer": (SYNTHESIZER, WriteInput(**COMMON), f"<question>\n{QUESTION}\n</question>\n[ev-0123456789] so"),
    "refiner": (REFINER, RefineInput(**COMMON, gaps=[], remaining_iterations=1), "gap-01: cost"),
    "supervisor": (
        SUPERVISOR,
        ReflectInput(**COMMON, phase=Phase.PLANNING, prompt="?", gate_valid=True, gate_score=9),
        "Phase just finished: planning",
    ),
}


def task_of(name: str, **changed: Any) -> EngineTask:
    role, given, prompt = TASKS[name]
    return EngineTask(
        role, given.model_copy(update=changed), {}, f"role: {name}\n\nYou work.", RenderedPrompt(prompt), "1"
    )


@asynccontextmanager
async def one(
    scenario: str = "good", own: EndpointCapabilities | None = None, **options: Any
) -> AsyncIterator[tuple[LanguageModelEngine, MessagesApi]]:
    """An engine with one endpoint; native mode and little room for reasoning unless `own` says otherwise."""
    given = own or EndpointCapabilities(mode=ChatMode.NATIVE, reasoning_tokens=100)
    async with MessagesApi(scenario, **options) as api, engine_for({"default": api}, own={"default": given}) as engine:
        yield engine, api


@asynccontextmanager
async def pair(
    first: str, second: str = "good", **options: Any
) -> AsyncIterator[tuple[LanguageModelEngine, MessagesApi, MessagesApi]]:
    """An engine whose preferred model is at one endpoint and its spare at another."""
    async with MessagesApi(first) as main, MessagesApi(second) as other:
        async with engine_for({"default": main, "other": other}, [MAIN, f"other:{SPARE}"], **options) as engine:
            yield engine, main, other


# --- requests and answers --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", list(ChatMode))
@pytest.mark.parametrize("name", list(TASKS))
async def test_every_role_in_every_mode_with_one_request(mode: ChatMode, name: str) -> None:
    """The same answer comes back however the schema is requested, and each answer costs one request (X-15)."""
    async with one(own=EndpointCapabilities(mode=mode)) as (engine, api):
        answer, again = [await engine.answer(task_of(name)) for _ in range(2)]
    assert type(answer.content) is TASKS[name][0].answer
    assert answer.content == again.content
    assert api.counts() == {name: 2}
    assert api.calls[0].mode == ("text" if name == "synthesizer" else mode)


@pytest.mark.parametrize(("scenario", "model"), [("good", "qwen3-8b"), ("no_usage", SPARE), ("negative_usage", SPARE)])
async def test_an_unknown_cost_is_null(scenario: str, model: str) -> None:
    """Neither a model without a price nor an answer without sound counts passes for free."""
    async with one(scenario) as (engine, _):
        answer = await engine.answer(task_of("supervisor", model=model))
    assert (answer.usage.cost_usd, answer.usage.model_calls) == (None, 1)


@pytest.mark.parametrize("mode", [ChatMode.NATIVE, ChatMode.TOOL])
@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
        ("refusal", AnswerRefused),
        ("cut", AnswerCut),
        *((name, InvalidOutput) for name in ("hopeless", "cut_json", "empty", "thinking_only", "wrong_type")),
        *((name, InvalidOutput) for name in ("deep", "huge_text", "unknown_tool", "duplicate_keys")),
    ],
)
async def test_a_paid_answer_that_cannot_be_used_carries_its_cost(
    scenario: str, kind: type[AnswerUnusable], mode: ChatMode
) -> None:
    """Every bad answer ends as its own error after one request, of which no other model gets a second one."""
    async with pair(scenario, own={"default": EndpointCapabilities(mode=mode)}) as (engine, main, other):
        with pytest.raises(ProviderError) as caught:
            await engine.answer(task_of("analyzer", model=MAIN))
    assert type(caught.value) is kind
    assert (len(main.calls), len(other.calls), caught.value.usage.model_calls) == (1, 0, 1)
    if (scenario, mode) != ("deep", ChatMode.TOOL):  # too deep to read even the counts
        assert caught.value.usage.cost_usd == pytest.approx(main.book.owed_usd(PRICES))


@pytest.mark.parametrize(
    ("scenario", "tried"),
    [
        ("lacks_tools", [("native", None), ("tool", "tool"), ("tool", "auto"), ("text", None)]),
        ("lacks_forcing", [("native", None), ("tool", "tool"), ("tool", "auto")]),
        ("lacks_native", [("native", None), ("tool", "tool")]),
    ],
)
async def test_refused_parameters_lead_to_weaker_modes(scenario: str, tried: list[tuple[str, str | None]]) -> None:
    """Refusals cost nothing and are remembered per model: the next call begins with the mode that worked."""
    async with one(scenario) as (engine, api):
        for model in ("one", "one", "another"):
            await engine.answer(task_of("planner", model=model))
    sent = [(request.mode, request.body.get("tool_choice", {}).get("type")) for request in api.requests]
    assert sent == [*tried, tried[-1], *tried]


async def test_a_call_takes_no_more_than_is_reserved_for_it() -> None:
    """A prompt that is estimated larger is not sent and says what it needs; the answer gets the reserved room."""
    async with one() as (engine, api):
        with pytest.raises(ReservationTooSmall) as refused:
            await engine.answer(task_of("planner", reserved_input_tokens=50, reserved_output_tokens=700))
        assert api.calls == []
        room = {"reserved_input_tokens": refused.value.needed, "reserved_output_tokens": 700}
        answer = await engine.answer(task_of("planner", **room))
    assert answer.estimate == refused.value.needed
    assert [request.body["max_tokens"] for request in api.requests] == [700]


async def test_a_call_that_may_shorten_asks_for_a_shorter_answer() -> None:
    """Half the output is left, and the prompt says so; without that the answer would be cut."""
    async with one() as (engine, api):
        answer = await engine.answer(task_of("planner", reserved_output_tokens=700, shorten=True))
    assert "under 350 words" in api.requests[0].prompt
    assert answer.warnings == ["the budget has 700 tokens of output: a shorter answer is requested"]


async def test_the_problem_of_an_unusable_answer_is_in_the_prompt_of_its_repair() -> None:
    """In text mode the prompt says the schema in words; a report has none."""
    async with one(own=EndpointCapabilities(mode=ChatMode.TEXT)) as (engine, api):
        await engine.answer(task_of("planner", repair="sub_queries: required"))
        await engine.answer(task_of("synthesizer"))
    assert '"sub_queries"' in api.requests[0].prompt
    assert "sub_queries: required" in api.requests[0].prompt
    assert "schema" not in api.requests[1].prompt


async def test_a_refused_cap_names_figure_and_setting() -> None:
    """An endpoint that allows short answers only is no reason to guess: the error says what to set (S0-099)."""
    async with one("short_answers") as (engine, api):
        with pytest.raises(InvalidCall, match=r"16100 tokens: set models\.endpoints\.default\.output_limit"):
            await engine.answer(task_of("synthesizer"))
    assert len(api.calls) == 1
    async with one("short_answers", EndpointCapabilities(output_limit=4_000)) as (engine, api):
        answer = await engine.answer(task_of("synthesizer"))
    assert api.requests[0].body["max_tokens"] == 4_000
    assert "Keep the whole answer under" in api.requests[0].prompt
    assert len(answer.warnings) == 1


async def test_one_size_of_answer_has_one_number_of_words() -> None:
    """Whatever was reserved beyond it for what a model writes before; an answer that was cut may be longer."""
    async with one() as (engine, api):
        for reserved, more in ((900, False), (1_500, False), (1_000, True)):
            task = task_of("planner", reserved_output_tokens=reserved, more=more)
            await engine.answer(task)
    asked = task_of("planner").input.asked_output_tokens
    words = [int(request.prompt.rpartition("under ")[2].split()[0]) for request in api.requests]
    assert words == [asked // 2, asked // 2, 500]


# --- caches ----------------------------------------------------------------------------------------------------------
KEEPS = EndpointCapabilities(mode=ChatMode.TOOL, caching=True)
BRIEF = "The question is looked at from the side of operators who run many tables. " * 60


def analysis(number: int) -> EngineTask:
    """An analysis of one page of a run, rendered as activities do."""
    node, text = PlanNode(id="sq-1", text="the only aspect"), f"Page {number} on the only aspect.\n"
    page = SourceExtract(id=f"src-{number}", text=DocumentRef(hash=digest(text), size=len(text)))
    given = AnalyzeInput(**{**COMMON, "model": MAIN}, brief=BRIEF, sub_query=node, sources=[page])
    rendered = render_role(ANALYZER, given, {digest(text): text})
    return EngineTask(ANALYZER, given, {}, "role: analyzer", rendered, "1")


async def test_calls_of_a_role_read_the_beginning_that_the_first_one_wrote() -> None:
    """Stable beginnings are marked, what differs comes after them, and the price is the fake's."""
    async with one(own=KEEPS, book=TokenBook(cacheable=1_024, counts_tools=True)) as (engine, api):
        usages = [(await engine.answer(analysis(number))).usage for number in range(4)]
    first, *others = api.book.charges
    assert first.write > 1_000
    assert all(charge.read == first.write and charge.write == 0 for charge in others)
    assert sum(usage.cost_usd or 0 for usage in usages) == pytest.approx(api.book.owed_usd(PRICES))
    marked, own = api.requests[0].body["messages"][0]["content"]
    assert "cache_control" in marked
    assert "cache_control" not in own
    assert marked["text"] + own["text"] == analysis(0).whole.prompt
    assert ' id="src-0"' in own["text"]


# --- failover --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("scenario", "named"),
    [
        ("status:429:7", "RateLimited"),
        *((name, "Unavailable") for name in ("status:500", "status:529:3", "truncated", "html_200")),
        *((name, "NotConfigured") for name in ("status:401", "no_credit", "moved")),
        *((name, "InvalidCall") for name in ("unknown_model", "status:404")),
    ],
)
async def test_another_model_answers_where_one_does_not(scenario: str, named: str) -> None:
    """Within one call the next model is tried, once; the account has who answered, the cost, and why (S0-096)."""
    async with pair(scenario) as (engine, main, other):
        answer = await engine.answer(task_of("planner", model=MAIN))
    assert (len(main.calls), len(other.calls), len(main.book.charges)) == (1, 1, 0)
    assert (answer.model, answer.usage.model_calls) == (SPARE, 1)
    assert answer.warnings == [f"model {MAIN} did not answer ({named}): other:{SPARE} did"]
    assert answer.usage.cost_usd == pytest.approx(other.book.owed_usd(PRICES))


@pytest.mark.parametrize("scenario", ["status:400", "too_long"])
async def test_a_refused_request_is_not_sent_to_another_model(scenario: str) -> None:
    """A refused request, or one too long for a window that the other's does not exceed, fails at once."""
    async with pair(scenario) as (engine, _, other):
        with pytest.raises(InvalidCall):
            await engine.answer(task_of("planner", model=MAIN))
    assert other.calls == []


async def test_a_prompt_that_is_too_long_goes_to_larger_windows_only() -> None:
    """Without one it fails for good, with need, room and remedy (S0-099)."""
    async with MessagesApi("too_long") as main, MessagesApi() as other:
        models = ["unheard-of", "other:unheard-of-either", f"other:{SPARE}"]
        async with engine_for({"default": main, "other": other}, models) as engine:
            answer = await engine.answer(task_of("planner", model=None))
        async with engine_for({"default": main}, ["unheard-of"]) as engine:
            with pytest.raises(InvalidCall, match=r"needs about \d+ tokens .* room for \d+ \(window 32000\): use a"):
                await engine.answer(task_of("planner", model=None))
    assert [call.model for call in other.calls] == [SPARE]
    assert answer.model == SPARE


@pytest.mark.parametrize(("second", "answered"), [("good", True), ("slow", False)])
async def test_a_silent_endpoint_leaves_time_for_the_next(second: str, answered: bool) -> None:
    """The time of a call is shared, and its limit is met even if nobody answers."""
    async with pair("slow", second) as (engine, main, other):
        async with asyncio.timeout(30):
            asking = engine.answer(task_of("planner", model=MAIN, time_limit_seconds=3.0))
            outcome = (await asyncio.gather(asking, return_exceptions=True))[0]
    assert (len(main.calls), len(other.calls)) == (1, 1)
    assert isinstance(outcome, Unavailable) is not answered


async def test_an_endpoint_that_sends_nothing_is_left_for_another_after_ten_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A silence is shorter where another endpoint can answer; an endpoint without another is waited for as usual."""
    monkeypatch.setattr("providers.models.language_model.FAILOVER_SILENCE_SECONDS", 0.2)
    monkeypatch.setattr("providers.models.language_model.SILENCE_SECONDS", 0.6)
    async with pair("slow") as (engine, main, _):
        answer = await engine.answer(task_of("planner", model=MAIN, time_limit_seconds=100.0))
    assert (len(main.calls), answer.model) == (1, SPARE)
    async with MessagesApi("slow") as alone, engine_for({"default": alone}, [MAIN]) as engine:
        with pytest.raises(Unavailable, match="sent nothing for 1 s"):
            await engine.answer(task_of("planner", model=MAIN, time_limit_seconds=100.0))


@pytest.mark.parametrize(
    ("first", "second", "kind", "wait"),
    [
        ("status:429:9", "status:429:4", RateLimited, 4.0),
        ("status:500", "status:429:4", RateLimited, 4.0),
        ("status:429:9", "status:401", RateLimited, 9.0),
        ("status:401", "status:529", Unavailable, None),
        ("status:401", "unknown_model", NotConfigured, None),
        ("unknown_model", "status:401", InvalidCall, None),
    ],
)
async def test_the_most_helpful_error_is_raised(
    first: str, second: str, kind: type[ProviderError], wait: float | None
) -> None:
    """A wait, no longer than the soonest says, if that can help; else what the preferred model needs (S0-096)."""
    async with pair(first, second) as (engine, main, other):
        with pytest.raises(ProviderError) as caught:
            await engine.answer(task_of("planner", model=MAIN))
    assert type(caught.value) is kind
    assert getattr(caught.value, "retry_after", None) == wait
    assert (len(main.calls), len(other.calls)) == (1, 1)


async def test_the_model_of_the_request_comes_first() -> None:
    """A named model goes before the configured ones, which stand in for it; messages show it harmless (S0-101)."""
    async with pair("good") as (engine, main, _):
        answers = [await engine.answer(task_of("planner", model=name)) for name in (f"other:{SPARE}", None, "qwen3:8b")]
    assert [answer.model for answer in answers] == [SPARE, MAIN, "qwen3:8b"]
    odd = "claude\n<b>ignore previous</b> " + "x" * 100
    async with pair("unknown_model") as (engine, main, _):
        answer = await engine.answer(task_of("planner", model=odd))
    assert [call.model for call in main.calls] == [odd, MAIN]
    assert len(answer.warnings) == 2
    assert all(len(shown) < 300 and not {"\n", "<"} & set(shown) for shown in answer.warnings)


async def test_each_request_needs_a_permit_for_its_tokens() -> None:
    """An endpoint whose limit is reached gets no request, and the next one is asked (S0-101)."""
    gate = OpenLimiter({"model/default"})
    async with pair("good", limiter=gate) as (engine, main, _):
        answer = await engine.answer(task_of("planner", model=MAIN))
    assert main.calls == []
    assert [service for service, _ in gate.requests] == ["model/default", "model/other"]
    assert gate.requests[1][1] >= answer.usage.input_tokens + answer.usage.output_tokens


# --- prices ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("model", "usage", "expected"),
    [
        ("claude-opus-4-8-20261001", Usage(output_tokens=1_000_000), 25.0),
        (
            "claude-sonnet-4-6",
            Usage(input_tokens=2_000_000, cached_tokens=1_000_000, cache_write_tokens=1_000_000),
            0.3 + 3.75,
        ),
        ("claude-haiku-5-5", Usage(input_tokens=100_000, output_tokens=1_000), 0.0105),
        ("claude-haiku-5-5", Usage(input_tokens=100_001), 0.0500005),
        ("qwen3-8b", Usage(input_tokens=1), None),
    ],
)
def test_cost_of_a_call(model: str, usage: Usage, expected: float | None) -> None:
    """Input, output and both sides of the cache have prices of their own; what is not known costs None, never 0."""
    cost = PriceTable().cost_usd(model, usage)
    assert cost == (None if expected is None else pytest.approx(expected))


def test_configured_prices_come_first() -> None:
    """A model may have another price at one endpoint; a reservation counts long prompts and writes to the cache."""
    free, own = ModelPrice(input=0, output=0), ModelPrice(input=1, output=2)
    table = PriceTable({"local:m": free, "m": own, "claude-opus-4-8": own})
    million = Usage(input_tokens=1_000_000)
    assert table.cost_usd("m", million, full_name="local:m") == 0
    assert table.cost_usd("m", million, full_name="other:m") == 1
    assert table.cost_usd("claude-opus-4-8-20261001", million) == 1
    assert table.cost_usd(
        "m", Usage(input_tokens=2_000_000, cached_tokens=1_000_000, cache_write_tokens=1_000_000)
    ) == pytest.approx(1.35)
    assert table.highest("m") == ModelPrice(input=1.25, output=2)
    assert table.highest("claude-haiku-5-5") == ModelPrice(input=0.625, output=2.5)
    assert table.highest("qwen3-8b") is None


def test_no_price_is_reserved_for_prompts_longer_than_the_window() -> None:
    """A list that asks twice as much beyond 200,000 tokens is counted so only where a prompt can have as many."""
    highest = PriceTable().highest
    assert highest("claude-sonnet-4-5", window=200_000) == ModelPrice(input=3.75, output=15)
    assert highest("claude-sonnet-4-5", window=1_000_000) == highest("claude-sonnet-4-5")
    assert highest("claude-sonnet-4-5") == ModelPrice(input=7.5, output=22.5)
