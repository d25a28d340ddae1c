"""The strategy `orchestrator` where something is lacking: time, calls, searches, agents; and where people speak."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.vocabulary import NodeStatus, Outcome, RunStatus
from tests.fakes.host import InProcessHost
from tests.fakes.messages_api import MessagesApi
from tests.fakes.tool_work import blocks, called
from tests.fakes.world import World, model_world
from tests.unit.workflows.test_orchestrator_strategy import TASKS, Body, conduct, requests_of, sends, works
from tests.unit.workflows.test_supervisor_strategy import QUESTION, begin
from workflows.driver import Driver
from workflows.run.inbox import Inbox, Reply
from workflows.run.research_run import ResearchRun
from workflows.strategies.orchestrator.orchestrator_strategy import OrchestratorStrategy

WISH = "Please also look at base backups"


# --- people ----------------------------------------------------------------------------------------------------------


async def test_the_intake_hands_a_clear_question_over(tmp_path: Path) -> None:
    """It calls a tool without arguments, asks nothing, and the plan follows at once (S3-002, S3-003, S3-057)."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state, _ = await conduct(world, gates={"clarify": "auto"})
        await world.close()
    assert [call.role for call in api.calls][:2] == ["intake", "outliner"]
    assert [tool["name"] for tool in requests_of(api, "intake")[0]["tools"]] == ["generate_plan", "ask_person"]
    assert state.result.outcome is Outcome.COMPLETED
    assert any(item.action == "question_is_clear" for item in state.decisions)


async def test_questions_of_the_intake_are_waited_for(tmp_path: Path) -> None:
    """They come by a call; the answer reaches the plan, and no second round is asked (S3-004)."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state, inbox = await begin(world, strategy="orchestrator", gates={"clarify": "required"}), Inbox()
        host = world.host()
        running = asyncio.ensure_future(Driver(ResearchRun(state, inbox, host), OrchestratorStrategy()).conduct())
        while state.status is not RunStatus.AWAITING_CLARIFICATION:
            await asyncio.sleep(0.01)
        assert state.waiting.questions == [f"Which part of “{QUESTION}” do you mean?"]
        assert [call.role for call in api.calls] == ["intake"]
        inbox.replies.append(Reply(answers=["the part on freezing"]))
        outcome = await running
        await world.close()
    assert outcome is Outcome.COMPLETED
    assert [call.role for call in api.calls].count("intake") == 2
    outlined = next(request for request in api.requests if request.role == "outliner")
    assert "the part on freezing" in outlined.prompt


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
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state, inbox = await begin(world, strategy="orchestrator", gates={"clarify": "auto"}), Inbox()
        running = asyncio.ensure_future(
            Driver(ResearchRun(state, inbox, world.host()), OrchestratorStrategy()).conduct()
        )
        while state.status is not RunStatus.AWAITING_CLARIFICATION:
            await asyncio.sleep(0.01)
        asked = state.waiting.questions if state.waiting else []
        running.cancel()
        await asyncio.wait([running])
        await world.close()
    assert asked == questions


async def test_a_model_hears_of_a_wish_in_its_next_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told the new step, and the report is refused until an agent was sent for it."""

    def work(body: Body) -> list[dict[str, Any]]:
        made = [name for name, _ in called(body)]
        if not made:
            return blocks(body, ("research_agent", {"task": TASKS[0], "steps": [1, 2, 3]}))
        if made[-1] == "research_agent" and len(made) == 1:
            return blocks(body, ("think_tool", {"reasoning": "on"}))
        if made.count("generate_report") == 1:
            return blocks(
                body, ("research_agent", {"task": "What does a base backup of a cluster copy?", "steps": [4]})
            )
        return blocks(body, ("generate_report", {}))

    works(monkeypatch, "orchestrator", work)
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state, inbox = await begin(world, strategy="orchestrator"), Inbox()
        driver = Driver(ResearchRun(state, inbox, world.host()), OrchestratorStrategy())
        for _ in range(2):
            await driver.step()
        inbox.steering.append(WISH)
        await driver.conduct()
        await world.close()
    turns = requests_of(api, "orchestrator")
    assert "4. Please also look at base backups (the person who asked wants this)" in str(turns[1]["messages"][-1])
    assert "The person who asked wants more" in str(turns[-1])
    assert len(state.agents) == 2
    assert [step.status for step in state.plan.steps] == [NodeStatus.COMPLETED] * 4


