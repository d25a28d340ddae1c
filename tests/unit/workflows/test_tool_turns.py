"""Tool turns through the facade, in one process: transcripts grow, calls are checked, every call is answered."""

import asyncio
import json
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ActivityError

from contracts import strategies
from contracts.call_sizes import worst_call
from contracts.canary import STEERED_NOTE
from contracts.roles import RoleSpec
from contracts.state import ResearchState
from contracts.strategies import declared_roles
from contracts.tool_turns import Transcript, check_tools
from contracts.tools import AnswerEntry, ToolAnswer
from contracts.vocabulary import EngineKind
from providers.extractive.engine import script_of
from providers.isolation.pool import KillableCalls, SubprocessPool
from providers.models.endpoints import capabilities_of
from tests.fakes import tool_work
from tests.fakes.messages_api import MessagesApi, repeated
from tests.fakes.processes import ROOT
from tests.fakes.turn_taker import STATE, converse, go_on
from tests.fakes.world import World, model_world
from tests.toy.asker import ASKER, ASKING, HAND_OVER, AskerInput
from tests.unit.workflows.test_supervisor_strategy import begin
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.research_run import ResearchRun
from workflows.run.role_calls import Unanswered


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


async def test_a_transcript_only_grows(tmp_path: Path) -> None:
    """Each turn stores a longer conversation and leaves the earlier one as it was; the run's record names them all."""
    world = World(tmp_path)
    state: ResearchState = await begin(world, strategy="asking")
    turns = await converse(ResearchRun(state, Inbox(), world.host()))
    stored = [Transcript.model_validate_json(await world.content.get_text(turn.transcript)) for turn in turns]
    for earlier, later in pairwise(stored):
        assert later.opening == earlier.opening != ""
        assert later.turns[:-1] == earlier.turns
    assert [turn.transcript.hash for turn in turns] == state.notebook[-3:]
    assert [turn.transcript.size for turn in turns] == sorted({turn.transcript.size for turn in turns})


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


async def test_what_is_answered_stands_as_data(tmp_path: Path) -> None:
    """Words of an answer are in an element with the run's mark; what a model was not told never stands in it."""
    api = MessagesApi()
    async with model_run(tmp_path, api) as (run, _):
        await converse(run)
    answers = tool_work.answers_so_far(api.requests[1].body)
    assert len(answers) == 1
    assert re.search(
        r"^<answer-(\w{10})>\n\w\w¦Vacuum removes dead rows\..*\n</answer-\1>$", answers[0], re.DOTALL | re.MULTILINE
    )


async def test_every_turn_begins_like_the_one_before(tmp_path: Path) -> None:
    """System part, tools and all messages of a turn stand word for word at the beginning of the next."""
    api = MessagesApi()
    async with model_run(tmp_path, api) as (run, _):
        await converse(run)
    for earlier, later in pairwise(request.body for request in api.requests):
        assert (later["system"], later["tools"]) == (earlier["system"], earlier["tools"])
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]


async def test_a_turn_is_paid_once(tmp_path: Path) -> None:
    """Who comes back after the answer was stored takes it from the journal, and stores the same transcript."""
    api = MessagesApi()
    async with model_run(tmp_path, api) as (run, world):
        before = run.state.pack()
        turns = await converse(run)
        again = await converse(ResearchRun(ResearchState.unpack(before), Inbox(), world.host()))
    assert [turn.transcript for turn in again] == [turn.transcript for turn in turns]
    assert len(api.calls) == 3


@pytest.mark.parametrize("changed", ["answers", "offered", "reminder"])
async def test_another_turn_is_another_call(tmp_path: Path, changed: str) -> None:
    """Another answer, other tools, or another word to the model is another request to the journal."""
    api = MessagesApi()
    async with model_run(tmp_path, api) as (run, _):
        first = await run.turn(ASKER, "ask/1", AskerInput(word="vacuum"))
        said = ToolAnswer(call_id=first.calls[0].id, text="Vacuum is a void.")
        request = AskerInput(transcript=first.transcript, answers=[said])
        other = {
            "answers": {"answers": [said.model_copy(update={"text": "Vacuum is a pump."})]},
            "offered": {"offered": [HAND_OVER.name]},
            "reminder": {"reminder": "Be quick."},
        }[changed]
        await run.turn(ASKER, "ask/2", request)
        await run.turn(ASKER, "ask/3", request)
        assert len(api.calls) == 2
        await run.turn(ASKER, "ask/4", request.model_copy(update=other))
        assert len(api.calls) == 3


