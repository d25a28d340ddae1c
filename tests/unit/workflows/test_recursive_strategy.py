"""The strategy `recursive` through whole runs: who calls whom, corrections that end, branches that know nothing of others."""

import asyncio
import re
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from contracts.recursive_roles import MAY_CALL, may_call
from contracts.vocabulary import Outcome
from tests.every_strategy.joined import Trial, trial_of
from tests.fakes import library_work
from tests.fakes.model_work import element
from workflows.strategies.recursive import executor_strategy
from workflows.strategies.units import carry_out

MEDIUM: dict[str, Any] = {"depth": "medium"}
checked, extracted = library_work.self_check, library_work.extraction


def never_content(prompt: str) -> dict[str, Any]:
    return checked(prompt) | {"sufficient": False}


def endless(prompt: str) -> dict[str, Any]:
    """An extractor that asks on and on: each answer raises a question of its own."""
    asked = element(prompt, "task") or element(prompt, "goal") or prompt[-200:]
    return extracted(prompt) | {"follow_up_questions": [f"And what of the {len(asked)} words about it, exactly?"]}


async def run_of(folder: Path, **fields: Any) -> Trial:
    async with trial_of(folder, "recursive", "model", **(MEDIUM | fields)) as trial:
        await trial.conduct()
    return trial


def nodes_of(trial: Trial) -> list[Any]:
    """Every node of the tree, from the results of its agents."""
    found, waiting = [], [record.result.node for record in trial.state.agents if record.result]
    while waiting:
        node = waiting.pop(0)
        found.append(node)
        waiting += node.below
    return found


async def test_a_query_is_answered_by_a_tree_of_executors(tmp_path: Path) -> None:
    """From manager to planner, librarian and extractor, and executors below executors; nobody else calls anybody
    (S4-001, S4-002, S4-009, S4-019, S4-029, S4-030, S4-042).
    """
    trial = await run_of(tmp_path)
    trial.assert_completed()
    assert [node.level for node in nodes_of(trial)] == [1, 2]
    called = {(caller, role) for caller, roles in trial.state.calls.items() for role in roles}
    assert all(may_call(caller, role) for caller, role in called)
    assert {caller for caller, _ in called} == {caller for caller, roles in MAY_CALL.items() if roles}
    assert trial.findings


async def test_an_executor_that_is_never_content_corrects_itself_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node corrects itself as often as its limit says, or until a correction brings nothing; none is below level three
    (S4-011, S4-033, S4-034, C4-1, C4-2).
    """
    monkeypatch.setattr(library_work, "self_check", never_content)
    monkeypatch.setattr(library_work, "extraction", endless)
    trial = await run_of(tmp_path)
    nodes = nodes_of(trial)
    assert nodes
    assert all(1 <= node.corrections <= 2 for node in nodes)
    assert all(node.end.value in ("corrections_used", "no_progress") for node in nodes)
    assert max(node.level for node in nodes) <= 3
    assert trial.state.result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL)


async def test_the_units_of_an_executor_have_labels_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A unit has the label of its strategy, after a correction too; a unit of the same name elsewhere has its name."""
    labels = dict[str, str]()

    async def noted(*given: Any, **fields: Any) -> Any:
        labels[given[1]] = fields["label"]
        return await carry_out(*given, **fields)

    monkeypatch.setattr(library_work, "self_check", never_content)
    monkeypatch.setattr(executor_strategy, "carry_out", noted)
    trial = await run_of(tmp_path)
    first = {"work": "read", "report": "join", "check": "check", "correction": "correct"}
    second = {f"{unit}-2": label for unit, label in first.items() if unit != "correction"}
    assert labels.items() >= (first | second).items()
    await carry_out(trial.run, "report", AsyncMock(), str)
    assert trial.state.events[-2].data["label"] == "report"


async def test_every_question_of_a_leaf_arrives_in_the_report(tmp_path: Path) -> None:
    """Questions that no correction closed are gaps of the run, each with the leaf that raised it (S4-041)."""
    trial = await run_of(tmp_path)
    raised = {
        question
        for call in trial.api.requests
        if call.role == "extractor"
        for question in library_work.extraction(call.prompt)["follow_up_questions"]
    }
    known = {gap.description for gap in trial.state.gaps}
    assert raised <= known
    leaves = {node.id for node in trial.state.plan.nodes if node.task_type}
    assert {gap.origin.removeprefix("sub_query:") for gap in trial.state.gaps} <= leaves


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
    depths = {node.id: node.depth for node in trial.state.plan.nodes}
    found = [depths[finding.sub_query_id] for finding in trial.state.findings]
    assert found == sorted(found)
    assert len(set(found)) == 2
    raised = [depths[gap.origin.removeprefix("sub_query:")] for gap in trial.state.gaps]
    assert raised == sorted(raised)


async def test_a_dead_leaf_costs_itself_alone(tmp_path: Path) -> None:
    """The node goes on without it, and the run says what is missing (C4-12)."""
    async with trial_of(tmp_path, "recursive", "model", **MEDIUM) as trial:
        extract, lost = trial.host.implementations["extract_source"], list[str]()

        async def fail(request: Any) -> Any:
            name = re.sub(r"/repair|/fallback", "", request.operation)
            if not lost or name in lost:
                lost.append(name)
                from temporalio.exceptions import ApplicationError

                raise ApplicationError(
                    "gone", {"kind": "input_unprocessable"}, type="InputUnprocessable", non_retryable=True
                )
            return await extract(request)

        trial.host.implementations["extract_source"] = fail
        await trial.conduct()
    assert lost
    assert trial.state.findings
    assert trial.state.result.outcome is Outcome.PARTIAL
    assert any("leaf" in one for one in trial.state.failed_branches)


async def test_a_query_without_a_credible_source_has_no_leaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its gap says so, nothing is invented, and a run with no other query is empty (C4-11)."""
    reject = {"credibility": "low", "relevance": "low", "reason": "an advertisement", "decision": "reject"}
    monkeypatch.setattr(library_work, "examination", lambda _: reject)
    trial = await run_of(tmp_path)
    assert trial.state.result.outcome is Outcome.EMPTY
    assert not trial.state.agents
    assert any("No credible source" in line for line in trial.state.result.limitations)
