"""A strategy from outside the product: the seams hold it without any product file knowing it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts import strategies
from contracts.vocabulary import NodeStatus, Outcome
from tests.architecture.repository import PACKAGES, python_files
from tests.fakes.world import World
from tests.toy.roles import TOY
from tests.toy.strategy import ToyStrategy
from tests.unit.workflows.test_supervisor_strategy import begin, report_of
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.status import status_of
from workflows.strategies import Finished, strategy_of


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    strategies.declare(TOY)
    yield
    del strategies.declared_strategies._declared[TOY.name]


async def test_it_answers_without_a_model(tmp_path: Path) -> None:
    """Its own role plans by its own rule, the shared phases search and read, and the report cites."""
    world = World(tmp_path)
    state = await begin(world, strategy="toy")
    outcome = await Driver(ResearchRun(state, Inbox(), world.host()), strategy_of("toy")).conduct()
    assert outcome is Outcome.COMPLETED, (state.failed_branches, state.limitations)
    assert state.citations
    assert set(state.engine_by_role) == {"scout", "analyzer", "scribe"}
    task, leaf = state.plan.nodes
    assert (task.depth, task.needs_search, task.finding_count) == (0, False, 0)
    assert (leaf.parent, leaf.depth, leaf.finding_count > 0) == (task.id, 1, True)
    assert task.status is leaf.status is NodeStatus.COMPLETED
    assert task.id not in {identity for source in state.sources.values() for identity in source.sub_query_ids}
    assert "strategy toy" in await report_of(world, state)


async def test_status_shows_its_own_units(tmp_path: Path) -> None:
    """Status draws what the strategy says of its progress, in its own words."""
    world = World(tmp_path)
    state = await begin(world, strategy="toy")
    run = ResearchRun(state, Inbox(), world.host())
    step = await ToyStrategy().advance(run)
    assert not isinstance(step, Finished)
    await ToyStrategy().pause(run, ToyStrategy().evaluate(run, step))
    progress = status_of(state, world.host().now().timestamp()).progress
    assert [(unit.label, unit.mark.value) for unit in progress.units] == [
        ("scout", "done"), ("look", "running"), ("tell", "waiting"),
    ]  # fmt: skip


def test_no_product_file_knows_it() -> None:
    """The seams are real: neither its name nor its roles stand anywhere in the product."""
    texts = {str(path): path.read_text(encoding="utf-8") for path in python_files(*PACKAGES)}
    assert not [path for path, text in texts.items() if re.search(r"\b(?:toy|scribe|scout)\b", text)]
