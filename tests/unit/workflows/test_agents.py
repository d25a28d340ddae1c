"""Scoped runs in one process: agents of a toy strategy, driven by the real driver over real activities."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.agents import AgentRequest, AgentTask, TaskResult
from contracts.outcome import Guidance
from contracts.request import Turn
from contracts.state import ResearchState
from contracts.vocabulary import AgentStatus, NodeStatus, Outcome, StopReason
from tests.fakes.host import InProcessHost
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.toy.party import party_declared
from tests.unit.workflows.test_supervisor_strategy import begin
from workflows.driver import Driver
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.research_run import GRACE_SECONDS, ResearchRun
from workflows.strategies import strategy_of

QUESTIONS = [
    "How does the engine prevent transaction ID wraparound?",
    "How does vacuum freeze old rows?",
    "What locks does the engine take?",
    "What does a base backup copy?",
    "How many autovacuum workers are there?",
]
TASKS = QUESTIONS[:3]


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with party_declared():
        yield


async def party(world: World, tasks: list[str] | None = None, **metadata: Any) -> ResearchState:
    return await begin(world, strategy="party", metadata={"tasks": tasks or TASKS, **metadata})


async def run_of(world: World, **fields: Any) -> ResearchRun:
    state = await begin(world, strategy="party", **fields)
    return ResearchRun(state, Inbox(), world.host())


def errands(*texts: str, **more: Any) -> list[AgentTask]:
    return [AgentTask(id=f"agent-{n}", text=text, strategy="errand", **more) for n, text in enumerate(texts, start=1)]


def host_of(run: ResearchRun) -> InProcessHost:
    assert isinstance(run.host, InProcessHost)
    return run.host


class Gate:
    """Holds the searches of some tasks back until it is opened."""

    def __init__(self, host: InProcessHost, *held: str) -> None:
        self.opened = asyncio.Event()
        self.waiting = 0
        self._held = held
        self._search: Callable[[Any], Awaitable[Any]] = host.implementations["search"]
        host.implementations["search"] = self._wait

    async def _wait(self, request: Any) -> Any:
        if request.text in self._held:
            self.waiting += 1
            await self.opened.wait()
        return await self._search(request)


async def all_but_one(host: InProcessHost, gate: Gate, number: int) -> None:
    """Wait until of so many agents all have ended but the one that the gate holds back."""
    while not gate.waiting or len(host.agents_ended) < number - 1:
        await asyncio.sleep(0.01)
    await turns()


async def turns(number: int = 400) -> None:
    """Let everybody go on who can."""
    for _ in range(number):
        await asyncio.sleep(0)


async def test_a_run_is_made_of_what_its_agents_found(tmp_path: Path) -> None:
    """Three tasks, three agents, one report that cites what they read (S3-021)."""
    world = World(tmp_path)
    state = await party(world)
    host = world.host()
    outcome = await Driver(ResearchRun(state, Inbox(), host), strategy_of("party")).conduct()
    assert outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations, state.degraded)
    assert [record.status for record in state.agents] == [AgentStatus.DONE] * 3
    assert [request.resolved.query for request in host.agents] == TASKS
    assert state.citations
    assert {finding.sub_query_id for finding in state.findings} <= {record.task.id for record in state.agents}
    assert [node.status for node in state.plan.nodes] == [NodeStatus.COMPLETED] * 3
    assert {record.sub_query_id for record in state.query_ledger} == {"agent-1", "agent-2", "agent-3"}
    # An agent has no session: what it has is its run's to save.
    saves = [operation for name, operation in host.calls if name == "save_session"]
    assert saves
    assert not [operation for operation in saves if operation.startswith("agent-")]


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
    for request, task in zip(host_of(run).agents, TASKS, strict=True):
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
    requests = {request.task.id: request for request in host_of(run).agents}
    assert [one.text for one in requests["agent-2"].ledger().queries] == [TASKS[0]]
    read_then = {name for name, source in run.state.sources.items() if source.text}
    assert {page.id for page in requests["agent-2"].ledger().pages} == read_then
    assert requests["agent-1"].packed_ledger == ""
    # Agents of one call know what was known before it, whichever of them answers first.
    assert requests["agent-3"].packed_ledger == requests["agent-2"].packed_ledger


async def test_shares_are_reserved_while_agents_work_and_settled_after(tmp_path: Path) -> None:
    """Calls, tokens and money are held for agents under way; then what they used takes the place of what was held."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        run = await run_of(world, limits={"max_model_calls": 20, "max_tokens": 900_000, "max_cost_usd": 3.0})
        gate = Gate(host_of(run), *TASKS)
        work = asyncio.ensure_future(run.spawn(errands(*TASKS)))
        while gate.waiting < 3:
            await asyncio.sleep(0.01)
        held, shares = run.holdings.held, [record.share for record in run.state.agents]
        kept = 2  # calls for the report
        assert held.calls == sum(share.model_calls or 0 for share in shares) == 20 - kept
        assert held.tokens == sum(share.tokens or 0 for share in shares) > 0
        assert held.cost_usd == pytest.approx(sum(share.cost_usd or 0.0 for share in shares))
        assert [request.resolved.limits.max_model_calls for request in host_of(run).agents] == [6, 6, 6]
        gate.opened.set()
        results = await work
        assert run.holdings.held.calls == 0
        assert run.state.usage.model_calls == sum(result.usage.model_calls for result in results) == len(api.requests)
        await world.close()


