"""Scoped runs in one process: agents of a toy strategy over real activities, and what their run makes of them."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.agents import AgentRequest, AgentShare, AgentTask, TaskResult
from contracts.outcome import Guidance
from contracts.plan import Plan, PlanNode
from contracts.request import Turn
from contracts.state import ResearchState
from contracts.vocabulary import AgentStatus, GapStatus, NodeKind, NodeStatus, StopReason
from tests.fakes.messages_api import MessagesApi
from tests.fakes.states import EMPTY_REF, finding, gap, source, state
from tests.fakes.world import World, model_world
from tests.toy.errand import ERRAND_LIMITS
from tests.toy.party import party_declared
from tests.unit.workflows.test_supervisor_strategy import begin
from workflows.rules.agents import merge_agent, scoped_limits, task_result
from workflows.run.agents import GRACE_SECONDS
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun

TASKS = [
    "How does the engine prevent transaction ID wraparound?",
    "How does vacuum freeze old rows?",
    "What locks does the engine take?",
]


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with party_declared():
        yield


async def run_of(world: World, **fields: Any) -> ResearchRun:
    state = await begin(world, strategy="party", **fields)
    return ResearchRun(state, Inbox(), world.host())


def errands(*texts: str, **more: Any) -> list[AgentTask]:
    return [AgentTask(id=f"agent-{n}", text=text, strategy="errand", **more) for n, text in enumerate(texts, start=1)]


async def turns(number: int = 400) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_an_agent_is_told_its_task_and_nothing_else(tmp_path: Path) -> None:
    """No word of question, plan, guidance or another task is in what it, or a model for it, is given (S3-009, S3-010)."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        run = await run_of(world, system_prompt="quokka prompt", metadata={"tasks": TASKS, "note": "quokka metadata"})
        run.state.resolved = run.resolved.model_copy(
            update={
                "query": "the quokka question",
                "context": [Turn(question="quokka", answer="quokka")],
                "audience": "quokka keepers",
                "region": "quokka land",
                "sections": ["Quokka"],
            }
        )
        run.state.plan = run.state.plan.model_copy(update={"brief": "a quokka plan"})
        run.state.guidance = [Guidance(origin="person", text="look at the quokka")]
        results = await run.spawn(errands(*TASKS))
        await world.close()
    for request, task in zip(run.host.agents, TASKS, strict=True):
        text = request.model_dump_json()
        assert "quokka" not in text.casefold()
        assert [other for other in TASKS if other in text] == [task]
        assert request.resolved.canary == run.resolved.canary != ""
    bodies = [json.dumps(request.body) for request in api.requests]
    assert len(bodies) == run.state.usage.model_calls == 3
    assert not any("quokka" in body for body in bodies)
    assert all(sum(task in body for task in TASKS) == 1 for body in bodies)
    assert all(result.usage.model_calls == 1 for result in results)


async def test_what_the_run_knew_is_neither_read_nor_searched_in_other_words_again(tmp_path: Path) -> None:
    """A later agent uses pages and answers of the ledger, and cannot change it (S3-011, S3-048, S3-050, S3-059)."""
    world = World(tmp_path)
    run = await run_of(world)
    await run.spawn(errands(TASKS[0]))
    read, known = len(world.corpus.reads), set(run.state.sources)
    again = "how does the engine prevent transaction ID wraparound"
    tasks = [AgentTask(id=f"agent-{n}", text=text, strategy="errand") for n, text in ((2, again), (3, TASKS[1]))]
    results = await run.spawn(tasks)
    assert len(world.corpus.reads) == read
    assert sorted(world.corpus.searches) == sorted([TASKS[0], TASKS[0], TASKS[1]])
    assert set(results[0].source_ids) <= known
    assert results[0].finding_ids
    requests = {request.task.id: request for request in run.host.agents}
    assert [one.text for one in requests["agent-2"].ledger().queries] == [TASKS[0]]
    read_then = {name for name, source in run.state.sources.items() if source.text}
    assert {page.id for page in requests["agent-2"].ledger().pages} == read_then
    assert requests["agent-1"].packed_ledger == ""
    # Agents of one call know what was known before it, whichever of them answers first.
    assert requests["agent-3"].packed_ledger == requests["agent-2"].packed_ledger


async def test_out_of_time_an_agent_reports_what_it_has(tmp_path: Path) -> None:
    """At its own soft limit the work ends, and its report is written from what is there: no failure (S3-029)."""
    run = await run_of(World(tmp_path))

    async def hang(_: Any) -> Any:
        await asyncio.Event().wait()

    run.host.implementations["search"] = hang
    work = asyncio.ensure_future(run.spawn(errands(TASKS[1], seconds=5.0, most_seconds=30.0)))
    while not any(name == "search" for name, _ in run.host.calls):
        await asyncio.sleep(0.01)
    await run.host.advance(5.5)
    await turns()
    (result,) = await work
    assert (result.stop_reason, result.is_stub, result.summary) == (StopReason.BUDGET_TIME, False, "nothing was found")
    assert "time limit" in result.problem
    assert run.state.agents[0].status is AgentStatus.DONE


