"""The strategy `recursive` through whole runs: who calls whom, corrections that end, and roles that answer badly."""

import asyncio
import random
import re
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from temporalio.exceptions import FailureError

from contracts.agents import AgentRequest, NodeEnd, TaskResult
from contracts.recursive_roles import ACTS_AS, MAY_CALL, may_call
from contracts.research_trees import ResearchTree, TaskType, TreeLeaf, TreeNode
from contracts.vetting import Vetted
from contracts.vocabulary import GapKind, GapStatus, NodeStatus, Outcome, StopReason
from tests.every_strategy.joined import Trial, resume, trial_of, undisturbed
from tests.fakes import library_work, model_work, states
from tests.fakes.host import InProcessHost
from tests.fakes.model_work import element, gaps_asked_about, key_words, sources_of, unmarked
from tests.unit.workflows.test_agents import turns
from workflows.run.agents import grace_seconds
from workflows.run.inbox import CallNotAllowed, Inbox
from workflows.run.research_run import DONE_WITHOUT_MODEL, ResearchRun
from workflows.strategies.orchestrator import agent_strategy
from workflows.strategies.recursive import executor_strategy, recursive_strategy
from workflows.strategies.units import carry_out

Answer = Callable[[str], dict[str, Any]]
MEDIUM: dict[str, Any] = {"depth": "medium"}
FEW: dict[str, Any] = {"limits": {"max_corrections": 1, "max_levels": 2, "max_sources": 2}}
"""For a run in which every role is asked, a few times."""
FORBIDDEN = "http://169.254.169.254/latest/meta-data"
checked, extracted, planned = library_work.self_check, library_work.extraction, library_work.tree


def answers(monkeypatch: pytest.MonkeyPatch, **works: Answer) -> None:
    """Have roles of the model answer like this."""
    for name, work in works.items():
        monkeypatch.setattr(library_work, name, work)


def never_content(prompt: str) -> dict[str, Any]:
    return checked(prompt) | {"sufficient": False}


def endless(prompt: str) -> dict[str, Any]:
    """An extractor that asks on and on: each answer raises a question of its own."""
    asked = element(prompt, "task") or element(prompt, "goal") or prompt[-200:]
    return extracted(prompt) | {"follow_up_questions": [f"And what of the {len(asked)} words about it, exactly?"]}


async def run_of(folder: Path, **fields: Any) -> Trial:
    return await undisturbed(folder, "recursive", "model", **(MEDIUM | fields))


def nodes_of(trial: Trial) -> list[Any]:
    """Every node of the tree, from the results of its agents."""
    found, waiting = [], [record.result.node for record in trial.state.work.agents if record.result]
    while waiting:
        node = waiting.pop(0)
        found.append(node)
        waiting += node.below
    return found


def labels_of(prompt: str) -> list[str]:
    return re.findall(r"^(src-\S+): ", element(prompt, "sources"), re.MULTILINE)


def leaf(source: str, detail: str) -> dict[str, Any]:
    return {"source": source, "task_type": "ANSWER_QUESTION", "task_detail": detail}


def two_queries(first: str, second: str) -> Answer:
    """A manager that makes two queries of the question, by their ends."""

    def scope(prompt: str) -> dict[str, Any]:
        query, verdict = element(prompt, "question").strip(" ?"), {"feasible": True, "reason": "it fits", "splits": []}
        return {"queries": [{"query": f"{query}{end}"} | verdict for end in (first, second)]}

    return scope


# --- trees -----------------------------------------------------------------------------------------------------------
async def test_a_query_is_answered_by_a_tree_of_executors(tmp_path: Path) -> None:
    """From manager to planner, librarian and extractor, and executors below executors; nobody else calls anybody, and a
    leaf states what its own source says (S4-001, S4-002, S4-009, S4-019, S4-029, S4-030, S4-042).
    """
    trial = await run_of(tmp_path)
    trial.assert_completed()
    assert [node.level for node in nodes_of(trial)] == [1, 2]
    called = {(caller, role) for caller, roles in trial.state.accounts.calls.items() for role in roles}
    assert all(may_call(caller, role) for caller, role in called)
    assert {caller for caller, _ in called} == {caller for caller, roles in MAY_CALL.items() if roles}
    sources = {node.id: node.source_id for node in trial.state.work.plan.nodes}
    assert trial.state.evidence.findings
    assert all(finding.source_ids == [sources[finding.sub_query_id]] for finding in trial.state.evidence.findings)
    assert len(trial.world.corpus.reads) == len(set(trial.world.corpus.reads)), "a leaf reads nothing"


