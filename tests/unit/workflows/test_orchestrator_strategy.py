"""The strategy `orchestrator`, driven by the real driver over real activities, without a server."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.agents import AT_ONCE
from contracts.state import ResearchState
from contracts.vocabulary import AgentStatus, NodeStatus, Outcome, StopReason
from tests.every_strategy.joined import begin_trial, trial_of, undisturbed, world_of
from tests.fakes import tool_work
from tests.fakes.host import InProcessHost
from tests.fakes.messages_api import MessagesApi
from tests.fakes.tool_work import answered, blocks, called, offered, opening_of
from tests.unit.workflows.test_supervisor_strategy import begin
from workflows.research_agent import AgentDriver
from workflows.strategies.orchestrator.orchestrator_strategy import OrchestratorPosition, tasks_of

Body = Mapping[str, Any]
Work = Callable[[Body], list[dict[str, Any]]]
Ran = tuple[ResearchState, InProcessHost, MessagesApi]
TASKS = (
    "How often must tables of the engine be vacuumed to prevent wraparound?",
    "Which setting of the engine controls the maximum age of a table before a vacuum?",
    "When does the autovacuum daemon of the engine start although it is disabled?",
    "What do explicit locks of the engine protect against?",
    "What does the engine do when vacuuming is neglected for too long?",
)


async def with_model(folder: Path, **fields: Any) -> Ran:
    """A whole run; the fake endpoint refuses what the real one would."""
    trial = await undisturbed(folder, "orchestrator", "model", **({"depth": "medium"} | fields))
    assert {call.status for call in trial.api.calls} <= {200}
    return trial.state, trial.host, trial.api


def works(monkeypatch: pytest.MonkeyPatch, role: str, work: Work) -> None:
    monkeypatch.setitem(tool_work.TOOL_WORK, role, work)


async def directed(monkeypatch: pytest.MonkeyPatch, folder: Path, work: Work, **fields: Any) -> Ran:
    """A whole run whose orchestrator works like this."""
    works(monkeypatch, "orchestrator", work)
    return await with_model(folder, **fields)


def plays(*turns: Sequence[tuple[str, dict[str, Any]]]) -> Work:
    """A model that makes these calls turn by turn, and the last ones as often as it takes."""
    return lambda body: blocks(body, *turns[min(tool_work.turns(body), len(turns) - 1)])


REPORT = [("generate_report", {})]
THOUGHT = ("think_tool", {"reasoning": "on"})


def sends(*tasks: str) -> Work:
    """An orchestrator that sends these agents at once, then asks for the report."""
    return plays([("research_agent", {"task": task}) for task in tasks], REPORT)


def requests_of(api: MessagesApi, role: str) -> list[dict[str, Any]]:
    return [request.body for request in api.requests if request.role == role]


# --- whole runs ------------------------------------------------------------------------------------------------------
async def test_it_answers_without_a_model(tmp_path: Path) -> None:
    """A plan, an agent for each step, and a report from what all of them found (S3-001, S3-005, S3-008)."""
    trial = await undisturbed(tmp_path, "orchestrator", depth="medium")
    trial.assert_completed()
    state = trial.state
    assert state.citations
    assert {"outliner", "orchestrator", "agent"} <= set(state.engine_by_role)
    steps = state.plan.steps
    assert 1 <= len(steps) <= 6
    assert {step.status for step in steps} == {NodeStatus.COMPLETED}
    assert len(tasks_of(state.plan)) == len(steps) == len(trial.host.agents)
    assert "strategy orchestrator" in await trial.report()


async def test_a_model_directs_agents_that_search_read_and_report(tmp_path: Path) -> None:
    """The orchestrator has control tools alone and the plan in each turn, agents have research tools and their own step;
    the writer is shown the plan, too (S3-007, S3-009, S3-012, S3-035, S3-056).
    """
    state, host, api = await with_model(tmp_path)
    assert state.result.outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations, state.degraded)
    assert state.citations
    assert state.degraded == []
    assert len(host.agents) == 3
    tools = {
        role: {name for body in requests_of(api, role) for name in offered(body)} for role in ("orchestrator", "agent")
    }
    assert tools["orchestrator"] == {"research_agent", "generate_report", "think_tool"}
    assert tools["agent"] == {"search", "open_page", "generate_report", "think_tool"}
    asked = [*requests_of(api, "orchestrator"), *requests_of(api, "agent")]
    assert {body["tool_choice"]["type"] for body in asked} == {"any"}
    assert [item.agent for item in state.decisions if item.action == "think"] == ["orchestrator"]
    step = state.plan.steps[1].text
    assert all(step in opening_of(body) for body in requests_of(api, "orchestrator"))
    for body in requests_of(api, "agent"):
        assert sum(one.text in opening_of(body) for one in state.plan.steps) == 1
    (written,) = requests_of(api, "synthesizer")
    assert step in json.dumps(written, ensure_ascii=False)


# --- dispatch --------------------------------------------------------------------------------------------------------
async def test_five_are_asked_for_and_three_work_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All calls of one turn are sent, three side by side, two wait; both are on record (S3-014, S3-018, S3-049)."""
    state, host, api = await directed(monkeypatch, tmp_path, sends(*TASKS))
    assert len(host.agents) == 5
    assert host.agents_at_once == AT_ONCE == 3
    dispatch = next(item for item in state.decisions if item.action == "dispatch")
    assert dispatch.outputs["queued"] == 2
    branching = next(event for event in state.events if event.type == "agents.branching")
    assert branching.data["branches"] == 5
    begun = [event for event in state.events if event.type == "agent.started"]
    assert branching.seq < begun[0].seq
    assert [event.data["branch"] for event in begun] == [0, 1, 2, 3, 4]
    assert [record.status for record in state.agents] == [AgentStatus.DONE] * 5
    # All of them are back before the orchestrator speaks again.
    second = requests_of(api, "orchestrator")[1]
    assert len(answered(second)) == 5


