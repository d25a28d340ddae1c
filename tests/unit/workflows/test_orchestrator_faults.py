"""The strategy `orchestrator` where something is lacking: time, calls, searches, agents; and where people speak."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.resolved import ModelPrice
from contracts.state import ResearchState
from contracts.vocabulary import AgentStatus, NodeStatus, Outcome, RunStatus, StopReason, Tier
from providers.errors import Unavailable
from tests.comparable import comparable
from tests.fakes.host import InProcessHost
from tests.fakes.messages_api import MessagesApi
from tests.fakes.orchestrator_work import blocks, called
from tests.fakes.world import World, model_world
from tests.unit.workflows.test_orchestrator_strategy import TASKS, Body, conduct, requests_of, sends, works
from tests.unit.workflows.test_supervisor_strategy import QUESTION, begin, report_of
from workflows.driver import Driver
from workflows.phases.closing import close
from workflows.phases.human_gate import WaitHooks
from workflows.run.checkpoints import resume_state
from workflows.run.inbox import Answered, Approved, Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import Finished
from workflows.strategies.orchestrator.orchestrator_strategy import OrchestratorStrategy
from workflows.strategies.orchestrator.plan import tasks_of

WISH = "Please also look at base backups"


async def resume(world: World, state: ResearchState, **fields: Any) -> ResearchState:
    """Go on with a stored state, to the end."""
    stored, fresh = ResearchState.unpack(state.pack()), await begin(world, strategy="orchestrator", **fields)
    assert fresh.resolved is not None
    later = resume_state(stored, fresh.resolved, fresh.started_at, OrchestratorStrategy().resume)
    later.clock_started_at, later.deadline_at = fresh.clock_started_at, fresh.deadline_at
    await Driver(ResearchRun(later, Inbox(), world.host()), OrchestratorStrategy()).conduct()
    assert later.result is not None
    return later


def found_by(state: ResearchState) -> set[str]:
    return {finding.id for finding in state.findings}


# --- units -----------------------------------------------------------------------------------------------------------
async def test_rebuilt_after_every_unit_its_report_is_the_same(tmp_path: Path) -> None:
    """Its position is all that it needs: it survives JSON and the packing that leaves defaults out."""
    whole = World(tmp_path / "whole")
    undisturbed, _ = await conduct(whole)
    world = World(tmp_path / "pieces")
    state, units = await begin(world, strategy="orchestrator"), 0
    while True:
        run = ResearchRun(state, Inbox(), world.host())
        step = await OrchestratorStrategy().advance(run)
        if isinstance(step, Finished):
            await close(run, step.reason)
            break
        await OrchestratorStrategy().pause(run, OrchestratorStrategy().evaluate(run, step))
        state = ResearchState.unpack(state.pack())
        assert state.position is not None
        assert state.position.strategy == "orchestrator"
        units += 1
    assert units == 4
    assert comparable(await report_of(world, state)) == comparable(await report_of(whole, undisturbed))


@pytest.mark.parametrize("after", range(1, 5))
async def test_stopped_after_any_unit_it_reports_what_is_there_and_goes_on_later(tmp_path: Path, after: int) -> None:
    """Stopped, it ends as partial with what was found; resumed, it ends with the findings of an undisturbed run."""
    world = World(tmp_path)
    state, inbox = await begin(world, strategy="orchestrator"), Inbox()
    driver = Driver(ResearchRun(state, inbox, world.host()), OrchestratorStrategy())
    for _ in range(after):
        await driver.step()
    inbox.interrupt(StopReason.USER_STOPPED)
    await driver.conduct()
    assert state.result is not None
    assert state.result.outcome is (Outcome.PARTIAL if state.findings else Outcome.FAILED)
    assert bool(state.citations) is bool(state.findings)
    later = await resume(world, state)
    assert later.result is not None
    assert later.result.outcome is Outcome.COMPLETED, (later.failed_branches, later.limitations)
    undisturbed, _ = await conduct(World(tmp_path / "undisturbed"))
    assert found_by(later) == found_by(undisturbed)
    assert len(tasks_of(later.plan)) == len(tasks_of(undisturbed.plan))


@pytest.mark.parametrize(
    "activity", ["outline_research", "orchestrate", "work_on_task", "search", "read_source", "analyze_sources"]
)
async def test_stopped_within_any_unit_it_goes_on_where_it_was(tmp_path: Path, activity: str) -> None:
    """Agents at work hand over what they have; resumed, each is given its task again, and no other is sent."""
    world = World(tmp_path)
    state, inbox, host = await begin(world, strategy="orchestrator"), Inbox(), world.host()
    work, calls = host.implementations[activity], []

    async def begin_and_stop(argument: Any) -> Any:
        calls.append(argument)
        if len(calls) == 2:
            inbox.interrupt(StopReason.USER_STOPPED)
        return await work(argument)

    host.implementations[activity] = begin_and_stop
    await Driver(ResearchRun(state, inbox, host), OrchestratorStrategy()).conduct()
    assert state.result is not None
    if activity == "outline_research":
        assert state.result.outcome is Outcome.COMPLETED
        return
    assert state.result.stop_reason is StopReason.USER_STOPPED
    later = await resume(world, state)
    assert later.result is not None
    assert later.result.outcome is Outcome.COMPLETED, (later.failed_branches, later.limitations)
    undisturbed, _ = await conduct(World(tmp_path / "undisturbed"))
    assert found_by(later) == found_by(undisturbed)
    assert {gap.description for gap in later.unaddressed_gaps()} == {
        gap.description for gap in undisturbed.unaddressed_gaps()
    }
    assert {record.status for record in later.agents} == {AgentStatus.DONE}
    assert len(tasks_of(later.plan)) == len(tasks_of(undisturbed.plan))


@pytest.mark.parametrize("activity", ["outline_research", "orchestrate", "work_on_task", "read_source"])
async def test_cancelled_in_any_unit_it_goes_on_later(tmp_path: Path, activity: str) -> None:
    """The state is kept, and a resumed run has the findings of an undisturbed one."""
    world = World(tmp_path)
    state, host = await begin(world, strategy="orchestrator"), world.host()
    work = host.implementations[activity]

    async def begin_and_hang(argument: Any) -> Any:
        running.cancel()
        return await work(argument)

    host.implementations[activity] = begin_and_hang
    driver = Driver(ResearchRun(state, Inbox(), host), OrchestratorStrategy())
    running = asyncio.ensure_future(driver.conduct())
    with pytest.raises(asyncio.CancelledError):
        await running
    assert state.result is None
    later = await resume(world, state)
    undisturbed, _ = await conduct(World(tmp_path / "undisturbed"))
    assert later.result is not None
    assert later.result.outcome is Outcome.COMPLETED, (later.failed_branches, later.limitations)
    assert found_by(later) == found_by(undisturbed)


class NewHistory(Exception):
    """The history begins anew here."""


async def test_a_history_may_begin_anew_after_every_cycle(tmp_path: Path) -> None:
    """The boundary comes when no agent is at work, and the report is the same."""
    world = World(tmp_path / "pieces")
    state = await begin(world, strategy="orchestrator")
    boundaries: list[str] = []

    async def boundary() -> None:
        boundaries.append(state.phase or "")
        raise NewHistory

    while state.result is None:
        try:
            await Driver(
                ResearchRun(state, Inbox(), world.host()), OrchestratorStrategy(), WaitHooks(boundary)
            ).conduct()
        except NewHistory:
            state = ResearchState.unpack(state.pack())
    undisturbed, _ = await conduct(whole := World(tmp_path / "whole"))
    assert boundaries == ["cycle-1", "cycle-2"]
    assert comparable(await report_of(world, state)) == comparable(await report_of(whole, undisturbed))


# --- people ----------------------------------------------------------------------------------------------------------
async def test_nothing_is_searched_before_the_plan_is_approved(tmp_path: Path) -> None:
    """The plan waits; not a search and not an agent before its version is approved (X-2)."""
    world = World(tmp_path)
    state, inbox, host = await begin(world, strategy="orchestrator", gates={"approve": "plan"}), Inbox(), world.host()
    running = asyncio.ensure_future(Driver(ResearchRun(state, inbox, host), OrchestratorStrategy()).conduct())
    while state.status is not RunStatus.AWAITING_APPROVAL:
        await asyncio.sleep(0.01)
    assert (world.corpus.searches, world.corpus.reads, host.agents) == ([], [], [])
    assert state.plan.steps
    await host.advance(3_600)
    inbox.replies.append(Approved(state.plan.version))
    assert await running is Outcome.COMPLETED
    assert world.corpus.searches
    assert state.usage.active_seconds < 60


async def test_the_intake_hands_a_clear_question_over(tmp_path: Path) -> None:
    """It calls its one tool, asks nothing, and the plan follows at once (S3-002, S3-003, S3-057)."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state, _ = await conduct(world, gates={"clarify": "auto"})
        await world.close()
    assert [call.role for call in api.calls][:2] == ["intake", "outliner"]
    assert [tool["name"] for tool in requests_of(api, "intake")[0]["tools"]] == ["generate_plan"]
    assert (
        "tool_choice" not in requests_of(api, "intake")[0]
        or requests_of(api, "intake")[0]["tool_choice"]["type"] != "any"
    )
    assert state.result is not None
    assert state.result.outcome is Outcome.COMPLETED
    assert any(item.action == "question_is_clear" for item in state.decisions)


