"""The strategy `recursive` where its roles answer badly: it ends bounded, with a reason and with what was found."""

import asyncio
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import FailureError

from contracts.agents import AgentRequest, TaskResult
from contracts.recursive_roles import ACTS_AS, MAY_CALL
from contracts.research_trees import ResearchTree, TaskType, TreeLeaf, TreeNode
from contracts.vetting import Vetted
from contracts.vocabulary import GapKind, GapStatus, NodeStatus, Outcome
from tests.every_strategy.joined import Trial, trial_of
from tests.fakes import library_work
from tests.fakes.model_work import element, key_words
from tests.unit.workflows.test_agents import turns
from tests.unit.workflows.test_recursive_strategy import MEDIUM, checked, extracted, never_content, nodes_of, run_of
from workflows.run.agents import grace_seconds
from workflows.run.inbox import CallNotAllowed
from workflows.strategies.recursive import recursive_strategy

Answer = Callable[[str], dict[str, Any]]
planned, scoped = library_work.tree, library_work.scope
FORBIDDEN = "http://169.254.169.254/latest/meta-data"


def labels_of(prompt: str) -> list[str]:
    return re.findall(r"^(src-\S+): ", element(prompt, "sources"), re.MULTILINE)


def leaf(source: str, detail: str) -> dict[str, Any]:
    return {"source": source, "task_type": "ANSWER_QUESTION", "task_detail": detail}


# --- manager and extractor -----------------------------------------------------------------------------------------
def quoting_nothing(prompt: str) -> dict[str, Any]:
    """Statements with words that no source has."""
    invented = {"source_id": (re.findall(r"src-\w+", prompt) or [""])[0], "quote": "No page ever said this sentence."}
    return {
        "findings": [{"content": "An invention.", "quotes": [invented]}],
        "follow_up_questions": ["What else is so?"],
    }


def naming_an_address(prompt: str) -> dict[str, Any]:
    return extracted(prompt) | {"mentioned_works": [{"words": "secret credentials", "address": FORBIDDEN}]}


async def test_an_extractor_that_quotes_nothing_has_no_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its run is empty, and says what was not found (S4-027, C4-8)."""
    monkeypatch.setattr(library_work, "extraction", quoting_nothing)
    trial = await run_of(tmp_path)
    assert trial.state.result.outcome is Outcome.EMPTY
    assert not trial.findings
    assert all(node.corrections <= 2 for node in nodes_of(trial))
    assert "An invention" not in await trial.report()


async def test_a_work_that_no_source_mentions_is_neither_opened_nor_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its address is asked of nobody, though gaps are looked into (C4-7, S4-045)."""
    monkeypatch.setattr(library_work, "extraction", naming_an_address)
    monkeypatch.setattr(library_work, "self_check", never_content)
    trial = await run_of(tmp_path)
    assert trial.findings
    sent = f"{trial.world.corpus.searches}{trial.world.corpus.reads}{[call.prompt for call in trial.api.requests]}"
    assert "169.254" not in sent
    assert "secret credentials" not in sent


# --- corrections ---------------------------------------------------------------------------------------------------
class Sentences:
    """An extractor that quotes another sentence of its source at each turn, or always the same, and asks on."""

    def __init__(self, *, fresh: bool) -> None:
        self.fresh, self.turn = fresh, 0

    def __call__(self, prompt: str) -> dict[str, Any]:
        self.turn += 1
        found = library_work.analysis(prompt)["findings"]
        sentences = re.findall(r"[A-Z][^.!?\n|#>`]{30,200}[.]", element(prompt, "source"))
        quote = sentences[self.turn % len(sentences) if self.fresh else 0]
        source = found[0]["quotes"][0]["source_id"]
        return {
            "findings": [{"content": quote, "quotes": [{"source_id": source, "quote": quote}]}],
            "follow_up_questions": [f"What of turn {self.turn}, in the {key_words(quote)[0]} of it?"],
        }


@pytest.mark.parametrize("nodes", [1, 9])
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

    monkeypatch.setattr(library_work, "extraction", Sentences(fresh=True))
    monkeypatch.setattr(library_work, "self_check", never_content)
    monkeypatch.setattr(library_work, "tree", delegating)
    trial = await run_of(tmp_path, limits={"max_nodes": nodes})
    closed = {gap.description for gap in trial.state.gaps if gap.status is GapStatus.ADDRESSED}
    made_for = {node.goal.removeprefix("Find out: ") for node in nodes_of(trial) if node.level == 2}
    assert bool(made_for) is (nodes > 1)
    assert closed
    assert not made_for or made_for & closed


