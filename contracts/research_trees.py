"""The tree of one query: executors with goals, leaves with one source and one task each, and its feasibility. Pure.

A path from the root to a leaf has at most three executors; one at the third level has only leaves.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from contracts.addresses import normalized_text, short_hash
from contracts.base import Contract
from contracts.texts import plural

MAX_LEVELS: Final = 3
"""Executors on a path."""
ASSESS_SOURCE: Final = "ASSESS_SOURCE"
"""Task of an extractor that examines a candidate for the librarian; never the task of a leaf."""
GOAL_CHARACTERS: Final = 400
DETAIL_CHARACTERS: Final = 400


class TaskType(StrEnum):
    """Task of a leaf."""

    SUMMARIZE = "SUMMARIZE"
    EXTRACT_KEY_FACTS = "EXTRACT_KEY_FACTS"
    ANSWER_QUESTION = "ANSWER_QUESTION"


class TreeLeaf(Contract):
    """One task for one source."""

    id: str
    source_id: str
    task_type: TaskType
    task_detail: str = ""
    """The question of `ANSWER_QUESTION`; for other tasks the focus, or empty."""
    round: int = 0
    """Number of the correction that added it; 0 for the first plan."""


class TreeNode(Contract):
    """An executor with its goal."""

    id: str
    goal: str
    level: int = 1
    """Depth in the tree, from 1."""
    parent: str | None = None
    leaves: list[TreeLeaf] = []


class ResearchTree(Contract):
    """A tree, root first, parents before their children."""

    nodes: list[TreeNode] = []

    @property
    def root(self) -> TreeNode:
        """Return the root executor."""
        return self.nodes[0]

    @property
    def leaves(self) -> list[TreeLeaf]:
        """Return the leaves of all executors."""
        return [leaf for node in self.nodes for leaf in node.leaves]

    def children(self, node: TreeNode) -> list[TreeNode]:
        """Return the executors directly below one."""
        return [child for child in self.nodes if child.parent == node.id]

    def node(self, identity: str) -> TreeNode:
        """Return the executor with an id. Raises KeyError if there is none."""
        return {node.id: node for node in self.nodes}[identity]

    def part(self, identity: str) -> "ResearchTree":
        """Return the subtree of the executor with an id, levels unchanged. Raises KeyError."""
        ids = {self.node(identity).id}
        for node in self.nodes:
            if node.parent in ids:
                ids.add(node.id)
        return ResearchTree(nodes=[node for node in self.nodes if node.id in ids])


@dataclass(frozen=True)
class TreeBounds:
    """Limits of a tree."""

    most_nodes: int
    most_leaves: int
    """Per executor and round."""
    sources: Collection[str]
    """Ids of the vetted sources."""
    most_levels: int = MAX_LEVELS
    most_rounds: int = 1
    """Rounds per executor: the plan and each correction."""


def node_id(parent: str, goal: str) -> str:
    """Return the id of an executor, derived from its parent and goal."""
    return f"node-{short_hash(parent, normalized_text(goal))}"


def leaf_id(node: str, source: str, task_type: TaskType, detail: str) -> str:
    """Return the id of a leaf, derived from its executor, source and task."""
    return f"leaf-{short_hash(node, source, task_type.value, normalized_text(detail))}"


def find_problems(tree: ResearchTree, bounds: TreeBounds) -> list[str]:
    """Return the problems of a tree, each with its path; empty if the tree is feasible."""
    if not tree.nodes:
        return ["nodes: a tree needs one executor"]
    paths = node_paths(tree)
    problems = list(_shape_problems(tree, paths, bounds.most_levels))
    if len(tree.nodes) > bounds.most_nodes:
        problems.append(f"nodes: {plural(len(tree.nodes), 'executor')}, at most {bounds.most_nodes}: merge some")
    for node in tree.nodes:
        problems += _leaf_problems(node, paths.get(node.id, ""), bounds)
    return problems


def node_paths(tree: ResearchTree) -> dict[str, str]:
    """Return the path of each executor in a planner's notation: `nodes.0.nodes.1`."""
    paths = {tree.root.id: ""}
    numbers = Counter[str]()
    for node in tree.nodes[1:]:
        if node.parent in paths and node.id not in paths:
            paths[node.id] = f"{paths[node.parent]}.nodes.{numbers[node.parent]}".lstrip(".")
            numbers[node.parent] += 1
    return paths


def _shape_problems(tree: ResearchTree, paths: Mapping[str, str], most_levels: int) -> Iterator[str]:
    """Yield the problems of parents, levels and goals."""
    known = {node.id: node for node in tree.nodes}
    if len(known) < len(tree.nodes):
        yield "nodes: two executors below one parent have the same goal: merge them"
    parents = {node.parent for node in tree.nodes}
    goals = {tree.root.id: {normalized_text(tree.root.goal)}}
    """Goals of each executor and its ancestors."""
    for node in tree.nodes:
        path = paths.get(node.id, "nodes")
        goal = normalized_text(node.goal)
        if node.level > min(most_levels, MAX_LEVELS):
            yield f"{path}: an executor of level {node.level}, at most {most_levels}: give its work to the one above it"
        if not goal:
            yield f"{path}.goal: a goal is needed"
        if node is not tree.root:
            inherited = goals.get(node.parent or "", set())
            if goal in inherited:
                yield f"{path}.goal: it repeats a goal above it: name the part that is this executor's own"
            goals[node.id] = inherited | {goal}
        if not node.leaves and node.id not in parents:
            yield f"{path or '$'}: an executor needs leaves, or executors below it"


def _leaf_problems(node: TreeNode, path: str, bounds: TreeBounds) -> Iterator[str]:
    """Yield the problems of an executor's leaves."""
    location = f"{path}.leaves".lstrip(".")
    rounds = [leaf.round for leaf in node.leaves]
    largest = max((rounds.count(number) for number in set(rounds)), default=0)
    if largest > bounds.most_leaves:
        yield f"{location}: {largest} leaves, at most {bounds.most_leaves}: keep the most useful ones"
    if len(set(rounds)) > bounds.most_rounds:
        yield f"{location}: leaves of {len(set(rounds))} rounds, at most {bounds.most_rounds}"
    for number, leaf in enumerate(node.leaves):
        if leaf.source_id not in bounds.sources:
            yield f"{location}.{number}.source: it is not the label of a source in the list"
        if leaf.task_type is TaskType.ANSWER_QUESTION and not leaf.task_detail.strip():
            yield f"{location}.{number}.task_detail: ANSWER_QUESTION needs its question"