async def test_a_turn_of_no_use_is_repaired(tmp_path: Path) -> None:
    """The repair is told what was wrong, in the same conversation, and its turn counts."""
    api = MessagesApi(plan=["good", "empty"])
    async with model_run(tmp_path, api) as (run, _):
        turns = await converse(run)
    assert [[call.name for call in turn.calls] for turn in turns] == [["look_up"], ["look_up"], ["hand_over"]]
    assert api.refused == []
    broken, repair = api.requests[1], api.requests[2]
    assert repair.body["messages"][:-1] == broken.body["messages"][:-1]
    *same, told = repair.body["messages"][-1]["content"]
    assert same == broken.body["messages"][-1]["content"]
    assert "the answer is empty: call one of the tools" in told["text"]
    assert run.state.usage.model_calls == 4


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
        if tool_work.turns_so_far(body):
            return tool_work.ask_glossary(body)
        canary = re.findall(r"\b[0-9a-f]{24}\b", str(body["system"]))[-1]
        return tool_work.calls(body, ("look_up", {"word": f"vacuum-{canary}"}))

    monkeypatch.setitem(tool_work.TOOL_WORK, "asker", betray)
    api = MessagesApi()
    async with model_run(tmp_path, api) as (run, _):
        turns = await converse(run)
        canary = run.resolved.canary
    assert "words from outside were followed as orders" in turns[0].calls[0].problem
    assert run.state.degraded == [STEERED_NOTE]
    assert turns[-1].calls[0].name == "hand_over"
    assert all(canary not in json.dumps(request.body["messages"]) for request in api.requests)


async def test_a_role_without_a_script_is_refused_without_a_model(tmp_path: Path) -> None:
    """There is nobody who could take its turn."""
    world = World(tmp_path)
    run = ResearchRun(await begin(world, strategy="asking"), Inbox(), world.host())
    with pytest.raises(Unanswered):
        await run.turn(replace(ASKER, has_fallback=False), "ask/1", AskerInput(word="vacuum"))


async def test_a_turn_that_the_budget_cannot_hold_is_not_taken(tmp_path: Path) -> None:
    """The reservation grows with the conversation: a turn that might exceed the limit is done without the model."""
    api = MessagesApi()
    async with model_run(tmp_path, api) as (run, _):
        first = await run.turn(ASKER, "ask/1", AskerInput(word="vacuum"))
        said = [ToolAnswer(call_id=first.calls[0].id, text="See also: freeze. " * 2_000)]
        request = AskerInput(transcript=first.transcript, answers=said)
        needed = worst_call(ASKER, request).tokens
        limits = run.resolved.limits.model_copy(update={"max_tokens": run.state.usage.tokens + needed - 1})
        run.state.resolved = run.resolved.model_copy(update={"limits": limits})
        second = await run.turn(ASKER, "ask/2", request)
    assert len(api.calls) == 1
    assert second.account.engine is EngineKind.EXTRACTIVE
    assert run.state.degraded == ["asker: done without the model (budget_tokens)"]


async def test_a_long_answer_travels_by_reference(tmp_path: Path) -> None:
    """The history holds a hash; the model hears the text. What was not stored as an answer is none."""
    api = MessagesApi()
    async with model_run(tmp_path, api) as (run, world):
        first = await run.turn(ASKER, "ask/1", AskerInput(word="vacuum"))
        entry = await world.notebooks.write(AnswerEntry(answer="See also: freeze."))
        page = await world.content.put_text("The text of a page.")
        told = ToolAnswer(call_id=first.calls[0].id, entry=entry)
        await run.turn(ASKER, "ask/2", AskerInput(transcript=first.transcript, answers=[told]))
        assert "See also: freeze." in tool_work.answers_so_far(api.requests[1].body)[0]
        read = told.model_copy(update={"entry": page.hash})
        with pytest.raises((ActivityError, Interrupted)):
            await run.turn(ASKER, "ask/3", AskerInput(transcript=first.transcript, answers=[read]))
    assert len(api.calls) == 2


@pytest.mark.parametrize(
    "role", [role for role in (*declared_roles(), ASKER) if role.tools], ids=lambda role: role.name
)
def test_every_role_with_tools_keeps_the_rules(role: RoleSpec[Any, Any]) -> None:
    """It sees no page, carries the canary, and has a script where it says that it can be done without a model."""
    check_tools(role)
    assert (script_of(role.name, role.module) is not None) is role.has_fallback


@pytest.mark.parametrize("engine", ["model", "extractive"])
async def test_turns_are_worked_on_in_children(tmp_path: Path, engine: str) -> None:
    """What reads a model's words runs where it can be killed, as in a worker."""
    api = MessagesApi()
    async with api, SubprocessPool(1) as pool:
        world = model_world(tmp_path, api.base_url)
        world.isolate(KillableCalls(pool))
        try:
            turns = await converse(
                ResearchRun(await begin(world, strategy="asking", engine=engine), Inbox(), world.host())
            )
        finally:
            await world.close()
    assert [turn.calls[0].name for turn in turns] == ["look_up", "look_up", "hand_over"]
    assert {turn.account.engine.value for turn in turns} == {engine}


async def test_a_killed_worker_costs_no_turn(tmp_path: Path) -> None:
    """A process dies by kill -9 behind the second answer, before anybody heard of it: the next one pays the third alone."""
    api = MessagesApi()
    async with model_run(tmp_path, api) as (run, world):
        (tmp_path / STATE).write_text(run.state.pack(), encoding="utf-8")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.fakes.turn_taker", str(tmp_path), api.base_url, "2"), cwd=ROOT
        )
        assert await process.wait() == -signal.SIGKILL
        assert len(api.calls) == 2
        turns = await go_on(world, tmp_path)
    assert [[call.name for call in turn.calls] for turn in turns] == [["look_up"], ["look_up"], ["hand_over"]]
    assert len(api.calls) == 3
    assert repeated([asdict(call) for call in api.calls]) == {}