async def test_words_of_the_intake_are_questions_that_are_waited_for(tmp_path: Path) -> None:
    """Text instead of the call asks the person; the answer reaches the plan, and no second round is asked (S3-004)."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state, inbox = await begin(world, strategy="orchestrator", gates={"clarify": "required"}), Inbox()
        host = world.host()
        running = asyncio.ensure_future(Driver(ResearchRun(state, inbox, host), OrchestratorStrategy()).conduct())
        while state.status is not RunStatus.AWAITING_CLARIFICATION:
            await asyncio.sleep(0.01)
        assert state.waiting is not None
        assert state.waiting.questions == [f"Which part of “{QUESTION}” do you mean?"]
        assert [call.role for call in api.calls] == ["intake"]
        inbox.replies.append(Answered(["the part on freezing"]))
        outcome = await running
        await world.close()
    assert outcome is Outcome.COMPLETED
    assert [call.role for call in api.calls].count("intake") == 2
    outlined = next(request for request in api.requests if request.role == "outliner")
    assert "the part on freezing" in outlined.prompt


async def test_a_wish_becomes_a_step_that_an_agent_is_sent_for(tmp_path: Path) -> None:
    """What a person asks for while agents work is researched before the report, without a model, too."""
    world, inbox = World(tmp_path), Inbox()
    state = await begin(world, strategy="orchestrator")
    driver = Driver(ResearchRun(state, inbox, world.host()), OrchestratorStrategy())
    for _ in range(2):
        await driver.step()
    inbox.steering.append(WISH)
    await driver.conduct()
    wished = [step for step in state.plan.steps if step.gap_id]
    assert [step.status for step in wished] == [NodeStatus.COMPLETED]
    assert any("backups" in task.text for task in tasks_of(state.plan))
    assert state.result is not None
    assert state.result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL)


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
    assert "The plan has a step more, as the person who asked wants it: 4. " in str(turns[1]["messages"][-1])
    assert len(state.agents) == 2
    assert [step.status for step in state.plan.steps] == [NodeStatus.COMPLETED] * 4


async def test_a_wish_that_a_model_sends_nobody_for_is_researched_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked for the report again and again, the run tells what the person wants, then rules send an agent for it."""

    def work(body: Body) -> list[dict[str, Any]]:
        made = [name for name, _ in called(body)]
        if not made:
            return blocks(body, ("research_agent", {"task": TASKS[0], "steps": [1]}))
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
    assert "The person who asked wants these, so send an agent for each: 4." in str(requests_of(api, "orchestrator"))
    assert [record.task.text for record in state.agents] == [TASKS[0], WISH]
    assert [step.status for step in state.plan.steps] == [
        NodeStatus.COMPLETED,
        NodeStatus.SKIPPED,
        NodeStatus.SKIPPED,
        NodeStatus.COMPLETED,
    ]


