"""Every limit of a request is hit on purpose, in every strategy: it holds, and the outcome says so."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.ceilings import Budgets
from contracts.request import Mode
from contracts.resolved import ModelPrice
from contracts.strategies import declaration
from contracts.vocabulary import EngineKind, NodeKind, Outcome, StopReason, Tier
from providers.models.endpoints import PriceTable
from providers.shared.day_budget import DayBudget
from tests.every_strategy.joined import (
    MODELLED,
    MODES,
    NAMES,
    SMALL,
    Trial,
    resume,
    trial_of,
    undisturbed,
    units_of,
    whole_run,
    world_of,
)
from tests.fakes.corpus import MemoryCorpus, long_manual
from tests.fakes.host import TimedHost
from tests.fakes.world import World, begin, no_list_of_runs
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import load_strategy

SPENT = {
    "max_model_calls": (StopReason.BUDGET_CALLS, lambda trial: trial.state.accounts.usage.model_calls),
    "max_tokens": (StopReason.BUDGET_TOKENS, lambda trial: trial.state.accounts.usage.tokens),
    "max_cost_usd": (StopReason.BUDGET_COST, lambda trial: trial.state.accounts.usage.known_cost_usd),
}
"""Limits of what is used up: why the run ends, and how much it used."""


def steps(trial: Trial) -> list[str]:
    return [node.id for node in trial.state.work.plan.nodes if node.kind is NodeKind.STEP]


def most_by_step(trial: Trial, counted: Callable[[str], int]) -> int:
    return max((counted(step) for step in steps(trial)), default=0)


HELD: dict[str, Callable[[Trial], float]] = {
    "max_iterations": lambda trial: trial.state.work.iteration,
    "max_sub_queries": lambda trial: (
        sum(node.origin == "plan" for node in trial.state.work.plan.sub_queries) if not steps(trial) else 1
    ),
    "max_searches": lambda trial: trial.state.accounts.usage.searches,
    "max_sources": lambda trial: len(trial.state.evidence.readable_sources()),
    "max_sources_per_query": lambda trial: (
        len(trial.state.evidence.readable_sources()) / len(trial.state.work.plan.sub_queries)
    ),
    "max_parallel": lambda trial: trial.host.most_at_once["search"],
    "max_parallel_reads": lambda trial: trial.host.most_at_once["read_source"],
    "min_steps": lambda trial: 1,
    "max_steps": lambda trial: max(1, len(steps(trial))),
    "max_searches_per_step": lambda trial: most_by_step(
        trial, lambda step: sum(node.parent == step for node in trial.state.work.plan.nodes)
    ),
    "max_reads_per_step": lambda trial: most_by_step(
        trial,
        lambda step: sum(
            bool(
                {node.id for node in trial.state.work.plan.nodes if node.parent == step} & set(source.sub_query_ids[:1])
            )
            for source in trial.state.evidence.readable_sources()
        ),
    ),
}
"""Limits of how much is done: what must not exceed 1 where 1 is asked for."""
OF_STEPS = {"min_steps", "max_steps", "max_searches_per_step", "max_reads_per_step"}


def knows(name: str, limit: str) -> bool:
    return limit not in OF_STEPS or bool(declaration(name).presets[SMALL["depth"]].max_steps)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("limit", HELD)
@pytest.mark.parametrize("name", NAMES)
async def test_no_more_is_done_than_the_limit_allows(tmp_path: Path, name: str, limit: str) -> None:
    """With a limit of one the run does one of it, and has a report of what that brought (S0-049, invariant 6)."""
    if not knows(name, limit):
        pytest.skip(f"{name} has no steps")
    trial = await undisturbed(tmp_path, name, limits={limit: 1})
    assert HELD[limit](trial) <= 1
    result = trial.state.work.result
    assert result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL), (limit, trial.state.work.failed_branches)
    assert trial.state.evidence.citations


@pytest.mark.one_in(2)
@pytest.mark.parametrize("limit", SPENT)
@pytest.mark.parametrize("name", MODELLED)
async def test_what_is_used_up_ends_the_work_and_is_named(tmp_path: Path, name: str, limit: str) -> None:
    """With half of what a whole run uses: no more is used, what was found is reported, the limit is named; with
    nothing, nothing is used (X-4).
    """
    reason, used = SPENT[limit]
    whole = _priced.get(name) or await priced(tmp_path / "whole", name)
    _priced[name] = whole
    for share in (0.5, 0.0):
        most: Any = used(whole) * share
        most = most if limit == "max_cost_usd" else int(most)
        trial = await priced(tmp_path / str(share), name, limits={limit: most})
        assert used(trial) <= most
        result = trial.state.work.result
        if declaration(name).judges_edits and result.stop_reason is StopReason.INFEASIBLE:
            # The least work of its scope does not fit the limit: nothing was begun.
            assert (result.outcome, trial.left) == (Outcome.REFUSED, 0)
            assert any(limit in line for line in result.limitations)
            continue
        assert result.stop_reason is reason
        assert result.outcome is (Outcome.PARTIAL if trial.state.evidence.findings else Outcome.FAILED)
        assert any("limit" in line for line in result.limitations)
        assert bool(trial.state.evidence.citations) is bool(trial.state.evidence.findings)


_priced: dict[str, Trial] = {}
"""A whole run by strategy, for all limits."""


async def priced(folder: Path, name: str, **fields: Any) -> Trial:
    async with trial_of(folder, name, EngineKind.MODEL.value, **fields) as trial:
        prices = {tier.value: ModelPrice(input=5.0, output=25.0) for tier in Tier}
        trial.state.work.resolved = trial.state.work.resolved.model_copy(update={"model_prices": prices})
        await trial.conduct()
    return trial


async def test_a_days_money_is_what_calls_have_cost(tmp_path: Path) -> None:
    """Each paid call of a run counts once, also if the run is cancelled and goes on, and nothing else does."""
    async with trial_of(tmp_path, "supervisor", EngineKind.MODEL.value) as trial:
        world = trial.world
        world.budget = DayBudget(world.shared, Budgets(usd_per_day=50.0), "default", no_list_of_runs)
        prices = {"test-model": ModelPrice(input=5.0, output=25.0)}
        world.engines[EngineKind.MODEL]._prices = PriceTable(prices)  # type: ignore[attr-defined]
        trial.host.acts["analysis", 1] = trial.cancel
        with pytest.raises(asyncio.CancelledError):
            await trial.conduct()
        before = (await world.budget.look())[0].spent
        assert before > 0
        again = await resume(trial)
        together, by_tenant = await world.budget.look()
        assert together.spent == pytest.approx(again.state.accounts.usage.known_cost_usd)
        assert by_tenant["default"].spent == together.spent > before


async def test_a_share_that_is_used_up_ends_no_research(tmp_path: Path) -> None:
    """Planning and reflecting go on without the model, and the outcome names the share (S0-165)."""
    fields = {"gates": {"think": "model"}, "limits": {"max_tokens": 35_000}}
    trial = await undisturbed(tmp_path, "supervisor", EngineKind.MODEL.value, **fields)
    assert "planner: done without the model (budget_tokens: share of planning)" in trial.state.work.degraded
    assert any("share of refinement" in line for line in trial.state.work.degraded)
    assert trial.state.accounts.engine_by_role["synthesizer"] == EngineKind.MODEL.value


async def test_calls_wait_for_room_that_others_give_back(tmp_path: Path) -> None:
    """Too little for all reservations at once, enough for what the calls really need: one after another, all done."""
    limits, corpus = {"analysis_tokens": 2_000}, MemoryCorpus(long_manual(4))
    free, tight = [
        await priced(tmp_path / str(most), "supervisor", corpus=corpus, limits=limits | {"max_cost_usd": most})
        for most in (9.0, 0.2)
    ]
    assert tight.state.work.result.stop_reason is free.state.work.result.stop_reason
    assert tight.api.counts() == free.api.counts()
    assert tight.host.most_at_once["analyze_sources"] < free.host.most_at_once["analyze_sources"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
async def test_out_of_time_in_any_unit_it_writes_down_what_is_there(tmp_path: Path, name: str) -> None:
    """When nothing but the reserve is left the report is written, within the deadline; without a finding the outcome
    says that the time was over (S0-032, S0-127, X-13).
    """
    whole = await whole_run(tmp_path / "whole", name)
    for unit in units_of(whole):
        async with trial_of(tmp_path / unit, name) as trial:
            trial.host.acts[unit, 1] = trial.run_out_of_time
            await trial.conduct()
            result = trial.state.work.result
            assert result.stop_reason is StopReason.BUDGET_TIME, unit
            assert result.outcome is (Outcome.PARTIAL if trial.state.evidence.findings else Outcome.TIMED_OUT), unit
            assert bool(trial.state.evidence.citations) is bool(trial.state.evidence.findings), unit
            assert trial.run.clock.remaining_seconds() >= 0
            assert any("time limit" in line for line in result.limitations)


OUTSIDE = 0.5
"""Seconds that a search, a read and everything else takes that asks no model."""


async def timed(world: World, name: str, call: float, search: float = OUTSIDE, **fields: Any) -> ResearchRun:
    """A run to its end, whose model calls and searches take so many seconds."""

    def takes(activity: str, argument: Any) -> float:
        if activity == "search":
            return search
        return call if getattr(argument, "engine", None) is EngineKind.MODEL else OUTSIDE

    state = await begin(world, strategy=name, **(SMALL | fields))
    host = TimedHost(world.host().implementations, takes)
    run = ResearchRun(state, Inbox(), host)
    conducted = asyncio.ensure_future(Driver(run, load_strategy(name)).conduct())
    await host.pass_time(conducted)
    await conducted
    return run


@pytest.mark.one_in(6)
@pytest.mark.parametrize("call", [5.0, 60.0, 1_000.0])
@pytest.mark.parametrize(("name", "mode"), [(name, mode) for name, engine, mode in MODES if engine == "model"])
async def test_slow_calls_never_pass_the_deadline(tmp_path: Path, name: str, mode: str, call: float) -> None:
    """The reserve is enough to lay out a report, also where the model is too slow to write it; the outcome says so."""
    async with world_of(tmp_path, EngineKind.MODEL.value) as (world, _):
        run = await timed(world, name, call, **({} if mode == "deep" else {"mode": mode}))
    result = run.state.work.result
    assert run.clock.elapsed_seconds() <= run.resolved.limits.deadline_seconds
    if result.outcome is not Outcome.COMPLETED:
        assert result.stop_reason is StopReason.BUDGET_TIME
        answered = run.state.evidence.findings or run.resolved.mode is Mode.QUICK
        assert result.outcome is (Outcome.PARTIAL if answered else Outcome.TIMED_OUT)
        assert bool(run.state.evidence.citations) is bool(run.state.evidence.findings)


async def test_a_quick_run_has_time_for_two_calls_of_five_seconds(tmp_path: Path) -> None:
    """Within its 15 s a quick run searches, reads, and has a model analyze and write (S1-053, S1-066)."""
    async with world_of(tmp_path, EngineKind.MODEL.value) as (world, api):
        run = await timed(world, "reflective", 5.0, mode="quick")
    assert run.state.work.result.outcome is Outcome.COMPLETED, run.state.work.result.limitations
    assert api.counts() == {"analyzer": 1, "synthesizer": 1}
    assert run.clock.elapsed_seconds() <= 15
    async with world_of(tmp_path / "slow", EngineKind.MODEL.value) as (world, api):
        await timed(world, "reflective", 60.0, mode="quick")
    assert api.counts()["synthesizer"] == 0, "in the seconds that are left no model could write"


async def test_a_quick_run_that_finds_nothing_in_time_says_so(tmp_path: Path) -> None:
    """A person who asked for a quick answer gets a report, also where no search answered in time (S1-066)."""
    async with world_of(tmp_path, EngineKind.MODEL.value) as (world, _):
        run = await timed(world, "reflective", 1.0, search=60.0, mode="quick")
        assert run.state.work.result.outcome is Outcome.PARTIAL
        report = await world.content.get_text(run.state.work.result.files.markdown)
    assert "the time limit was reached" in report
    assert "Nothing was read" in report
    assert "No passage matches" not in report
    assert run.clock.elapsed_seconds() <= 15