async def test_out_of_time_an_agent_reports_what_it_has(tmp_path: Path) -> None:
    """At its own soft limit the work ends, and its report is written from what is there: no failure (S3-029)."""
    run = await run_of(World(tmp_path))
    host = host_of(run)
    gate = Gate(host, TASKS[1])
    (task,) = errands(TASKS[1], seconds=5.0, most_seconds=30.0)
    work = asyncio.ensure_future(run.spawn([task]))
    while not gate.waiting:
        await asyncio.sleep(0.01)
    await host.advance(5.5)
    await turns()
    (result,) = await work
    assert result.stop_reason is StopReason.BUDGET_TIME
    assert not result.is_stub
    assert result.summary == "nothing was found"
    assert "time limit" in result.problem
    assert run.state.agents[0].status is AgentStatus.DONE


async def test_at_the_hard_limit_nobody_waits_and_what_comes_late_is_left_out(tmp_path: Path) -> None:
    """A stub in its place, others go on; findings that come late are discarded, their cost counts (S3-030)."""
    world = World(tmp_path)
    run = await run_of(world)
    host = host_of(run)
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


@pytest.mark.parametrize("reason", [StopReason.USER_STOPPED, StopReason.BUDGET_TIME])
async def test_a_stopped_run_takes_over_what_its_agents_have(tmp_path: Path, reason: StopReason) -> None:
    """They are told to stop, give what they have, and make no further call; then the work is over (S3-033, S3-064)."""
    run = await run_of(World(tmp_path))
    host = host_of(run)
    gate = Gate(host, TASKS[1])
    work = asyncio.ensure_future(run.spawn(errands(*QUESTIONS[:4])))
    await all_but_one(host, gate, 4)
    calls = len(host.calls)
    run.inbox.interrupt(reason)
    with pytest.raises(Interrupted) as ended:
        await work
    assert ended.value.reason is reason
    statuses = [record.status for record in run.state.agents]
    assert statuses == [AgentStatus.DONE, AgentStatus.CUT_OFF, AgentStatus.DONE, AgentStatus.DONE]
    cut = run.state.agents[1].result
    assert cut.stop_reason is reason
    assert {finding.sub_query_id for finding in run.state.findings} > {"agent-1"}
    assert [name for name, _ in host.calls[calls:]] == []


async def test_the_usage_of_a_task_that_is_given_again_counts_once(tmp_path: Path) -> None:
    """The journal tells paid answers once more: what an agent that was cut off had used is not added twice."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        run = await run_of(world)
        await run.spawn(errands(TASKS[0]))
        used, calls = run.state.usage, len(api.requests)
        record = run.state.agents[0].model_copy(update={"status": AgentStatus.CUT_OFF})
        run.state.agents = [record]
        await run.spawn(errands(TASKS[0]))
        assert len(api.requests) == calls
        assert run.state.usage.model_calls == used.model_calls
        assert run.state.usage.input_tokens == used.input_tokens
        assert len({finding.id for finding in run.state.findings}) == len(run.state.findings)
        await world.close()
