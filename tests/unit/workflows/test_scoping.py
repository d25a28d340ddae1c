"""What agents are given and what they bring back, as pure functions."""

import pytest

from contracts.agents import (
    AgentShare,
    AgentTask,
    Ledger,
    TaskResult,
)
from contracts.evidence import DocumentRef, Source
from contracts.plan import Plan, PlanNode
from contracts.state import ResearchState
from contracts.vocabulary import GapStatus, NodeKind, NodeStatus, StopReason
from tests.fakes.states import finding, gap, source, state
from tests.toy.errand import ERRAND_LIMITS
from workflows.rules.agents import (
    merge_agent,
    scoped_limits,
    task_result,
)
from workflows.rules.sub_queries import sources_left

TASK = AgentTask(id="agent-1", text="What is frozen?", strategy="errand")
WHOLE = AgentShare(sources=50)


@pytest.mark.parametrize("left", [0.0, 2.0, 30.0, 119.0, 5_000.0])
@pytest.mark.parametrize("most", [None, 10.0, 1_800.0])
@pytest.mark.parametrize("soft", [None, 1.0, 720.0])
def test_time_lies_within_what_the_run_has_left(left: float, most: float | None, soft: float | None) -> None:
    """Its deadline is the least of its own and the run's; there is always a reserve for its report (S3-034, S3-054)."""
    task = TASK.model_copy(update={"seconds": soft, "most_seconds": most})
    limits = scoped_limits(task, WHOLE, ERRAND_LIMITS, left)
    own = ERRAND_LIMITS.deadline_seconds if most is None else most
    assert limits.deadline_seconds == pytest.approx(max(1.0, min(own, left)))
    work = limits.deadline_seconds - limits.reserve_seconds
    wanted = ERRAND_LIMITS.deadline_seconds - ERRAND_LIMITS.reserve_seconds if soft is None else soft
    assert 0 < work <= wanted + 0.001
    assert limits.reserve_seconds >= min(0.2 * limits.deadline_seconds, ERRAND_LIMITS.reserve_seconds) - 0.001


def page(url: str, **changes: object) -> Source:
    """A page that was read."""
    text = DocumentRef(hash="sha256:" + "a" * 64, size=500)
    return source(url, text=text, content_hash="sha256:" + "b" * 64, entry="sha256:" + "c" * 64, **changes)


def agent(name: str, *statements: str, **changes: object) -> tuple[AgentTask, TaskResult]:
    """A task and what its agent brings back: findings that all agents have in common begin alike."""
    task = AgentTask(id=name, text=f"task of {name}", strategy="errand")
    held = state(task=task, findings=[finding(text) for text in statements], gaps=[gap(f"{name} lacks something")])
    held.sources = {one.id: one for one in (page("https://shared.example"), page(f"https://{name}.example"))}
    held.usage_by_role = {}
    for key, value in changes.items():
        setattr(held, key, value)
    return task, task_result(held, StopReason.NO_OPEN_GAPS, "")


def run_with(*tasks: AgentTask) -> ResearchState:
    """A run whose plan has a node for each task."""
    nodes = [PlanNode(id=task.id, text=task.text, kind=NodeKind.TASK) for task in tasks]
    return state(plan=Plan(nodes=nodes))


def test_what_agents_have_in_common_is_merged_once_and_the_first_wins() -> None:
    """Ids are hashes: whatever agents share is one thing, and merging in task order is free of conflict (S3-022)."""
    made = [agent("agent-1", "shared statement", "one"), agent("agent-2", "shared statement", "two")]
    run = run_with(*(task for task, _ in made))
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
    task, result = agent("agent-1", gaps=[])
    run = run_with(task)
    merge_agent(run, task, result.model_copy(update={"problem": "it was told to stop"}))
    (cut,) = run.gaps
    assert cut.description == "“task of agent-1” was not looked into to its end (it was told to stop)."
    merge_agent(run, task, result)
    silent = run.gaps[-1]
    assert [gap.status for gap in run.gaps] == [GapStatus.SUPERSEDED, GapStatus.OPEN]
    assert run.plan.nodes[0].stated_gaps == [silent.id]
    merge_agent(run, *agent("agent-1", "one", gaps=[]))
    assert [gap.status for gap in run.gaps] == [GapStatus.SUPERSEDED] * 2
    merge_agent(run, task, result)
    assert [gap.status for gap in run.gaps] == [GapStatus.SUPERSEDED, GapStatus.OPEN]


def test_pages_of_the_ledger_cost_an_agent_none_of_its_share() -> None:
    """The run has read them already; what an agent may read beside them is its share (S3-059)."""
    known, own = page("https://known.example"), page("https://own.example")
    held = state(sources={one.id: one for one in (known, own)}, ledger=Ledger(pages=[known]))
    limits = ERRAND_LIMITS.model_copy(update={"max_sources": 5, "max_new_sources": 5})
    assert sources_left(held, limits) == 4
