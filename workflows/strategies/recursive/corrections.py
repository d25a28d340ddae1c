"""Corrections of an executor: new sources for a gap, new leaves or executors for a question, grafted under itself."""

from collections.abc import Sequence
from typing import Final

from contracts.evidence import Gap
from contracts.recursive_roles import TREE_PLANNER, TreeInput
from contracts.research_trees import ResearchTree, TaskType, TreeBounds, TreeLeaf, TreeNode, leaf_id
from contracts.texts import plural
from contracts.vetting import Vetted
from contracts.vocabulary import GapKind
from workflows.phases.role_calls import ask_for
from workflows.phases.vetting import Vetting, describe_vetted
from workflows.rules.research_trees import InfeasibleTree, graft
from workflows.run.research_run import ResearchRun
from workflows.strategies.recursive.position import CALLER, NO_SOURCES, ExecutorPosition, position_of

MOST_GAPS: Final = 2
"""Gaps that one correction takes on: each costs searches and reading."""
MOST_CANDIDATES: Final = 6
"""Pages that are read for one gap."""


async def correct(run: ResearchRun) -> None:
    """Look for sources for the gaps that matter, and graft work on them under this executor. Raises `Interrupted`."""
    state, position = run.state, position_of(run.state)
    wanted = set(position.material)
    gaps = [gap for gap in state.unaddressed_gaps() if gap.id in wanted][:MOST_GAPS]
    before = {leaf.id for leaf in position.tree.leaves}
    for caller, asked in (CALLER, False), ("planner", True):
        needs = [gap for gap in gaps if (gap.kind is GapKind.QUESTION) is asked]
        vetting = Vetting(run, position.vetted, caller, MOST_CANDIDATES, position.works)
        found = await vetting.carry_out([gap.description for gap in needs]) if needs else []
        for gap, vetted in zip(needs, found, strict=True):
            if vetted.accepted:
                await _graft(run, position, gap, vetted)
    fresh = [leaf for leaf in position.tree.leaves if leaf.id not in before]
    position.corrections += 1
    text = f"{plural(len(gaps), 'gap')} taken on, {plural(len(fresh), 'new task')}"
    run.note("node.corrected", text, gaps=len(gaps), leaves=len(fresh))
    if not fresh:
        position.ended = NO_SOURCES


async def _graft(run: ResearchRun, position: ExecutorPosition, gap: Gap, vetted: Vetted) -> None:
    """Add work on one gap; a tree that would not be feasible with it gets leaves alone."""
    limits, root = run.resolved.limits, position.tree.root
    sources = [one.source_id for one in vetted.accepted]
    bounds = TreeBounds(position.most_nodes, limits.max_leaves, sources, limits.max_levels, limits.max_corrections + 1)
    addition = _leaves_for(root, gap, sources[: limits.max_leaves])
    if gap.kind is GapKind.QUESTION:
        addition = await _planned(run, position, gap, vetted)
    try:
        tree = graft(position.tree, root.id, addition, bounds)
    except InfeasibleTree as error:
        run.note("status", f"a correction was reduced to leaves: {error}", level="info")
        tree = graft(position.tree, root.id, _leaves_for(root, gap, sources[:1]), bounds)
    known = {leaf.id for leaf in position.tree.root.leaves}
    position.gap_of |= {leaf.id: gap.id for leaf in tree.root.leaves if leaf.id not in known}
    position.tree = tree


async def _planned(run: ResearchRun, position: ExecutorPosition, gap: Gap, vetted: Vetted) -> ResearchTree:
    """Have the planner make a tree for a question, whose root is this executor."""
    limits, root = run.resolved.limits, position.tree.root
    request = TreeInput(
        goal=gap.description,
        node_id=root.id,
        level=root.level,
        vetted=describe_vetted(run.state, vetted),
        most_nodes=max(1, position.most_nodes - len(position.tree.nodes) + 1),
        most_leaves=limits.max_leaves,
        most_levels=limits.max_levels,
        done=[leaf.task_detail or leaf.task_type.value for leaf in root.leaves],
    )
    answer = await ask_for(run, CALLER, TREE_PLANNER, f"plan/{gap.id}", request)
    return answer.tree(request)


def _leaves_for(root: TreeNode, gap: Gap, sources: Sequence[str]) -> ResearchTree:
    """Return leaves that ask each of these sources about a gap, under the executor itself."""
    detail = gap.description
    leaves = [
        TreeLeaf(
            id=leaf_id(root.id, source, TaskType.ANSWER_QUESTION, detail),
            source_id=source,
            task_type=TaskType.ANSWER_QUESTION,
            task_detail=detail,
        )
        for source in sources
    ]
    return ResearchTree(nodes=[TreeNode(id=root.id, goal=root.goal, level=root.level, leaves=leaves)])
