"""Answers that must be looked for in a text are read where that can be ended."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from contracts.roles import PLANNER, PlanDraft, PlanInput
from contracts.vocabulary import EngineKind, Tier
from providers.errors import AnswerCut, InvalidOutput
from providers.interfaces import EngineTask
from providers.isolation.pool import SubprocessPool
from providers.models.capabilities import capabilities_of
from providers.models.chat import ChatReply, ChatRequest, TokenCounts
from providers.models.language_model import LanguageModelEngine
from providers.models.model_directory import ModelDirectory, ModelEndpoint
from providers.models.prices import load_prices
from providers.models.structured_output import DRAFT_FIELDS
from tests.fakes.isolation import HereCalls
from tests.fakes.killers import WALL_SECONDS, PoisonedCalls

PLAN = {"research_brief": "b", "sub_queries": [{"query": "what is vacuum"}]}
PLAN_TEXT = 'Here: {"research_brief": "b", "sub_queries": [{"query": "what is vacuum"}],} I hope it helps.'


class OneReply:
    """A chat that always says the same."""

    def __init__(self, text: str, tool_input: Any = None, stop: str = "end_turn") -> None:
        self.reply = ChatReply(text, tool_input, stop, TokenCounts(input=10, output=5), "claude-haiku-4-5")

    async def complete(self, request: ChatRequest) -> ChatReply:
        return self.reply

    async def count_tokens(self, request: ChatRequest) -> int:
        return 10

    async def close(self) -> None:
        return


def engine(chat: OneReply, isolated: Any) -> LanguageModelEngine:
    url = "https://a.test"
    endpoint = ModelEndpoint("default", "a.test", chat, partial(capabilities_of, url, own=None))
    directory = ModelDirectory({"default": endpoint}, {tier: ["claude-haiku-4-5"] for tier in Tier})
    return LanguageModelEngine(directory, load_prices(), isolated=isolated)


def task() -> EngineTask:
    request = PlanInput(
        research_id="r-1",
        operation="plan/1",
        engine=EngineKind.MODEL,
        model="claude-haiku-4-5",
        date="2026-11-21",
        query="How does vacuum work?",
    )
    role: Any = PLANNER
    return EngineTask(role, request, {}, "system", "prompt", "1")


@pytest.fixture
async def pool() -> AsyncIterator[SubprocessPool]:
    async with SubprocessPool(1, wall_seconds=WALL_SECONDS) as started:
        yield started


async def test_an_answer_in_a_text_is_read_in_a_child() -> None:
    """What comes back is the draft, with the liberties that were taken."""
    isolated = HereCalls()
    answer = await engine(OneReply(PLAN_TEXT), isolated).answer(task())
    assert isinstance(answer.draft, PlanDraft)
    assert answer.draft.sub_queries[0].query == "what is vacuum"
    assert len(answer.warnings) == 2
    assert isolated.called == [DRAFT_FIELDS]


@pytest.mark.parametrize("chat", [OneReply("", PLAN), OneReply("", PLAN, "max_tokens")])
async def test_what_needs_no_search_needs_no_child(chat: OneReply) -> None:
    """A tool's input is a value already, and a cut answer is none: nothing is looked for in either."""
    isolated = HereCalls()
    try:
        await engine(chat, isolated).answer(task())
    except AnswerCut:
        assert chat.reply.stop_reason == "max_tokens"
    assert isolated.called == []


async def test_an_answer_that_kills_its_readers_is_paid_and_repaired(pool: SubprocessPool) -> None:
    """It is unusable as any other: it is told what it cost, and the next prompt what was wrong."""
    isolated = PoisonedCalls(pool, lambda function, _: function == DRAFT_FIELDS)
    with pytest.raises(InvalidOutput) as caught:
        await engine(OneReply(PLAN_TEXT), isolated).answer(task())
    assert caught.value.usage.model_calls == 1
    assert "cannot be read" in caught.value.problem
    assert "vacuum" not in caught.value.problem
