"""`thread` on stored runs, and `ask` without a run: which runs are a thread, and how questions are read."""

import json
import os
import pty
import sys
from pathlib import Path
from typing import Any

import pytest

from client.cli.ask import TerminalThread
from client.cli.context import RunInfo, open_context
from client.cli.options import RunOptions
from client.cli.thread import load_thread, members_of
from client.run_results import bare_result
from client.view.words import thread_words
from contracts.outcome import Counts, Usage
from contracts.request import FollowUp
from contracts.vocabulary import Outcome, RunStatus
from tests.fakes import states
from tests.unit.client.cli.command_line import make_old, research, save_run
from workers.settings.loading import Flags


def test_a_thread_is_all_runs_below_one_first_question() -> None:
    """Also those beside one another, and those below a run that is no longer stored; nobody else's."""
    above = {"a": [], "b": ["a"], "c": ["a", "b"], "side": ["a"], "other": [], "d": ["other"]}
    for name in ("a", "b", "c", "side"):
        assert members_of(name, above) == ["a", "b", "c", "side"]
    without_first = {"b": ["a"], "c": ["a", "b"], "d": ["other"]}
    assert members_of("c", without_first) == ["b", "c"]
    assert members_of("b", {"b": ["b"]}) == ["b"], "a record that names itself ends nothing"
    old = {"a": [], "b": ["a"], "c": ["b"]}  # an earlier version named the run before alone
    assert members_of("c", old) == ["a", "b", "c"]


def save_thread(home: Path) -> None:
    """Three questions of one tenant, the second of which failed, and one of another tenant."""
    for number, (name, status, thread, tenant) in enumerate(
        (
            ("r-1", RunStatus.COMPLETED, [], "default"),
            ("r-2", RunStatus.FAILED, ["r-1"], "default"),
            ("r-3", RunStatus.RUNNING, ["r-1", "r-2"], "default"),
            ("r-4", RunStatus.COMPLETED, ["r-1"], "another"),
        )
    ):
        follow_up = FollowUp(research_id=thread[-1], query="Before?", thread=thread[:-1]) if thread else None
        resolved = states.resolved(query=f"Question {number + 1}?", follow_up=follow_up, tenant=tenant)
        outcome = Outcome.COMPLETED if status is RunStatus.COMPLETED else Outcome.FAILED
        result = None if status is RunStatus.RUNNING else bare_result(name, Outcome.FAILED, "no worker was there")
        if result is not None:
            usage = Usage(cost_usd=0.25 * (number + 1))
            result = result.with_fields(usage=usage, outcome=outcome)
        started = f"2026-11-29T08:0{number}:00+00:00"
        state = states.state(resolved=resolved, status=status, result=result, started_at=started)
        save_run(home, name, state, closed=result is not None)


def test_the_thread_of_any_of_its_runs_is_shown(home: Path) -> None:
    """In the order of its questions, with outcome, cost and id, and the sum; a run at work has its state."""
    save_thread(home)
    document = json.loads(research("thread", "r-2", "--json").stdout)
    answers = {answer["research_id"]: answer for answer in document["answers"]}
    assert list(answers) == ["r-1", "r-2", "r-3", "r-4"]
    assert [answers[name]["status"] for name in ("r-1", "r-2", "r-3")] == ["completed", "failed", "running"]
    assert answers["r-2"]["follows"] == "r-1"
    assert document["cost_usd"] == pytest.approx(0.25 + 0.5 + 1.0)
    shown = research("thread", "r-3")
    assert shown.exit_code == 0
    assert "2 · Question 2?" in shown.stdout
    assert "failed: no worker was there" in shown.stdout
    assert "0.50 USD · r-2" in shown.stdout


