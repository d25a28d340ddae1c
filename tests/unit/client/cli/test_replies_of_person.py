"""What a person says to a run that waits: as text, in an editor, and in this terminal."""

import asyncio
import os
import pty
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from client.cli import asking_here, replies_of_person
from client.cli.asking_here import LeftWaiting, TerminalAsker, asker
from client.cli.command_errors import CommandError
from client.cli.plan_text import as_text, read_plan
from client.client_errors import MessageRefused
from client.view.console import follow
from contracts.outcome import EventPage, ResearchResult, ResearchStatus
from contracts.plan import APPROVAL_PHRASE, PlanAnswer, PlanNode, Waiting, WaitKind
from contracts.vocabulary import Outcome, RunStatus, StopReason
from tests.unit.workflows.test_waiting_for_a_person import waits
from workflows.rules.replies import read_revision

NODES = [PlanNode(id="a", text="How is it done?"), PlanNode(id="b", text="- Why\x1b[31m?")]
PLAN = PlanAnswer(version=2, brief="Both parts.", nodes=NODES, sub_queries=NODES)
APPROVAL = Waiting(kind=WaitKind.APPROVAL, plan_version=2, expires_at="2026-11-24T10:00:00+00:00")
QUESTIONS = Waiting(kind=WaitKind.CLARIFICATION, questions=["Which one?", "Since when?"], round=1)


def test_a_plan_survives_the_editor() -> None:
    """What is shown can be sent back; control characters never reach the terminal."""
    text = as_text(PLAN, "r-1")
    assert "\x1b" not in text
    assert read_plan(text) == {"sub_queries": ["How is it done?", "- Why [31m?"], "brief": "Both parts."}


def test_a_plan_as_json_is_taken_as_the_command_shows_it() -> None:
    """`research plan --json` gives what `--set` takes, with the nodes left out."""
    given = read_plan(
        '{"version": 2, "brief": "x", "sub_queries": ["a b", {"query": "c"}], "waiting": null, "nodes": []}'
    )
    assert read_revision(waits(), [], given).plan is not None
    shown = read_plan(PLAN.model_dump_json())
    assert [part["query"] for part in shown["sub_queries"]] == [node.text for node in NODES]
    assert read_revision(waits(), [], shown).plan is not None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("only a brief", "the plan has no sub-query: write each on a line of its own"),
        ("{broken", "no valid JSON"),
        ('{"sub_queries": ["a"], "plan": 1}', "plan: unknown key"),
        (f"- {'x' * 600}", "sub_queries.0.query: "),
        ('{"sub_queries": [1]}', r'sub_queries\.0: expected a text, or \{"query": "…", "rationale": "…"\}'),
        ('{"sub_queries": []}', "sub_queries: expected at least 1, and there is none"),
    ],
)
def test_a_plan_that_cannot_be_used_is_told_so(text: str, problem: str) -> None:
    """Before anything is sent: the path and what is wrong with it."""
    with pytest.raises(CommandError, match=problem):
        read_plan(text)


async def test_an_editor_changes_the_text_or_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The person's own editor with its arguments; one that fails changes nothing."""
    monkeypatch.setenv("VISUAL", "sed -i s/old/new/")
    assert await replies_of_person.edit_text("- the old one\n") == "- the new one\n"
    monkeypatch.setenv("VISUAL", "false")
    with pytest.raises(CommandError, match="ended with 1: the plan stays as it was"):
        await replies_of_person.edit_text("x")
    monkeypatch.setenv("VISUAL", "no-such-editor-here")
    with pytest.raises(CommandError, match=r"cannot be started: .*set EDITOR, or use --set FILE"):
        await replies_of_person.edit_text("x")
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CommandError, match="no terminal for an editor: use --set FILE"):
        await replies_of_person.edit_text("x")


@pytest.mark.parametrize(
    ("known", "problem"),
    [
        (PLAN, "no approval is open"),
        (PLAN.model_copy(update={"approved_version": 2}), "version 2 is approved"),
        (PLAN.model_copy(update={"waiting": QUESTIONS}), "no approval is open"),
    ],
)
def test_no_editor_opens_for_a_plan_that_waits_for_nothing(known: PlanAnswer, problem: str) -> None:
    """Whoever may not edit a plan is told so before, not after."""
    with pytest.raises(CommandError, match=f"the plan of r-1 cannot be edited: {problem}"):
        replies_of_person.require_wait(known, "r-1")
    replies_of_person.require_wait(PLAN.model_copy(update={"waiting": APPROVAL}), "r-1")


