"""The fake endpoint as a process of its own: what acceptance tests count on."""

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from contracts.resolved import ModelPrice
from providers.errors import Unavailable
from providers.models.anthropic_chat import AnthropicChat
from providers.models.chat import ChatRequest
from tests.fakes.messages_api import MessagesApi, Plan, bill_of, read_journal, repeated


async def test_runs_as_a_process_and_keeps_a_journal(tmp_path: Path) -> None:
    """The first line names the port, the plan is followed, and repeated requests can be counted afterwards."""
    journal = tmp_path / "calls.jsonl"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.fakes.messages_api", "--journal", str(journal)),
        *("--plan", "status:529:1", "--by-role", "planner=hopeless"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    started = json.loads(await process.stdout.readline())
    chat = AnthropicChat(api_key=None, base_url=started["base_url"])
    request = ChatRequest("m", "role: planner", "p", 10, 20.0)
    with pytest.raises(Unavailable):
        await chat.complete(request)
    reply = await chat.complete(request)
    await chat.close()
    process.terminate()
    assert await process.wait() == 0
    assert "weather" in reply.text
    calls = read_journal(journal)
    assert [(call["role"], call["status"], call["delivered"]) for call in calls] == [
        ("planner", 529, True),
        ("planner", 200, True),
    ]
    assert list(repeated(calls).values()) == [2]


async def test_a_call_whose_client_is_gone_is_not_delivered(tmp_path: Path) -> None:
    """A call that was received but never delivered stays visible as such."""
    async with MessagesApi("slow", journal=tmp_path / "calls.jsonl") as api:
        chat = AnthropicChat(api_key=None, base_url=api.base_url)
        asking = asyncio.create_task(chat.complete(ChatRequest("m", "role: planner", "p", 10, 20.0)))
        await api.waiting.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await chat.close()
    (call,) = read_journal(tmp_path / "calls.jsonl")
    assert call["ended"] is not None
    assert not call["delivered"]


def test_chance_is_repeatable() -> None:
    """The same seed gives the same faults, about as many as asked for."""
    plans = [Plan(mix={"cut": 0.3}, seed=seed) for seed in (1, 1, 2)]
    drawn = [[plan.scenario(number, "planner") for number in range(500)] for plan in plans]
    assert drawn[0] == drawn[1] != drawn[2]
    assert 100 < drawn[0].count("cut") < 200


def test_a_misspelt_scenario_is_refused() -> None:
    """A plan that names nothing known cannot pass for one that works."""
    with pytest.raises(ValueError, match="no scenario goood"):
        Plan("goood")


@pytest.mark.parametrize("scenario", ["good", "hopeless", "trickle", "truncated", "reset_after_headers", "status:529"])
async def test_both_books_agree_on_what_is_charged(scenario: str) -> None:
    """An answer that breaks off is in neither: its counts never arrived, so no account could be held to them."""
    async with MessagesApi(scenario) as api:
        chat = AnthropicChat(api_key=None, base_url=api.base_url)
        with suppress(Unavailable):
            await chat.complete(ChatRequest("m", "role: planner", "p", 10, 60.0))
        await chat.close()
    bill = bill_of(api, ModelPrice(input=1.0, output=1.0))
    assert bill.calls == len(api.book.charges) == (scenario in {"good", "hopeless", "trickle"})
    assert bill.usd == pytest.approx(api.book.owed_usd({"m": (1.0, 1.0)}))
