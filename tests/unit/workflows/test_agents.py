"""Scoped runs in one process: agents of a toy strategy, agents of agents, and what their run makes of them."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts.agents import AgentRecord, AgentRequest, AgentShare, AgentTask, NodeEnd, NodeSummary, TaskResult
from contracts.call_sizes import CallSizes
from contracts.evidence import QueryRecord
from contracts.outcome import Guidance, Usage
from contracts.plan import Plan, PlanNode
from contracts.request import Turn
from contracts.roles import ProposedGap
from contracts.state import EvidenceState, ResearchState
from contracts.vocabulary import AgentStatus, GapStatus, NodeKind, NodeStatus, StopReason
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.messages_api import MessagesApi
from tests.fakes.states import EMPTY_REF, change, finding, gap, resolved, source, state
from tests.fakes.world import World, begin, model_world
from tests.toy.errand import ERRAND_LIMITS
from tests.toy.nest import nest, nest_declared
from tests.toy.party import party_declared
from workflows.rules.agents import merge_agent, scoped_limits, task_result
from workflows.rules.gaps import open_gaps, with_gaps
from workflows.run.agents import GRACE_SECONDS, grace_seconds
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.status import details_markdown

TASKS = [
    "How does the engine prevent transaction ID wraparound?",
    "How does vacuum freeze old rows?",
    "What locks does the engine take?",
]


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with party_declared(), nest_declared():
        yield


async def run_of(world: World, **fields: Any) -> ResearchRun:
    state = await begin(world, strategy="party", **fields)
    return ResearchRun(state, Inbox(), world.host())


def errands(*texts: str, **more: Any) -> list[AgentTask]:
    return [AgentTask(id=f"agent-{n}", text=text, strategy="errand", **more) for n, text in enumerate(texts, start=1)]


async def turns(number: int = 400) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_an_agent_gets_its_task_and_nothing_else(tmp_path: Path) -> None:
    """No word of question, plan, guidance or another task is in what it, or a model for it, is given (S3-009, S3-010)."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        try:
            run = await run_of(
                world, system_prompt="quokka prompt", metadata={"tasks": TASKS, "note": "quokka metadata"}
            )
            run.state.work.resolved = run.resolved.model_copy(
                update={
                    "query": "the quokka question",
                    "context": [Turn(question="quokka", answer="quokka")],
                    "audience": "quokka keepers",
                    "region": "quokka land",
                    "sections": ["Quokka"],
                }
            )
            run.state.work.plan = run.state.work.plan.model_copy(update={"brief": "a quokka plan"})
            run.state.people.guidance = [Guidance(origin="person", text="look at the quokka")]
            results = await run.spawn(errands(*TASKS))
        finally:
            await world.close()
    for request, task in zip(run.host.agents, TASKS, strict=True):
        text = request.model_dump_json()
        assert "quokka" not in text.casefold()
        assert [other for other in TASKS if other in text] == [task]
        assert request.resolved.canary == run.resolved.canary != ""
    bodies = [json.dumps(request.body) for request in api.requests]
    assert len(bodies) == run.state.accounts.usage.model_calls == 3
    assert not any("quokka" in body for body in bodies)
    assert all(sum(task in body for task in TASKS) == 1 for body in bodies)
    assert all(result.usage.model_calls == 1 for result in results)


