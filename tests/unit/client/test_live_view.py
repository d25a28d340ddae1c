"""Events folded into a live view."""

from typing import Any

from client.view.live_view import LiveView, Mark, PhaseLine, fold, task_progress, with_status
from contracts.outcome import Event, Progress, ResearchStatus, UnitProgress
from contracts.vocabulary import Phase, RunStatus


def event(seq: int, kind: str, text: str = "", second: int = 0, **data: Any) -> Event:
    """An event of the given second."""
    return Event(seq=seq, type=kind, time=f"2026-11-21T10:00:{second:02d}.500+00:00", text=text, data=data)


def phase_line(view: LiveView, phase: Phase) -> PhaseLine:
    """The line of one phase."""
    return next(line for line in view.phases if line.phase == phase)


def test_a_phase_runs_from_its_start_to_its_end() -> None:
    """A started phase is running, a finished one is done and knows its seconds and its gate."""
    started = fold(LiveView(), [event(1, "phase.started", phase="planning", iteration=1)])
    assert phase_line(started, Phase.PLANNING).mark is Mark.RUNNING
    news = [
        event(2, "gate.evaluated", phase="planning", valid=True, score=10.0, second=2),
        event(3, "phase.finished", phase="planning", summary="4 sub-queries", second=3),
    ]
    line = phase_line(fold(started, news), Phase.PLANNING)
    assert (line.mark, line.detail, line.gate, line.seconds) == (Mark.DONE, "4 sub-queries", "10/10", 3.0)


def test_a_gate_that_failed_says_why_and_a_retry_is_named() -> None:
    """No points for what did not pass; the phase that is done again says so."""
    issues = ["1 sources, at least 3", "no source is of high quality"]
    news = [
        event(1, "phase.started", phase="gathering", iteration=1),
        event(2, "gate.evaluated", phase="gathering", valid=False, score=10.0, issues=issues),
    ]
    line = phase_line(fold(LiveView(), news), Phase.GATHERING)
    assert (line.gate, line.gate_valid, line.detail) == ("failed: 1 sources, at least 3", False, "")
    again = fold(LiveView(), [*news, event(3, "phase.started", phase="gathering", iteration=1, again=True)])
    assert (phase_line(again, Phase.GATHERING).detail, phase_line(again, Phase.GATHERING).gate) == ("again", "")


def test_events_that_were_seen_change_nothing() -> None:
    """A page that is asked for twice is folded once."""
    news = [event(1, "source.added", source_id="src-1", title="A"), event(2, "finding.added", "“x”", count=2)]
    once = fold(LiveView(), news)
    assert fold(once, news) == once
    assert (once.newest, once.cursor) == ("“x”", 2)


def test_an_unknown_event_moves_only_the_cursor() -> None:
    """A newer workflow may tell things that this client does not know."""
    view = fold(LiveView(), [event(7, "something.new", "text", phase="planning")])
    assert view == LiveView(cursor=7)


def test_an_unknown_phase_is_no_error() -> None:
    """A phase of another strategy is shown under the label that its event brings."""
    view = fold(LiveView(), [event(1, "phase.started", phase="librarian", label="collect")])
    assert [(line.phase, line.label, line.mark) for line in view.phases] == [("librarian", "collect", Mark.RUNNING)]


def test_sub_queries_settle() -> None:
    """A sub-query goes from running to done or failed, in the order of its start, and keeps its words."""
    view = fold(
        LiveView(),
        [
            event(1, "phase.started", phase="gathering", iteration=1),
            event(2, "task.started", sub_query_id="sq-1", text="what it is"),
            event(3, "task.started", sub_query_id="sq-2", text="what it costs"),
            event(4, "task.failed", "what it costs: no answer", sub_query_id="sq-2", error="Unavailable"),
            event(5, "task.finished", sub_query_id="sq-1", found=5, new=3, duplicates=1),
        ],
    )
    assert [(task.text, task.mark, task.detail) for task in view.tasks] == [
        ("what it is", Mark.DONE, "5 found · 3 new · 1 duplicate"),
        ("what it costs", Mark.FAILED, "Unavailable"),
    ]
    assert task_progress(view) == (2, 2)
    assert view.failure == "what it costs: no answer"


def test_a_new_iteration_opens_the_later_phases_again() -> None:
    """When gathering starts again, analysis and writing are waiting, and the old sub-queries are gone."""
    view = fold(
        LiveView(),
        [
            event(1, "phase.started", phase="gathering", iteration=1),
            event(2, "task.started", sub_query_id="sq-1", text="one"),
            event(3, "phase.finished", phase="gathering"),
            event(4, "phase.started", phase="analysis", iteration=1),
            event(5, "phase.finished", phase="analysis"),
            event(6, "phase.started", phase="gathering", iteration=2),
        ],
    )
    assert phase_line(view, Phase.ANALYSIS).mark is Mark.WAITING
    assert (view.tasks, view.iteration) == ((), 2)


def test_the_last_failure_stays() -> None:
    """A failure is shown until a later one replaces it, whatever else happens (sketch of the live view)."""
    view = fold(LiveView(), [event(1, "task.failed", "first", sub_query_id="sq-1", error="x")])
    view = fold(view, [event(2, "source.added", source_id="s", title="t"), event(3, "task.finished", found=1)])
    assert view.failure == "first"
    assert fold(view, [event(4, "task.failed", "second", sub_query_id="sq-2", error="y")]).failure == "second"


def test_a_person_is_told_apart_from_the_supervisor() -> None:
    """Guidance keeps its origin, and the origin is not repeated in the words."""
    view = fold(LiveView(), [event(1, "guidance.given", "person: look at 16", origin="person")])
    assert (view.guidance_origin, view.guidance) == ("person", "look at 16")


def test_a_run_that_ends_leaves_nothing_running() -> None:
    """A phase that was cut off is marked as such."""
    view = fold(
        LiveView(),
        [event(1, "phase.started", phase="analysis"), event(2, "run.finished", "cancelled", outcome="cancelled")],
    )
    assert phase_line(view, Phase.ANALYSIS).mark is Mark.FAILED
    assert view.finished == "cancelled"


def test_a_late_watcher_sees_the_phase_from_the_status() -> None:
    """When the ring no longer holds the start of a phase, the status tells it."""
    status = ResearchStatus(
        research_id="r",
        query="q",
        status=RunStatus.RUNNING,
        phase=Phase.ANALYSIS,
        progress=Progress(units=[UnitProgress(name=Phase.ANALYSIS, label="analyze", mark=Mark.RUNNING)]),
        iteration=2,
        last_failure="f",
    )
    view = with_status(LiveView(), status)
    assert phase_line(view, Phase.ANALYSIS).mark is Mark.RUNNING
    assert (view.iteration, view.failure) == (2, "f")