class FakeHandle:
    """Notes what it is told."""

    research_id = "r-1"

    def __init__(self, refused: int = 0) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.refused = refused

    async def plan(self) -> PlanAnswer:
        return PLAN

    async def _take(self, *said: Any) -> str:
        if self.refused:
            self.refused -= 1
            raise MessageRefused("phrase: this run wants exactly these words")
        self.told.append(said)
        return "taken"

    async def answer(self, answers: list[str], round_: int) -> str:
        return await self._take("answer", answers, round_)

    async def approve_plan(self, version: int, phrase: str | None = None) -> str:
        return await self._take("approve", version, phrase)

    async def reject_plan(self, reason: str = "") -> str:
        return await self._take("reject", reason)

    async def revise_plan(self, revision: Any, version: int) -> str:
        return await self._take("revise", revision, version)


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal as standard input; what is written to this descriptor is typed there."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r", encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield ours
    os.close(ours)


@pytest.mark.parametrize(
    ("waiting", "typed", "told"),
    [
        (APPROVAL, "y\n", ("approve", 2, None)),
        (APPROVAL.model_copy(update={"phrase": APPROVAL_PHRASE}), f"yes\n{APPROVAL_PHRASE}\n", ("approve", 2, APPROVAL_PHRASE)),
        (APPROVAL, "n\n", ("reject", "")),
        (APPROVAL, "\nleave version 9 out\n", ("revise", {"guidance": "leave version 9 out"}, 2)),
        (QUESTIONS, "the second\n\n", ("answer", ["the second", ""], 1)),
    ],
    ids=["yes", "phrase", "no", "words", "answers"],
)  # fmt: skip
async def test_a_person_is_asked_in_place(keyboard: int, waiting: Waiting, typed: str, told: tuple[Any, ...]) -> None:
    """One line decides; words are guidance, and an empty line is asked again."""
    handle = FakeHandle()
    os.write(keyboard, typed.encode())
    await asyncio.wait_for(TerminalAsker(handle).ask(waiting), 10)  # type: ignore[arg-type]
    assert handle.told == [told]


async def test_what_the_run_refuses_is_asked_again(keyboard: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The reason is shown, and nothing is lost."""
    handle = FakeHandle(refused=1)
    os.write(keyboard, b"y\ny\n")
    await asyncio.wait_for(TerminalAsker(handle).ask(APPROVAL), 10)  # type: ignore[arg-type]
    assert handle.told == [("approve", 2, None)]
    assert "this run wants exactly these words" in capsys.readouterr().err


async def test_a_question_that_nobody_answers_can_be_taken_back(keyboard: int) -> None:
    """Answered elsewhere, or the run is over: no thread goes on reading the terminal."""
    del keyboard
    asking = asyncio.create_task(TerminalAsker(FakeHandle()).ask(APPROVAL))  # type: ignore[arg-type]
    await asyncio.sleep(0.05)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_without_a_terminal_the_command_is_told_or_the_run_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exact command; with `--no-wait` the run goes on waiting without us."""
    monkeypatch.setattr(asking_here.sys.stdin, "isatty", lambda: False, raising=False)
    handle = FakeHandle()
    await asker(handle, quiet=True, leave=False)(APPROVAL)  # type: ignore[arg-type]
    assert "research approve r-1 --version 2" in capsys.readouterr().err
    with pytest.raises(LeftWaiting):
        await asker(handle, quiet=True, leave=True)(APPROVAL)  # type: ignore[arg-type]


class AskedRun:
    """A run that waits for two things, the first of which somebody answers elsewhere."""

    def __init__(self) -> None:
        self.looks = 0
        self.over = asyncio.Event()

    async def status(self) -> ResearchStatus:
        self.looks += 1
        waiting = [None, QUESTIONS, QUESTIONS, APPROVAL, APPROVAL][min(self.looks, 5) - 1]
        if self.looks >= 6:
            self.over.set()
            waiting = None
        return ResearchStatus(research_id="r-1", query="?", status=RunStatus.RUNNING, waiting=waiting)

    async def events(self, after: int) -> EventPage:
        return EventPage(next=after)

    async def result(self) -> ResearchResult:
        await self.over.wait()
        return ResearchResult(research_id="r-1", outcome=Outcome.EMPTY, stop_reason=StopReason.NO_EVIDENCE)


class NotedSink:
    """Notes when it gives way."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None: ...

    def show(self, *_: object) -> None: ...

    def notice(self, _: str) -> None: ...

    def give_way(self) -> None:
        self.noted.append("gives way")

    def come_back(self) -> None:
        self.noted.append("comes back")


async def test_each_wait_is_asked_once_and_ends_with_it() -> None:
    """The view gives way for each question, and a question that is answered elsewhere is taken back."""
    asked: list[WaitKind] = []
    cancelled: list[WaitKind] = []

    async def ask(waiting: Waiting) -> None:
        asked.append(waiting.kind)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(waiting.kind)
            raise

    sink = NotedSink()
    await follow(AskedRun(), sink, poll_seconds=0.01, ask=ask)  # type: ignore[arg-type]
    assert asked == cancelled == [WaitKind.CLARIFICATION, WaitKind.APPROVAL]
    assert sink.noted == ["gives way", "comes back", "gives way", "comes back"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Its path, and why."""
    with pytest.raises(CommandError, match=r"gone\.json cannot be read: "):
        replies_of_person._read(tmp_path / "gone.json")
