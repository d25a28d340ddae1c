"""The benchmark of endurance: what a seed draws, when an answer counts as asked again, and what a table calls a problem."""

import asyncio
import json
from dataclasses import asdict, replace
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from benchmarks.endurance import (
    OpenRun,
    Piece,
    Run,
    approve,
    made_again,
    plan_of,
    problems_of,
    read_pieces,
    record_of,
    store_of,
)
from benchmarks.faults import (
    EVERYWHERE,
    OF_STORE,
    STRATEGIES,
    Deployment,
    Fault,
    Kill,
    Spell,
    draw_faults,
    find_faketime,
    paid_again,
)
from benchmarks.web_deployment import WebDeployment
from contracts.vocabulary import RunStatus
from tests.fakes import states
from tests.fakes.messages_api import MessagesApi
from tests.fakes.web_world import WebWorld
from workflows.status import build_status


def test_a_seed_draws_every_kind_and_strategy_and_the_same_again() -> None:
    """Each kind strikes before one strikes again; another seed or piece has another order."""
    count = len(EVERYWHERE) + len(OF_STORE["redis"])
    faults = draw_faults(36, 0, count, "redis", lambda _: True)
    assert {fault.kind for fault in faults} == {*EVERYWHERE, *OF_STORE["redis"]}
    assert {fault.strategy for fault in faults} == set(STRATEGIES)
    assert all(5 <= fault.seconds <= 240 for fault in faults)
    assert faults == draw_faults(36, 0, count, "redis", lambda _: True)
    assert faults != draw_faults(37, 0, count, "redis", lambda _: True)
    assert faults != draw_faults(36, 1, count, "redis", lambda _: True)
    assert "disk" not in {fault.kind for fault in draw_faults(36, 0, 40, "file", lambda kind: kind != "disk")}


async def no_reader(_: Deployment) -> None:
    """Stand for a deployment without a process that reads."""


