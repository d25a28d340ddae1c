"""Grafting of corrections onto the tree of one query, without exceeding three levels of executors. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from contracts.research_trees import ResearchTree, TreeBounds, TreeNode, find_problems


class InfeasibleTree(ValueError):
    """A tree that is not feasible; the message has the path of each problem."""


def check(tree: ResearchTree, bounds: TreeBounds) -> ResearchTree:
    """Return a feasible tree unchanged. Raises `InfeasibleTree`."""
    if problems := find_problems(tree, bounds):
        raise InfeasibleTree("; ".join(problems))
    return tree


def graft(tree: ResearchTree, identity: str, addition: ResearchTree, bounds: TreeBounds) -> ResearchTree:
    """Return the tree with a correction of one executor, the root of the addition.

    New leaves are added to the executor itself, new executors as its children; nothing is removed. Leaves and executors
    that the tree already has are not added again. `bounds.sources` are the sources of the addition. Corrections of
    different executors give the same tree in any order.
    Raises `InfeasibleTree`, and KeyError for an unknown executor.
    """
    node = tree.node(identity)
    if addition.root.id != identity:
        raise InfeasibleTree("$: the addition is for another executor")
    known = {node.id for node in tree.nodes}
    known_leaves = {leaf.id for leaf in node.leaves}
    number = 1 + max((leaf.round for leaf in node.leaves), default=0)
    fresh = [leaf.with_fields(round=number) for leaf in addition.root.leaves if leaf.id not in known_leaves]
    repeated = {node.id for child in addition.nodes[1:] if child.id in known for node in addition.part(child.id).nodes}
    added = [child for child in addition.nodes[1:] if child.id not in repeated]
    grown = node.with_fields(leaves=[*node.leaves, *fresh])
    nodes = [*(grown if node.id == identity else node for node in tree.nodes), *added]
    vetted = {*bounds.sources, *(leaf.source_id for leaf in tree.leaves)}
    return check(ResearchTree(nodes=_parents_first(nodes)), replace(bounds, sources=vetted))


def _parents_first(nodes: Sequence[TreeNode]) -> list[TreeNode]:
    """Return the executors depth first, siblings in order of addition."""
    ordered = list[TreeNode]()
    stack = [nodes[0]]
    while stack:
        node = stack.pop()
        ordered.append(node)
        stack += reversed([child for child in nodes if child.parent == node.id])
    return ordered
