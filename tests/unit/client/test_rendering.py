"""What a terminal shows."""

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from client.view.live_view import LiveView, fold, with_status
from client.view.one_line import cut_at_word
from client.view.rendering import Frame, duration, money, printable, render_ending, render_live
from contracts.outcome import (
    AgentProgress,
    Awaited,
    Counts,
    Event,
    Mark,
    Progress,
    ResearchResult,
    ResearchStatus,
    UnitProgress,
    Usage,
)
from contracts.presets import preset
from contracts.request import Depth
from contracts.texts import plural
from contracts.vocabulary import AgentStatus, Outcome, RunStatus, StopReason

NOW = datetime(2026, 11, 21, 10, 0, 7, tzinfo=UTC)
FRAME = Frame("r-20261121-7k3f", "How does it work?", "http://127.0.0.1:8233/x", now=NOW, hint="Ctrl-C …")


PROGRESS = Progress(
    units=[
        UnitProgress(name=name, label=label)
        for name, label in (("planning", "plan"), ("gathering", "gather"), ("analysis", "analyze"))
    ]
)


def status(**changes: Any) -> ResearchStatus:
    """A status of a run without a model."""
    values: dict[str, Any] = {
        "research_id": "r-20261121-7k3f",
        "query": "How does it work?",
        "status": RunStatus.RUNNING,
        "engine": "extractive",
        "corpus": "manual",
        "egress": "nothing leaves this machine",
        "deadline_seconds": 900.0,
        "progress": PROGRESS,
        "counts": Counts(documents_searched=1173, sources=3, findings=1),
        "as_of": "2026-11-21T10:00:00.000+00:00",
    }
    return ResearchStatus(**(values | changes))


def shown(view: LiveView, frame: Frame = FRAME, width: int = 100) -> str:
    """The view as plain text."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(render_live(view, frame))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def events() -> list[Event]:
    """A run in the middle of gathering."""
    told: list[tuple[str, str, dict[str, Any]]] = [
        ("phase.started", "", {"phase": "planning", "iteration": 1}),
        ("gate.evaluated", "", {"phase": "planning", "valid": True, "score": 10}),
        ("phase.finished", "", {"phase": "planning", "summary": "4 sub-queries"}),
        ("phase.started", "", {"phase": "gathering", "iteration": 1}),
        ("task.started", "", {"sub_query_id": "a", "text": "what wraparound is"}),
        ("task.started", "", {"sub_query_id": "b", "text": "settings"}),
        ("task.finished", "", {"sub_query_id": "a", "found": 5, "new": 3, "duplicates": 0}),
        ("finding.added", "“vacuum every table”", {"count": 1}),
        ("source.failed", "", {"title": "broken.pdf", "kind": "encrypted"}),
        ("guidance.given", "rules: one manual only", {"origin": "rules"}),
    ]
    return [
        Event(seq=place, type=kind, time="2026-11-21T10:00:00+00:00", text=text, data=data)
        for place, (kind, text, data) in enumerate(told, start=1)
    ]


def test_the_live_view_shows_what_the_sketch_promises() -> None:
    """Question, id, where text goes, clock, phases, sub-queries, gate, newest words, what was skipped, the hint."""
    text = shown(with_status(fold(LiveView(), events()), status()))
    for part in (
        "How does it work?",
        "r-20261121-7k3f",
        "corpus manual (1,173 documents)",
        "nothing leaves this machine",
        "0:07 of 15:00",
        "cost 0.00 (no model)",
        "✔ plan",
        "4 sub-queries",
        "gate 10/10",
        "▸ gather",
        "1 of 2",
        "✔ what wraparound is",
        "5 found · 3 new",
        "○ analyze",
        "“vacuum every table”",
        "broken.pdf (encrypted)",
        "supervisor:",
        "one manual only",
        "Ctrl-C …",
    ):
        assert part in text, part


def test_the_clock_changes_the_picture_every_second() -> None:
    """Between two answers of the run the elapsed time goes on, so that two seconds never look alike."""
    view = with_status(fold(LiveView(), events()), status())
    assert "0:07 of" in shown(view)
    assert "0:08 of" in shown(view, replace(FRAME, now=NOW + timedelta(seconds=1)))


def test_a_line_never_wraps() -> None:
    """A long title is cut at the terminal's width, so that the view keeps its height."""
    news = [*events(), Event(seq=99, type="finding.added", time="", text="long " * 100)]
    view = with_status(fold(LiveView(), news), status())
    assert len(shown(view, width=60).splitlines()) == len(shown(view, width=200).splitlines())