async def test_an_agent_knows_how_large_calls_are_and_reports_it_to_its_run(tmp_path: Path) -> None:
    """What is reserved for a call of an agent follows the calls of its run, and the other way round."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        try:
            run = await run_of(world)
            run.state.accounts.call_sizes = {"planner": CallSizes(calls=2, input_share=0.3, output_share=0.5)}
            results = await run.spawn(errands(TASKS[0]))
        finally:
            await world.close()
    assert run.host.agents[0].call_sizes == {"planner": run.state.accounts.call_sizes["planner"]}
    assert run.state.accounts.call_sizes.keys() == {"planner", "analyzer"}
    assert run.state.accounts.call_sizes["analyzer"].calls == 1
    assert [result.call_sizes for result in results] == [{}]


async def test_what_the_run_knew_is_neither_read_nor_searched_in_other_words_again(tmp_path: Path) -> None:
    """A later agent uses pages and answers of the ledger, and cannot change it (S3-011, S3-048, S3-050, S3-059)."""
    world = World(tmp_path)
    run = await run_of(world)
    await run.spawn(errands(TASKS[0]))
    read, known = len(world.corpus.reads), set(run.state.evidence.sources)
    again = "how does the engine prevent transaction ID wraparound"
    results = await run.spawn(errands(TASKS[0], again, TASKS[1])[1:])
    assert len(world.corpus.reads) == read
    assert sorted(world.corpus.searches) == sorted([TASKS[0], TASKS[0], TASKS[1]])
    assert set(results[0].source_ids) <= known
    assert results[0].finding_ids
    requests = {request.task.id: request for request in run.host.agents}
    assert [one.text for one in requests["agent-2"].ledger().queries] == [TASKS[0]]
    read_then = {name for name, source in run.state.evidence.sources.items() if source.text}
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
    assert run.state.work.agents[0].status is AgentStatus.DONE


async def test_at_the_hard_limit_the_run_does_not_wait_for_late_results(tmp_path: Path) -> None:
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
    assert run.state.work.agents[0].status is AgentStatus.FAILED
    assert any("agent-1" in branch for branch in run.state.work.failed_branches)
    assert {finding.sub_query_id for finding in run.state.evidence.findings} == {"agent-2"}
    assert run.agents.under_way
    before = run.state.accounts.usage.searches
    answer.set()
    await turns()
    assert not run.agents.under_way
    assert {finding.sub_query_id for finding in run.state.evidence.findings} == {"agent-2"}
    assert run.state.accounts.usage.searches == before + 1


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
    held.evidence.sources = {one.id: one for one in pages}
    held.accounts.usage_by_role = {}
    change(held, **changes)
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
    assert [one.statement for one in run.evidence.findings] == ["shared statement", "one", "two"]
    assert [one.sub_query_id for one in run.evidence.findings] == ["agent-1", "agent-1", "agent-2"]
    assert len(run.evidence.sources) == 3
    assert next(iter(run.evidence.sources.values())).sub_query_ids == ["agent-1", "agent-2"]
    assert [node.finding_count for node in run.work.plan.nodes] == [2, 2]
    assert [node.new_source_count for node in run.work.plan.nodes] == [2, 1]
    assert [node.status for node in run.work.plan.nodes] == [NodeStatus.COMPLETED] * 2


def test_an_agent_that_was_cut_short_says_nothing_about_what_is_to_be_found() -> None:
    """Its gap says why nobody looked to the end; given again, the task takes that back, found or not found (S3-064)."""
    task, result = outcome_of("agent-1", gaps=[])
    run = planned(task)
    merge_agent(run, task, result.model_copy(update={"problem": "it was told to stop"}))
    (cut,) = run.evidence.gaps
    assert cut.description == "“task of agent-1” was not looked into to its end (it was told to stop)."
    merge_agent(run, task, result)
    (silent,) = run.evidence.gaps
    assert (silent.status, silent.id != cut.id) == (GapStatus.OPEN, True)
    assert run.work.plan.nodes[0].stated_gaps == [silent.id]
    merge_agent(run, *outcome_of("agent-1", "one", gaps=[]))
    assert not run.evidence.gaps
    merge_agent(run, task, result)
    assert run.evidence.gaps == [silent]


# --- agents of agents ------------------------------------------------------------------------------------------------
TOP, MIDDLE, LOWEST = "How deep do sperm whales dive?", "What do glaciers carve?", "When do cactus flowers open?"
PAGES = {
    "whales.md": "# Whales\n\nSperm whales dive two kilometres deep, and they stay below for an hour.\n",
    "glaciers.md": "# Glaciers\n\nGlaciers carve long valleys, which rivers then widen for many years.\n",
    "cacti.md": "# Cacti\n\nThe flowers of many a cactus open in the evening and close before noon.\n",
}


async def nested_run(world: World) -> ResearchRun:
    run = await run_of(world)
    run.state.work.plan = Plan(nodes=[PlanNode(id="node-a", text=TOP, kind=NodeKind.TASK, needs_search=False)])
    return run


async def test_what_is_found_at_the_third_level_keeps_its_leaf_and_its_node(tmp_path: Path) -> None:
    """Findings, nodes, usage and calls of all levels are in the run, each once, as the levels have them (S4-041)."""
    run = await nested_run(World(tmp_path, MemoryCorpus(PAGES)))
    (result,) = await run.spawn([nest("node-a", TOP, nest("node-b", MIDDLE, nest("node-c", LOWEST)))], caller="root")
    leaves = {"leaf-of-node-a", "leaf-of-node-b", "leaf-of-node-c"}
    nodes = {node.id: node for node in run.state.work.plan.nodes}
    assert nodes.keys() == {"node-a", "node-b", "node-c", *leaves}
    assert [nodes[name].parent for name in ("node-b", "node-c", "leaf-of-node-c")] == ["node-a", "node-b", "node-c"]
    assert [nodes[name].depth for name in ("node-a", "node-b", "node-c", "leaf-of-node-c")] == [0, 1, 2, 3]
    assert all(node.status is NodeStatus.COMPLETED for node in nodes.values())
    assert {one.sub_query_id for one in run.state.evidence.findings} == leaves
    assert nodes["node-a"].finding_count == len(run.state.evidence.findings) == len(result.finding_ids)
    assert {name for one in run.state.evidence.sources.values() for name in one.sub_query_ids} <= leaves | {"node-a"}
    assert run.state.accounts.calls == {"root": {"nest": 1}, "nest": {"nest": 2}}
    (top,) = (record.result.node for record in run.state.work.agents if record.result)
    assert top is not None
    lowest = top.below[0].below[0]
    assert [top.level, top.below[0].level, lowest.level, lowest.goal] == [1, 2, 3, LOWEST]
    parts = [top.usage, top.below[0].usage, lowest.usage]
    total = parts[0].plus(parts[1]).plus(parts[2])
    assert total.searches == run.state.accounts.usage.searches == 3
    assert total.reads == run.state.accounts.usage.reads
    assert [agent.id for _, agent in result.agents[0].walk()] == ["node-b", "node-c"]
    shown = [line for line in details_markdown(run.state, 0.0).splitlines() if "workflow `" in line]
    assert [line.partition(" ✔ ")[0] for line in shown] == ["-", "  -", "    -"]


async def test_an_agent_of_an_agent_knows_what_the_run_had_read(tmp_path: Path) -> None:
    """The ledger of the run is handed on: what was read before is not read again at any level."""
    world = World(tmp_path, MemoryCorpus(PAGES))
    run = await nested_run(world)
    await run.spawn([nest("node-before", LOWEST)])
    await run.spawn([nest("node-a", TOP, nest("node-b", LOWEST))])
    requests = {request.task.id: request for request in run.host.agents}
    assert LOWEST in [one.text for one in requests["node-b"].ledger().queries]
    assert "Cacti" in [page.title for page in requests["node-b"].ledger().pages]
    assert len(world.corpus.reads) == len(set(world.corpus.reads)) == 2


def test_less_is_waited_for_at_each_level() -> None:
    """Whoever waits at a level has more patience than all below, so each one's answer arrives (S4-041)."""
    waits = [grace_seconds(level) for level in range(3)]
    assert waits == [GRACE_SECONDS, GRACE_SECONDS - 1, GRACE_SECONDS - 2]
    assert grace_seconds(9) > 0


