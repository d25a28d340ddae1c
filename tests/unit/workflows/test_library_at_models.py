"""From a need to findings of leaves: librarian, scanner, planner of trees and extractor over real activities."""

import re
from pathlib import Path
from typing import Any

import pytest

from activities.roles import run_role
from contracts.evidence import Finding
from contracts.notebooks import with_what_follows
from contracts.plan import PlanNode
from contracts.recursive_roles import EXTRACTOR, LIBRARIAN, SCANNER, TREE_PLANNER, ExtractInput
from contracts.research_trees import ResearchTree
from contracts.state import ResearchState
from contracts.strategies import declared_roles
from contracts.vetting import Vetted
from contracts.vocabulary import GapKind, NodeKind
from tests.fakes import library_work
from tests.fakes.messages_api import MessagesApi
from tests.fakes.world import World, model_world
from tests.unit.workflows.test_supervisor_strategy import QUESTION, begin
from workflows.phases.analysis import merge
from workflows.phases.role_inputs import extract_of
from workflows.phases.vetting import Vetting
from workflows.run.inbox import Inbox
from workflows.run.research_run import DONE_WITHOUT_MODEL, ResearchRun
from workflows.strategies.recursive.executor_strategy import plan_tree

NEW_ROLES = (LIBRARIAN, SCANNER, TREE_PLANNER, EXTRACTOR)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    roles = {role.name: role for role in (*declared_roles(), *NEW_ROLES)}
    monkeypatch.setattr(run_role, "declared_roles", lambda: tuple(roles.values()))


async def work(world: World) -> tuple[ResearchRun, Vetted, ResearchTree]:
    """Vet sources for the question, plan a tree over them, and have every leaf extracted."""
    run = ResearchRun(await begin(world), Inbox(), world.host())
    vetted = (await Vetting(run, {}, "planner", 8).carry_out([run.resolved.query]))[0]
    limits = run.resolved.limits.model_copy(update={"max_leaves": 3, "max_levels": 3})
    run.state.resolved = run.resolved.model_copy(update={"limits": limits})
    tree = await plan_tree(run, "manager", "tree", vetted, goal=run.resolved.query, most_nodes=4)
    for node in tree.nodes:
        for leaf in node.leaves:
            asked = ExtractInput(
                task_type=leaf.task_type,
                task_detail=leaf.task_detail,
                sub_query=PlanNode(id=leaf.id, text=leaf.task_detail or node.goal, expected_contribution=node.goal),
                sources=[extract_of(run.state.sources[leaf.source_id])],
                max_findings=5,
                source_characters=run.resolved.source_characters,
                documents_searched=run.state.documents_searched,
                term_documents=run.state.term_documents,
            )
            result = await run.ask(EXTRACTOR, f"extract/{leaf.id}", asked)
            at = PlanNode(id=leaf.id, text=asked.sub_query.text, kind=NodeKind.LEAF, needs_search=False)
            run.state.plan = run.state.plan.with_nodes(at)
            merge(run, at, with_what_follows(result, [leaf.source_id]))
    return run, vetted, tree


async def words_of(world: World, state: ResearchState, finding: Finding) -> list[str]:
    """Return the stored words of the passages of a finding."""
    passages = [state.evidence[name] for name in finding.evidence_ids]
    texts = [await world.content.get_text(state.sources[each.source_id].text) for each in passages]
    return [text[each.start : each.end] for text, each in zip(texts, passages, strict=True)]


@pytest.mark.parametrize("with_model", [True, False])
async def test_a_need_becomes_findings_of_leaves(tmp_path: Path, *, with_model: bool) -> None:
    """Every leaf has a vetted source, its findings have words of that source alone, with and without a model (S4-020, S4-025, S4-026)."""
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url) if with_model else World(tmp_path)
        run, vetted, tree = await work(world)
        state, leaves = run.state, {leaf.id: leaf for leaf in tree.leaves}
        accepted = {one.source_id for one in vetted.accepted}
        assert accepted
        assert {leaf.source_id for leaf in leaves.values()} <= accepted
        assert state.findings
        for finding in state.findings:
            assert finding.source_ids == [leaves[finding.sub_query_id or ""].source_id]
            for words in await words_of(world, state, finding):
                assert " ".join(finding.statement.rstrip("…").split()) in " ".join(words.split())
        assert sorted(world.corpus.reads) == sorted(set(world.corpus.reads)), "a leaf reads nothing"
        assert {source.url for source in state.sources.values()} == set(world.corpus.reads)
        assert state.failed_branches == state.degraded == []
        counts = api.counts()
        await world.close()
    scanned = len(vetted.accepted) + len(vetted.rejected)
    if with_model:
        expected = {"librarian": 1, "scanner": scanned, "tree_planner": 1, "extractor": len(leaves)}
        assert counts == expected
        assert len(tree.nodes) == 2
        questions = [gap for gap in state.gaps if gap.kind is GapKind.QUESTION]
        assert {gap.origin.removeprefix("sub_query:") for gap in questions} <= set(leaves)
        assert questions
    else:
        assert counts == {}
        assert [node.goal for node in tree.nodes] == [run.resolved.query]


LEAF = {"source": "src-unknown", "task_type": "SUMMARIZE", "task_detail": None}
DEEP = {"goal": "1", "nodes": [{"goal": "2", "nodes": [{"goal": "3", "nodes": [{"goal": "4", "leaves": [LEAF]}]}]}]}
BAD_TREES: dict[str, Any] = {
    "of five levels": {"nodes": [DEEP]},
    "of 500 leaves": {"leaves": [LEAF] * 500},
    "of unknown labels": {"leaves": [LEAF], "nodes": []},
    "of an address": {"leaves": [{**LEAF, "source": "https://example.org/"}]},
    "of a graph": {"nodes": [{"id": "a", "parent": "b", "goal": "x"}, {"id": "b", "parent": "a", "goal": "y"}]},
    "that is its own child": {"nodes": [{"goal": QUESTION, "leaves": [LEAF]}]},
    "without anything": {"leaves": [], "nodes": []},
    "in words": {"plan": "First read everything, then think."},
}


@pytest.mark.parametrize("kind", BAD_TREES)
async def test_a_bad_tree_is_repaired_once_and_then_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Refused in words with its path; after a second one there is one executor with a leaf per source (S4-023, C4-6)."""
    monkeypatch.setattr(library_work, "tree", lambda _: BAD_TREES[kind])
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        run, vetted, tree = await work(world)
        prompts = [request.prompt for request in api.requests if request.role == TREE_PLANNER.name]
        await world.close()
    assert len(prompts) == 2
    assert re.search(r"(nodes|leaves)[.\d a-z_]*: |\$: ", prompts[1].removeprefix(prompts[0]))
    assert [(node.goal, node.level) for node in tree.nodes] == [(run.resolved.query, 1)]
    assert [leaf.source_id for leaf in tree.leaves] == [one.source_id for one in vetted.accepted][:3]
    assert run.state.degraded == [f"tree_planner: {DONE_WITHOUT_MODEL}"]
    assert run.state.findings


async def test_a_second_answer_that_is_good_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planner gets the reasons and mends its tree: nothing is degraded (C4-6)."""
    answers, good = iter([BAD_TREES["of unknown labels"]]), library_work.tree
    monkeypatch.setattr(library_work, "tree", lambda prompt: next(answers, None) or good(prompt))
    async with MessagesApi() as api:
        world = model_world(tmp_path, api.base_url)
        run, _, tree = await work(world)
        await world.close()
    assert len(tree.nodes) == 2
    assert run.state.degraded == []
