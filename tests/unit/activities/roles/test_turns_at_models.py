"""Tool turns over endpoints: the real activities and SDK, and a fake that holds conversations to its rules."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.roles import RoleSpec
from contracts.tool_turns import Transcript, TurnResult
from contracts.tools import ToolAnswer
from providers.models.chat import ToolUse
from providers.models.endpoints import EndpointCapabilities, capabilities_of
from tests.fakes import tool_work
from tests.fakes.conversation import blocks_of
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_for
from tests.fakes.model_tokens import TokenBook
from tests.toy.asker import ASKER, AskerInput
from tests.unit.activities.scripted import MemoryStore, common, environment, role_activities

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
        return await environment().run(self.activities.run, role, request)

    async def turn(self, before: TurnResult | None = None, said: str = "") -> TurnResult:
        """The asker's first turn, or the one after another, with the same answer to each of its calls."""
        fields = common(model=MODEL, word="vacuum")
        if before is not None:
            answers = [ToolAnswer(call_id=call.id, text=f"See also: {said}") for call in before.calls]
            fields |= {"transcript": before.transcript, "answers": answers}
        output: TurnResult = await self.run(ASKER, AskerInput(**fields))
        return output

    async def stored(self, output: TurnResult) -> Transcript:
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


async def test_a_turn_has_a_cap_on_its_output() -> None:
    """The role's own, with room for thoughts in addition: a turn that runs on is stopped, and not used (S3-036)."""
    async with bench(MessagesApi("cut")) as one:
        with pytest.raises(ApplicationError) as caught:
            await one.turn()
    assert caught.value.type == failures.ANSWER_CUT
    thoughts = capabilities_of(one.api.base_url, MODEL).reasoning_tokens
    assert [request.body["max_tokens"] for request in one.api.requests] == [ASKER.output_tokens + thoughts]


async def test_a_long_conversation_fits_its_window() -> None:
    """Where a window has no room for all, the oldest answers are shortened, and the account says by how much."""
    api, shortened = MessagesApi(book=TokenBook(window=20_000)), list[int]()
    async with bench(api, window=20_000, reasoning_tokens=500) as one:
        last = await one.turn()
        for number in range(15):
            last = await one.turn(last, said=f"word{number}. {PROSE * 45}")
            shortened += [last.account.content.shortened] if last.account.content else []
    assert api.refused == []
    assert [call.status for call in api.calls] == [200] * 16
    assert next(filter(None, shortened)) == 1
    cut = [CUT in text for text in tool_work.answered(api.requests[-1].body)]
    assert cut == sorted(cut, reverse=True)
    assert not cut[-1]
    counts = [str(request.body).count(CUT) for request in api.requests]
    assert counts == sorted(counts)
    assert len(set(counts)) <= 6  # so most turns find their beginning in the cache of the endpoint