async def test_faults_overlap_at_different_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one is the first of the plan whose places are free, until six are there; each place has a rest afterwards."""
    monkeypatch.setattr(Deployment, "_kill_reader", no_reader)
    made = WebDeployment(tmp_path, WebWorld([]), MessagesApi(), "127.0.0.1:1")
    deployment = Deployment(made, tmp_path, None, None, tmp_path, None)
    model, search, disk = (Fault("living", kind, 1.0, 0.0, 0.0) for kind in ("model-503", "search-429", "disk"))
    deployment.reserve(model)
    assert deployment.choose([replace(model, kind="model-hang"), search, disk]) == search
    deployment.reserve(search)
    assert deployment.choose([search, model]) is None
    assert deployment.choose([search, model, disk]) == disk
    await deployment.suffer(model, lambda: 7)
    assert [(spell.kind, spell.at_work) for spell in deployment.spells] == [("model-503", 7)]
    await asyncio.sleep(0.01)
    assert deployment.choose([model]) is None
    deployment.reserve(kill := replace(model, kind="reader"))
    await deployment.suffer(kill, lambda: 7)
    await asyncio.sleep(0.01)
    assert deployment.choose([kill]) == kill
    for kind in ("queue", "redis", "no-models", "reader", "pages-429"):
        deployment.reserve(replace(model, kind=kind))
    assert deployment.choose([disk, replace(model, kind="objects-503")]) is None


def test_wrong_clocks_and_full_disks_are_drawn_where_they_are_asked_for() -> None:
    """One piece of four has wrong clocks, one of three a disk of its own for everything, and any piece that names them."""
    assert store_of(0) == store_of(1) == "redis"
    assert store_of(2) == store_of(0, ["disk", "clock"]) == "file"
    drawn = {fault.kind for fault in plan_of(1, 1, 6, ["disk", "clock"], mounts=True)}
    assert drawn == ({"disk"} if find_faketime() is None else {"disk", "clock"})
    assert not {"clock", "disk"} & {fault.kind for fault in plan_of(1, 1, 120, [], mounts=True)}


def test_no_answer_is_asked_again_unless_a_kill_lost_it() -> None:
    """Neither a kill long after the answer excuses a second one, nor one at which everything was written; a worker that stood
    still is counted apart.
    """
    unwritten, written, unknown = Kill(100.0, 1, []), Kill(100.0, 0, []), Kill(100.0, None, [])
    assert paid_again([[99.5, 120.0], [50.0]], [unwritten], []) == (0, 1, 0)
    assert paid_again([[99.5, 120.0], [99.6, 121.0]], [unwritten], []) == (1, 1, 0)
    assert paid_again([[99.5, 120.0], [99.6, 121.0]], [unknown], []) == (0, 2, 0)
    assert paid_again([[99.5, 120.0]], [written], []) == (1, 0, 0)
    assert paid_again([[50.0, 120.0]], [unwritten], []) == (1, 0, 0)
    assert paid_again([[50.0, 120.0]], [], []) == (1, 0, 0)
    assert paid_again([[50.0, 120.0]], [], [Spell("standstill", 49.0, 90.0)]) == (0, 0, 1)
    assert paid_again([[50.0, 120.0]], [], [Spell("standstill", 60.0, 90.0)]) == (1, 0, 0)


def test_a_call_waits_from_the_kill_or_the_last_fault_after_it() -> None:
    """A server that was away meanwhile is not the wait for the call; one that went away later changes nothing."""
    kill = Kill(100.0, 0, ["a", "b"], left=1)
    started = {"a": [90.0, 150.0], "b": [95.0]}
    assert made_again(kill, started, []) == [50.0]
    assert made_again(kill, started, [Spell("server", 110.0, 140.0)]) == [10.0]
    assert made_again(kill, started, [Spell("server", 160.0, 170.0), Spell("model-503", 80.0, 90.0)]) == [50.0]
    assert made_again(kill, started, [Spell("model-reset", 90.0, 160.0)]) == []


def test_a_run_that_went_on_is_unfinished_and_no_other() -> None:
    """One whose history has grown, or that waits for agents or for its turn, is at work; the server knows which is lost."""
    assert OpenRun("", 10).outcome_after(9) == "unfinished"
    assert OpenRun("", 10).outcome_after(10) == "stuck"
    assert OpenRun("", 10, works_elsewhere=True).outcome_after(10) == "unfinished"
    assert OpenRun("NOT_FOUND", is_lost=True).outcome_after(10) == "lost"


async def test_a_run_that_moves_while_it_waits_is_approved_after_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has just been created again for a moment; one that went on without an approval is told."""
    monkeypatch.setattr("benchmarks.endurance.LOOK_SECONDS", 0.0)
    waiting, created, working = RunStatus.AWAITING_APPROVAL, RunStatus.CREATED, RunStatus.RUNNING
    for later, approval in (
        ([waiting], "whole"),
        ([created, waiting], "whole"),
        ([working], "running without an approval"),
    ):
        shown = [working, waiting, *later, later[-1]]
        handle = AsyncMock()
        handle.status.side_effect = [build_status(states.state(status=status), 0.0) for status in shown]
        assert await approve(handle, 0.0) == approval
        assert handle.approve_plan.await_count == (approval == "whole")


def test_only_what_must_not_be_is_a_problem(tmp_path: Path) -> None:
    """A record that is written and read again counts each kind of problem, and none where all is well."""
    run = Run("r-1", "living", "worker", 5.0, "redis", outcome="completed", approval="whole", refresh="completed")
    good = Piece(0, 39, [run], {"worker": 1}, answered=2_000, on_their_way=2, stood_still=3, made_again=[17.0])
    assert problems_of([good]) == {}
    others = {
        "lost": replace(run, outcome="lost"),
        "stuck": replace(run, outcome="stuck"),
        "unfinished": replace(run, outcome="unfinished"),
        "failed": replace(run, outcome="failed"),
        "partial": replace(run, outcome="partial"),
        "audits that differ": replace(run, audit="one difference"),
        "approvals that are not whole": replace(run, approval="MessageRefused"),
        "refreshes that are not whole": replace(run, refresh="failed"),
    }
    bad = replace(good, number=1, runs=list(others.values()), asked_again=1, on_their_way=3, made_again=[21.0])
    for piece in (good, bad):
        record_of(tmp_path, piece.number).write_text(json.dumps(asdict(piece)), encoding="utf-8")
    assert read_pieces(tmp_path) == [good, bad]
    figures = {"answers asked again without a kill", "too many answers asked again", "calls made again late"}
    assert problems_of([bad]) == dict.fromkeys([*others, *figures], 1)