def test_the_view_says_what_is_waited_for_and_for_how_long() -> None:
    """Also while a model reflects between two phases; the longest wait first, the others counted."""
    waits = [
        Awaited(what="analyze: what wraparound is", since="2026-11-21T10:00:05+00:00"),
        Awaited(what="reflect: gathering \\[1\\]", since="2026-11-21T09:59:00+00:00"),
    ]
    text = shown(with_status(LiveView(), status(awaiting=waits)))
    assert "waiting for: 1:07 reflect: gathering [1] (and 1 more)" in text


def test_the_cost_stands_beside_its_cap_and_the_time_left_is_called_an_estimate() -> None:
    """A fifth of the work took a minute: about four are left, and the deadline bounds that."""
    units = [UnitProgress(name=name, label=name, mark=Mark.DONE if name == "a" else Mark.WAITING) for name in "abcde"]
    limits = preset("supervisor", Depth.MEDIUM)
    known = status(
        engine="model",
        usage=Usage(model_calls=2, input_tokens=10, cost_usd=0.5),
        limits=limits,
        progress=Progress(units=units),
        elapsed_seconds=53.0,
    )
    text = shown(with_status(LiveView(), known), width=140)
    assert "cost 0.50 USD of at most 2.00" in text
    assert "1:00 of 15:00, about 4 min left (an estimate)" in text
    late = known.model_copy(update={"elapsed_seconds": 833.0})
    assert "14:00 of 15:00, about 60 s left (an estimate)" in shown(with_status(LiveView(), late), width=140)


def test_the_figures_are_the_runs_own() -> None:
    """After a repeated phase the events tell of the same source twice, and the run counts it once."""
    twice = [Event(seq=place, type="source.added", time="", data={"title": "A"}) for place in (1, 2)]
    assert "so far:      3 sources · 1 finding · 0 open gaps" in shown(with_status(fold(LiveView(), twice), status()))


@pytest.mark.parametrize(
    ("width", "cut"), [(40, "a line of several words"), (23, "a line of several words"), (20, "a line of several…"),
                       (18, "a line of several…"), (17, "a line of…"), (4, "a l…")]
)  # fmt: skip
def test_a_line_is_cut_at_a_word(width: int, cut: str) -> None:
    """No half words, unless there is room for less than one."""
    line = cut_at_word(Text("a line of several words"), width)
    assert line.plain == cut
    assert line.cell_len <= width


def test_before_the_first_answer_the_view_says_what_it_waits_for() -> None:
    """A view without a status is no empty screen."""
    assert "waiting for the first answer of a worker" in shown(LiveView())


@pytest.mark.parametrize("hostile", ["\x1b[2J\x1b[31mred", "a\rb", "[bold]x[/bold]", "a\u202eb", "two\nlines"])
def test_foreign_words_cannot_drive_the_terminal(hostile: str) -> None:
    """Titles are printed without control characters, direction marks or markup."""
    line = printable(hostile)
    assert line.isprintable()
    news = [Event(seq=1, type="finding.added", time="", text=hostile)]
    text = shown(with_status(fold(LiveView(), news), status()))
    assert "\x1b" not in text
    assert "\u202e" not in text
    if hostile.startswith("["):
        assert hostile in text