def test_the_limit_of_gaps_is_a_matter_of_the_strategy() -> None:
    """A strategy that must lose no gap has more room than the usual thirty (S4-041)."""
    drafts = [ProposedGap(description=f"gap {number}") for number in range(100)]
    usual, nest = state(), state(resolved=resolved(strategy="nest"))
    assert len(with_gaps(usual, open_gaps(usual, drafts, "sub_query:x"))) == 30
    assert len(with_gaps(nest, open_gaps(nest, drafts, "sub_query:x"))) == 100


def test_a_gap_that_a_second_start_has_closed_is_closed_in_the_run() -> None:
    """What the first start left open stays open only if the second one did not close it (S4-041)."""
    task = nest("node-a", TOP)
    leaf = PlanNode(id="leaf-x", text="a leaf", parent="node-a", kind=NodeKind.LEAF, needs_search=False)
    one, other = gap("closed later", origin="sub_query:leaf-x"), gap("stays open", origin="sub_query:leaf-x")
    run = state(plan=Plan(nodes=[PlanNode(id="node-a", text=TOP, kind=NodeKind.TASK, needs_search=False)]))
    held = state(task=task, plan=Plan(nodes=[leaf]), gaps=[one, other], findings=[finding("a statement")])
    merge_agent(run, task, task_result(held, StopReason.USER_STOPPED, "", "it was told to stop"))
    assert [(each.origin, each.status) for each in run.evidence.gaps] == [("sub_query:leaf-x", GapStatus.OPEN)] * 2
    held.evidence.gaps = [one.model_copy(update={"status": GapStatus.ADDRESSED}), other]
    merge_agent(run, task, task_result(held, StopReason.NO_OPEN_GAPS, ""))
    assert [each.status for each in run.evidence.gaps] == [GapStatus.ADDRESSED, GapStatus.OPEN]
    assert run.evidence.sources == {}


