"""Agents of agents in one process: what the lowest ones find arrives at the run, with the node that it belongs to."""

import asyncio
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contracts.agents import AgentRecord, AgentTask, NodeEnd, NodeSummary, TaskResult
from contracts.outcome import Usage
from contracts.plan import Plan, PlanNode
from contracts.roles import ProposedGap
from contracts.state import ResearchState
from contracts.vocabulary import GapKind, GapStatus, NodeKind, NodeStatus, StopReason
from tests.fakes.corpus import MemoryCorpus
from tests.fakes.states import finding, gap, resolved, source, state
from tests.fakes.world import World
from tests.toy.nest import NestStrategy, nest, nest_declared
from tests.toy.party import party_declared
from tests.unit.activities.reporting.sample import make_resolved, rendered
from tests.unit.workflows.test_supervisor_strategy import begin
from workflows.rules.agents import merge_agent, task_result
from workflows.rules.gaps import open_gaps
from workflows.run.agents import GRACE_SECONDS, grace_seconds
from workflows.run.inbox import Inbox, Interrupted
from workflows.run.research_run import ResearchRun
from workflows.status import details_markdown
from workflows.strategies import strategy_of

TOP, MIDDLE, LOWEST = "How deep do sperm whales dive?", "What do glaciers carve?", "When do cactus flowers open?"
PAGES = {
    "whales.md": "# Whales\n\nSperm whales dive two kilometres deep, and they stay below for an hour.\n",
    "glaciers.md": "# Glaciers\n\nGlaciers carve long valleys, which rivers then widen for many years.\n",
    "cacti.md": "# Cacti\n\nThe flowers of many a cactus open in the evening and close before noon.\n",
}


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with party_declared(), nest_declared():
        yield


def three_levels() -> AgentTask:
    return nest("node-a", TOP, nest("node-b", MIDDLE, nest("node-c", LOWEST)))


def world_of(folder: Path) -> World:
    return World(folder, MemoryCorpus(PAGES))


async def run_of(world: World) -> ResearchRun:
    run = ResearchRun(await begin(world, strategy="party"), Inbox(), world.host())
    run.state.plan = Plan(nodes=[PlanNode(id="node-a", text=TOP, kind=NodeKind.TASK, needs_search=False)])
    return run


async def test_what_is_found_at_the_third_level_keeps_its_leaf_and_its_node(tmp_path: Path) -> None:
    """Findings, nodes, usage and calls of all levels are in the run, each once, as the levels have them (S4-041)."""
    run = await run_of(world_of(tmp_path))
    (result,) = await run.spawn([three_levels()], caller="root")
    leaves = {"leaf-of-node-a", "leaf-of-node-b", "leaf-of-node-c"}
    nodes = {node.id: node for node in run.state.plan.nodes}
    assert nodes.keys() == {"node-a", "node-b", "node-c", *leaves}
    assert [nodes[name].parent for name in ("node-b", "node-c", "leaf-of-node-c")] == ["node-a", "node-b", "node-c"]
    assert [nodes[name].depth for name in ("node-a", "node-b", "node-c", "leaf-of-node-c")] == [0, 1, 2, 3]
    assert all(node.status is NodeStatus.COMPLETED for node in nodes.values())
    assert {one.sub_query_id for one in run.state.findings} == leaves
    assert nodes["node-a"].finding_count == len(run.state.findings) == len(result.finding_ids)
    assert {name for one in run.state.sources.values() for name in one.sub_query_ids} <= leaves | {"node-a"}
    assert run.state.calls == {"root": {"nest": 1}, "nest": {"nest": 2}}
    (top,) = (record.result.node for record in run.state.agents if record.result)
    assert top is not None
    lowest = top.below[0].below[0]
    assert [top.level, top.below[0].level, lowest.level, lowest.goal] == [1, 2, 3, LOWEST]
    parts = [top.usage, top.below[0].usage, lowest.usage]
    total = parts[0].plus(parts[1]).plus(parts[2])
    assert total.searches == run.state.usage.searches == 3
    assert total.reads == run.state.usage.reads
    assert [agent.id for _, agent in result.agents[0].with_all_below()] == ["node-b", "node-c"]
    shown = [line for line in details_markdown(run.state, 0.0).splitlines() if "workflow `" in line]
    assert [line.partition(" ✔ ")[0] for line in shown] == ["-", "  -", "    -"]


async def test_an_agent_of_an_agent_knows_what_the_run_had_read(tmp_path: Path) -> None:
    """The ledger of the run is handed on: what was read before is not read again at any level."""
    world = world_of(tmp_path)
    run = await run_of(world)
    await run.spawn([nest("node-before", LOWEST)])
    await run.spawn([nest("node-a", TOP, nest("node-b", LOWEST))])
    requests = {request.task.id: request for request in run.host.agents}
    assert LOWEST in [one.text for one in requests["node-b"].ledger().queries]
    assert "Cacti" in [page.title for page in requests["node-b"].ledger().pages]
    assert len(world.corpus.reads) == len(set(world.corpus.reads)) == 2


