"""In every unit of every strategy: stop, steer, cancel and resume; and nothing but the state lives on between two."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from contracts.outcome import PERSON
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, Outcome, RunStatus, StopReason
from tests.comparable import comparable
from tests.every_strategy.joined import (
    MODES,
    NAMES,
    Trial,
    begin_trial,
    resume,
    trial_of,
    units_of,
    whole_run,
    world_of,
)
from workflows.driver import Driver
from workflows.phases.closing import close
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import load_strategy

WISH = "What is the default of freeze_max_age?"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
async def test_stopped_in_any_unit_it_reports_its_findings_and_can_be_continued(tmp_path: Path, name: str) -> None:
    """The outcome says how much that is; resumed, it finds what an undisturbed run finds (X-4, S0-131)."""
    whole = await whole_run(tmp_path / "whole", name)
    for unit in units_of(whole):
        async with trial_of(tmp_path / unit, name) as trial:
            trial.host.acts[unit, 1] = trial.stop
            await trial.conduct()
            result = trial.state.work.result
            assert result.stop_reason is StopReason.USER_STOPPED, unit
            assert result.outcome is (Outcome.PARTIAL if trial.state.evidence.findings else Outcome.FAILED), unit
            assert bool(trial.state.evidence.citations) is bool(trial.state.evidence.findings), unit
            assert result.resumable
            later = await resume(trial)
            later.assert_completed(unit)
            assert later.findings == whole.findings, unit
            assert comparable(await later.report()) == comparable(await whole.report()), unit


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", NAMES)
async def test_cancelled_in_any_unit_it_makes_no_call_and_can_be_continued(tmp_path: Path, name: str) -> None:
    """The session is kept at once and no call begins; resumed, it finds what an undisturbed run finds (C0-20)."""
    whole = await whole_run(tmp_path / "whole", name)
    for unit in units_of(whole):
        async with trial_of(tmp_path / unit, name) as trial:
            trial.host.acts[unit, len(whole.host.by_unit[unit])] = trial.cancel
            with pytest.raises(asyncio.CancelledError):
                await trial.conduct()
            assert {activity for activity, _ in trial.host.calls[trial.calls_before :]} <= {"save_session"}, unit
            stored = ResearchState.model_validate_json(await trial.world.sessions.load("r-unit") or "")
            assert (stored.work.status, stored.work.result) == (RunStatus.CANCELLED, None), unit
            later = await resume(trial)
            later.assert_completed(unit)
            assert later.findings == whole.findings, unit


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", NAMES)
async def test_guidance_in_any_unit_is_followed(tmp_path: Path, name: str) -> None:
    """What a person asks for is planned or searched for, or the report says that it was not looked for (S0-081)."""
    whole = await whole_run(tmp_path / "whole", name)
    assert not any("freeze_max_age" in text for text in whole.world.corpus.searches)
    for unit in units_of(whole):
        async with trial_of(tmp_path / unit, name) as trial:
            trial.host.acts[unit, 1] = partial(trial.steer, WISH)
            await trial.conduct()
            result, wish = trial.state.work.result, WISH.rstrip("?")
            assert result.outcome in (Outcome.COMPLETED, Outcome.PARTIAL), unit
            assert [one.text for one in trial.state.people.guidance if one.origin == PERSON] == [WISH], unit
            looked_for = any("freeze_max_age" in text for text in trial.world.corpus.searches)
            assert looked_for or any(wish in line for line in result.limitations), unit
            assert not trial.inbox.steering


@pytest.mark.one_in(2)
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
            reason = await Driver(run, load_strategy(name)).step()
            await run.checkpoints.settle()
            state, units = run.state, units + 1
            assert units < 50, "it never ends"
            assert state.work.position.strategy == name
        await close(run, reason)
        pieces = Trial(world, name, state)
        assert comparable(await pieces.report()) == comparable(expected)
        assert (sorted(world.corpus.searches), sorted(world.corpus.reads)) == (sorted(searched), sorted(read))
        assert api.counts() == calls
    assert units > 2
    assert bool(calls) is (engine == EngineKind.MODEL.value)