async def test_a_wish_that_no_cycle_is_left_for_ends_the_run_by_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody judged it not to be needed: the cycles were used up."""

    def work(body: Body) -> list[dict[str, Any]]:
        made = [name for name, _ in called(body)]
        return blocks(body, ("generate_report", {}) if made else ("research_agent", {"task": TASKS[0]}))

    works(monkeypatch, "orchestrator", work)
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state, inbox = await begin(world, strategy="orchestrator", limits={"max_iterations": 3}), Inbox()
        driver = Driver(ResearchRun(state, inbox, world.host()), OrchestratorStrategy())
        for _ in range(2):
            await driver.step()
        inbox.steering.append(WISH)
        await driver.conduct()
        await world.close()
    assert state.result is not None
    assert (state.result.outcome, state.result.stop_reason) == (Outcome.PARTIAL, StopReason.MAX_ITERATIONS)


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
    assert state.result is not None
    assert state.citations
    assert len([record for record in state.agents if record.result and record.result.finding_ids]) == 2
    assert state.result.outcome is Outcome.PARTIAL or state.degraded


async def test_an_outage_of_all_searches_is_no_empty_answer(tmp_path: Path) -> None:
    """Every search fails: the run fails and cites nothing (S0-097)."""
    world = World(tmp_path)

    async def fail(request: Any) -> Any:
        raise Unavailable("the corpus does not answer")

    world.corpus.search = fail  # type: ignore[method-assign]
    state, _ = await conduct(world)
    assert state.result is not None
    assert state.result.outcome is Outcome.FAILED
    assert state.citations == []


async def test_nothing_found_is_admitted(tmp_path: Path) -> None:
    """No agent finds anything: the outcome is empty, and the report says so (C0-13)."""
    world = World(tmp_path)
    state = await begin(world, query="What does CockroachDB charge for quantum replication?", strategy="orchestrator")
    await Driver(ResearchRun(state, Inbox(), world.host()), OrchestratorStrategy()).conduct()
    assert state.result is not None
    assert (state.result.outcome, state.citations) == (Outcome.EMPTY, [])
    assert "CockroachDB" in await report_of(world, state)


# --- limits ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"max_model_calls": 9}, StopReason.BUDGET_CALLS),
        ({"max_tokens": 90_000}, StopReason.BUDGET_TOKENS),
        ({"max_cost_usd": 0.9}, StopReason.BUDGET_COST),
    ],
)
async def test_a_limit_is_held_over_all_agents(tmp_path: Path, limits: dict[str, float], reason: StopReason) -> None:
    """Shares are reserved for agents, a report is written from what is there; with more, what was cut is done (X-4)."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        prices = {tier.value: ModelPrice(input=5.0, output=25.0) for tier in Tier}
        state = await begin(world, strategy="orchestrator", limits=limits)
        assert state.resolved is not None
        state.resolved = state.resolved.model_copy(update={"model_prices": prices})
        await Driver(ResearchRun(state, Inbox(), world.host()), OrchestratorStrategy()).conduct()
        assert len(api.calls) <= limits.get("max_model_calls", 100)
        usage = state.usage
        later = await resume(world, state)
        await world.close()
    assert later.result is not None
    assert later.result.outcome is Outcome.COMPLETED, (later.failed_branches, later.limitations)
    assert state.result is not None
    assert usage.tokens <= limits.get("max_tokens", 1e9)
    assert usage.known_cost_usd <= limits.get("max_cost_usd", 1e9)
    assert (state.result.outcome, state.result.stop_reason) == (Outcome.PARTIAL, reason)