LEAF = {"source": "src-unknown", "task_type": "SUMMARIZE", "task_detail": None}
BAD_TREES: dict[str, Any] = {
    "of unknown labels": {"leaves": [LEAF], "nodes": []},
    "of a graph": {"nodes": [{"id": "a", "parent": "b", "goal": "x"}, {"id": "b", "parent": "a", "goal": "y"}]},
    "in words": {"plan": "First read everything, then think."},
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("kind", "times"), [("of unknown labels", 1), *((kind, 2) for kind in BAD_TREES)])
async def test_a_bad_tree_is_repaired_once_and_then_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, times: int
) -> None:
    """Refused in words with its path; a good second one is taken, after another bad one there is one executor with a
    leaf per source (S4-023, C4-6).
    """
    bad = iter([BAD_TREES[kind]] * times)
    answers(monkeypatch, tree=lambda prompt: next(bad, None) or planned(prompt))
    trial = await run_of(tmp_path)
    prompts = [request.prompt for request in trial.api.requests if request.role == "tree_planner"]
    assert len(prompts) == 2
    assert re.search(r"(nodes|leaves)[.\d a-z_]*: |\$: ", prompts[1].removeprefix(prompts[0]))
    assert [node.level for node in nodes_of(trial)] == ([1, 2] if times == 1 else [1])
    assert trial.state.work.degraded == ([] if times == 1 else [f"tree_planner: {DONE_WITHOUT_MODEL}"])
    assert trial.findings


async def test_an_executor_that_is_never_content_corrects_itself_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node corrects itself as often as its limit says, or until a correction brings nothing; none is below level three
    (S4-011, S4-033, S4-034, C4-1, C4-2).
    """
    answers(monkeypatch, self_check=never_content, extraction=endless)
    trial = await run_of(tmp_path)
    nodes = nodes_of(trial)
    assert nodes
    assert all(1 <= node.corrections <= 2 for node in nodes)
    assert all(node.end.value in ("corrections_used", "no_progress") for node in nodes)
    assert max(node.level for node in nodes) <= 3
    assert trial.state.work.result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL)


async def test_gaps_that_were_not_looked_into_are_not_called_uncloseable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where every executor finds its result sufficient the run says that gaps were left, and a source that was scanned
    and has no leaf counts as not analyzed.
    """
    answers(monkeypatch, tree=lambda prompt: {"leaves": [leaf(labels_of(prompt)[0], "What is it?")], "nodes": []})
    trial = await run_of(tmp_path)
    assert trial.state.evidence.unaddressed_gaps()
    assert trial.state.work.result.stop_reason is StopReason.COVERAGE_SUFFICIENT
    unread = [source for source in trial.state.evidence.readable_sources() if not source.analyzed]
    assert unread
    report = await trial.report()
    assert "judged not to be worth another iteration" in report
    assert "read but not analyzed" in report


async def test_a_request_that_no_executor_saw_is_not_called_unimportant(tmp_path: Path) -> None:
    """What a person asks for after the authorization changes no tree; the report names it, and nobody judged it."""
    async with trial_of(tmp_path, "recursive", "model", **MEDIUM) as trial:
        trial.host.acts["trees", 1] = partial(trial.steer, "And the locks?")
        await trial.conduct()
    assert trial.state.work.result.stop_reason is StopReason.NO_ACTIONABLE_GAPS
    assert "Asked while running: And the locks?" in await trial.report()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("most", [10, 12, 15])
