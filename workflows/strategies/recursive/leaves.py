"""The work of one executor: its leaves, each an extractor with one source and one task, and the executors below it."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from temporalio.exceptions import ActivityError

from contracts.agents import AgentTask, TaskResult
from contracts.notebooks import with_what_follows
from contracts.plan import OTHER_FORM, PlanNode
from contracts.recursive_roles import EXTRACTOR, ExtractorResult
from contracts.research_trees import MOST_LEVELS, TaskType, TreeLeaf, TreeNode
from contracts.texts import shorten
from contracts.vocabulary import NodeKind, NodeStatus, SourceStatus
from workflows.phases.analysis import merge
from workflows.phases.role_calls import ask_for, spawn_for
from workflows.phases.role_inputs import extract_input
from workflows.rules.gaps import after_follow_up
from workflows.run.calls import is_cancelled, reason_of
from workflows.run.host import abandon, side_by_side
from workflows.run.research_run import ResearchRun
from workflows.strategies.recursive.position import CALLER, ExecutorPosition, due_children, due_leaves, position_of

STRATEGY: Final = "executor"
TASK_WORDS: Final = {TaskType.SUMMARIZE: "summary", TaskType.EXTRACT_KEY_FACTS: "key facts"}


async def work_on_node(run: ResearchRun) -> None:
    """Carry out leaves and executors below that are due, all side by side. Raises `Interrupted`.

    What they found is in the order of the plan afterwards, whichever was done first.
    """
    position = position_of(run.state)
    jobs = [
        asyncio.ensure_future(_work_on_leaves(run, position, due_leaves(position))),
        asyncio.ensure_future(_work_on_children(run, position, due_children(position))),
    ]
    try:
        await run.host.settle(jobs)
    except asyncio.CancelledError:
        await abandon(run.host, jobs)
        raise
    for job in jobs:
        job.result()
    state, place = run.state, {node.id: number for number, node in enumerate(run.state.plan.nodes)}
    state.findings = sorted(state.findings, key=lambda finding: place.get(finding.sub_query_id or "", -1))
    state.gaps = sorted(state.gaps, key=lambda gap: place.get(gap.origin.removeprefix("sub_query:"), -1))


# --- executors below -------------------------------------------------------------------------------------------------
async def _work_on_children(run: ResearchRun, position: ExecutorPosition, children: Sequence[TreeNode]) -> None:
    """Have the executors below work, each as an agent with its part of the tree. Raises `Interrupted`."""
    too_deep = [node for node in children if node.level > min(run.resolved.limits.max_levels, MOST_LEVELS)]
    for node in too_deep:  # no plan and no correction has such a node; none is started in any case
        run.branch_failed(f"an executor of level {node.level} was not started: {shorten(node.goal, 120)}")
    children = [node for node in children if node not in too_deep]
    if not children:
        return
    place = {node.id: number for number, node in enumerate(position.tree.children(position.tree.root), start=1)}
    tasks = [child_task(f"{run.state.scope}-{place[node.id]}", position, node) for node in children]
    show_executors(run, tasks, run.state.scope, position.tree.root.level)
    known = {finding.id for finding in run.state.findings}
    results = await spawn_for(run, CALLER, tasks, run.resolved.limits.max_parallel)
    for node, result in zip(children, results, strict=True):
        if (gap := position.gap_of.get(node.id)) and (fresh := [one for one in result.finding_ids if one not in known]):
            run.state.gaps = after_follow_up(run.state.gaps, gap, fresh)
        position.done.append(node.id)
        position.failed += [node.id] if failed(result) else []


def child_task(name: str, position: ExecutorPosition, node: TreeNode) -> AgentTask:
    """Return the task of an executor: its goal, its part of the tree and nothing else of the run."""
    part = position.tree.part(node.id)
    given = {"tree": part.model_dump(mode="json"), "most_nodes": len(part.nodes)}
    return AgentTask(id=name, text=node.goal, strategy=STRATEGY, given=given, level=node.level)


def show_executors(run: ResearchRun, tasks: Sequence[AgentTask], parent: str, depth: int) -> None:
    """Put executors that begin into the plan, each below the node that it works for."""
    plan, begins = run.state.plan, {"status": NodeStatus.EXECUTING}
    nodes = [
        PlanNode(id=task.id, text=task.text, kind=NodeKind.TASK, parent=parent, depth=depth, needs_search=False)
        for task in tasks
    ]
    run.state.plan = plan.with_nodes(*(plan.newest(node).model_copy(update=begins) for node in nodes))


def failed(result: TaskResult) -> bool:
    """Return true for an executor that brought nothing because of a failure."""
    return result.is_stub or (bool(result.problem) and not result.finding_ids)


# --- leaves ----------------------------------------------------------------------------------------------------------
async def _work_on_leaves(run: ResearchRun, position: ExecutorPosition, leaves: Sequence[TreeLeaf]) -> None:
    """Have each leaf done by an extractor of its own, side by side; what is answered is taken over in their order.

    A dead or useless source costs its leaf alone. Raises `Interrupted`.
    """
    if not leaves:
        return
    _take_sources(run, leaves)
    goal, readable = position.tree.root.goal, [leaf for leaf in leaves if _is_readable(run, leaf)]
    begins = {"status": NodeStatus.EXECUTING}
    begun = [leaf_node(run, position, leaf).model_copy(update=begins) for leaf in leaves]
    run.state.plan = run.state.plan.with_nodes(*begun)

    async def extract(leaf: TreeLeaf) -> ExtractorResult:
        return await ask_for(run, CALLER, EXTRACTOR, f"extract/{leaf.id}", extract_input(run, leaf, goal))

    made = await side_by_side(run.host, [partial(extract, leaf) for leaf in readable], run.resolved.limits.max_parallel)
    calls = {leaf.id: call for leaf, call in zip(readable, made, strict=True)}
    interruption: BaseException | None = None
    for leaf in leaves:
        call = calls.get(leaf.id)
        error = call.exception() if call else None
        if call is None or (isinstance(error, ActivityError) and not is_cancelled(error)):
            reason = reason_of(error) if isinstance(error, ActivityError) else _reason_unread(run, leaf)
            _fail(run, position, leaf, reason)
        elif error is not None:
            interruption = interruption or error
        else:
            _take(run, position, leaf, call.result())
    if interruption is not None:
        raise interruption


def _take_sources(run: ResearchRun, leaves: Sequence[TreeLeaf]) -> None:
    """Take over the vetted sources that the run of this executor has read: no site is asked for them again."""
    state = run.state
    names = {leaf.source_id for leaf in leaves} - state.sources.keys()
    for page in state.ledger.pages:
        if page.id in names:
            update = {"sub_query_ids": [state.scope], "iteration": state.iteration, "analyzed": False}
            state.sources[page.id] = page.model_copy(update=update)
            state.note_entry(page.entry)


def leaf_node(run: ResearchRun, position: ExecutorPosition, leaf: TreeLeaf) -> PlanNode:
    """Return the node of a leaf in the plan of this executor."""
    goal = position.tree.root.goal
    text = leaf.task_detail or f"{TASK_WORDS.get(leaf.task_type, '')}: {goal}".removeprefix(": ")
    return run.state.plan.newest(
        PlanNode(
            id=leaf.id,
            text=shorten(text, 500),
            kind=NodeKind.TASK,
            needs_search=False,
            facet=OTHER_FORM,
            parent=run.state.scope,
            depth=position.tree.root.level,
            source_id=leaf.source_id,
            rationale=source.title if (source := run.state.sources.get(leaf.source_id)) else "",
            task_type=leaf.task_type.value,
            origin=f"gap:{position.gap_of[leaf.id]}" if leaf.id in position.gap_of else "plan",
        )
    )


def _take(run: ResearchRun, position: ExecutorPosition, leaf: TreeLeaf, result: ExtractorResult) -> None:
    node = leaf_node(run, position, leaf).model_copy(update={"status": NodeStatus.COMPLETED})
    run.state.plan = run.state.plan.with_nodes(node)
    merge(run, node, with_what_follows(result, [leaf.source_id]), in_parts=True)
    position.done.append(leaf.id)
    known = {(work.words, work.address) for work in position.works}
    position.works += [work for work in result.mentioned_works if (work.words, work.address) not in known]


def _fail(run: ResearchRun, position: ExecutorPosition, leaf: TreeLeaf, reason: str) -> None:
    """Record a leaf that brought nothing: the executor goes on without it."""
    node = leaf_node(run, position, leaf).model_copy(update={"status": NodeStatus.FAILED, "error": reason})
    run.state.plan = run.state.plan.with_nodes(node)
    position.done.append(leaf.id)
    position.failed.append(leaf.id)
    run.branch_failed(f"leaf “{shorten(node.text, 120)}”: {reason}")


def _is_readable(run: ResearchRun, leaf: TreeLeaf) -> bool:
    source = run.state.sources.get(leaf.source_id)
    return source is not None and source.status is SourceStatus.FULL


def _reason_unread(run: ResearchRun, leaf: TreeLeaf) -> str:
    source = run.state.sources.get(leaf.source_id)
    return source.status_reason or "not read" if source is not None else "its source is not there any more"