async def test_at_the_hard_limit_nobody_waits_and_what_comes_late_is_left_out(tmp_path: Path) -> None:
    """A stub in its place, others go on; findings that come late are discarded, their cost counts (S3-030)."""
    world = World(tmp_path)
    run = await run_of(world)
    host = run.host
    answer, usual = asyncio.Event(), host.run_agent

    async def deaf(request: AgentRequest, workflow_id: str) -> TaskResult:
        result = await usual(request, workflow_id)
        if request.task.id == "agent-1":
            with contextlib.suppress(asyncio.CancelledError):
                await answer.wait()
            await answer.wait()
        return result

    host.run_agent = deaf  # type: ignore[method-assign]
    tasks = errands(*TASKS[:2], most_seconds=30.0)
    work = asyncio.ensure_future(run.spawn(tasks))
    while len(host.agents_ended) < 2:
        await asyncio.sleep(0.01)
    await turns()
    await host.advance(30 + GRACE_SECONDS + 0.1)
    results = await work
    assert [result.is_stub for result in results] == [True, False]
    assert results[0].stop_reason is StopReason.BUDGET_TIME
    assert "not answered" in results[0].problem
    assert run.state.agents[0].status is AgentStatus.FAILED
    assert any("agent-1" in branch for branch in run.state.failed_branches)
    assert {finding.sub_query_id for finding in run.state.findings} == {"agent-2"}
    assert run.agents.under_way
    before = run.state.usage.searches
    answer.set()
    await turns()
    assert not run.agents.under_way
    assert {finding.sub_query_id for finding in run.state.findings} == {"agent-2"}
    assert run.state.usage.searches == before + 1


@pytest.mark.parametrize("left", [0.0, 2.0, 30.0, 119.0, 5_000.0])
@pytest.mark.parametrize("most", [None, 10.0, 1_800.0])
@pytest.mark.parametrize("soft", [None, 1.0, 720.0])
def test_time_lies_within_what_the_run_has_left(left: float, most: float | None, soft: float | None) -> None:
    """Its deadline is the least of its own and the run's; there is always a reserve for its report (S3-034, S3-054)."""
    (task,) = errands("What is frozen?", seconds=soft, most_seconds=most)
    limits = scoped_limits(task, AgentShare(sources=50), ERRAND_LIMITS, left)
    own = ERRAND_LIMITS.deadline_seconds if most is None else most
    assert limits.deadline_seconds == pytest.approx(max(1.0, min(own, left)))
    work = limits.deadline_seconds - limits.reserve_seconds
    wanted = ERRAND_LIMITS.deadline_seconds - ERRAND_LIMITS.reserve_seconds if soft is None else soft
    assert 0 < work <= wanted + 0.001
    assert limits.reserve_seconds >= min(0.2 * limits.deadline_seconds, ERRAND_LIMITS.reserve_seconds) - 0.001


def outcome_of(name: str, *statements: str, **changes: object) -> tuple[AgentTask, TaskResult]:
    """A task and what its agent brings back: findings that all agents have in common begin alike."""
    task = AgentTask(id=name, text=f"task of {name}", strategy="errand")
    held = state(task=task, findings=[finding(text) for text in statements], gaps=[gap(f"{name} lacks something")])
    pages = [source(url, text=EMPTY_REF) for url in ("https://shared.example", f"https://{name}.example")]
    held.sources = {one.id: one for one in pages}
    held.usage_by_role = {}
    for key, value in changes.items():
        setattr(held, key, value)
    return task, task_result(held, StopReason.NO_OPEN_GAPS, "")


def planned(*tasks: AgentTask) -> ResearchState:
    nodes = [PlanNode(id=task.id, text=task.text, kind=NodeKind.TASK) for task in tasks]
    return state(plan=Plan(nodes=nodes))


def test_what_agents_have_in_common_is_merged_once_and_the_first_wins() -> None:
    """Ids are hashes: whatever agents share is one thing, and merging in task order is free of conflict (S3-022)."""
    made = [outcome_of("agent-1", "shared statement", "one"), outcome_of("agent-2", "shared statement", "two")]
    run = planned(*(task for task, _ in made))
    for task, result in made:
        merge_agent(run, task, result)
    assert [one.statement for one in run.findings] == ["shared statement", "one", "two"]
    assert [one.sub_query_id for one in run.findings] == ["agent-1", "agent-1", "agent-2"]
    assert len(run.sources) == 3
    assert next(iter(run.sources.values())).sub_query_ids == ["agent-1", "agent-2"]
    assert [node.finding_count for node in run.plan.nodes] == [2, 2]
    assert [node.new_source_count for node in run.plan.nodes] == [2, 1]
    assert [node.status for node in run.plan.nodes] == [NodeStatus.COMPLETED] * 2


def test_an_agent_that_was_cut_short_says_nothing_about_what_is_to_be_found() -> None:
    """Its gap says why nobody looked to the end; given again, the task takes that back, found or not found (S3-064)."""
    task, result = outcome_of("agent-1", gaps=[])
    run = planned(task)
    merge_agent(run, task, result.model_copy(update={"problem": "it was told to stop"}))
    (cut,) = run.gaps
    assert cut.description == "“task of agent-1” was not looked into to its end (it was told to stop)."
    merge_agent(run, task, result)
    (silent,) = run.gaps
    assert (silent.status, silent.id != cut.id) == (GapStatus.OPEN, True)
    assert run.plan.nodes[0].stated_gaps == [silent.id]
    merge_agent(run, *outcome_of("agent-1", "one", gaps=[]))
    assert not run.gaps
    merge_agent(run, task, result)
    assert run.gaps == [silent]
