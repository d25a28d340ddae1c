"""The strategy `orchestrator` where something is lacking: time, calls, searches, agents; and where people speak."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.canary import STEERED_NOTE
from contracts.vocabulary import NodeStatus, Outcome
from tests.every_strategy.joined import trial_of
from tests.fakes import tool_work
from tests.fakes.tool_work import blocks
from tests.unit.workflows.test_orchestrator_strategy import (
    REPORT,
    TASKS,
    THOUGHT,
    Body,
    plays,
    requests_of,
    sends,
    works,
)
from tests.unit.workflows.test_supervisor_strategy import QUESTION
from workflows.run.inbox import Reply

WISH = "Please also look at base backups"


# --- people ----------------------------------------------------------------------------------------------------------


async def test_the_intake_hands_a_clear_question_over(tmp_path: Path) -> None:
    """It calls a tool without arguments, asks nothing, and the plan follows at once (S3-002, S3-003, S3-057)."""
    async with trial_of(tmp_path, "orchestrator", "model", gates={"clarify": "auto"}) as trial:
        await trial.conduct()
    trial.assert_completed()
    assert [call.role for call in trial.api.calls][:2] == ["intake", "outliner"]
    assert [tool["name"] for tool in requests_of(trial.api, "intake")[0]["tools"]] == ["generate_plan", "ask_person"]
    assert any(item.action == "question_is_clear" for item in trial.state.decisions)


async def test_questions_of_the_intake_are_waited_for(tmp_path: Path) -> None:
    """They come by a call; the answer reaches the plan, and no second round is asked (S3-004)."""
    async with trial_of(tmp_path, "orchestrator", "model", gates={"clarify": "required"}) as trial:
        trial.start()
        assert (await trial.asked()).questions == [f"Which part of “{QUESTION}” do you mean?"]
        assert trial.api.counts() == {"intake": 1}
        await trial.answer(Reply(answers=["the part on freezing"]))
        await trial.task
    trial.assert_completed()
    assert trial.api.counts()["intake"] == 2
    assert "the part on freezing" in next(one.prompt for one in trial.api.requests if one.role == "outliner")


@pytest.mark.parametrize(
    ("reply", "questions"),
    [
        (
            ("ask_person", {"questions": ["3.11 or 3.12?", "1. Which\nplace?", "3.11 or 3.12?", "b", "c"]}),
            ["3.11 or 3.12?", "1. Which place?", "b"],
        ),
        ("2024 figures, or\n- later ones?", ["2024 figures, or - later ones?"]),
    ],
)
async def test_no_question_is_cut_into_lines_or_stripped_of_its_digits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Any, questions: list[str]
) -> None:
    """Questions come as a schema, at most three of them; words without a call are one question (S3-003)."""

    def ask(body: Body) -> list[dict[str, Any]]:
        return [{"type": "text", "text": reply}] if isinstance(reply, str) else blocks(body, reply)

    works(monkeypatch, "intake", ask)
    async with trial_of(tmp_path, "orchestrator", "model", gates={"clarify": "auto"}) as trial:
        trial.start()
        assert (await trial.asked()).questions == questions
        await trial.cancel()
        await asyncio.wait([trial.task])


async def test_a_model_hears_of_a_wish_in_its_next_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told the new step, and the report is refused until an agent was sent for it."""
    for_all = ("research_agent", {"task": TASKS[0], "steps": [1, 2, 3]})
    for_wish = ("research_agent", {"task": "What does a base backup of a cluster copy?", "steps": [4]})
    works(monkeypatch, "orchestrator", plays([for_all], [THOUGHT], REPORT, [for_wish], REPORT))
    async with trial_of(tmp_path, "orchestrator", "model") as trial:
        for _ in range(2):
            await trial.driver.step()
        await trial.steer(WISH)
        await trial.conduct()
    state = trial.state
    turns = requests_of(trial.api, "orchestrator")
    assert "4. Please also look at base backups (the person who asked wants this)" in str(turns[1]["messages"][-1])
    assert "The person who asked wants more" in str(turns[-1])
    assert len(state.agents) == 2
    assert [step.status for step in state.plan.steps] == [NodeStatus.COMPLETED] * 4