async def test_sources_never_exceed_their_limit(tmp_path: Path) -> None:
    """The limit holds over all agents together."""
    world = World(tmp_path)
    state, _ = await conduct(world, limits={"max_sources": 2})
    assert len(state.readable_sources()) <= 2
    assert state.citations


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


async def test_an_agent_out_of_its_time_reports_what_it_has(tmp_path: Path) -> None:
    """After its soft limit it stops and reports; that is no failure, and it is marked (S3-029, S3-064)."""
    world = World(tmp_path)
    state, host = await begin(world, strategy="orchestrator", limits=LIMITS), world.host()
    hanging(host, "read_source", first=5)
    running = asyncio.ensure_future(Driver(ResearchRun(state, Inbox(), host), OrchestratorStrategy()).conduct())
    seconds = await pass_time(host, running, LIMITS["deadline_seconds"] + GRACE)
    assert seconds <= LIMITS["deadline_seconds"]
    assert state.agents[0].status is AgentStatus.DONE
    assert any("time" in note for note in state.degraded)
    assert state.result is not None
    assert state.citations


async def test_an_agent_that_never_answers_leaves_a_stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its hard limit nobody waits: a stub stands in its place, and the others go on (S3-030)."""
    works(monkeypatch, "orchestrator", sends(*TASKS[:2]))
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        state, host = await begin(world, strategy="orchestrator", limits=LIMITS), world.host()
        answer = host.run_agent

        async def first_hangs(request: Any, workflow_id: str) -> Any:
            if request.task.id == "agent-1":
                await asyncio.sleep(3_600)
            return await answer(request, workflow_id)

        host.run_agent = first_hangs  # type: ignore[method-assign]
        running = asyncio.ensure_future(Driver(ResearchRun(state, Inbox(), host), OrchestratorStrategy()).conduct())
        await pass_time(host, running, LIMITS["deadline_seconds"] + GRACE)
        await world.close()
    first, second = state.agents
    assert first.status is AgentStatus.FAILED
    assert first.result is not None
    assert first.result.is_stub
    assert "had not answered" in first.result.problem
    assert second.status is AgentStatus.DONE
    assert state.result is not None
    assert state.result.outcome is Outcome.PARTIAL
    assert state.citations


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
    assert state.result is not None
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
