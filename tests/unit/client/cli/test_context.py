"""Runs as the session store tells them, and the stores' places."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from client.cli.command_context import CommandContext, last_outcome, result_of, status_at_checkpoint
from client.cli.run import request_again
from client.cli.show import _status, _status_table
from client.cli.stores import open_stores, read_deleted_histories, record_deleted_histories
from contracts.outcome import ResearchResult
from contracts.presets import preset
from contracts.request import Depth
from contracts.resolved import EffectiveGates, ResolvedResearch
from contracts.state import ResearchState
from contracts.vocabulary import EngineKind, Outcome, RunStatus, StopReason
from providers.storage.sessions import SESSIONS
from workers import composition
from workers.settings.loading import Settings
from workers.shared_state import open_shared_state


def state(**changes: object) -> ResearchState:
    """A state of a run that was asked `Why?`."""
    resolved = ResolvedResearch(
        research_id="r",
        query="Why?",
        engine=EngineKind.EXTRACTIVE,
        limits=preset("supervisor", Depth.LIGHT),
        gates=EffectiveGates(),
        tenant="acme",
    )
    return ResearchState.model_validate({"resolved": resolved, **changes})


def test_a_cancelled_run_has_a_result_without_a_report() -> None:
    """A handle always gives a result (interfaces, section 1)."""
    result = result_of("r", state(status=RunStatus.CANCELLED))
    assert result is not None
    assert (result.outcome, result.stop_reason, result.report, result.resumable) == (
        Outcome.CANCELLED,
        StopReason.USER_CANCELLED,
        "",
        True,
    )


def test_a_run_that_nobody_closed_has_no_result_and_can_go_on() -> None:
    """After a kill the last checkpoint says running: no ending is made up, and resuming treats it as failed."""
    interrupted = state(status=RunStatus.RUNNING)
    assert result_of("r", interrupted) is None
    assert last_outcome(interrupted) is Outcome.FAILED


def test_the_stored_result_wins() -> None:
    """What the run wrote itself is given as it is."""
    result = ResearchResult(research_id="r", outcome=Outcome.EMPTY, stop_reason=StopReason.NO_EVIDENCE)
    assert result_of("r", state(status=RunStatus.EMPTY, result=result)) == result


def test_the_clock_of_an_interrupted_run_stands_still() -> None:
    """Elapsed time is that of the last checkpoint, not the time since it died."""
    stopped = state(status=RunStatus.RUNNING, clock_started_at=1_000.0, active_seconds_before=12.0)
    assert status_at_checkpoint(stopped).elapsed_seconds == 12.0


async def test_a_run_that_ended_without_a_report_says_how(tmp_path: Path) -> None:
    """A cancelled run was not interrupted: when it ended, how long it had worked, and how to go on are told."""
    begun = datetime.now(tz=UTC) - timedelta(seconds=40)
    settings = Settings(home=tmp_path)
    async with open_stores(settings) as stores:
        for name, status in (("ended", RunStatus.CANCELLED), ("cut-off", RunStatus.RUNNING)):
            stored = state(status=status, clock_started_at=begun.timestamp()).model_dump_json()
            await stores.sessions.save(name, stored, closed=status is RunStatus.CANCELLED)
        context = CommandContext(settings, stores, reads_only=True)
        ended, note = await _status(context, "ended")
        cut_off, warning = await _status(context, "cut-off")
    assert (ended.outcome, ended.stop_reason) == (Outcome.CANCELLED, StopReason.USER_CANCELLED)
    assert datetime.fromisoformat(ended.ended_at or "") > begun
    assert 40 <= ended.elapsed_seconds < 300
    assert note == "its state is kept: research resume ended"
    assert (cut_off.outcome, cut_off.ended_at) == (None, None)
    assert warning == "the run was interrupted: research resume cut-off"


def test_a_partial_run_that_did_all_its_work_says_that_it_lacks_something() -> None:
    """Its status does not say that no gap was left, which reads as the contrary."""
    result = ResearchResult(research_id="r", outcome=Outcome.PARTIAL, stop_reason=StopReason.NO_OPEN_GAPS)
    shown = status_at_checkpoint(state(status=RunStatus.PARTIAL, result=result))
    assert shown.stop_reason is StopReason.NO_OPEN_GAPS
    assert _status_table(shown).plain.endswith("ended     the report says what it lacks")


def test_a_resumed_run_is_asked_the_same_question() -> None:
    """Everything else is kept in the stored resolution; only new limits would be added."""
    resolved = state().resolved
    assert resolved is not None
    again = request_again(resolved)
    assert (again["query"], again["strategy"], again["tenant"]) == ("Why?", "supervisor", "acme")
    assert "limits" not in again
    assert request_again(resolved, "other")["models"] == dict.fromkeys(("simple", "analytical", "complex"), "other")
    used = resolved.model_copy(update={"models": {"simple": "m", "analytical": "m", "complex": "m"}})
    assert "models" not in request_again(used, "m")


async def test_commands_look_where_the_workers_write(tmp_path: Path) -> None:
    """The places of sessions, documents, corpora and calls are those of the composition root."""
    async with open_stores(Settings(home=tmp_path)) as stores:
        await stores.sessions.save("r-1", "{}", closed=True)
        assert (tmp_path / SESSIONS / "r-1.json").is_file()
        await stores.content.put_text("text")
        assert (tmp_path / composition.CONTENT_FOLDER).is_dir()
        async with open_shared_state(Settings(home=tmp_path)) as worker:
            await worker.calls.begin("k", "r-1", 60.0)
            await worker.calls.finish("k", "answer")
        assert await (await stores.calls()).forget("r-1") == 1
        (tmp_path / "documents").mkdir()
        (await stores.corpora()).add("documents", tmp_path / "documents")
        assert (tmp_path / composition.CORPORA_FOLDER / "corpora.json").is_file()


def test_deleted_histories_are_remembered_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine lists them on for some seconds; after an hour nothing is left of the note."""
    assert read_deleted_histories(tmp_path) == set()
    record_deleted_histories(tmp_path, ["one"])
    assert read_deleted_histories(tmp_path) == {"one"}
    monkeypatch.setattr("client.cli.stores.KEPT_SECONDS", -1.0)
    record_deleted_histories(tmp_path, [])
    assert read_deleted_histories(tmp_path) == set()
