"""The lines of a run in a log or a pipe."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from client.view.live_view import LiveView
from client.view.plain_lines import PlainLines, describe_standing
from contracts.outcome import Counts, Event, ResearchStatus
from contracts.vocabulary import Phase, RunStatus


@pytest.fixture(autouse=True)
def clock_of_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lines show the clock of this machine."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def told(*events: tuple[str, str, dict[str, Any]]) -> list[str]:
    """The lines of a run with these events."""
    made = [
        Event(seq=place, type=kind, time="2026-11-21T10:11:12.000+00:00", text=text, data=data)
        for place, (kind, text, data) in enumerate(events, start=1)
    ]
    return [line.removeprefix("10:11:12 ") for line in PlainLines().of(made)]


def test_a_line_is_the_clock_and_the_words() -> None:
    """Control characters of foreign titles never reach the terminal; an unknown event speaks for itself."""
    events = [
        Event(seq=1, type="source.added", time="2026-11-21T10:11:12.000+00:00", text="read\n\x1b[1m Vacuum"),
        Event(seq=2, type="run.started", time=""),
    ]
    assert PlainLines().of(events) == ["10:11:12 read [1m Vacuum", "run.started"]


def test_inner_steps_are_not_told() -> None:
    """Dispatching a role, evaluating a phase and passing a gate say nothing to a person."""
    assert (
        told(
            ("decision.recorded", "planner: execute_planning", {"agent": "planner", "action": "execute_planning"}),
            ("decision.recorded", "supervisor: evaluate_phase", {"agent": "supervisor", "action": "evaluate_phase"}),
            ("gate.evaluated", "gate 10/10 passed", {"phase": "planning", "valid": True, "score": 10}),
            ("gate.evaluated", "gate failed: 1 findings", {"phase": "analysis", "valid": False, "issues": []}),
            ("guidance.given", "rules: 1 findings", {"origin": "rules"}),
            ("plan.drafted", "4 sub-queries", {"count": 4}),
            ("report.updated", "1967 characters", {}),
            ("status", "3 found: what is it?", {"found": 3}),
            ("task.finished", "3 found · 3 read", {"error": None}),
        )
        == []
    )


def test_what_matters_is_told() -> None:
    """Gate failures, findings in their own words, skipped sources, gaps, guidance, and where the run goes."""
    assert told(
        ("phase.finished", "4 sub-queries", {"phase": "planning", "summary": "4 sub-queries"}),
        ("gate.evaluated", "gate 2/10 not passed (no sources)", {"phase": "gathering", "valid": False}),
        ("finding.added", "2 findings: q", {"count": 2, "statement": "Water boils."}),
        ("source.failed", "skipped: broken.pdf (encrypted)", {}),
        ("gap.opened", "gap: nothing on costs", {}),
        ("guidance.given", "person: look at costs", {}),
        (
            "decision.recorded",
            "supervisor: decide_iteration 2 gaps matter",
            {"agent": "supervisor", "action": "decide_iteration"},
        ),
        ("decision.recorded", "supervisor: retry no sources", {"agent": "supervisor", "action": "retry"}),
        ("task.finished", "failed: q: timeout", {"error": "timeout"}),
        ("run.finished", "completed: no_open_gaps", {"outcome": "completed"}),
    ) == [
        "planning done: 4 sub-queries",
        "gate 2/10 not passed (no sources)",
        "finding: Water boils. (and 1 more)",
        "skipped: broken.pdf (encrypted)",
        "gap: nothing on costs",
        "person: look at costs",
        "supervisor: 2 gaps matter",
        "supervisor: retry: no sources",
        "failed: q: timeout",
        "completed: no open gaps",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("completed: no_open_gaps", "completed: no open gaps"),
        ("partial: no_open_gaps", "partial: the report says what it lacks"),
        ("partial: budget_time", "partial: budget time"),
    ],
)
def test_the_last_line_does_not_contradict_itself(text: str, line: str) -> None:
    """A run whose work was done is partial for what it lacks, not for what ended it."""
    assert told(("run.finished", text, {"outcome": text.partition(":")[0]})) == [line]


def test_nothing_is_said_twice_in_a_phase() -> None:
    """The same finding of two sub-queries is one line; a later phase may say it again."""
    finding = ("finding.added", "", {"count": 2, "statement": "Water boils."})
    again = ("finding.added", "", {"count": 1, "statement": "Water boils."})
    phase = ("phase.started", "analysis, iteration 2", {"phase": "analysis"})
    assert told(finding, again, phase, again) == [
        "finding: Water boils. (and 1 more)",
        "analysis, iteration 2",
        "finding: Water boils.",
    ]


def test_a_long_silence_is_broken_by_where_the_run_stands() -> None:
    """Phase, time and what was found so far."""
    status = ResearchStatus(
        research_id="r",
        query="q",
        status=RunStatus.RUNNING,
        phase=Phase.ANALYSIS,
        elapsed_seconds=75,
        deadline_seconds=900,
        counts=Counts(sources=12, findings=1),
    )
    now = datetime(2026, 11, 21, 10, 11, 12, tzinfo=UTC)
    line = describe_standing(LiveView(status=status), now)
    assert line == "10:11:12 … analysis, 1:15 of 15:00 · 12 sources · 1 finding"
    assert "waiting" in describe_standing(LiveView(), now)


def test_a_gate_says_what_it_asks_for() -> None:
    """Full points beside a verdict against them puzzle; the issue alone is told."""
    data = {"phase": "analysis", "valid": False, "score": 10, "issues": ["no finding is of high confidence"]}
    event = Event(seq=1, type="gate.evaluated", time="", text="gate 10/10 not passed (…)", data=data)
    assert PlainLines().of([event]) == ["quality check of the analysis: no finding is of high confidence"]


def test_a_long_line_ends_with_a_whole_word() -> None:
    """What has no room is left out from a word on, and a sign says so."""
    (line,) = told(("status", "wraparound " * 40, {}))
    assert line.endswith("wraparound…")
    assert len(line) <= 240
    statement = ("The engine compares identifiers in circular order. " * 4)[:200]
    (line,) = told(("finding.added", "2 findings", {"statement": statement, "count": 2}))
    assert line.endswith(" circular… (and 1 more)")
