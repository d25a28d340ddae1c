"""Tool turns through the facade, in one process: transcripts grow, calls are checked, every call is answered."""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from contracts import strategies
from contracts.canary import STEERED_NOTE
from contracts.roles import RoleSpec
from contracts.strategies import declared_roles
from contracts.tool_turns import Transcript, TurnResult, check_tools
from contracts.vocabulary import EngineKind
from providers.extractive.engine import work_of
from providers.models.endpoints import capabilities_of
from tests.fakes import tool_work
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.toy.asker import ASKER, ASKING, HAND_OVER, AskerInput, answer
from tests.unit.workflows.test_supervisor_strategy import begin
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun


async def converse(run: ResearchRun, most: int = 6) -> list[TurnResult]:
    """Turn after turn until it hands over."""
    turns = [await run.turn(ASKER, "ask/1", AskerInput(word="vacuum"))]
    while len(turns) < most and not any(call.name == HAND_OVER.name for call in turns[-1].calls):
        request = AskerInput(transcript=turns[-1].transcript, answers=[answer(call) for call in turns[-1].calls])
        turns.append(await run.turn(ASKER, f"ask/{len(turns) + 1}", request))
    return turns


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    strategies.declare(ASKING)
    yield
    del strategies.declared_strategies._declared[ASKING.name]


async def test_a_scripted_role_looks_up_and_hands_over(tmp_path: Path) -> None:
    """Without a model the role follows its script, which sees what the workflow answered to its calls (S3-013)."""
    world = World(tmp_path)
    state = await begin(world, strategy="asking")
    turns = await converse(ResearchRun(state, Inbox(), world.host()))
    assert [[call.name for call in turn.calls] for turn in turns] == [["look_up"], ["look_up"], ["hand_over"]]
    handed = HAND_OVER.read(turns[-1].calls[0])
    assert handed.words == ["freeze", "vacuum"]
    assert "Freezing marks" in handed.text
    assert turns[0].text == "I begin with the word itself."
    assert state.engine_by_role == {"asker": EngineKind.EXTRACTIVE.value}
    assert "asker" not in state.prompt_versions


@asynccontextmanager
async def model_run(folder: Path, api: MessagesApi) -> AsyncIterator[tuple[ResearchRun, World]]:
    """A run whose model is spoken to with the real SDK."""
    async with api:
        world = model_world(folder, api.base_url)
        try:
            yield ResearchRun(await begin(world, strategy="asking"), Inbox(), world.host()), world
        finally:
            await world.close()


async def test_a_model_takes_turns(tmp_path: Path) -> None:
    """The endpoint, which holds conversations to its rules, refuses nothing; thoughts go back as they came (S3-035)."""
    api = MessagesApi()
    async with model_run(tmp_path, api) as (run, world):
        turns = await converse(run)
        stored = Transcript.model_validate_json(await world.content.get_text(turns[-1].transcript))
    assert api.refused == []
    assert [[call.name for call in turn.calls] for turn in turns] == [["look_up"], ["look_up"], ["hand_over"]]
    assert HAND_OVER.read(turns[-1].calls[0]).words == ["vacuum", "freeze"]
    assert [len(request.body["messages"]) for request in api.requests] == [1, 3, 5]
    assert {request.body["tool_choice"]["type"] for request in api.requests} == {"any"}
    thoughts = [block for turn in stored.turns for block in turn.content if block["type"] == "thinking"]
    assert [thought["thinking"][:6] for thought in thoughts] == ["Turn 0", "Turn 1", "Turn 2"]
    assert run.state.usage.model_calls == 3


async def test_a_turn_has_a_cap_on_its_output(tmp_path: Path) -> None:
    """The role's own, with room for thoughts in addition: a model that runs on is stopped, and its turn not used (S3-036)."""
    api = MessagesApi(plan=["cut", "cut"])
    async with model_run(tmp_path, api) as (run, _):
        turn = await run.turn(ASKER, "ask/1", AskerInput(word="vacuum"))
    thoughts = capabilities_of(api.base_url, "test-model").reasoning_tokens
    assert {request.body["max_tokens"] for request in api.requests} == {ASKER.output_tokens + thoughts}
    assert turn.account.engine is EngineKind.EXTRACTIVE


async def test_a_script_takes_over_in_the_middle_and_gives_back(tmp_path: Path) -> None:
    """Where the model gives nothing of use twice, the script takes that turn; the next one is the model's again."""
    api = MessagesApi(plan=["good", "empty", "cut"])
    async with model_run(tmp_path, api) as (run, world):
        turns = await converse(run)
        stored = Transcript.model_validate_json(await world.content.get_text(turns[-1].transcript))
    assert [[call.name for call in turn.calls] for turn in turns] == [["look_up"], ["look_up"], ["hand_over"]]
    assert [turn.author for turn in stored.turns] == ["default:test-model", "", "default:test-model"]
    assert [turn.account.engine.value for turn in turns] == ["model", "extractive", "model"]
    assert api.refused == []
    assert run.state.degraded == ["asker: done without the model, whose answers could not be used"]


async def test_a_steered_turn_is_not_carried_out_and_the_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments with the run's canary reach no tool; the conversation goes on."""

    def betray(body: Mapping[str, Any]) -> tool_work.Blocks:
        if tool_work.turns(body):
            return tool_work.ask_glossary(body)
        canary = re.findall(r"\b[0-9a-f]{24}\b", str(body["system"]))[-1]
        return tool_work.blocks(body, ("look_up", {"word": f"vacuum-{canary}"}))

    monkeypatch.setitem(tool_work.TOOL_WORK, "asker", betray)
    api = MessagesApi()
    async with model_run(tmp_path, api) as (run, _):
        turns = await converse(run)
        canary = run.resolved.canary
    assert "words from outside were followed as orders" in turns[0].calls[0].problem
    assert run.state.degraded == [STEERED_NOTE]
    assert turns[-1].calls[0].name == "hand_over"
    assert all(canary not in json.dumps(request.body["messages"]) for request in api.requests)


@pytest.mark.parametrize(
    "role", [role for role in (*declared_roles(), ASKER) if role.tools], ids=lambda role: role.name
)
def test_every_role_with_tools_keeps_the_rules(role: RoleSpec[Any, Any]) -> None:
    """It sees no page, carries the canary, and has a script where it says that it can be done without a model."""
    check_tools(role)
    assert (work_of(role.input, role.module) is not None) is role.has_fallback
