"""Roles over endpoints with small windows or without tools: the real activities and SDK, and a fake that has rules."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures, roles
from contracts.roles import RoleSpec
from contracts.tool_turns import Transcript, TurnResult
from contracts.tools import ToolAnswer
from contracts.vocabulary import Confidence
from providers.models.chat import ToolUse
from providers.models.endpoints import EndpointCapabilities
from tests.fakes import tool_work
from tests.fakes.conversation import blocks_of
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_for
from tests.fakes.model_tokens import TokenBook
from tests.toy.asker import ASKER, AskerInput
from tests.unit.activities.scripted import (
    MemoryStore,
    common,
    environment,
    finding,
    passage,
    role_activities,
    source,
)

MODEL = "claude-opus-4-8"
PROSE = "Vacuum prevents transaction ID wraparound by freezing old rows in every table that it visits. "
CUT = "[the rest of this answer was left out]"


class Bench:
    """Activities over an engine and its first endpoint."""

    def __init__(self, engine: Any, api: MessagesApi) -> None:
        self.api = api
        self.content = MemoryStore()
        self.activities = role_activities(engine, self.content)

    async def run(self, role: RoleSpec[Any, Any], request: Any) -> Any:
        """One role."""
        return await environment().run(self.activities.run, role, request)

    async def write_input(self, count: int) -> roles.WriteInput:
        """A hand-off with that many findings of one source."""
        text = "\n\n".join(f"Row {number} is frozen. {PROSE}{PROSE}{PROSE}" for number in range(count))
        stored = await self.content.put_text(text)
        levels = list(Confidence)
        evidence = [passage(text, f"Row {number} is frozen. {PROSE}{PROSE}") for number in range(count)]
        found = [
            finding(f"Row {number} is frozen.", quote, confidence=levels[number % len(levels)])
            for number, quote in enumerate(evidence)
        ]
        return roles.WriteInput(**common(findings=found, evidence=evidence, sources=[source(stored)]))

    async def turn(self, before: TurnResult | None = None, said: str = "") -> TurnResult:
        """The asker's first turn, or the one after another, with the same answer to each of its calls."""
        fields = common(model=MODEL, word="vacuum")
        if before is not None:
            answers = [ToolAnswer(call_id=call.id, text=f"See also: {said}") for call in before.calls]
            fields |= {"transcript": before.transcript, "answers": answers}
        output: TurnResult = await self.run(ASKER, AskerInput(**fields))
        return output

    async def stored(self, output: TurnResult) -> Transcript:
        """The transcript behind a turn."""
        return Transcript.model_validate_json(await self.content.get_text(output.transcript))


@asynccontextmanager
async def bench(*apis: MessagesApi, models: tuple[str, ...] = (), **own: Any) -> AsyncIterator[Bench]:
    """A bench over endpoints that run for the time of the block: `default`, with its own figures, then `second`."""
    overrides = {"default": EndpointCapabilities.model_validate(own)} if own else {}
    async with AsyncExitStack() as stack:
        running = {
            name: await stack.enter_async_context(api) for name, api in zip(("default", "second"), apis, strict=False)
        }
        yield Bench(await stack.enter_async_context(engine_for(running, models, own=overrides)), apis[0])


def small(window: int) -> MessagesApi:
    """An endpoint that refuses what its window has no room for."""
    book = TokenBook(window=window, characters_per_token=3.0, tokens_per_other=1.3, counts_tools=True)
    return MessagesApi(book=book)


@pytest.mark.parametrize(("window", "count"), [(8_192, 3), (8_192, 60), (200_000, 60)])
async def test_no_report_exceeds_its_window(window: int, count: int) -> None:
    """A writer with little room sees the sure findings, and the account names what was left out (S0-099, S0-159)."""
    async with bench(small(window), window=window) as one:
        output = await one.run(roles.SYNTHESIZER, await one.write_input(count))
    prompt = one.api.requests[0].prompt
    assert [call.status for call in one.api.calls] == [200]
    shown = prompt.count("Finding (confidence")
    if shown < count:
        assert shown >= 5
        assert f"{count - shown} of {count} findings had no room in the prompt" in output.account.warnings
        assert prompt.count("confidence: confirmed") >= prompt.count("confidence: speculation")
    if window == 200_000:
        assert shown == count
        assert output.account.warnings == []


async def test_a_model_that_takes_no_tools_is_passed_over() -> None:
    """The next one of its tier does the turn; where none takes any, nothing is asked and the reason is told."""
    async with bench(
        first := MessagesApi(), second := MessagesApi(), models=(MODEL, "second:other"), tools=ToolUse.NONE
    ) as one:
        output = await one.turn()
    assert (len(first.calls), len(second.calls)) == (0, 1)
    assert output.account.model == "other"
    async with bench(MessagesApi(), tools=ToolUse.NONE) as one:
        with pytest.raises(ApplicationError, match=f"{MODEL} takes none: name another model") as caught:
            await one.turn()
    assert (caught.value.type, len(one.api.calls)) == (failures.MODEL_REJECTED, 0)


async def test_thoughts_go_to_nobody_else() -> None:
    """Another model gets the conversation without the thoughts of the first; the first gets its own again."""
    first, second = MessagesApi(plan=["good", "status:401", "good"]), MessagesApi()
    async with bench(first, second, models=(MODEL, "second:other")) as one:
        last = await one.turn()
        for number in range(2):
            last = await one.turn(last, said=f"word{number}.")
        stored = await one.stored(last)
    assert (first.refused, second.refused) == ([], [])
    assert [turn.author for turn in stored.turns] == [f"default:{MODEL}", "second:other", f"default:{MODEL}"]
    kinds = [block["type"] for message in second.requests[0].body["messages"] for block in blocks_of(message)]
    assert "thinking" not in kinds
    messages = first.requests[-1].body["messages"]
    assert [blocks_of(messages[place])[0]["type"] for place in (1, 3)] == ["thinking", "tool_use"]


async def test_a_long_conversation_fits_its_window() -> None:
    """Where a window has no room for all, the oldest answers are shortened, and the account says by how much."""
    api, warnings = MessagesApi(book=TokenBook(window=16_000)), list[str]()
    async with bench(api, window=16_000, reasoning_tokens=500) as one:
        last = await one.turn()
        for number in range(15):
            last = await one.turn(last, said=f"word{number}. {PROSE * 45}")
            warnings += [line for line in last.account.warnings if "older answers" in line]
    assert api.refused == []
    assert [call.status for call in api.calls] == [200] * 16
    assert warnings[0] == "4 of the older answers of its tools were shortened"
    cut = [CUT in text for text in tool_work.answered(api.requests[-1].body)]
    assert cut == sorted(cut, reverse=True)
    assert not cut[-1]
    counts = [str(request.body).count(CUT) for request in api.requests]
    assert counts == sorted(counts)
    assert len(set(counts)) <= 6  # so most turns find their beginning in the cache of the endpoint