async def test_executors_that_met_a_limit_make_the_run_partial(most: int, tmp_path: Path) -> None:
    """An executor that could not check its result does not complete its run: the limit is named, and how to raise it;
    the rules that call every result sufficient do not check in its place.
    """
    trial = await run_of(tmp_path, limits={"max_model_calls": most})
    result = trial.state.work.result
    assert (result.outcome, result.stop_reason) == (Outcome.PARTIAL, StopReason.BUDGET_CALLS)
    assert "--set limits.max_model_calls=N" in result.advice
    assert trial.findings
    checks = sum(request.role == "executor" for request in trial.api.requests)
    assert [node.end for node in nodes_of(trial)].count(NodeEnd.SUFFICIENT) == checks
    assert not [note for note in trial.state.work.degraded if "done without the model" in note]


async def test_a_limit_met_below_an_executor_is_met_by_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor that could check its result has unfinished work where one that it started met a limit; a resume with a
    higher limit does it.
    """

    def two_executors(prompt: str) -> dict[str, Any]:
        labels = labels_of(prompt)
        many = {"goal": "What is all of it?", "leaves": [leaf(label, "What is it?") for label in labels]}
        return {"leaves": [], "nodes": [many, {"goal": "What is one?", "leaves": [leaf(labels[0], "What is one?")]}]}

    answers(monkeypatch, tree=two_executors)
    async with trial_of(tmp_path, "recursive", "model", **MEDIUM, limits={"max_model_calls": 20}) as trial:
        await trial.conduct()
        later = await resume(trial, limits={"max_model_calls": 60})
    assert "executor-1: executor-1-1: the limit of model calls was reached" in trial.state.work.degraded
    assert nodes_of(trial)[2].end is NodeEnd.SUFFICIENT
    result = trial.state.work.result
    assert (result.outcome, result.stop_reason) == (Outcome.PARTIAL, StopReason.BUDGET_CALLS)
    assert "--set limits.max_model_calls=N" in result.advice
    assert {node.end for node in nodes_of(later)} == {NodeEnd.SUFFICIENT}
    assert later.state.work.result.outcome is Outcome.COMPLETED


async def test_an_insufficient_result_is_not_called_sufficient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor whose gaps cannot be closed has no correction, and its node says why."""

    def closing_nothing(prompt: str) -> dict[str, Any]:
        answer = never_content(prompt)
        return answer | {"gaps": [gap | {"addressable": False} for gap in answer["gaps"]]}

    answers(monkeypatch, self_check=closing_nothing)
    trial = await run_of(tmp_path)
    assert {(node.end, node.corrections) for node in nodes_of(trial)} == {(NodeEnd.NOT_CLOSABLE, 0)}
    assert trial.state.work.result.stop_reason is StopReason.NO_ACTIONABLE_GAPS
    report = await trial.report()
    assert "nothing that is missing could be closed" in report
    assert "the result was sufficient" not in report


@pytest.mark.soak
async def test_the_units_of_an_executor_have_labels_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit has the label of its strategy, after a correction too; a unit of the same name elsewhere has its name."""
    labels = dict[str, str]()

    async def noted(*given: Any, **fields: Any) -> Any:
        labels[given[1]] = fields["label"]
        return await carry_out(*given, **fields)

    answers(monkeypatch, self_check=never_content)
    monkeypatch.setattr(executor_strategy, "carry_out", noted)
    trial = await run_of(tmp_path)
    first = {"work": "read", "report": "join", "check": "check", "correction": "correct"}
    second = {f"{unit}-2": label for unit, label in first.items() if unit != "correction"}
    assert labels.items() >= (first | second).items()
    await carry_out(trial.run, "report", AsyncMock(), str)
    assert trial.state.people.events[-2].data["label"] == "report"


def quoting_on(*, answering: bool = True) -> Answer:
    """An extractor that quotes another sentence of its source at each turn, and asks on.

    Without `answering`, it calls no finding an answer to a gap.
    """
    turns_taken = count(1)

    def answer(prompt: str) -> dict[str, Any]:
        turn, source = next(turns_taken), library_work.analysis(prompt)["findings"][0]["quotes"][0]["source_id"]
        sentences = re.findall(r"[A-Z][^.!?\n|#>`]{30,200}[.]", element(prompt, "source"))
        quote = sentences[turn % len(sentences)]
        finding: dict[str, Any] = {"content": quote, "quotes": [{"source_id": source, "quote": quote}]}
        finding["answers_gaps"] = gaps_asked_about(prompt) if answering else []
        question = f"What of turn {turn}, in the {key_words(quote)[0]} of it?"
        return {"findings": [finding], "follow_up_questions": [question]}

    return answer


async def test_no_gap_is_closed_because_some_finding_came_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves and executors that were made for a gap bring findings; where no reader calls one an answer, it is open."""

    def delegating(prompt: str) -> dict[str, Any]:
        goal = element(prompt, "goal")
        own = [leaf(labels_of(prompt)[-1], f"{goal}, in other words?")]
        if not goal.startswith("What of turn"):
            return {"leaves": own, "nodes": []}
        return {"leaves": [], "nodes": [{"goal": f"Find out: {goal}", "leaves": own, "nodes": []}]}

    answers(monkeypatch, extraction=quoting_on(answering=False), self_check=never_content, tree=delegating)
    trial = await run_of(tmp_path, limits={"max_nodes": 4})
    below = [node for node in nodes_of(trial) if node.level == 2]
    assert below
    assert any(finding.sub_query_id for finding in trial.state.evidence.findings)
    assert {gap.status for gap in trial.state.evidence.gaps if gap.kind is GapKind.QUESTION} == {GapStatus.OPEN}
    assert not any(node.answered_by for node in below)


