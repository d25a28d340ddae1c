"""The decision log of whole runs, against recorded ones: `python -m tests.unit.workflows.test_decision_logs` records."""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from contracts.state import ResearchState
from contracts.vocabulary import Action, Phase, StopReason
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.unit.workflows.test_overlapping_pauses import PlannedWorld, beginning
from tests.unit.workflows.test_retries import SecondThoughts, conduct
from tests.unit.workflows.test_supervisor_strategy import begin
from tests.unit.workflows.test_true_outcomes import stopped_while_reading
from workflows.driver import Driver
from workflows.run import context
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies.supervisor.supervisor_strategy import SupervisorStrategy

FOLDER = Path(__file__).parent / "decision_logs"


async def with_model(folder: Path, scenario: str) -> ResearchState:
    """Two iterations at most, with a model that behaves like this."""
    async with MessagesApi(scenario) as api:
        world = model_world(folder, api.base_url)
        state = await begin(world, limits={"max_iterations": 2})
        await Driver(ResearchRun(state, Inbox(), world.host()), SupervisorStrategy()).conduct()
        await world.close()
    return state


async def two_iterations(folder: Path) -> ResearchState:
    """A model that finds gaps in the first iteration and reflects on every phase."""
    return await with_model(folder, "gaps")


async def advised_against(folder: Path) -> ResearchState:
    """A model that wants its plan made twice, finds gaps and advises against another iteration."""
    return await with_model(folder, "declining")


async def stopped(folder: Path) -> ResearchState:
    """No model, and a stop in the first gathering."""
    world = World(folder)
    state = await begin(world)
    await stopped_while_reading(world, state, StopReason.USER_STOPPED, readable=2)
    return state


SCENARIOS = {"two_iterations": two_iterations, "advised_against": advised_against, "stopped": stopped}


def log_of(state: ResearchState) -> list[dict[str, Any]]:
    """Every recorded field but the time."""
    return [decision.model_dump(mode="json", exclude={"timestamp"}) for decision in state.decisions]


@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_log_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    """Authors, actions, phases, reasons, inputs and outputs are what they were when somebody read them (S0-091)."""
    recorded = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert log_of(await SCENARIOS[name](tmp_path)) == recorded


def test_a_report_that_is_written_again_is_a_retry_in_the_log() -> None:
    """It is not called completed, and each reflection is there with its score, strengths and weaknesses."""

    class WantsAnotherReport(SecondThoughts):
        async def reflect_on_phase(self, request: Any) -> Any:
            said = await super().reflect_on_phase(request)
            action = Action.RETRY if request.phase == Phase.SYNTHESIS else Action.PROCEED
            return said.model_copy(update={"action": action, "score": 4.0, "weaknesses": ["too long"]})

    world, state = WantsAnotherReport(3), beginning()
    conduct(world, state)
    after = [item for item in state.decisions if item.phase == Phase.SYNTHESIS]
    assert [item.action for item in after] == [
        "execute_synthesis", "evaluate_phase", "reflect", "retry",
        "execute_synthesis", "evaluate_phase", "reflect", "decide_iteration",
    ]  # fmt: skip
    reflections = [item for item in state.decisions if item.action == "reflect"]
    assert all(
        (item.outputs or {})["score"] == 4.0 and (item.outputs or {})["weaknesses"] == ["too long"]
        for item in reflections
    )
    assert all(item.outputs for item in state.decisions if item.action.startswith("execute_"))


def test_a_full_log_counts_what_it_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers go on, and the state says how many entries were dropped."""
    monkeypatch.setattr(context, "MAX_DECISIONS", 5)
    world, state = PlannedWorld(3), beginning()
    conduct(world, state)
    assert [item.seq for item in state.decisions] == [1, 2, 3, 4, 5]
    monkeypatch.undo()
    whole = beginning()
    conduct(PlannedWorld(3), whole)
    assert state.decisions_dropped == len(whole.decisions) - 5 > 0


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for scenario, run in SCENARIOS.items():
        with tempfile.TemporaryDirectory() as place:
            text = json.dumps(log_of(asyncio.run(run(Path(place)))), ensure_ascii=False, indent=1)
        (FOLDER / f"{scenario}.json").write_text(text + "\n", encoding="utf-8")