def test_less_is_waited_for_at_each_level() -> None:
    """Whoever waits at a level has more patience than all below, so each one's answer arrives (S4-041)."""
    waits = [grace_seconds(level) for level in range(3)]
    assert waits[0] == GRACE_SECONDS
    assert all(above - below >= 1.0 for above, below in pairwise(waits))
    assert grace_seconds(9) > 0


@pytest.mark.parametrize("ending", ["stop", "cancel"])
async def test_when_the_run_is_to_end_the_lowest_level_still_says_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """Stopped or cancelled at the third level, the findings of all levels are in the run, in one moment (S4-041)."""
    world = world_of(tmp_path)
    run = await run_of(world)
    usual = run.host.implementations["search"]

    async def search(request: Any) -> Any:
        # The leaf of the third level never gets an answer, those above it have theirs.
        if "again" in request.text:
            await asyncio.Event().wait()
        return await usual(request)

    run.host.implementations["search"] = search
    # Not the class that this module imports: a workflow's sandbox may have loaded the strategy first.
    implementation = type(strategy_of("nest"))
    looked, look = list[str](), implementation._look

    async def look_and_note(strategy: NestStrategy, run: ResearchRun) -> None:
        await look(strategy, run)
        looked.append(run.state.scope)

    monkeypatch.setattr(implementation, "_look", look_and_note)
    lowest = nest("node-c", LOWEST, nest("node-d", "never again"))
    work = asyncio.ensure_future(run.spawn([nest("node-a", TOP, nest("node-b", MIDDLE, lowest))]))
    while len(looked) < 3:
        assert not work.done()
        await asyncio.sleep(0.01)
    if ending == "stop":
        run.inbox.interrupt(StopReason.USER_STOPPED)
    else:
        work.cancel()
    with pytest.raises((Interrupted, asyncio.CancelledError)):
        await work
    assert {one.sub_query_id for one in run.state.findings} == {"leaf-of-node-a", "leaf-of-node-b", "leaf-of-node-c"}
    result = run.state.agents[0].result
    assert result is not None
    assert not result.is_stub
    assert result.node is not None
    assert result.node.below[0].below[0].below[0].end is NodeEnd.STOPPED


def test_the_limit_of_gaps_is_a_matter_of_the_strategy() -> None:
    """A strategy that must lose no gap has more room than the usual thirty (S4-041)."""
    drafts = [ProposedGap(description=f"gap {number}") for number in range(100)]
    assert len(open_gaps(state(), drafts, "sub_query:x")) == 30
    assert len(open_gaps(state(resolved=resolved(strategy="nest")), drafts, "sub_query:x")) == 100


def test_a_gap_that_a_second_start_has_closed_is_closed_in_the_run() -> None:
    """What the first start left open stays open only if the second one did not close it (S4-041)."""
    task = nest("node-a", TOP)
    leaf = PlanNode(id="leaf-x", text="a leaf", parent="node-a", kind=NodeKind.LEAF, needs_search=False)
    one, other = gap("closed later", origin="sub_query:leaf-x"), gap("stays open", origin="sub_query:leaf-x")
    run = state(plan=Plan(nodes=[PlanNode(id="node-a", text=TOP, kind=NodeKind.TASK, needs_search=False)]))
    held = state(task=task, plan=Plan(nodes=[leaf]), gaps=[one, other], findings=[finding("a statement")])
    merge_agent(run, task, task_result(held, StopReason.USER_STOPPED, "", "it was told to stop"))
    assert [(each.origin, each.status) for each in run.gaps] == [("sub_query:leaf-x", GapStatus.OPEN)] * 2
    held.gaps = [one.model_copy(update={"status": GapStatus.ADDRESSED}), other]
    merge_agent(run, task, task_result(held, StopReason.NO_OPEN_GAPS, ""))
    assert [each.status for each in run.gaps] == [GapStatus.ADDRESSED, GapStatus.OPEN]
    assert run.sources == {}


def test_a_node_that_gave_no_result_is_in_the_tree_with_its_reason() -> None:
    """The tree names a branch that failed or came too late, so nobody takes it for done."""
    task = nest("node-a", TOP)
    held = state(task=task, sources={"s": source("https://a.example")}, usage=Usage(searches=5))
    record = AgentTask(id="node-b", text=MIDDLE, strategy="nest", level=2)
    stub = task_result(state(), StopReason.BUDGET_TIME, "").model_copy(update={"is_stub": True})
    held.agents = [AgentRecord(task=record, result=stub)]
    result = task_result(held, StopReason.NO_OPEN_GAPS, "", node=NodeSummary(id="node-a", goal=TOP))
    assert result.node is not None
    assert [(one.id, one.level, one.end) for one in result.node.below] == [("node-b", 2, NodeEnd.TIME)]
    assert result.node.usage.searches == 5