async def test_a_gap_is_looked_for_in_pages_already_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor that names passages of read pages gets their sections read for the gap, and nothing is searched."""
    checks, read = list[str](), list[str]()

    def looking_back(prompt: str) -> dict[str, Any]:
        checks.append(prompt)
        gaps = re.findall(r"^(gap-[\w-]+): (?:.*)passages (\d+)", element(unmarked(prompt), "gaps"), re.MULTILINE)
        judged = [{"gap_id": gap, "read_further": [int(number)], "addressable": False} for gap, number in gaps]
        return {"sufficient": False, "reason": "it lacks something", "gaps": judged}

    def reading(prompt: str) -> dict[str, Any]:
        read.append(prompt)
        return extracted(prompt) | {"follow_up_questions": [], "identified_gaps": ["how often tables are vacuumed"]}

    answers(monkeypatch, self_check=looking_back, extraction=reading)
    trial = await run_of(tmp_path)
    assert any("passages 1" in prompt for prompt in checks)
    again = [prompt for prompt in read if "were chosen because they may serve the task" in prompt]
    assert again
    assert all("how often tables are vacuumed" in element(unmarked(prompt), "task") for prompt in again)
    asked = {prompt for request in trial.api.requests if request.role == "librarian" for prompt in [request.prompt]}
    assert not any("how often tables are vacuumed" in element(unmarked(prompt), "need") for prompt in asked)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("nodes", [pytest.param(1, marks=pytest.mark.soak), 4])
async def test_a_question_is_closed_by_the_executor_that_was_made_for_it(
    nodes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the limits have no room for another executor, its leaves belong to the one that asked (S4-033, C4-2)."""

    def delegating(prompt: str) -> dict[str, Any]:
        goal = element(prompt, "goal")
        own = [leaf(labels_of(prompt)[-1], f"{goal}, in other words?")]
        if not goal.startswith("What of turn"):
            return {"leaves": own, "nodes": []}
        return {"leaves": [], "nodes": [{"goal": f"Find out: {goal}", "leaves": own, "nodes": []}]}

    answers(monkeypatch, extraction=quoting_on(), self_check=never_content, tree=delegating)
    trial = await run_of(tmp_path, limits={"max_nodes": nodes})
    closed = {gap.description for gap in trial.state.evidence.gaps if gap.status is GapStatus.ADDRESSED}
    made_for = {node.goal.removeprefix("Find out: ") for node in nodes_of(trial) if node.level == 2}
    assert bool(made_for) is (nodes > 1)
    assert closed
    assert not made_for or made_for & closed