def test_an_unknown_price_is_not_called_zero() -> None:
    """`cost_usd: null` is shown as unknown."""
    used = Usage(model_calls=3, input_tokens=1000, output_tokens=200, cost_usd=None)
    assert money(status(engine="model", usage=used)) == "3 model calls · 1,200 tokens · cost unknown"


@pytest.mark.parametrize(("seconds", "text"), [(7, "0:07"), (750, "12:30"), (3900, "1:05:00"), (-1, "0:00")])
def test_durations(seconds: float, text: str) -> None:
    """Minutes and seconds, hours only when there are any."""
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [(1, "gap", "1 gap"), (2, "gap", "2 gaps"), (3, "sub-query", "3 sub-queries"), (1200, "source", "1,200 sources")],
)
def test_plural(count: int, noun: str, text: str) -> None:
    """One and many."""
    assert plural(count, noun) == text


@pytest.mark.parametrize(
    ("outcome", "reason", "parts"),
    [
        (Outcome.COMPLETED, StopReason.NO_OPEN_GAPS, ["✔ completed in 11 s", "4 sources cited", "2 gaps stated"]),
        (Outcome.PARTIAL, StopReason.BUDGET_TIME, ["◐ partial", "budget time"]),
        (Outcome.EMPTY, StopReason.NO_EVIDENCE, ["○ empty", "nothing answers in 9 documents", "no evidence"]),
        (Outcome.TIMED_OUT, StopReason.BUDGET_TIME, ["✖ timed out", "budget time"]),
    ],
)
def test_the_ending_says_how_and_why(outcome: Outcome, reason: StopReason, parts: list[str]) -> None:
    """One line with the outcome, the time and, unless all is well, the reason."""
    counts = Counts(sources_cited=4, evidence=14, gaps_open=2, documents_searched=9)
    result = ResearchResult(
        research_id="r", outcome=outcome, stop_reason=reason, counts=counts, usage=Usage(active_seconds=11.2)
    )
    text = render_ending(result).plain
    for part in parts:
        assert part in text


def test_a_partial_run_that_did_its_work_does_not_say_that_all_is_well() -> None:
    """“partial · no open gaps” would be two true things that contradict each other to a reader."""
    result = ResearchResult(research_id="r", outcome=Outcome.PARTIAL, stop_reason=StopReason.NO_OPEN_GAPS)
    assert render_ending(result).plain == "◐ partial · 0 sources cited · 0 passages quoted · 0 gaps stated"


def test_the_ending_counts_the_passages_that_the_report_quotes() -> None:
    """One figure in the terminal and in the report; a time that nobody measured is not called nothing."""
    counts = Counts(sources_cited=4, evidence=14, passages_cited=6)
    done = ResearchResult(
        research_id="r", outcome=Outcome.COMPLETED, stop_reason=StopReason.NO_OPEN_GAPS, counts=counts
    )
    assert render_ending(done).plain == "✔ completed · 4 sources cited · 6 passages quoted · 0 gaps stated"


def test_agents_stand_below_the_units_with_what_they_do() -> None:
    """Each has its task, how far it is and why it has less than it should; foreign text drives no terminal."""
    made = [
        AgentProgress(
            id="agent-1",
            task="What is \x1b[31mfrozen?",
            strategy="errand",
            status=AgentStatus.RUNNING,
            phase="looking",
            counts=Counts(sources=3, findings=1),
        ),
        AgentProgress(id="agent-2", task="Locks?", strategy="errand", status=AgentStatus.QUEUED),
        AgentProgress(id="agent-3", task="Backups?", strategy="errand", status=AgentStatus.FAILED, problem="it failed"),
    ]
    text = shown(with_status(LiveView(), status(agents=made)), width=160)
    assert "▸ agent-1 What is [31mfrozen?" in text
    assert "running, looking · 3 sources · 1 finding" in text
    assert "○ agent-2 Locks?" in text
    assert "queued" in text
    assert "✖ agent-3 Backups?" in text
    assert "failed · it failed" in text