# --- agents that fail ------------------------------------------------------------------------------------------------
async def test_a_failed_agent_is_told_and_the_others_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its call is answered with what happened, nothing of the others is lost, the outcome says so (S3-022, S3-045)."""
    works(monkeypatch, "orchestrator", sends(*TASKS[:3]))
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state, host = await begin(world, strategy="orchestrator"), world.host()
        prepare = host.implementations["prepare_agent"]

        async def fail_once(argument: Any) -> Any:
            if argument.resolved.query == TASKS[1]:
                raise ApplicationError("no room", type=failures.STORE_UNAVAILABLE, non_retryable=True)
            return await prepare(argument)

        host.implementations["prepare_agent"] = fail_once
        await Driver(ResearchRun(state, Inbox(), host), OrchestratorStrategy()).conduct()
        await world.close()
    assert state.citations
    assert len([record for record in state.agents if record.result and record.result.finding_ids]) == 2
    assert state.result.outcome is Outcome.PARTIAL or state.degraded


# --- time ------------------------------------------------------------------------------------------------------------
async def pass_time(host: InProcessHost, running: "asyncio.Task[Any]", most: float, step: float = 1.0) -> float:
    """Let seconds pass until the run has ended; how many it took. Fails where it does not end."""
    begun = host.clock
    while not running.done():
        for _ in range(30):
            await asyncio.sleep(0.001)
        if running.done():
            break
        assert (host.clock - begun).total_seconds() <= most, "the run does not end"
        await host.advance(step)
    return (host.clock - begun).total_seconds()


def hanging(host: InProcessHost, activity: str, first: int = 1, last: int = 1_000) -> list[Any]:
    """Have an activity never answer, from its n-th call to another one; its calls."""
    work, calls = host.implementations[activity], []

    async def hang(argument: Any) -> Any:
        calls.append(argument)
        if first <= len(calls) <= last:
            await asyncio.sleep(3_600)
        return await work(argument)

    host.implementations[activity] = hang
    return calls


LIMITS = {"deadline_seconds": 120, "agent_seconds": 12, "agent_wait_seconds": 30}
GRACE = 10.0


@pytest.mark.parametrize("activity", ["orchestrate", "work_on_task", "read_source", "analyze_sources", "write_report"])
async def test_the_cascade_ends_within_the_deadline(tmp_path: Path, activity: str) -> None:
    """Whatever hangs from its second call on, the run ends within its deadline and a grace (S3-031 to S3-034, S3-054)."""
    world = World(tmp_path)
    limits = {**LIMITS, "deadline_seconds": 60}
    state, host = await begin(world, strategy="orchestrator", limits=limits), world.host()
    if activity == "write_report":
        hanging(host, activity, last=1)  # the engine would end the second one
    else:
        hanging(host, activity, first=2)
    running = asyncio.ensure_future(Driver(ResearchRun(state, Inbox(), host), OrchestratorStrategy()).conduct())
    seconds = await pass_time(host, running, limits["deadline_seconds"] + GRACE)
    assert seconds <= limits["deadline_seconds"] + GRACE
    assert state.result.outcome in (Outcome.PARTIAL, Outcome.COMPLETED, Outcome.FAILED, Outcome.TIMED_OUT)


@pytest.mark.parametrize("role", ["outliner", "orchestrator", "agent"])
async def test_a_role_whose_model_says_nothing_of_use_is_done_by_its_script(tmp_path: Path, role: str) -> None:
    """The script takes over in the middle: the run has a report, and says what was done without the model."""
    async with MessagesApi(by_role={role: "empty"}) as api:
        world = model_world(tmp_path, api.base_url)
        state, _ = await conduct(world)
        await world.close()
    assert state.result is not None
    assert state.citations
    assert state.agents
    assert any(f"{role}: done without the model" in note for note in state.degraded)
