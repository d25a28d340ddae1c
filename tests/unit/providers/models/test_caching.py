"""Beginnings of prompts that an endpoint keeps: marked only where they are long enough, written once, then read."""

import asyncio

import pytest

from activities.roles.prompt_rendering import render_role
from contracts.addresses import digest
from contracts.evidence import DocumentRef
from contracts.outcome import Usage
from contracts.plan import PlanNode
from contracts.roles import ANALYZER, AnalyzeInput, SourceExtract
from contracts.vocabulary import EngineKind
from providers.errors import Unavailable
from providers.interfaces import EngineTask
from providers.models.capabilities import CapabilityOverrides
from providers.models.chat import ChatMode
from providers.models.prompt_caching import KEPT_SECONDS, PrefixQueue
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_for
from tests.fakes.model_tokens import TokenBook

MODEL = "claude-opus-4-8"
PRICES = {MODEL: (5.0, 25.0)}
BRIEF = "The question is looked at from the side of operators who run many tables. " * 20
PAGE = "Table {number}: vacuum freezes its old rows before the numbers of its transactions wrap around. " * 20
SOON = 30.0
"""Seconds in which three requests arrive on any machine; who waits for another call's beginning waits for longer."""
KEEPS = CapabilityOverrides(mode=ChatMode.TOOL, caching=True)


def task(number: int = 1, *, brief: str = BRIEF, model: str = MODEL, pages: int = 0) -> EngineTask:
    """An analysis of one sub-query of a run, rendered as activities do, with so many pages that were read for it."""
    documents = {digest(text): text for text in (PAGE.format(number=page) for page in range(pages))}
    given = AnalyzeInput(
        research_id="r-1",
        operation=f"analyze/1/{number}",
        engine=EngineKind.MODEL,
        model=model,
        date="2026-11-22",
        query="How does vacuum prevent wraparound?",
        brief=brief,
        sub_query=PlanNode(id=f"sq-{number}", text=f"aspect {number}"),
        sources=[SourceExtract(id=f"src-{one[:6]}", text=DocumentRef(hash=one)) for one in documents],
    )
    rendered = render_role(ANALYZER, given, documents)
    return EngineTask(ANALYZER, given, documents, rendered.system, rendered.prompt, "1", rendered.common_length)


def kept_from(tokens: int) -> TokenBook:
    """The books of an endpoint with the newer tokenizer that keeps beginnings of so many tokens."""
    return TokenBook(cacheable=tokens, characters_per_token=3.1, counts_tools=True)


def marks(api: MessagesApi) -> list[int]:
    """How many marks each request carried."""
    return [len(found) for found in api.book.marks]


async def test_calls_of_a_role_read_what_the_first_one_wrote() -> None:
    """The beginning is written once; the share that was read can be told from the usage, and the price is the fake's."""
    usage = Usage()
    async with MessagesApi(book=kept_from(1_024)) as api:
        async with engine_for({"default": api}, own={"default": KEEPS}) as engine:
            for number in range(6):
                usage = usage.plus((await engine.answer(task(number))).usage)
    first, *others = api.book.charges
    assert first.write > 1_000
    assert first.read == 0
    assert all(charge.read == first.write and charge.write == 0 for charge in others)
    assert usage.cache_write_tokens == first.write
    assert usage.cached_tokens == 5 * first.write
    assert usage.cached_tokens / usage.input_tokens > 0.5
    assert usage.cost_usd == pytest.approx(api.book.owed_usd(PRICES))


@pytest.mark.parametrize(
    ("model", "own", "brief", "expected"),
    [
        (MODEL, CapabilityOverrides(mode=ChatMode.NATIVE, caching=True), "", False),
        (MODEL, KEEPS, "", True),
        ("claude-opus-5", KEEPS, "", True),
        ("claude-haiku-4-5", KEEPS, BRIEF, False),
        (MODEL, CapabilityOverrides(caching=True, cacheable_tokens=50_000), BRIEF, False),
        (MODEL, CapabilityOverrides(caching=False), BRIEF, False),
        ("some-model", CapabilityOverrides(), BRIEF, False),
    ],
)
async def test_marks_only_what_will_be_kept(model: str, own: CapabilityOverrides, brief: str, expected: bool) -> None:
    """A beginning below the model's minimum is not marked, nor anything where nothing is kept."""
    async with MessagesApi() as api, engine_for({"default": api}, own={"default": own}) as engine:
        await engine.answer(task(model=model, brief=brief))
    assert (marks(api)[0] > 0) is expected


@pytest.mark.parametrize("length", [0, 5, 10, 15, 20, 30, 60])
async def test_no_mark_is_below_the_minimum(length: int) -> None:
    """Whatever the length of the brief, each marked beginning has the tokens that the endpoint wants."""
    async with MessagesApi(book=kept_from(1_024)) as api:
        async with engine_for({"default": api}, own={"default": KEEPS}) as engine:
            await engine.answer(task(brief="The operators run many tables and want to know. " * length))
    assert all(tokens >= 1_024 for tokens in api.book.marks[0])


