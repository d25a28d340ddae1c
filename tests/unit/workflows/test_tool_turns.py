"""Tool turns through the facade, in one process: transcripts grow, calls are checked, every call is answered."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts import strategies
from contracts.state import ResearchState
from contracts.tool_turns import ToolTurnOutput, Transcript
from contracts.vocabulary import EngineKind
from tests.fakes.world import World
from tests.toy.asker import ASKER, ASKING, HAND_OVER, AskerInput, answer
from tests.unit.workflows.test_supervisor_strategy import begin
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    strategies.declare(ASKING)
    yield
    del strategies._declared[ASKING.name]


async def converse(run: ResearchRun, most: int = 6) -> list[ToolTurnOutput]:
    """Turn after turn until it hands over."""
    turns = [await run.turn(ASKER, "ask/1", AskerInput(word="vacuum"))]
    while len(turns) < most and not any(call.name == HAND_OVER.name for call in turns[-1].calls):
        request = AskerInput(transcript=turns[-1].transcript, answers=[answer(call) for call in turns[-1].calls])
        turns.append(await run.turn(ASKER, f"ask/{len(turns) + 1}", request))
    return turns


async def test_a_scripted_role_looks_up_and_hands_over(tmp_path: Path) -> None:
    """Without a model the role follows its script, which sees what was answered so far."""
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
    for earlier, later in zip(stored, stored[1:], strict=False):
        assert later.opening == earlier.opening != ""
        assert later.turns[:-1] == earlier.turns
    assert [turn.transcript.hash for turn in turns] == state.notebook[-3:]
    assert [turn.transcript.size for turn in turns] == [len(await world.content.get(turn.transcript)) for turn in turns]