class RandomWorld:
    """A tree of agents with leaves, gaps and findings by chance, and what its leaves stated in all."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.open: dict[str, str] = {}
        """Description of each gap that nothing closed → the goal of the executor whose leaf stated it first."""
        self.closed: set[str] = set()
        self.leaf_of: dict[str, str] = {}
        """Finding → the leaf that stated it first."""
        self.usage = Usage()

    def agent(self, name: str, level: int = 1) -> tuple[AgentTask, TaskResult]:
        """Return an executor's task and its result, made of its leaves and of executors below it, in plan order."""
        chance, goal = self._chance, f"goal of {name}"
        task = AgentTask(id=name, text=goal, strategy="nest", level=level)
        held = state(resolved=resolved(strategy="nest"), task=task)
        for number in range(chance.randint(1, 3)):
            self._leaf(held, f"leaf-{name}-{number}", goal)
        own = Usage(model_calls=chance.randint(0, 5))
        self.usage, held.usage = self.usage.plus(own), held.usage.plus(own)
        for number in range(chance.randint(0, 2) if level < 3 else 0):
            below, result = self.agent(f"{name}-{number}", level + 1)
            node = PlanNode(id=below.id, text=below.text, parent=name, kind=NodeKind.TASK, needs_search=False)
            held.plan = held.plan.with_nodes(node)
            held.usage = held.usage.plus(result.usage)
            merge_agent(held, below, result)
            held.agents = [*held.agents, AgentRecord(task=below, result=result.model_copy(update={"packed": ""}))]
        node_of_agent = NodeSummary(id=name, goal=goal, level=level)
        return task, task_result(held, StopReason.NO_ACTIONABLE_GAPS, "", node=node_of_agent)

    def _leaf(self, held: ResearchState, leaf: str, goal: str) -> None:
        chance = self._chance
        node = PlanNode(id=leaf, text=leaf, parent=held.scope, kind=NodeKind.LEAF, needs_search=False, source_id="s")
        held.plan = held.plan.with_nodes(node)
        for number in range(chance.randint(0, 4)):
            text = f"matter {chance.randint(0, 60)} of {leaf[:7] if chance.random() < 0.3 else leaf} {number}"
            if text in self.open or text in self.closed:
                continue
            closed = chance.random() < 0.3
            kind = chance.choice([GapKind.QUESTION, GapKind.LIMITATION])
            status = GapStatus.ADDRESSED if closed else chance.choice([GapStatus.OPEN, GapStatus.UNADDRESSABLE])
            held.gaps = [*held.gaps, gap(text, kind=kind, status=status, origin=f"sub_query:{leaf}")]
            if closed:
                self.closed.add(text)
            else:
                self.open[text] = goal
        for number in range(chance.randint(0, 2)):
            made = finding(f"{leaf} found {number}", id=f"f-{leaf}-{number}", sub_query_id=leaf)
            held.findings = [*held.findings, made]
            self.leaf_of[made.id] = leaf


def test_nothing_is_lost_on_the_way_up_in_a_hundred_random_worlds() -> None:
    """Every gap of every leaf is in its section once with its goal, or was closed; findings keep their leaf, and the
    usage of all nodes adds up (S4-037, S4-041).
    """
    for seed in range(100):
        world = RandomWorld(seed)
        task, result = world.agent("node")
        root = PlanNode(id="node", text=task.text, kind=NodeKind.TASK, needs_search=False)
        run = state(resolved=resolved(strategy="nest"), plan=Plan(nodes=[root]))
        merge_agent(run, task, result)
        assert {one.id: one.sub_query_id for one in run.findings} == world.leaf_of
        used, waiting = Usage(), [result.node]
        while waiting:
            node = waiting.pop()
            assert node is not None
            used, waiting = used.plus(node.usage), [*waiting, *node.below]
        assert used == world.usage
        shown = rendered(resolved=make_resolved(strategy="nest"), gaps=run.gaps, plan=run.plan).markdown
        part = shown.partition("## Open Questions")[2].partition("## Sources")[0].replace("\\", "")
        lines = [line.removeprefix("- ") for line in part.splitlines() if line.startswith("- ")]
        # An executor without anything says so itself.
        lines = [line for line in lines if not line.startswith("Nothing in the sources answers")]
        assert sorted(lines) == sorted(f"{text} – while working on “{goal}”" for text, goal in world.open.items())