# --- turns that lead nowhere -----------------------------------------------------------------------------------------
async def test_thoughts_alone_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven deciding turns at most; a thought never follows a thought, and nothing is claimed (S3-017, S3-047, S3-060)."""
    state, host, api = await directed(monkeypatch, tmp_path, plays([THOUGHT]))
    assert len(requests_of(api, "orchestrator")) == 7
    assert OrchestratorPosition.read(state).cycle == 7
    assert "think_tool" not in offered(requests_of(api, "orchestrator")[1])
    assert host.agents == []
    assert state.result.outcome is Outcome.FAILED


async def test_a_thought_stands_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside another call only the thought counts; every call is answered by the run itself (S3-013, S3-015, S3-060)."""
    agent = ("research_agent", {"task": TASKS[0]})
    _, host, api = await directed(monkeypatch, tmp_path, plays([agent, THOUGHT], [agent], REPORT))
    told = answered(requests_of(api, "orchestrator")[1])
    assert "a thought stands alone" in told[0]
    assert "Acknowledged, please continue." in told[1]
    assert len(host.agents) == 1


@pytest.mark.parametrize(("agents", "outcome"), [(0, Outcome.FAILED), (1, Outcome.PARTIAL)])
async def test_a_turn_without_a_call_ends_with_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agents: int, outcome: Outcome
) -> None:
    """One reminder is given; then the report is written, or the run fails where there is nothing yet (S3-033, S3-046)."""

    def work(body: Body) -> list[dict[str, Any]]:
        if len(called(body)) < agents:
            return blocks(body, ("research_agent", {"task": TASKS[0]}))
        return [{"type": "text", "text": "I would rather talk."}]

    state, host, api = await directed(monkeypatch, tmp_path, work)
    assert len(requests_of(api, "orchestrator")) == agents + 2
    assert "no tool was called" in json.dumps(requests_of(api, "orchestrator")[-1])
    assert len(host.agents) == agents
    assert state.result.outcome is outcome
    assert bool(state.citations) is bool(agents)
    assert f"the orchestrator called no tool in cycle {agents + 1}" in state.failed_branches


