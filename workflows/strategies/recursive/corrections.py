"""Corrections of an executor: new sources for a gap, new leaves or executors for a question, grafted under itself."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Final

from contracts.evidence import Gap
from contracts.recursive_roles import TREE_PLANNER, TreeInput
from contracts.research_trees import ResearchTree, TaskType, TreeBounds, TreeLeaf, leaf_id
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
    work: dict[str, ResearchTree] = {}
    for caller, asked in (CALLER, False), ("planner", True):
        needs = [gap for gap in gaps if (gap.kind is GapKind.QUESTION) is asked]
        vetting = Vetting(run, position.vetted, caller, MOST_CANDIDATES, position.works)
        found = await vetting.carry_out([gap.description for gap in needs]) if needs else []
        for gap, vetted in zip(needs, found, strict=True):
            if vetted.accepted:
                work[gap.id] = await _planned(run, position, gap, vetted) if asked else _leaves(run, gap, vetted)
    if work:
        _graft(run, position, work)
    fresh = [leaf for leaf in position.tree.leaves if leaf.id not in before]
    position.corrections += 1
    text = f"{plural(len(gaps), 'gap')} taken on, {plural(len(fresh), 'new task')}"
    run.note("node.corrected", text, gaps=len(gaps), leaves=len(fresh))
    if not fresh:
        position.ended = NO_SOURCES


def _graft(run: ResearchRun, position: ExecutorPosition, work: Mapping[str, ResearchTree]) -> None:
    """Add the work on all gaps of one correction; a tree that would not be feasible with it gets its leaves alone."""
    limits, root = run.resolved.limits, position.tree.root
    known = {leaf.id for leaf in root.leaves}
    # In turn: each gap has its first leaf before one has its second.
    in_turn = zip_longest(*(tree.root.leaves for tree in work.values()))
    fresh = {leaf.id: leaf for leaves in in_turn for leaf in leaves if leaf is not None and leaf.id not in known}
    leaves = list(fresh.values())[: limits.max_leaves]
    below = [node for tree in work.values() for node in tree.nodes[1:]]
    sources = {leaf.source_id for tree in work.values() for leaf in tree.leaves}
    bounds = TreeBounds(position.most_nodes, limits.max_leaves, sources, limits.max_levels, limits.max_corrections + 1)
    top = root.model_copy(update={"leaves": leaves})
    try:
        tree = graft(position.tree, root.id, ResearchTree(nodes=[top, *below]), bounds)
    except InfeasibleTree as error:
        run.note("status", f"a correction was reduced to leaves: {error}", level="info")
        tree = graft(position.tree, root.id, ResearchTree(nodes=[top]), bounds)
    position.gap_of |= {leaf.id: gap for gap, part in work.items() for leaf in part.root.leaves if leaf.id in fresh}
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


def _leaves(run: ResearchRun, gap: Gap, vetted: Vetted) -> ResearchTree:
    """Return leaves that ask each of the vetted sources about a gap, under the executor itself."""
    root, detail, task = position_of(run.state).tree.root, gap.description, TaskType.ANSWER_QUESTION
    sources = [one.source_id for one in vetted.accepted][: run.resolved.limits.max_leaves]
    leaves = [
        TreeLeaf(id=leaf_id(root.id, source, task, detail), source_id=source, task_type=task, task_detail=detail)
        for source in sources
    ]
    return ResearchTree(nodes=[root.model_copy(update={"leaves": leaves})])
