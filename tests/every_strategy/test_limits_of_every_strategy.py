"""Every limit of a request is hit on purpose, in every strategy: it holds, and the outcome says so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.request import Limits
from contracts.resolved import ModelPrice
from contracts.strategies import declaration
from contracts.vocabulary import EngineKind, NodeKind, Outcome, StopReason, Tier
from tests.every_strategy.joined import (
    FIRST_ENGINE,
    MODELLED,
    NAMES,
    SMALL,
    Trial,
    begin_trial,
    undisturbed,
    units_of,
    world_of,
)

SPENT = {
    "max_model_calls": (StopReason.BUDGET_CALLS, lambda trial: trial.state.usage.model_calls),
    "max_tokens": (StopReason.BUDGET_TOKENS, lambda trial: trial.state.usage.tokens),
    "max_cost_usd": (StopReason.BUDGET_COST, lambda trial: trial.state.usage.known_cost_usd),
}
"""Limits of what is used up: why the run ends, and how much it used."""


def steps(trial: Trial) -> list[str]:
    """The steps of the plan."""
    return [node.id for node in trial.state.plan.nodes if node.kind is NodeKind.STEP]


def most_by_step(trial: Trial, counted: Callable[[str], int]) -> int:
    """The most of something that a step has."""
    return max((counted(step) for step in steps(trial)), default=0)


HELD: dict[str, Callable[[Trial], float]] = {
    "max_iterations": lambda trial: trial.state.iteration,
    "max_sub_queries": lambda trial: (
        sum(node.origin == "plan" for node in trial.state.plan.sub_queries) if not steps(trial) else 1
    ),
    "max_sources": lambda trial: len(trial.state.readable_sources()),
    "max_sources_per_query": lambda trial: len(trial.state.readable_sources()) / len(trial.state.plan.sub_queries),
    "max_parallel": lambda trial: trial.host.most_at_once["search"],
    "max_parallel_reads": lambda trial: trial.host.most_at_once["read_source"],
    "min_steps": lambda trial: 1,
    "max_steps": lambda trial: max(1, len(steps(trial))),
    "max_searches_per_step": lambda trial: most_by_step(
        trial, lambda step: sum(node.parent == step for node in trial.state.plan.nodes)
    ),
    "max_reads_per_step": lambda trial: most_by_step(
        trial,
        lambda step: sum(
            bool({node.id for node in trial.state.plan.nodes if node.parent == step} & set(source.sub_query_ids[:1]))
            for source in trial.state.readable_sources()
        ),
    ),
}
"""Limits of how much is done: what must not exceed 1 where 1 is asked for."""
ELSEWHERE = {"deadline_seconds", "max_wait_seconds", "agent_seconds", "agent_wait_seconds", "max_source_characters"}
"""The tests of time are below, those of waiting beside those of approvals, of agents beside their strategy, of the
characters of a source beside windows."""
OF_STEPS = {"min_steps", "max_steps", "max_searches_per_step", "max_reads_per_step"}


def knows(name: str, limit: str) -> bool:
    """Limits of steps are for strategies that have some."""
    return limit not in OF_STEPS or bool(declaration(name).presets[SMALL["depth"]].max_steps)


def test_every_limit_is_tried() -> None:
    """A new limit gets a line in the tables above."""
    assert {*SPENT, *HELD, *ELSEWHERE} == set(Limits.model_fields)


@pytest.mark.parametrize("limit", HELD)
@pytest.mark.parametrize("name", NAMES)
async def test_no_more_is_done_than_the_limit_allows(tmp_path: Path, name: str, limit: str) -> None:
    """With a limit of one the run does one of it, and has a report of what that brought (S0-049, invariant 6)."""
    if not knows(name, limit):
        pytest.skip(f"{name} has no steps")
    trial = await undisturbed(tmp_path, name, limits={limit: 1})
    assert HELD[limit](trial) <= 1
    result = trial.state.result
    assert result is not None
    assert result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL), (limit, trial.state.failed_branches)
    assert trial.state.citations


@pytest.mark.parametrize("limit", SPENT)
@pytest.mark.parametrize("name", MODELLED)
async def test_what_is_used_up_ends_the_work_and_is_named(tmp_path: Path, name: str, limit: str) -> None:
    """With half of what a whole run uses: no more is used, what was found is reported, the limit is named; with
    nothing, nothing is used (X-4).
    """
    reason, used = SPENT[limit]
    whole = await priced(tmp_path / "whole", name)
    for share in (0.5, 0.0):
        most: Any = used(whole) * share
        most = most if limit == "max_cost_usd" else int(most)
        trial = await priced(tmp_path / str(share), name, limits={limit: most})
        assert used(trial) <= most
        result = trial.state.result
        assert result is not None
        assert result.stop_reason is reason
        assert result.outcome is (Outcome.PARTIAL if trial.state.findings else Outcome.FAILED)
        assert any("limit" in line for line in result.limitations)
        assert bool(trial.state.citations) is bool(trial.state.findings)


async def priced(folder: Path, name: str, **fields: Any) -> Trial:
    """A run whose model costs something."""
    async with world_of(folder, EngineKind.MODEL.value) as (world, _):
        trial = await begin_trial(world, name, **fields)
        assert trial.state.resolved is not None
        prices = {tier.value: ModelPrice(input=5.0, output=25.0) for tier in Tier}
        trial.state.resolved = trial.state.resolved.model_copy(update={"model_prices": prices})
        await trial.conduct()
    return trial


@pytest.mark.parametrize("name", NAMES)
async def test_out_of_time_in_any_unit_it_writes_down_what_is_there(tmp_path: Path, name: str) -> None:
    """When nothing but the reserve is left the report is written, within the deadline; without a finding the outcome
    says that the time was over (X-13).
    """
    whole = await undisturbed(tmp_path / "whole", name)
    for unit in units_of(whole):
        async with world_of(tmp_path / unit, FIRST_ENGINE[name]) as (world, _):
            trial = await begin_trial(world, name)
            trial.host.acts[unit, 1] = trial.run_out_of_time
            await trial.conduct()
            result = trial.state.result
            assert result is not None
            assert result.stop_reason is StopReason.BUDGET_TIME, unit
            assert result.outcome is (Outcome.PARTIAL if trial.state.findings else Outcome.TIMED_OUT), unit
            assert bool(trial.state.citations) is bool(trial.state.findings), unit
            assert trial.run.clock.remaining_seconds() >= 0
            assert any("time limit" in line for line in result.limitations)


@pytest.mark.parametrize("name", NAMES)
async def test_where_no_report_is_wanted_then_none_is_written(tmp_path: Path, name: str) -> None:
    """`on_deadline: abort` keeps the session and writes nothing."""
    async with world_of(tmp_path, FIRST_ENGINE[name]) as (world, _):
        trial = await begin_trial(world, name, on_deadline="abort")
        trial.host.acts[units_of(await undisturbed(tmp_path / "whole", name))[-1], 1] = trial.run_out_of_time
        await trial.conduct()
        assert await world.sessions.load("r-unit")
    assert (trial.state.status.value, trial.state.result, trial.state.citations) == ("timed_out", None, [])
