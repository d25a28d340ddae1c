"""Nothing but the state lives on between two units, whatever the strategy, its mode and its engine."""

from pathlib import Path

import pytest

from contracts.state import ResearchState
from contracts.vocabulary import EngineKind
from tests.comparable import comparable
from tests.every_strategy.joined import MODES, NAMES, Trial, begin_trial, undisturbed, world_of
from workflows.driver import Driver
from workflows.phases.closing import close
from workflows.run.context import Hooks
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import strategy_of


@pytest.mark.parametrize(("name", "engine", "mode"), MODES)
async def test_rebuilt_from_json_after_every_unit_the_report_is_the_same(
    tmp_path: Path, name: str, engine: str, mode: str
) -> None:
    """The position survives JSON and the packing that leaves defaults out; nothing is searched, read or paid twice
    (S0-130, S0-131, invariants 12 and 13).
    """
    fields = {} if mode == "deep" else {"mode": mode}
    async with world_of(tmp_path / "whole", engine) as (world, api):
        whole = await begin_trial(world, name, **fields)
        await whole.conduct()
        calls = api.counts()
        expected, searched, read = await whole.report(), world.corpus.searches, world.corpus.reads
    async with world_of(tmp_path / "pieces", engine) as (world, api):
        state, units, reason = (await begin_trial(world, name, **fields)).state, 0, None
        while reason is None:
            run = ResearchRun(ResearchState.unpack(state.pack()), Inbox(), world.host())
            reason = await Driver(run, strategy_of(name)).step()
            await run.checkpoints.settle()
            state, units = run.state, units + 1
            assert units < 50, "it never ends"
            assert state.position.strategy == name
        await close(run, reason)
        pieces = Trial(world, name, state)
        assert comparable(await pieces.report()) == comparable(expected)
        assert (sorted(world.corpus.searches), sorted(world.corpus.reads)) == (sorted(searched), sorted(read))
        assert api.counts() == calls
    assert units > 2
    assert bool(calls) is (engine == EngineKind.MODEL.value)


class NewHistory(Exception):
    """The history begins anew here."""


@pytest.mark.parametrize("name", NAMES)
async def test_a_history_may_begin_anew_wherever_the_strategy_allows_it(tmp_path: Path, name: str) -> None:
    """At each of its boundaries the run goes on in a new history, under limits that were fixed before, to the same
    report.
    """
    whole = await undisturbed(tmp_path / "whole", name)

    async def boundary() -> None:
        raise NewHistory

    async with world_of(tmp_path / "pieces", whole.state.resolved.engine.value) as (world, _):  # type: ignore[union-attr]
        trial = await begin_trial(world, name)
        fresh, histories = (await begin_trial(world, name)).state.resolved, 0
        while trial.state.result is None:
            trial = Trial(world, name, ResearchState.unpack(trial.state.pack()), Hooks(continue_as_new=boundary))
            trial.state.resolved = fresh  # as it is prepared for the new history
            histories += 1
            assert histories < 50, "it never ends"
            try:
                await trial.conduct()
            except NewHistory:
                continue
        assert comparable(await trial.report()) == comparable(await whole.report())
        assert trial.state.resolved.limits == whole.state.resolved.limits
