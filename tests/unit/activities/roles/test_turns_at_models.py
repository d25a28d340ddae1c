"""Tool turns over endpoints of many kinds: the real activities and SDK, and a fake that holds conversations to its rules."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.tool_turns import Transcript, TurnResult
from contracts.tools import ToolAnswer
from providers.models.chat import ToolUse
from providers.models.endpoints import EndpointCapabilities
from tests.fakes import tool_work
from tests.fakes.conversation import blocks_of
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import engine_for
from tests.fakes.model_tokens import TokenBook
from tests.toy.asker import ASKER, AskerInput
from tests.unit.activities.reporting.memory_store import MemoryStore
from tests.unit.activities.scripted import common, environment, role_activities

MODEL = "claude-opus-4-8"


class Bench:
    """The asker over an engine."""

    def __init__(self, engine: Any) -> None:
        self.content = MemoryStore()
        self.activities = role_activities(engine, self.content)

    async def turn(self, before: TurnResult | None = None, said: str = "", **changes: Any) -> TurnResult:
        """The first turn, or the one after another, with the same answer to each of its calls."""
        fields = common(**{"model": MODEL, "word": "vacuum", **changes})
        if before is not None:
            answers = [ToolAnswer(call_id=call.id, text=said or "See also: freeze.") for call in before.calls]
            fields |= {"transcript": before.transcript, "answers": answers}
        output: TurnResult = await environment().run(self.activities.run, ASKER, AskerInput(**fields))
        return output

    async def stored(self, output: TurnResult) -> Transcript:
        """The transcript behind a turn."""
        return Transcript.model_validate_json(await self.content.get_text(output.transcript))


@asynccontextmanager
async def bench_over(
    api: MessagesApi, *others: MessagesApi, models: tuple[str, ...] = (), **own: Any
) -> AsyncIterator[Bench]:
    """A bench over endpoints that run for the time of the block: `default`, then `second`."""
    apis: Mapping[str, MessagesApi] = dict(zip(("default", "second"), (api, *others), strict=False))
    overrides = {name: EndpointCapabilities.model_validate(given) for name, given in own.items()}
    async with api:
        for other in others:
            await other.__aenter__()
        try:
            async with engine_for(apis, models, own=overrides) as engine:
                yield Bench(engine)
        finally:
            for other in others:
                await other.__aexit__(None, None, None)


async def test_a_model_that_takes_no_tools_is_passed_over() -> None:
    """The next one of its tier does the turn; where none takes any, nothing is asked and the reason is told."""
    none = {"tools": ToolUse.NONE}
    async with bench_over(
        first := MessagesApi(), second := MessagesApi(), models=(MODEL, "second:other"), default=none
    ) as bench:
        output = await bench.turn()
    assert (len(first.calls), len(second.calls)) == (0, 1)
    assert output.account.model == "other"
    async with bench_over(api := MessagesApi(), default=none) as bench:
        with pytest.raises(ApplicationError, match=f"{MODEL} takes none: name another model") as caught:
            await bench.turn()
    assert (caught.value.type, len(api.calls)) == (failures.MODEL_REJECTED, 0)


async def test_thoughts_go_to_nobody_else() -> None:
    """Another model gets the conversation without the thoughts of the first; the first gets its own again."""
    models = (MODEL, "second:other")
    plan = ["good", "status:401", "good"]
    async with bench_over(first := MessagesApi(plan=plan), second := MessagesApi(), models=models) as bench:
        turns = [await bench.turn()]
        for number in range(2):
            turns.append(await bench.turn(turns[-1], said=f"See also: word{number}."))
        stored = await bench.stored(turns[-1])
    assert (first.refused, second.refused) == ([], [])
    assert [turn.author for turn in stored.turns] == [f"default:{MODEL}", "second:other", f"default:{MODEL}"]
    kinds = [block["type"] for message in second.requests[0].body["messages"] for block in blocks_of(message)]
    assert "thinking" not in kinds
    last = first.requests[-1].body["messages"]
    assert [blocks_of(last[place])[0]["type"] for place in (1, 3)] == ["thinking", "tool_use"]


async def converse(bench: Bench, answers: list[str]) -> list[TurnResult]:
    """One turn more than there are answers."""
    turns = [await bench.turn()]
    for number, text in enumerate(answers):
        turns.append(await bench.turn(turns[-1], said=f"See also: word{number}. {text}"))
    return turns


LONG = "The engine freezes old rows so that transaction numbers may wrap around. " * 60


async def test_a_long_conversation_fits_its_window() -> None:
    """Where a window has no room for all, the oldest answers are shortened, and the account says by how much."""
    window = {"window": 20_000, "reasoning_tokens": 500}
    async with bench_over(api := MessagesApi(book=TokenBook(window=20_000)), default=window) as bench:
        turns = await converse(bench, [LONG] * 15)
    assert api.refused == []
    assert [call.status for call in api.calls] == [200] * 16
    assert next(content.shortened for turn in turns if (content := turn.account.content) and content.shortened) == 1
    answers = tool_work.answered(api.requests[-1].body)
    cut = ["[the rest of this answer was left out]" in text for text in answers]
    assert cut == sorted(cut, reverse=True)
    assert not cut[-1]
    counts = [str(request.body).count("[the rest of this answer was left out]") for request in api.requests]
    assert counts == sorted(counts)
    assert len(set(counts)) <= 6  # so most turns find their beginning in the cache of the endpoint