@pytest.mark.one_in(3)
@pytest.mark.parametrize("most", [2, 3])
async def test_no_executor_is_started_below_the_last_level(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree that is too deep all the same ends at the last level, and the run names the rest (S4-012)."""

    async def too_deep(run: Any, caller: str, step: str, vetted: Vetted, **fields: Any) -> ResearchTree:
        nodes, parent = list[TreeNode](), None
        for level in range(1, most + 2):
            goal, source = f"{fields['goal']} Level {level}?", vetted.accepted[0].source_id
            task = TreeLeaf(id=f"leaf-{level}", source_id=source, task_type=TaskType.SUMMARIZE)
            nodes.append(TreeNode(id=f"node-{level}", goal=goal, level=level, parent=parent, leaves=[task]))
            parent = f"node-{level}"
        return ResearchTree(nodes=nodes)

    monkeypatch.setattr(recursive_strategy, "plan_tree", too_deep)
    trial = await run_of(tmp_path, limits={"max_levels": most})
    assert [node.level for node in nodes_of(trial)] == list(range(1, most + 1))
    assert any(f"an executor of level {most + 1} was not started" in note for note in trial.state.work.failed_branches)
    assert trial.state.work.result.outcome is Outcome.PARTIAL


async def test_a_query_without_a_credible_source_has_no_leaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its gap says so, nothing is invented, and a run with no other query is empty (C4-11)."""
    reject = {"credibility": "low", "relevance": "low", "reason": "an advertisement", "decision": "reject"}

    def scan(prompt: str) -> dict[str, Any]:
        return {"assessments": [reject | {"source_id": name} for name, _, _ in sources_of(prompt)]}

    answers(monkeypatch, examination=scan)
    trial = await run_of(tmp_path)
    assert trial.state.work.result.outcome is Outcome.EMPTY
    assert not trial.state.work.agents
    assert any("No credible source" in line for line in trial.state.work.result.limitations)


def naming_an_address(prompt: str) -> dict[str, Any]:
    return extracted(prompt) | {"mentioned_works": [{"words": "secret credentials", "address": FORBIDDEN}]}


async def test_a_work_that_no_source_mentions_is_neither_opened_nor_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address is asked of nobody, though gaps are looked into (C4-7, S4-045)."""
    answers(monkeypatch, extraction=naming_an_address, self_check=never_content)
    trial = await run_of(tmp_path, **FEW)
    assert trial.findings
    sent = f"{trial.world.corpus.searches}{trial.world.corpus.reads}{[call.prompt for call in trial.api.requests]}"
    assert "169.254" not in sent
    assert "secret credentials" not in sent


# --- what is passed on -----------------------------------------------------------------------------------------------
def in_world(seed: int) -> Answer:
    """An extractor that raises questions and gaps by chance."""

    def answer(prompt: str) -> dict[str, Any]:
        # Other parts of a prompt differ from run to run.
        chance = random.Random(f"{seed}/{element(prompt, 'goal')}/{element(prompt, 'task')}")
        drawn = [f"Why {chance.randrange(10**9)}?" for _ in range(chance.randint(0, 3))]
        holes = [f"The case {chance.randrange(10**9)} is not covered." for _ in range(chance.randint(0, 3))]
        raised.update(drawn, holes)
        return extracted(prompt) | {"follow_up_questions": drawn, "identified_gaps": holes}

    raised: set[str] = answer.__dict__.setdefault("raised", set())
    return answer


def tree_of(seed: int) -> Answer:
    """A tree by chance, of up to three levels."""

    def answer(prompt: str) -> dict[str, Any]:
        chance, labels = random.Random(f"{seed}/{element(prompt, 'goal')}"), labels_of(prompt)
        left = [int((re.findall(r"at most (\d+) executors", prompt) or ["1"])[-1]) - 1]

        def grow(goal: str, level: int) -> dict[str, Any]:
            leaves = [leaf(chance.choice(labels), f"point {chance.random()}?") for _ in range(chance.randint(1, 3))]
            below = []
            while level < 3 and left[0] > 0 and chance.random() < 0.6:
                left[0] -= 1
                below.append(grow(f"How does vacuum, part {chance.random()}, work?", level + 1))
            return {"goal": goal, "leaves": leaves, "nodes": below}

        return grow("the goal itself", 1)

    return answer


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "seed", [100, 103, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (116, 128, *range(100)))]
)
async def test_every_question_and_gap_is_in_its_section_or_closed(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever leaves raise and nodes correct, nothing is lost on the way up, and each gap names its leaf
    (S4-037, S4-041).
    """
    world = in_world(seed)

    def judged(prompt: str) -> dict[str, Any]:
        return checked(prompt) | {"sufficient": random.Random(f"{seed}/{prompt}").random() < 0.5}

    answers(monkeypatch, extraction=world, self_check=judged, tree=tree_of(seed))
    trial = await run_of(tmp_path)
    report = (await trial.report()).partition("Open Questions for Further Research")[2].partition("## Sources")[0]
    closed = {gap.description for gap in trial.state.evidence.gaps if gap.status is GapStatus.ADDRESSED}
    questions, holes = report.split("Identified Knowledge Gaps")
    raised = world.__dict__["raised"]
    assert raised or seed < 100  # those of the usual tests are chosen so that there is something
    for text in raised - closed:
        assert text in (questions if text.startswith("Why") else holes), text
    known = {gap.description: gap.kind for gap in trial.state.evidence.gaps}
    leaves = {node.id for node in trial.state.work.plan.nodes if node.task_type}
    assert {gap.origin.removeprefix("sub_query:") for gap in trial.state.evidence.gaps} <= leaves
    assert all((known[text] is GapKind.QUESTION) == text.startswith("Why") for text in raised)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("first", ["leaf", "executor"])
async def test_what_is_done_first_changes_no_order(tmp_path: Path, first: str) -> None:
    """Findings and gaps of leaves are before those of the executor below, whichever brings its own first."""
    async with trial_of(tmp_path, "recursive", "model", **MEDIUM) as trial:
        extract, work, ended = trial.host.implementations["extract_source"], trial.host.run_agent, asyncio.Event()

        async def extract_in_turn(request: Any) -> Any:
            if request.operation.startswith("executor-1/"):
                await (ended.wait() if first == "executor" else asyncio.sleep(0))
                answer = await extract(request)
                ended.set()
                return answer
            return await extract(request)

        async def work_in_turn(request: Any, workflow_id: str) -> Any:
            if request.task.level == 1:
                return await work(request, workflow_id)
            await (ended.wait() if first == "leaf" else asyncio.sleep(0))
            answer = await work(request, workflow_id)
            ended.set()
            return answer

        trial.host.implementations["extract_source"], trial.host.run_agent = extract_in_turn, work_in_turn
        await trial.conduct()
    depths = {node.id: node.depth for node in trial.state.work.plan.nodes}
    found = [depths[finding.sub_query_id] for finding in trial.state.evidence.findings]
    assert found == sorted(found)
    assert len(set(found)) == 2
    raised = [depths[gap.origin.removeprefix("sub_query:")] for gap in trial.state.evidence.gaps]
    assert raised == sorted(raised)


async def test_a_branch_knows_nothing_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word of one query, and one of a node's goal, occur in no request of another branch (S4-029, S4-042)."""
    words = [f"zq{number}xv" for number in random.Random(7).sample(range(10**6), 4)]

    def branched(prompt: str) -> dict[str, Any]:
        goal, sources = element(prompt, "goal"), labels_of(prompt)
        if words[0] not in goal:
            return planned(prompt)
        below = [f"How does transaction ID wraparound go, {word}?" for word in words[2:]]
        nodes = [{"goal": each, "leaves": [leaf(sources[0], each)], "nodes": []} for each in below]
        return {"leaves": [leaf(sources[-1], "What is wraparound?")], "nodes": nodes}

    answers(monkeypatch, scope=two_queries(*(f" {word}?" for word in words[:2])), tree=branched)
    trial = await run_of(tmp_path)
    trial.assert_completed()
    assert len(nodes_of(trial)) == 5
    branches = [call for call in trial.api.requests if model_work.LAST_LOOK not in call.prompt]
    for call in branches:
        there = [word for word in words if word in f"{call.body}"]
        queries, parts = (sum(word in there for word in each) for each in (words[:2], words[2:]))
        assert queries <= 1 or call.role in ("synthesizer", "reviewer"), (call.role, there)
        # The executor above two others joins and checks what both bring.
        assert parts <= 1 or call.role in ("synthesizer", "executor", "reviewer"), (call.role, there)


async def test_a_query_is_answered_by_what_another_has_found_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same statements for two queries count for both, and are in the report once (S4-039)."""
    answers(monkeypatch, scope=two_queries("?", ", and how?"))
    trial = await run_of(tmp_path)
    trial.assert_completed()
    first, second = (record.result for record in trial.state.work.agents)
    assert set(first.finding_ids) & set(second.finding_ids)
    assert [query.finding_count for query in trial.state.work.plan.parts[:2]] == [
        len(result.finding_ids) for result in (first, second)
    ]


# --- who calls whom --------------------------------------------------------------------------------------------------
WITHOUT_TREE = [("manager", "planner"), ("planner", "librarian")]
"""Calls that every tree needs."""
WITHOUT_FINDINGS = [*WITHOUT_TREE, ("executor", "extractor")]
"""Calls that every finding needs."""
ALLOWED = [(caller, role) for caller, roles in MAY_CALL.items() for role in sorted(roles)]


async def calls_of_a_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Trial, set[tuple[str, str]]]:
    """A run whose executors look into questions and gaps, and who called whom in it."""

    def open_ended(prompt: str) -> dict[str, Any]:
        holes = [f"The case of {word} is not covered." for word in key_words(element(prompt, "task"))[-2:]]
        return extracted(prompt) | {"identified_gaps": holes[:1]}

    answers(monkeypatch, extraction=open_ended, self_check=never_content)
    trial = await run_of(folder, **FEW)
    made = {
        (ACTS_AS.get(one, one), ACTS_AS.get(role, role))
        for one, each in trial.state.accounts.calls.items()
        for role in each
    }
    return trial, made


async def test_who_called_whom_is_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every allowed call is made, and no other (S4-001, S4-002)."""
    _, made = await calls_of_a_run(tmp_path, monkeypatch)
    assert made == set(ALLOWED)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("caller", "role"),
    [pytest.param(*call, marks=pytest.mark.soak if number % 4 else ()) for number, call in enumerate(ALLOWED)],
)
async def test_a_call_that_the_table_lacks_costs_its_branch(
    caller: str, role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not made, and is on record; the run reports what was found without it, and what ended its work (S4-002)."""
    monkeypatch.setitem(MAY_CALL, caller, MAY_CALL[caller] - {role})
    trial, made = await calls_of_a_run(tmp_path, monkeypatch)
    assert (caller, role) not in made
    assert any(f"{caller} may not call" in note for note in trial.state.work.failed_branches)
    ended = trial.state.work.result.stop_reason
    assert (ended is StopReason.CALL_NOT_ALLOWED) is (caller == "manager" or (caller, role) in WITHOUT_FINDINGS)
    assert ended not in (StopReason.INTERNAL_ERROR, StopReason.PROVIDER_OUTAGE)
    assert "## Method and limits" in await trial.report()
    without_tree = {(query.status, bool(query.error)) for query in trial.state.work.plan.parts[:1]}
    assert (without_tree == {(NodeStatus.FAILED, True)}) is ((caller, role) in WITHOUT_TREE)
    # Without any search there is nothing to report.
    assert trial.state.work.result.outcome is (Outcome.FAILED if caller == "planner" else Outcome.PARTIAL)


async def test_a_query_without_a_tree_costs_itself_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that may not be called for one query is called for the other, and the run names the failed one."""
    plan_tree, asked = recursive_strategy.plan_tree, list[str]()

    async def refused_once(run: Any, caller: str, step: str, vetted: Vetted, **fields: Any) -> ResearchTree:
        asked.append(fields["goal"])
        if len(asked) == 1:
            raise CallNotAllowed(caller, "planner")
        return await plan_tree(run, caller, step, vetted, **fields)

    answers(monkeypatch, scope=two_queries("?", ", and how?"))
    monkeypatch.setattr(recursive_strategy, "plan_tree", refused_once)
    trial = await run_of(tmp_path)
    assert [query.status for query in trial.state.work.plan.parts[:2]] == [NodeStatus.FAILED, NodeStatus.COMPLETED]
    assert any(f"no tree for “{asked[0]}”" in note for note in trial.state.work.failed_branches)
    assert trial.findings
    assert trial.state.work.result.outcome is Outcome.PARTIAL


# --- faults of whole branches ----------------------------------------------------------------------------------------
async def with_deaf_nodes(trial: Trial, level: int, *, fails: bool) -> None:
    """Conduct a run whose executors of a level fail, or never answer and are not waited for any longer."""
    usual, asked = trial.host.run_agent, list[AgentRequest]()

    async def deaf(request: AgentRequest, workflow_id: str) -> TaskResult:
        if request.task.level != level:
            return await usual(request, workflow_id)
        asked.append(request)
        if fails:
            raise FailureError("its workers are gone")
        return await asyncio.Event().wait()

    trial.host.run_agent = deaf
    trial.start()
    while not asked and not trial.task.done():
        await asyncio.sleep(0.01)
    if not fails:
        await turns()
        await trial.host.advance(asked[0].deadline_at - trial.host.now().timestamp() + grace_seconds(level - 1) + 0.1)
    await trial.task


@pytest.mark.one_in(4)
@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("level", [1, 2])
async def test_a_level_whose_nodes_bring_nothing_costs_itself_alone(level: int, fails: bool, tmp_path: Path) -> None:
    """The executor above goes on with what it has, and the report names the branches (S4-034, C4-12)."""
    async with trial_of(tmp_path, "recursive", "model", **MEDIUM) as trial:
        await with_deaf_nodes(trial, level, fails=fails)
    state = trial.state
    assert any("executor-1" in branch for branch in state.work.failed_branches)
    assert trial.findings
    assert state.work.result.outcome in (Outcome.PARTIAL, Outcome.FAILED, Outcome.EMPTY, Outcome.TIMED_OUT)


# --- sentences of agents that found nothing ----------------------------------------------------------------------------
GOAL = "how vacuum freezes rows"
LEAF = TreeLeaf(id="leaf-1", source_id="src-1", task_type=TaskType.ANSWER_QUESTION, task_detail="When does it run?")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("done", "fields", "summary", "gaps"),
    [
        (
            ["leaf-1"],
            {},
            "1 task, 0 findings: nothing was found",
            [f"Nothing in the vetted sources answers “{GOAL}”."],
        ),
        ([], {}, "0 tasks, 0 findings: nothing was found", ["Not looked into to its end: When does it run?"]),
        (["leaf-1"], {"gaps": [states.gap("no date")]}, "1 task, 0 findings: nothing was found", ["no date"]),
        (
            ["leaf-1"],
            {"findings": [states.finding("It freezes rows.")]},
            "1 task, 1 finding: It freezes rows.",
            [],
        ),
    ],
)
async def test_an_executor_sums_up_in_whole_sentences(
    done: list[str], fields: dict[str, Any], summary: str, gaps: list[str]
) -> None:
    """With a finding by its first one, without any by saying so; what stays open is said once, word for word (S4-041)."""
    tree = ResearchTree(nodes=[TreeNode(id="node-1", goal=GOAL, leaves=[LEAF])])
    position = executor_strategy.ExecutorPosition(strategy="executor", tree=tree, done=done)
    state = states.state(**({"findings": [], "gaps": []} | fields), draft=None, position=position)
    run = ResearchRun(state, Inbox(), InProcessHost({}))
    assert await executor_strategy.ExecutorStrategy().conclude(run) == summary
    assert [gap.description for gap in state.evidence.unaddressed_gaps()] == gaps


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("fields", "summary"),
    [
        ({}, "0 pages read, 0 findings: nothing was found"),
        ({"finished": "it called no tool"}, "0 pages read, 0 findings (it called no tool): nothing was found"),
        ({"finished": "it has reported", "open_questions": []}, "0 pages read, 0 findings: nothing was found"),
    ],
)
async def test_an_agent_without_findings_says_so(fields: dict[str, Any], summary: str) -> None:
    """And why it stopped, unless it reported by itself; the orchestrator is shown this sentence."""
    position = agent_strategy.AgentPosition(strategy="agent", **fields)
    state = states.state(findings=[], gaps=[], sources={}, draft=None, position=position)
    run = ResearchRun(state, Inbox(), InProcessHost({}))
    assert await agent_strategy.AgentStrategy().conclude(run) == summary