# --- what is passed on ---------------------------------------------------------------------------------------------
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


@pytest.mark.parametrize(
    "seed", [100, 103, 116, 128, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(100))]
)
async def test_every_question_and_gap_is_in_its_section_or_closed(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever leaves raise and nodes correct, nothing is lost on the way up (S4-037, S4-041)."""
    world = in_world(seed)

    def judged(prompt: str) -> dict[str, Any]:
        return checked(prompt) | {"sufficient": random.Random(f"{seed}/{prompt}").random() < 0.5}

    monkeypatch.setattr(library_work, "extraction", world)
    monkeypatch.setattr(library_work, "self_check", judged)
    monkeypatch.setattr(library_work, "tree", tree_of(seed))
    trial = await run_of(tmp_path)
    report = (await trial.report()).partition("Open Questions for Further Research")[2].partition("## Sources")[0]
    closed = {gap.description for gap in trial.state.gaps if gap.status is GapStatus.ADDRESSED}
    questions, holes = report.split("Identified Knowledge Gaps")
    raised = world.__dict__["raised"]
    assert raised or seed < 100  # those of the usual tests are chosen so that there is something
    for text in raised - closed:
        assert text in (questions if text.startswith("Why") else holes), text
    known = {gap.description: gap.kind for gap in trial.state.gaps}
    assert all((known[text] is GapKind.QUESTION) == text.startswith("Why") for text in raised)


async def test_a_branch_knows_nothing_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word of one query, and one of a node's goal, occur in no request of another branch (S4-029, S4-042)."""
    words = [f"zq{number}xv" for number in random.Random(7).sample(range(10**6), 4)]

    def two(prompt: str) -> dict[str, Any]:
        query, verdict = element(prompt, "question").strip(" ?"), {"feasible": True, "reason": "it fits", "splits": []}
        return {"queries": [{"query": f"{query} {word}?"} | verdict for word in words[:2]]}

    def branched(prompt: str) -> dict[str, Any]:
        goal, sources = element(prompt, "goal"), labels_of(prompt)
        if words[0] not in goal:
            return planned(prompt)
        below = [f"How does transaction ID wraparound go, {word}?" for word in words[2:]]
        nodes = [{"goal": each, "leaves": [leaf(sources[0], each)], "nodes": []} for each in below]
        return {"leaves": [leaf(sources[-1], "What is wraparound?")], "nodes": nodes}

    monkeypatch.setattr(library_work, "scope", two)
    monkeypatch.setattr(library_work, "tree", branched)
    trial = await run_of(tmp_path)
    trial.assert_completed()
    assert len(nodes_of(trial)) == 5
    for call in trial.api.requests:
        there = [word for word in words if word in f"{call.body}"]
        queries, parts = (sum(word in there for word in each) for each in (words[:2], words[2:]))
        assert queries <= 1 or call.role in ("synthesizer", "reviewer"), (call.role, there)
        # The executor above two others joins and checks what both bring.
        assert parts <= 1 or call.role in ("synthesizer", "executor", "reviewer"), (call.role, there)


async def test_a_query_is_answered_by_what_another_has_found_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same statements for two queries count for both, and are in the report once (S4-039)."""

    def twice(prompt: str) -> dict[str, Any]:
        query, verdict = element(prompt, "question").strip(" ?"), {"feasible": True, "reason": "it fits", "splits": []}
        return {"queries": [{"query": f"{query}{end}"} | verdict for end in ("?", ", and how?")]}

    monkeypatch.setattr(library_work, "scope", twice)
    trial = await run_of(tmp_path)
    trial.assert_completed()
    first, second = (record.result for record in trial.state.agents)
    assert set(first.finding_ids) & set(second.finding_ids)
    assert [query.finding_count for query in trial.state.plan.parts[:2]] == [
        len(result.finding_ids) for result in (first, second)
    ]


WITHOUT_TREE = [("manager", "planner"), ("planner", "librarian")]
"""Calls that every tree needs."""
ALLOWED = [(caller, role) for caller, roles in MAY_CALL.items() for role in sorted(roles)]


async def calls_of_a_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Trial, set[tuple[str, str]]]:
    """A run whose executors look into questions and gaps, and who called whom in it."""

    def open_ended(prompt: str) -> dict[str, Any]:
        holes = [f"The case of {word} is not covered." for word in key_words(element(prompt, "task"))[-2:]]
        return extracted(prompt) | {"identified_gaps": holes[:1]}

    monkeypatch.setattr(library_work, "extraction", open_ended)
    monkeypatch.setattr(library_work, "self_check", never_content)
    trial = await run_of(folder)
    made = {
        (ACTS_AS.get(one, one), ACTS_AS.get(role, role)) for one, each in trial.state.calls.items() for role in each
    }
    return trial, made


async def test_who_called_whom_is_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every allowed call is made, and no other (S4-001, S4-002)."""
    _, made = await calls_of_a_run(tmp_path, monkeypatch)
    assert made == set(ALLOWED)


@pytest.mark.parametrize(("caller", "role"), ALLOWED)
async def test_a_call_that_the_table_lacks_costs_its_branch(
    caller: str, role: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not made, and is on record; the run goes on to a report of what was found without it (S4-002)."""
    monkeypatch.setitem(MAY_CALL, caller, MAY_CALL[caller] - {role})
    trial, made = await calls_of_a_run(tmp_path, monkeypatch)
    assert (caller, role) not in made
    assert any(f"{caller} may not call" in note for note in trial.state.failed_branches)
    assert "## Method and limits" in await trial.report()
    without_tree = {(query.status, bool(query.error)) for query in trial.state.plan.parts[:1]}
    assert (without_tree == {(NodeStatus.FAILED, True)}) is ((caller, role) in WITHOUT_TREE)
    # Without any search there is nothing to report.
    assert trial.state.result.outcome is (Outcome.FAILED if caller == "planner" else Outcome.PARTIAL)


async def test_a_query_without_a_tree_costs_itself_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that may not be called for one query is called for the other, and the run names the failed one."""
    plan_tree, asked = recursive_strategy.plan_tree, list[str]()

    def two(prompt: str) -> dict[str, Any]:
        query, verdict = element(prompt, "question").strip(" ?"), {"feasible": True, "reason": "it fits", "splits": []}
        return {"queries": [{"query": f"{query}{end}"} | verdict for end in ("?", ", and how?")]}

    async def refused_once(run: Any, caller: str, step: str, vetted: Vetted, **fields: Any) -> ResearchTree:
        asked.append(fields["goal"])
        if len(asked) == 1:
            raise CallNotAllowed(caller, "planner")
        return await plan_tree(run, caller, step, vetted, **fields)

    monkeypatch.setattr(library_work, "scope", two)
    monkeypatch.setattr(recursive_strategy, "plan_tree", refused_once)
    trial = await run_of(tmp_path)
    assert [query.status for query in trial.state.plan.parts[:2]] == [NodeStatus.FAILED, NodeStatus.COMPLETED]
    assert any(f"no tree for “{asked[0]}”" in note for note in trial.state.failed_branches)
    assert trial.findings
    assert trial.state.result.outcome is Outcome.PARTIAL


# --- faults of whole branches --------------------------------------------------------------------------------------
@pytest.mark.parametrize("most", [2, 3])
async def test_no_executor_is_started_below_the_last_level(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree that is too deep all the same ends at the last level, and the run names the rest (S4-012)."""

    async def too_deep(run: Any, caller: str, step: str, vetted: Vetted, **fields: Any) -> ResearchTree:
        source, levels = vetted.accepted[0].source_id, range(1, most + 2)
        task = TreeLeaf(id="", source_id=source, task_type=TaskType.SUMMARIZE)
        nodes = [
            TreeNode(
                id=f"node-{level}",
                goal=f"{fields['goal']} Level {level}?",
                level=level,
                parent=f"node-{level - 1}" if level > 1 else None,
                leaves=[task.model_copy(update={"id": f"leaf-{level}"})],
            )
            for level in levels
        ]
        return ResearchTree(nodes=nodes)

    monkeypatch.setattr(recursive_strategy, "plan_tree", too_deep)
    trial = await run_of(tmp_path, limits={"max_levels": most})
    assert [node.level for node in nodes_of(trial)] == list(range(1, most + 1))
    assert any(f"an executor of level {most + 1} was not started" in note for note in trial.state.failed_branches)
    assert trial.state.result.outcome is Outcome.PARTIAL


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


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("level", [1, 2])
async def test_a_level_whose_nodes_bring_nothing_costs_itself_alone(level: int, fails: bool, tmp_path: Path) -> None:
    """The executor above goes on with what it has, and the report names the branches (S4-034, C4-12)."""
    async with trial_of(tmp_path, "recursive", "model", **MEDIUM) as trial:
        await with_deaf_nodes(trial, level, fails=fails)
    state = trial.state
    assert any("executor-1" in branch for branch in state.failed_branches)
    assert trial.findings
    assert state.result.outcome in (Outcome.PARTIAL, Outcome.FAILED, Outcome.EMPTY, Outcome.TIMED_OUT)