def test_where_a_tenant_is_set_its_own_runs_are_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the list, in a thread, by id and as the newest run; those of others are named by no command, and not deleted."""
    save_thread(home)
    monkeypatch.setenv("RESEARCH_TENANT", "another")
    assert [row["research_id"] for row in json.loads(research("list", "--json").stdout)] == ["r-4"]
    assert [answer["research_id"] for answer in json.loads(research("thread", "--json").stdout)["answers"]] == ["r-4"]
    for command in ("status", "thread", "report", "sources", "audit"):
        ended = research(command, "r-1")
        assert (ended.exit_code, ended.stderr) == (2, "research: there is no run 'r-1': see `research list`\n")
    for name in ("r-1", "r-4"):
        make_old(home, name)
    assert "removed 1 run older than" in research("delete", "--older-than", "30", "--yes").stdout
    monkeypatch.delenv("RESEARCH_TENANT")
    assert {row["research_id"] for row in json.loads(research("list", "--json").stdout)} == {"r-1", "r-2", "r-3"}


async def test_a_tenant_sees_its_own_questions_of_a_thread(home: Path) -> None:
    """Runs of others are left out; without any of its own there is none."""
    await _save(home)
    async with open_context(Flags()) as context:
        own = await load_thread(context, "r-1", "default")
        assert [answer.research_id for answer in own.answers] == ["r-1", "r-2", "r-3"]
        with pytest.raises(Exception, match="nothing is stored of the thread"):
            await load_thread(context, "r-1", "nobody")


async def _save(home: Path) -> None:
    import asyncio

    await asyncio.to_thread(save_thread, home)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("thread", "r-1", "--out", "thread.txt"),
            "has no known end: use .html, .md, .json, .docx, .pdf, .bib, .csl.json",
        ),
        (("thread", "r-1", "--out", "thread.html"), "no question of this thread has a report yet"),
        (("thread", "r-9"), "there is no run 'r-9'"),
        (("ask", "What is it?", "And this?"), "give an ID and a question, or a question alone"),
        (("ask", "r-9", "And this?"), "there is no run 'r-9'"),
    ],
)
def test_wrong_use_is_one_line(home: Path, tmp_path: Path, arguments: tuple[str, ...], problem: str) -> None:
    """A format without an end of its name, a thread without a report, ids of no run; nothing is written."""
    save_thread(home)
    ended = research(*arguments)
    assert ended.exit_code == 2
    assert problem in ended.stderr
    assert not list(tmp_path.glob("thread.*"))


class Asked(TerminalThread):
    """A thread at a terminal whose runs end at once, as they are told."""

    outcomes: list[Outcome]
    seen: list[tuple[str, str]]

    async def answer(self, question: str) -> int:
        outcome = self.outcomes.pop(0)
        self.seen.append((question, self.earlier.research_id if self.earlier else ""))
        run = RunInfo(f"r-{len(self.seen)}")
        self.ids.append(run.research_id)
        self.costs.append(None if outcome is Outcome.FAILED else 0.5)
        if outcome is Outcome.COMPLETED:
            self.earlier = run
        return 0 if outcome is Outcome.COMPLETED else 4


async def test_questions_go_on_until_an_empty_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each follows the last one with an answer; costs are added up, and at the end the ids are printed."""
    main, side = pty.openpty()
    os.write(main, b"And the second?\nAnd the third?\n\n")
    context: Any = None
    talk = Asked(context, RunOptions(), None, goes_on=True)
    talk.outcomes, talk.seen = [Outcome.COMPLETED, Outcome.FAILED, Outcome.COMPLETED], []
    with os.fdopen(side, "r", closefd=True) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        code = await talk.hold("The first?")
    os.close(main)
    assert talk.seen == [("The first?", ""), ("And the second?", "r-1"), ("And the third?", "r-1")]
    printed = capsys.readouterr().err
    assert "0.50 USD · 1 question so far: 0.50 USD" in printed
    assert "3 questions so far: cost unknown" in printed
    assert "asked: r-1 r-2 r-3" in printed
    assert "research thread r-3" in printed
    assert code == 0


def test_what_came_from_the_thread_is_described() -> None:
    """Only of a question that was offered something."""
    assert thread_words(Counts(sources=3, passages_cited=4)) == ""
    counts = Counts(sources=5, sources_offered=9, sources_earlier=3, passages_cited=11, passages_earlier=9)
    assert thread_words(counts) == "9 of 11 passages came from earlier answers of this thread, 2 new pages were read"
    one = counts.with_fields(sources=4, passages_cited=1, passages_earlier=1)
    assert thread_words(one) == "1 of 1 passage came from earlier answers of this thread, 1 new page was read"