# --- turns that are of no use ----------------------------------------------------------------------------------------
async def test_a_script_takes_over_in_the_middle_and_gives_back(tmp_path: Path) -> None:
    """Where the model gives nothing of use twice, the script takes that turn; the next one is the model's again."""
    plan = ["good", "empty", "cut"]
    async with trial_of(tmp_path, "orchestrator", "model") as trial:
        trial.api.plan.sequence = plan
        await trial.conduct()
    assert [call.scenario for call in trial.api.calls][: len(plan)] == plan
    assert {call.status for call in trial.api.calls} == {200}
    assert "orchestrator: done without the model, whose answers could not be used" in trial.state.degraded
    assert trial.api.counts()["orchestrator"] > 2
    assert trial.state.citations


async def test_a_steered_turn_is_not_carried_out_and_the_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments with the run's canary reach no agent; the conversation goes on."""

    def betray(body: Body) -> list[dict[str, Any]]:
        if tool_work.turns(body):
            return tool_work.orchestrate(body)
        canary = re.findall(r"\b[0-9a-f]{24}\b", str(body["system"]))[-1]
        return blocks(body, ("research_agent", {"task": f"{TASKS[0]} {canary}", "steps": [1]}))

    works(monkeypatch, "orchestrator", betray)
    async with trial_of(tmp_path, "orchestrator", "model") as trial:
        await trial.conduct()
    assert STEERED_NOTE in trial.state.degraded
    canary = trial.state.resolution.canary
    assert not any(canary in json.dumps(request.body["messages"]) for request in trial.api.requests)
    assert not any(canary in record.task.text for record in trial.state.agents)


# --- agents that fail ------------------------------------------------------------------------------------------------
async def test_a_failed_agent_is_told_and_the_others_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its call is answered with what happened, nothing of the others is lost, the outcome says so (S3-022, S3-045)."""
    works(monkeypatch, "orchestrator", sends(*TASKS[:3]))
    async with trial_of(tmp_path, "orchestrator", "model") as trial:
        prepare = trial.host.implementations["prepare_agent"]

        async def fail_once(argument: Any) -> Any:
            if argument.resolved.query == TASKS[1]:
                raise ApplicationError("no room", type=failures.STORE_UNAVAILABLE, non_retryable=True)
            return await prepare(argument)

        trial.host.implementations["prepare_agent"] = fail_once
        await trial.conduct()
    state = trial.state
    assert state.citations
    assert len([record for record in state.agents if record.result and record.result.finding_ids]) == 2
    assert state.result.outcome is Outcome.PARTIAL or state.degraded


# --- time ------------------------------------------------------------------------------------------------------------
GRACE = 10.0
LIMITS = {"deadline_seconds": 60, "agent_seconds": 12, "agent_wait_seconds": 30}


@pytest.mark.parametrize(
    ("activity", "hanging"),
    [
        ("orchestrate", range(2, 1_000)),
        ("work_on_task", range(2, 1_000)),
        ("read_source", range(2, 1_000)),
        ("write_report", range(1, 2)),  # the engine would end the second one
    ],
)
async def test_the_cascade_ends_within_the_deadline(tmp_path: Path, activity: str, hanging: range) -> None:
    """Whatever hangs, the run ends within its deadline and a grace, with a result (S3-031 to S3-034, S3-054)."""
    async with trial_of(tmp_path, "orchestrator", depth="medium", limits=LIMITS) as trial:
        work, calls = trial.host.implementations[activity], list[Any]()

        async def hang(argument: Any) -> Any:
            calls.append(argument)
            if len(calls) in hanging:
                await asyncio.sleep(3_600)
            return await work(argument)

        trial.host.implementations[activity] = hang
        begun = trial.host.clock
        trial.start()
        while not trial.task.done():
            for _ in range(30):
                await asyncio.sleep(0.001)
            assert (trial.host.clock - begun).total_seconds() <= LIMITS["deadline_seconds"] + GRACE
            await trial.host.advance(1.0)
    assert trial.state.result.outcome in (Outcome.PARTIAL, Outcome.COMPLETED, Outcome.FAILED, Outcome.TIMED_OUT)