async def test_marks_change_nothing_of_what_is_said() -> None:
    """The text of a marked request is that of an unmarked one, and what differs between calls comes after the marks."""
    async with MessagesApi() as plain, MessagesApi(book=kept_from(1_024)) as kept:
        async with engine_for({"default": plain}) as engine:
            await engine.answer(task())
        async with engine_for({"default": kept}, own={"default": KEEPS}) as engine:
            await engine.answer(task(1))
            await engine.answer(task(2))
    first, second = kept.requests[0].body["messages"][0]["content"], kept.requests[1].body["messages"][0]["content"]
    assert first[0] == second[0]
    assert "cache_control" in first[0]
    assert "cache_control" not in first[1]
    assert first[0]["text"] + first[1]["text"] == plain.requests[0].body["messages"][0]["content"]
    assert "sub_query" not in first[0]["text"]
    assert ' id="sq-1"' in first[1]["text"]


async def test_an_endpoint_that_refuses_marks_is_asked_without() -> None:
    """A refusal costs nothing, and the model is not asked with marks again."""
    async with MessagesApi("lacks_caching") as api, engine_for({"default": api}, own={"default": KEEPS}) as engine:
        await engine.answer(task(1))
        await engine.answer(task(2))
    assert [call.status for call in api.calls] == [400, 200, 200]


async def test_calls_side_by_side_all_survive_a_refusal_of_marks() -> None:
    """Requests that were marked before the first refusal arrived are made again without marks as well."""
    async with MessagesApi("lacks_caching") as api, engine_for({"default": api}, own={"default": KEEPS}) as engine:
        done = await asyncio.gather(*(engine.answer(task(number)) for number in range(4)))
    assert sum(answer.usage.model_calls for answer in done) == len(api.book.charges) == 4


async def test_a_fan_out_writes_its_beginning_once() -> None:
    """Of calls made side by side the first goes ahead, and the others read what it wrote."""
    async with MessagesApi(book=kept_from(1_024), latency=0.05) as api:
        async with engine_for({"default": api}, own={"default": KEEPS}) as engine:
            await asyncio.gather(*(engine.answer(task(number)) for number in range(5)))
    assert [charge.write > 0 for charge in api.book.charges] == [True, False, False, False, False]
    assert all(charge.read > 0 for charge in api.book.charges[1:])
    starts = sorted(call.started for call in api.calls)
    assert starts[1] >= (api.calls[0].ended or 0)


@pytest.mark.parametrize("scenario", ["status:500", "reset"])
async def test_when_the_first_of_a_fan_out_fails_the_others_go_on(scenario: str) -> None:
    """Nobody waits for a call that failed, nor one after the other."""
    async with MessagesApi(plan=[scenario], book=kept_from(1_024)) as api:
        async with engine_for({"default": api}, own={"default": KEEPS}) as engine:
            ends = await asyncio.gather(*(engine.answer(task(number)) for number in range(4)), return_exceptions=True)
    assert sum(isinstance(end, Unavailable) for end in ends) == 1
    assert len(api.book.charges) == 3


async def test_a_cancelled_first_call_lets_the_others_go() -> None:
    """Cancelling the call that went ahead, or one that waits, holds nobody up."""
    async with MessagesApi(plan=["slow"], book=kept_from(1_024)) as api:
        async with engine_for({"default": api}, own={"default": KEEPS}) as engine:
            first = asyncio.create_task(engine.answer(task(0)))
            await api.waiting.wait()
            waiting, other = (asyncio.create_task(engine.answer(task(number))) for number in (1, 2))
            await asyncio.sleep(0)
            waiting.cancel()
            first.cancel()
            assert (await other).usage.model_calls == 1
            ends = await asyncio.gather(first, waiting, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends)


@pytest.mark.parametrize(
    ("own", "pages", "side_by_side"),
    [(CapabilityOverrides(), 0, True), (KEEPS, 20, True), (KEEPS, 0, False)],
    ids=["nothing is kept", "a small part", "a large part"],
)
async def test_short_beginnings_hold_nobody_back(own: CapabilityOverrides, pages: int, side_by_side: bool) -> None:
    """Where nothing is kept, or the beginning is a small part of the request, calls go side by side."""
    async with MessagesApi("slow") as api, engine_for({"default": api}, own={"default": own}) as engine:
        asked = [asyncio.create_task(engine.answer(task(number, pages=pages))) for number in range(3)]
        if side_by_side:
            async with asyncio.timeout(SOON):
                while len(api.calls) < 3:
                    await asyncio.sleep(0.01)
        else:
            await api.waiting.wait()
            await asyncio.sleep(0.1)
            assert len(api.calls) == 1
        for call in asked:
            call.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


async def test_what_was_written_lately_is_not_waited_for() -> None:
    """For five minutes after its last use a beginning is taken for kept; then one call goes ahead again."""
    now = [0.0]
    queue = PrefixQueue(lambda: now[0])
    running = 0
    most = 0

    async def call() -> None:
        nonlocal running, most
        async with queue.turn("beginning", 10):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            running -= 1

    await call()
    await asyncio.gather(call(), call(), call())
    assert most == 3
    most, now[0] = 0, KEPT_SECONDS + 1
    await asyncio.gather(call(), call())
    assert most == 1


async def test_waiting_for_a_beginning_has_an_end() -> None:
    """A call that went ahead and hangs holds the others up for their patience only."""
    queue = PrefixQueue()
    hanging = asyncio.Event()

    async def hang() -> None:
        async with queue.turn("beginning", 10):
            hanging.set()
            await asyncio.Event().wait()

    first = asyncio.create_task(hang())
    await hanging.wait()
    async with asyncio.timeout(5), queue.turn("beginning", 0.01):
        pass
    first.cancel()
