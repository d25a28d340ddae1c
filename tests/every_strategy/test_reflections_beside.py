"""The reflection on the analysis is made while the report is written: nothing of it is lost, and only a retry undoes."""

import asyncio
from pathlib import Path

import pytest

from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, Phase
from tests.comparable import comparable
from tests.every_strategy.joined import Trial, resume, trial_of, undisturbed, world_of
from tests.fakes import model_work
from tests.fakes.host import TimedHost
from tests.fakes.world import begin
from workflows.driver import Driver
from workflows.run.inbox import Inbox
from workflows.run.research_run import ResearchRun
from workflows.strategies import load_strategy

MODEL = EngineKind.MODEL.value
SECONDS = {"reflect_on_phase": 10.0, "write_report": 10.0}


def advise(action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the supervisor say this about the first analysis, with a hint to the writer."""
    said = iter([action])

    def reflection(prompt: str) -> dict[str, object]:
        first = next(said, "proceed") if "The sources are analyzed" in prompt else "proceed"
        guidance = [{"role": "synthesizer", "text": "Begin with the limits."}]
        return {"action": first, "rationale": "as I see it", "guidance": guidance}

    monkeypatch.setattr(model_work, "reflection", reflection)


def order(trial: Trial) -> list[str]:
    """The calls of the model in the order in which they began."""
    names = ("analyze_sources", "reflect_on_phase", "write_report")
    return [activity for activity, _ in trial.host.calls if activity in names]


async def test_the_report_does_not_wait_for_the_reflection_on_the_analysis(tmp_path: Path) -> None:
    """Both take ten seconds, and together they take no more."""
    async with world_of(tmp_path, MODEL) as (world, _):
        state = await begin(world, strategy="supervisor", depth="light", gates={"approve": "none"})
        host = TimedHost(world.host().implementations, lambda activity, _: SECONDS.get(activity, 0.0))
        start = host.now()
        run = ResearchRun(state, Inbox(), host)
        conducted = asyncio.ensure_future(Driver(run, load_strategy("supervisor")).conduct())
        await host.pass_time(conducted)
        await conducted
        assert [call for call, _ in host.calls if call in SECONDS].count("reflect_on_phase") == 1
        assert 10 <= (host.now() - start).total_seconds() < 20


async def test_advice_reaches_what_comes_after_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reflection says to proceed: the report stays, and the advice is known once it is written."""
    advise("proceed", monkeypatch)
    trial = await undisturbed(tmp_path, "supervisor", MODEL)
    trial.assert_completed()
    assert order(trial).count("write_report") == 1
    assert [one.text for one in trial.state.people.guidance] == ["Begin with the limits."]
    assert trial.state.work.pending_reflection is None


async def test_a_retry_undoes_the_report_that_was_written_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The analysis is done again, once, and the report is written from what it gives."""
    advise("retry", monkeypatch)
    monkeypatch.setattr("workflows.strategies.supervisor.supervisor_strategy.queries_to_repeat", lambda _: ["sq"])
    trial = await undisturbed(tmp_path, "supervisor", MODEL)
    trial.assert_completed()
    pauses = [entry.action for entry in trial.state.people.decisions if entry.agent == "supervisor"]
    assert pauses.count("retry") == 1
    assert order(trial).count("write_report") == 2
    assert trial.state.evidence.draft is not None


@pytest.mark.one_in(6)
@pytest.mark.parametrize("action", ["proceed", "retry"])
async def test_cancelled_at_any_call_beside_it_can_be_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """Whether the reflection or the report was done, or neither: the resumed run gives the same report."""
    monkeypatch.setattr("workflows.strategies.supervisor.supervisor_strategy.queries_to_repeat", lambda _: ["sq"])
    advise(action, monkeypatch)
    whole = await undisturbed(tmp_path / "whole", "supervisor", MODEL)
    for number in range(1, len(whole.host.by_unit[Phase.SYNTHESIS]) + 1):
        advise(action, monkeypatch)
        async with trial_of(tmp_path / str(number), "supervisor", MODEL) as trial:
            trial.host.acts[Phase.SYNTHESIS, number] = trial.cancel
            with pytest.raises(asyncio.CancelledError):
                await trial.conduct()
            stored = ResearchState.model_validate_json(await trial.world.sessions.load("r-unit") or "")
            assert stored.work.pending_reflection is not None or stored.evidence.draft is not None
            later = await resume(trial)
            later.assert_completed(str(number))
            assert later.findings == whole.findings, number
            assert comparable(await later.report()) == comparable(await whole.report()), number
            assert later.state.work.pending_reflection is None
