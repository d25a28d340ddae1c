"""Trees of one query: which are feasible, and what corrections make of them."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.lenient import UnfitAnswer
from contracts.recursive_roles import TreeAnswer, TreeInput, VettedSource
from contracts.research_trees import MAX_LEVELS, ResearchTree, TaskType, TreeBounds, find_problems
from workflows.rules.research_trees import InfeasibleTree, graft

SOURCES = ("src-a", "src-b", "src-c")
LEAF = {"source": "src-a", "task_type": "SUMMARIZE", "task_detail": None}


def request(**fields: Any) -> TreeInput:
    given = {"goal": "the goal", "most_nodes": 9, "vetted": [VettedSource(id=name) for name in SOURCES]}
    return TreeInput(**given | fields)


def planned(answer: dict[str, Any], **fields: Any) -> ResearchTree:
    """Return the tree of an answer. Raises `UnfitAnswer` as the activity does."""
    asked = request(**fields)
    return TreeAnswer.model_validate(answer).fitted(asked, []).tree(asked)


def nested(levels: int) -> dict[str, Any]:
    """Return so many executors on one path, the last one with a leaf."""
    answer: dict[str, Any] = {"leaves": [LEAF]}
    for level in range(levels, 1, -1):
        answer = {"nodes": [{"goal": f"part {level}", **answer}]}
    return answer


# --- what a planner answers ------------------------------------------------------------------------------------------
def test_three_executors_on_a_path_pass_and_four_are_refused_with_the_path() -> None:
    """The third level has leaves only; a fourth is refused, however many lie below it (S4-011 to S4-014)."""
    tree = planned(nested(3))
    assert [node.level for node in tree.nodes] == [1, 2, 3]
    assert [len(node.leaves) for node in tree.nodes] == [0, 0, 1]
    for levels in (4, 5, 12):
        with pytest.raises(UnfitAnswer, match=r"nodes\.0\.nodes\.0\.nodes\.0: an executor of level 4, at most 3"):
            planned(nested(levels))


def test_a_node_may_have_leaves_and_executors() -> None:
    """Both at once; a task that is there twice is one, and a focus may be left out (S4-020, S4-021, S4-040, C4-6)."""
    question = {"source": "src-b", "task_type": "answer_question", "task_detail": "How long?"}
    tree = planned({"leaves": [LEAF, LEAF, question], "nodes": [{"goal": "a part", "leaves": [LEAF]}]})
    assert [(leaf.task_type, leaf.task_detail) for leaf in tree.root.leaves] == [
        (TaskType.SUMMARIZE, ""),
        (TaskType.ANSWER_QUESTION, "How long?"),
    ]
    assert [node.goal for node in tree.children(tree.root)] == ["a part"]


@pytest.mark.parametrize(
    ("answer", "fields", "problem"),
    [
        ({}, {}, "$: an executor needs leaves, or executors below it"),
        ({"nodes": [{"goal": "a part"}]}, {}, "nodes.0: an executor needs leaves"),
        ({"nodes": [{"goal": " ", "leaves": [LEAF]}]}, {}, "nodes.0.goal: a goal is needed"),
        ({"nodes": [{"goal": "The  goal", "leaves": [LEAF]}]}, {}, "nodes.0.goal: it repeats a goal above it"),
        ({"nodes": [{"goal": "one", "leaves": [LEAF]}, {"goal": "One", "leaves": [LEAF]}]}, {}, "the same goal"),
        ({"leaves": [{**LEAF, "source": "https://example.org/"}]}, {}, "leaves.0.source: it is not the label"),
        ({"leaves": [LEAF, {**LEAF, "source": "src-z"}]}, {}, "leaves.1.source: it is not the label"),
        ({"leaves": [{**LEAF, "task_type": "ANSWER_QUESTION"}]}, {}, "leaves.0.task_detail: ANSWER_QUESTION needs"),
        ({"leaves": [{**LEAF, "task_detail": f"{n}"} for n in range(500)]}, {}, "leaves: 500 leaves, at most 5"),
        ({"nodes": [{"goal": f"{n}", "leaves": [LEAF]} for n in range(9)]}, {}, "nodes: 10 executors, at most 9"),
        (nested(2), {"level": 3}, "nodes.0: an executor of level 4, at most 3"),
        (nested(3), {"level": 2}, "nodes.0.nodes.0: an executor of level 4, at most 3"),
        (nested(3), {"most_levels": 2}, "nodes.0.nodes.0: an executor of level 3, at most 2"),
    ],
)
def test_what_no_run_could_carry_out_is_refused_in_words(
    answer: dict[str, Any], fields: dict[str, Any], problem: str
) -> None:
    """Each problem has its path, and no word of the answer is in it (S4-022, S4-023, C4-6)."""
    with pytest.raises(UnfitAnswer) as caught:
        planned(answer, **fields)
    assert problem in str(caught.value)
    assert "example.org" not in str(caught.value)


@pytest.mark.parametrize("task", ["ASSESS_SOURCE", "READ", "", None])
def test_a_leaf_has_one_of_three_tasks(task: Any) -> None:
    """An examination for the librarian is none of them, and no word is taken for another one (S4-021, C4-5)."""
    with pytest.raises(ValueError, match="task_type"):
        planned({"leaves": [{**LEAF, "task_type": task}]})


# --- any tree --------------------------------------------------------------------------------------------------------
GOALS = st.sampled_from(["why", "how", "where", "when", ""])
ANY_LEAF = st.builds(
    dict,
    source=st.sampled_from([*SOURCES, "src-z"]),
    task_type=st.sampled_from([task.value for task in TaskType]),
    task_detail=st.sampled_from([None, "", "what it costs"]),
)
GOOD_LEAF = st.builds(dict, source=st.sampled_from(SOURCES), task_type=st.just("SUMMARIZE"), task_detail=st.text("ab"))


def answers(goals: st.SearchStrategy[str], leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return answers of any depth."""
    return st.recursive(
        st.builds(dict, goal=goals, leaves=leaves),
        lambda below: st.builds(dict, goal=goals, leaves=leaves, nodes=st.lists(below, min_size=1, max_size=3)),
        max_leaves=5,
    )