# --- reminders and judgements ----------------------------------------------------------------------------------------
async def test_the_second_cycle_is_reminded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reminder to look further comes in the cycle of index 1, and never again (S3-040)."""
    first, second = (("research_agent", {"task": task}) for task in TASKS[:2])
    _, _, api = await directed(monkeypatch, tmp_path, plays([first], [THOUGHT], [second], [THOUGHT], REPORT))
    turns = requests_of(api, "orchestrator")
    newest = ["hold every part of the question" in json.dumps(body["messages"][-1]) for body in turns]
    assert newest[:2] == [False, True]
    assert not any(newest[2:])


async def test_an_agent_is_reminded_of_pages_after_a_search_alone(tmp_path: Path) -> None:
    """It is told to open pages after it searched, and not otherwise (S3-041)."""
    _, _, api = await with_model(tmp_path)
    for body in requests_of(api, "agent"):
        reminded = "Titles prove nothing" in json.dumps(body["messages"][-1])
        turn = len(body["messages"]) // 2
        assert reminded == (turn in (1, 2)) or "open_page" not in offered(body)
        if turn == 0:
            assert not reminded


async def test_each_turn_names_the_steps_that_have_no_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until they are served; the report leaves them out, and the decisions say so (S3-053, S3-056)."""
    state, _, api = await directed(
        monkeypatch, tmp_path, plays([("research_agent", {"task": TASKS[0], "steps": [1]})], REPORT)
    )
    newest = json.dumps(requests_of(api, "orchestrator")[1]["messages"][-1], ensure_ascii=False)
    assert f"no agent has finished: 2. {state.plan.steps[1].text}; 3. {state.plan.steps[2].text}" in newest
    statuses = [step.status for step in state.plan.steps]
    assert statuses == [NodeStatus.COMPLETED, NodeStatus.SKIPPED, NodeStatus.SKIPPED]
    assert any(item.action == "leave_out_steps" for item in state.decisions)
    assert state.result.outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)


async def test_cycles_that_are_used_up_end_with_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of the cycles that the limit names writes, whatever the orchestrator would decide (S3-017, C3-4)."""
    first, second = (("research_agent", {"task": task}) for task in TASKS[:2])
    state, host, api = await directed(
        monkeypatch, tmp_path, plays([first], [THOUGHT], [second]), limits={"max_iterations": 4}
    )
    assert len(requests_of(api, "orchestrator")) == 3
    assert len(host.agents) == 2
    assert state.result.stop_reason is StopReason.MAX_ITERATIONS
    assert state.citations


async def test_equal_tasks_are_one_whatever_their_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is refused; another one that differs after 500 characters is sent (S3-050)."""
    long = "Describe how often tables of the engine are vacuumed to prevent wraparound. " * 8
    state, _, api = await directed(monkeypatch, tmp_path, sends(long, long, long + "Give the defaults, too."))
    assert [record.task.id for record in state.agents] == ["agent-1", "agent-2"]
    assert "agent-1 had this task already" in answered(requests_of(api, "orchestrator")[1])[1]


# --- what people see -------------------------------------------------------------------------------------------------
async def test_every_event_of_an_agent_has_its_place(tmp_path: Path) -> None:
    """One turn for all that one agent does, a branch of its own, and sub-turns that count (S3-042, S3-044, S3-062)."""
    async with trial_of(tmp_path, "orchestrator", depth="medium") as trial:
        await trial.conduct()
        for branch, request in enumerate(trial.host.agents[:3]):
            driver = AgentDriver(request, trial.world.host())
            await driver.conduct()
            told = [event.data for event in driver.state.events]
            places = {(data["scope"], data["turn"], data["branch"]) for data in told}
            assert places == {(f"agent-{branch + 1}", 1, branch)}
            counted = [data["sub_turn"] for data in told if "tool" in data]
            assert counted == sorted(counted)
            assert set(counted) == {1, 2, 3}


# --- models and requests ---------------------------------------------------------------------------------------------
async def test_a_model_that_reasons_has_half_the_cycles_and_no_tool_to_think_with(tmp_path: Path) -> None:
    """Four cycles, of which three decide; what a request names itself stays (S3-016, S3-017)."""
    async with world_of(tmp_path, "model") as (world, api):
        world.configuration = replace(world.configuration, reasons=lambda _: True)
        trial = await begin_trial(world, "orchestrator", depth="medium")
        await trial.conduct()
        named = await begin(world, strategy="orchestrator", limits={"max_iterations": 6})
    state = trial.state
    assert state.resolved.limits.max_iterations == 4
    offers = {name for body in requests_of(api, "orchestrator") for name in offered(body)}
    assert offers == {"research_agent", "generate_report"}
    assert "think_tool" not in {name for body in requests_of(api, "agent") for name in offered(body)}
    assert state.result.outcome is Outcome.COMPLETED
    assert named.resolved.limits.max_iterations == 6
