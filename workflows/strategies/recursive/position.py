"""Position of an executor: its part of the tree, and what of it was carried out. Pure."""

from enum import StrEnum
from typing import Any, ClassVar, Final

from contracts.recursive_roles import MentionedWork
from contracts.research_trees import ResearchTree, TreeLeaf, TreeNode
from contracts.state import ResearchState
from contracts.vetting import Vetted
from workflows.strategies.units import UnitPosition

NO_SOURCES: Final = "no further source was found for what is missing"
CALLER: Final = "executor"
"""Name of the caller in the table of who may call whom."""


class NodeUnit(StrEnum):
    """The units of an executor, in the order in which they first come."""

    WORK = "work"
    REPORT = "report"
    CHECK = "check"
    CORRECTION = "correction"


LABELS: Final = {
    NodeUnit.WORK: "read", NodeUnit.REPORT: "join", NodeUnit.CHECK: "check", NodeUnit.CORRECTION: "correct"
}  # fmt: skip


class ExecutorPosition(UnitPosition):
    """The unit that comes next, this executor's part of the tree, and values that units pass to later ones."""

    NAME: ClassVar[str] = "executor"

    next_unit: NodeUnit = NodeUnit.WORK
    tree: ResearchTree = ResearchTree()
    """Its root is this executor; grows by corrections."""
    most_nodes: int = 1
    """Executors that the part may have."""
    done: list[str] = []
    """Ids of leaves and of executors below that were carried out."""
    failed: list[str] = []
    """Ids of those that brought nothing because of a failure."""
    works: list[MentionedWork] = []
    """Works that sources have mentioned: words for the librarian."""
    vetted: dict[str, Vetted] = {}
    gap_of: dict[str, str] = {}
    """Leaf of a correction → the gap that it is to close."""
    material: list[str] = []
    """Ids of the gaps that the last self-check wants closed."""
    corrections: int = 0
    seen_evidence: int = 0
    """Passages before the last correction."""
    seen_closed: int = 0
    """Closed gaps before it."""
    ended: str = ""
    """Reason for which there is no further correction; empty while there may be one."""


def position_of(state: ResearchState) -> ExecutorPosition:
    """Return the position, with the part of the tree that the task gives; its changes are the state's."""
    state.position = position = read_position(state)
    return position


def read_position(state: ResearchState) -> ExecutorPosition:
    """Return the position without changing the state: a query that is answered while leaves work replaces nothing."""
    position = ExecutorPosition.read(state)
    if position.tree.nodes or state.task is None:
        return position
    given: dict[str, Any] = state.task.given
    tree = ResearchTree.model_validate(given["tree"])
    return position.model_copy(update={"tree": tree, "most_nodes": int(given.get("most_nodes", len(tree.nodes)))})


def due_leaves(position: ExecutorPosition) -> list[TreeLeaf]:
    """Return the leaves of this executor that were not carried out yet."""
    return [leaf for leaf in position.tree.root.leaves if leaf.id not in position.done]


def due_children(position: ExecutorPosition) -> list[TreeNode]:
    """Return the executors right below that were not carried out yet."""
    return [node for node in position.tree.children(position.tree.root) if node.id not in position.done]