GOOD_ANSWERS = answers(st.integers(0, 10_000).map("part {}".format), st.lists(GOOD_LEAF, min_size=1, max_size=3))
ANSWERS = GOOD_ANSWERS | GOOD_ANSWERS | answers(GOALS, st.lists(ANY_LEAF, max_size=4))
BOUNDED = st.builds(
    TreeBounds, most_nodes=st.integers(1, 12), most_leaves=st.integers(2, 5), sources=st.just(SOURCES),
    most_levels=st.integers(2, 5), most_rounds=st.integers(1, 3),
)  # fmt: skip


def assert_feasible(tree: ResearchTree, bounds: TreeBounds) -> None:
    """Check a tree without the code that made it."""
    by_id = {node.id: node for node in tree.nodes}
    assert len(by_id) == len(tree.nodes) <= bounds.most_nodes
    for node in tree.nodes:
        path, above = [node], node.parent
        while above in by_id and len(path) <= len(tree.nodes):
            path.append(by_id[above])
            above = by_id[above].parent
        assert path[-1] is tree.root
        assert tree.root.level + len(path) - 1 == node.level <= min(MAX_LEVELS, bounds.most_levels)
        assert node.leaves or tree.children(node)
        rounds = [leaf.round for leaf in node.leaves]
        assert all(rounds.count(number) <= bounds.most_leaves for number in rounds)
        assert len(set(rounds)) <= bounds.most_rounds
        assert len({leaf.id for leaf in node.leaves}) == len(node.leaves)
        for leaf in node.leaves:
            assert leaf.source_id in SOURCES
            assert leaf.task_detail or leaf.task_type is not TaskType.ANSWER_QUESTION


def answered(answer: dict[str, Any], **fields: Any) -> ResearchTree | None:
    """Return the tree of an answer, or None for one that is refused."""
    try:
        return planned(answer, **fields)
    except UnfitAnswer:
        return None


@given(ANSWERS, st.integers(1, 4), st.integers(1, 5), st.integers(1, 3))
def test_no_answer_makes_a_tree_that_cannot_be_carried_out(
    answer: dict[str, Any], level: int, most_nodes: int, most_leaves: int
) -> None:
    """Whatever a planner writes: never four levels, an unvetted source, too many nodes or leaves (S4-011, S4-023)."""
    tree = answered(answer, level=level, most_nodes=most_nodes, most_leaves=most_leaves)
    if tree is not None:
        assert_feasible(tree, TreeBounds(most_nodes, most_leaves, SOURCES))
        assert find_problems(ResearchTree.model_validate_json(tree.model_dump_json()), request().bounds) == []


# --- corrections -----------------------------------------------------------------------------------------------------
def addition(tree: ResearchTree, place: int, answer: dict[str, Any]) -> tuple[str, ResearchTree] | None:
    """Return a correction of the executor at a place, as its planner would have answered."""
    node = tree.nodes[place % len(tree.nodes)]
    found = answered(answer, goal=node.goal, node_id=node.id, level=node.level)
    return (node.id, found) if found is not None else None


@given(GOOD_ANSWERS, st.lists(st.tuples(st.integers(0, 8), ANSWERS), min_size=1, max_size=6), BOUNDED)
def test_no_graft_breaks_a_limit_or_loses_anything(
    answer: dict[str, Any], corrections: list[tuple[int, dict[str, Any]]], bounds: TreeBounds
) -> None:
    """After each correction the tree is feasible, or as it was; all that was there stays (C4-2)."""
    tree = answered(answer, most_nodes=bounds.most_nodes, most_leaves=bounds.most_leaves)
    if tree is None or find_problems(tree, bounds):
        return
    for place, each in corrections:
        if (correction := addition(tree, place, each)) is None:
            continue
        try:
            grown = graft(tree, *correction, bounds)
        except InfeasibleTree:
            continue
        assert_feasible(grown, bounds)
        assert {leaf.id for leaf in tree.leaves} <= {leaf.id for leaf in grown.leaves}
        assert {node.id for node in tree.nodes} <= {node.id for node in grown.nodes}
        assert graft(grown, *correction, bounds) == grown, "the same correction twice adds nothing"
        tree = grown


def test_grafts_give_one_tree_in_any_order() -> None:
    """Corrections of different executors may arrive as they like."""
    tree = planned({"leaves": [LEAF], "nodes": [{"goal": each, "leaves": [LEAF]} for each in ("one", "two")]})
    corrections = [
        addition(
            tree,
            place,
            {"leaves": [{**LEAF, "source": "src-b"}], "nodes": [{"goal": f"new {place}", "leaves": [LEAF]}]},
        )
        for place in range(3)
    ]
    trees = []
    for order in permutations(corrections):
        grown = tree
        for each in order:
            assert each is not None
            grown = graft(grown, *each, TreeBounds(9, 5, SOURCES, most_rounds=2))
        trees.append(grown)
    assert all(each == trees[0] for each in trees)
    assert [node.goal for node in trees[0].nodes] == ["the goal", "one", "new 1", "two", "new 2", "new 0"]