def test_a_gap_that_one_agent_leaves_and_another_closes_is_closed() -> None:
    """Whichever of them is merged first; the finding that closes it is named (S4-041)."""
    one = gap("both have it")
    closed = one.model_copy(update={"status": GapStatus.ADDRESSED, "resolved_by": ["f-1"]})
    for order in ([one, closed], [closed, one]):
        made = [outcome_of(f"agent-{number}", "one", gaps=[each]) for number, each in enumerate(order, start=1)]
        run = planned(*(task for task, _ in made))
        for task, result in made:
            merge_agent(run, task, result)
        assert [(each.status, each.resolved_by) for each in run.evidence.gaps] == [(GapStatus.ADDRESSED, ["f-1"])]


def test_a_node_that_gave_no_result_is_in_the_tree_with_its_reason() -> None:
    """The tree names a branch that failed or came too late, so nobody takes it for done."""
    task = nest("node-a", TOP)
    held = state(task=task, sources={"s": source("https://a.example")}, usage=Usage(searches=5))
    record = AgentTask(id="node-b", text=MIDDLE, strategy="nest", level=2)
    stub = task_result(state(), StopReason.BUDGET_TIME, "").model_copy(update={"is_stub": True})
    held.work.agents = [AgentRecord(task=record, result=stub)]
    result = task_result(held, StopReason.NO_OPEN_GAPS, "", node=NodeSummary(id="node-a", goal=TOP))
    assert result.node is not None
    assert [(one.id, one.level, one.end) for one in result.node.below] == [("node-b", 2, NodeEnd.TIME)]
    assert result.node.usage.searches == 5


def test_a_search_of_several_agents_has_the_results_of_one() -> None:
    """The same words sent to the same provider again find nothing more; another provider's results count."""
    made = [("one", "searxng", 14), ("two", "searxng", 14), ("two", "wikipedia", 5), ("three", "searxng", 0)]
    ledger = [QueryRecord(text="vents", provider=name, sub_query_id=agent, found=found) for agent, name, found in made]
    (search,) = ResearchState(evidence=EvidenceState(query_ledger=ledger)).searches()
    assert (search.text, search.result_count) == ("vents", 19)
