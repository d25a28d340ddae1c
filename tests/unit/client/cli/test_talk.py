"""What a person sends to a run that waits: as text, in an editor, and in this terminal."""

import asyncio
import os
import pty
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from client.cli.output import CommandError
from client.cli.talk import ask_here, edit_text, parse_plan, plan_as_text, print_plan
from client.client_errors import MessageRefused
from contracts.plan import (
    APPROVAL_PHRASE,
    CHOSEN_BY_AGENT,
    Objection,
    ObjectionKind,
    PlanAnswer,
    PlanNode,
    PlanRevision,
    Waiting,
    WaitKind,
)
from contracts.request import Constraints
from contracts.vocabulary import NodeKind, NodeStatus

NODES = [PlanNode(id="a", text="How is it done?"), PlanNode(id="b", text="- Why\x1b[31m?")]
PLAN = PlanAnswer(version=2, brief="Both parts.", nodes=NODES, sub_queries=NODES)
APPROVAL = Waiting(kind=WaitKind.APPROVAL, plan_version=2, expires_at="2026-11-24T10:00:00+00:00")
ASKING = APPROVAL.model_copy(update={"questions": ["Which?"]})
QUESTIONS = Waiting(kind=WaitKind.CLARIFICATION, questions=["Which one?", "Since when?"], round=1)


def test_a_plan_survives_the_editor() -> None:
    """The shown text can be sent back, one without a search is refused; control characters reach no terminal."""
    text = plan_as_text(PLAN, "r-1")
    assert "\x1b" not in text
    assert parse_plan(text) == {"sub_queries": ["How is it done?", "- Why [31m?"], "brief": "Both parts."}
    with pytest.raises(CommandError, match="the plan has no sub-query: write each on a line of its own"):
        parse_plan("only a brief")


def test_the_outline_of_a_plan_survives_the_editor(capsys: pytest.CaptureFixture[str]) -> None:
    """A label that is gone leaves its part, an empty one empties it; unusable parts are refused by field (S2-048)."""
    texts = {"outline": ["How: a part", "Why"], "questions": ["Which?"], "assumptions": ["The newest."]}
    known = PLAN.model_copy(update=texts | {"constraints": Constraints(audience="nurses"), "waiting": ASKING})
    print_plan(known, "r-1")
    shown, ways = capsys.readouterr()
    assert all(text in shown for text in ("outline:", "- How: a part", "Which?", "The newest.", "audience: nurses"))
    assert "answer r-1" in ways
    text = plan_as_text(known, "r-1")
    assert parse_plan(text) == {"sub_queries": ["How is it done?", "- Why [31m?"], "brief": "Both parts."} | texts
    assert "outline" not in parse_plan(text.partition("outline:\n")[0])
    assert parse_plan(text.replace("- Which?\n", ""))["questions"] == []
    for before, after, problem in (
        ("- How: a part\n- Why\n", "", "outline\n.*at least 1"),
        ("- Why\n", "- **Why**\n", "outline.1\n.*plain words"),
    ):
        with pytest.raises(ValidationError, match=problem):
            PlanRevision.model_validate(parse_plan(text.replace(before, after)))
    with pytest.raises(CommandError, match='under outline: each line begins with "- "'):
        parse_plan(text.replace("- Why\n", "Why\n"))


def test_a_printed_plan_can_be_sent_back(capsys: pytest.CaptureFixture[str]) -> None:
    """Its heading, what a step contributes, objections and constraints are comments of the text (S2-048)."""
    described = NODES[0].model_copy(update={"expected_contribution": "The way it is done."})
    objection = Objection(kind=ObjectionKind.OPINION, query="All?", text="too much")
    shown = PLAN.model_copy(
        update={"sub_queries": [described, NODES[1]], "objections": [objection], "outline": ["Why"],
                "constraints": Constraints(audience="nurses")}
    )  # fmt: skip
    print_plan(shown, "r-1")
    printed = capsys.readouterr().out
    assert all(text in printed for text in ("The way it is done.", "too much", "nurses"))
    assert parse_plan(printed) == parse_plan(plan_as_text(shown, "r-1"))


def test_a_tree_is_printed_by_level(capsys: pytest.CaptureFixture[str]) -> None:
    """Nodes of agents below their queries and leaves with their sources, grafts included; searches are no part of it."""
    query = PlanNode(id="q", text="How?", status=NodeStatus.EXECUTING)
    task = {"kind": NodeKind.TASK, "needs_search": False}
    nodes = [
        query,
        PlanNode(id="node-b", text="Costs", parent="node-a", **task),
        PlanNode(id="node-a", text="All", parent="q", status=NodeStatus.EXECUTING, **task),
        PlanNode(
            id="leaf", text="facts", parent="node-b", source_id="src-1", task_type="SUMMARIZE",
            rationale="Costs of freezing",
            status=NodeStatus.COMPLETED, **task,
        ),
        PlanNode(id="s", text="a search of the librarian", origin=CHOSEN_BY_AGENT),
    ]  # fmt: skip
    print_plan(PlanAnswer(version=1, nodes=nodes, sub_queries=[query]), "r-1")
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  ▸ How?",
        "    ▸ All",
        "      ○ Costs",
        "        ✔ summarize (“Costs of freezing”): facts",
    ]


def test_searches_of_an_agent_are_no_part_of_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    """Before there are leaves the plan is what was approved, without the words that a librarian searches for."""
    query = PlanNode(id="q", text="How?", status=NodeStatus.EXECUTING)
    search = PlanNode(id="s", text="a search of the librarian", origin=CHOSEN_BY_AGENT)
    nodes = [query, search, PlanNode(id="executor-1", text="How?", parent="q", kind=NodeKind.TASK, needs_search=False)]
    print_plan(PlanAnswer(version=1, nodes=nodes, sub_queries=nodes), "r-1")
    assert capsys.readouterr().out.splitlines()[1:] == ["- How?"]


def test_a_plan_to_approve_comes_with_what_the_run_likely_uses(capsys: pytest.CaptureFixture[str]) -> None:
    """Before the commands that answer; a plan at work says nothing of it."""
    waiting = Waiting(kind=WaitKind.APPROVAL, plan_version=2, since="2026-11-28", expires_at="2026-12-05")
    plan = PLAN.model_copy(update={"estimate": "likely about 9 model calls; the run stops at 2.00 USD"})
    print_plan(plan, "r-1")
    assert "likely" not in capsys.readouterr().out
    print_plan(plan.model_copy(update={"waiting": waiting}), "r-1")
    assert "# likely about 9 model calls; the run stops at 2.00 USD" in capsys.readouterr().out.splitlines()


async def test_an_editor_changes_the_text_or_the_error_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The person's own editor with its arguments; one that fails changes nothing."""
    monkeypatch.setenv("VISUAL", "sed -i s/old/new/")
    assert await edit_text("- the old one\n") == "- the new one\n"
    for editor, problem in (
        ("false", "false failed, and the plan was not changed"),
        ("no-such-editor-here", r"failed, .*set EDITOR, or use --set FILE"),
        ("", "no terminal for an editor: use --set FILE"),
    ):
        monkeypatch.setenv("VISUAL", editor)
        monkeypatch.delenv("EDITOR", raising=False)
        with pytest.raises(CommandError, match=problem):
            await edit_text("x")


class FakeHandle:
    """Records its messages; the first ones are refused."""

    research_id = "r-1"

    def __init__(self, refused: int = 0) -> None:
        self.sent: list[tuple[Any, ...]] = []
        self.refused = refused
        self.shown = PLAN

    async def plan(self) -> PlanAnswer:
        return self.shown

    def __getattr__(self, message: str) -> Callable[..., Awaitable[str]]:
        async def send(*arguments: Any, **named: Any) -> str:
            if self.refused:
                self.refused -= 1
                raise MessageRefused("phrase: this run wants exactly these words")
            self.sent.append((message, *arguments, *named.items()))
            return "taken"

        return send


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal as standard input; what is written to this descriptor is typed there."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r", encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield ours
    os.close(ours)


@pytest.mark.parametrize(
    ("waiting", "typed", "sent"),
    [
        (APPROVAL, "y\n", ("approve_plan", 2, None)),
        (APPROVAL.model_copy(update={"phrase": APPROVAL_PHRASE}), f"yes\n{APPROVAL_PHRASE}\n", ("approve_plan", 2, APPROVAL_PHRASE)),
        (APPROVAL.model_copy(update={"phrase": APPROVAL_PHRASE}), "authorized to execute\n", ("approve_plan", 2, "authorized to execute")),
        (APPROVAL.model_copy(update={"objected": ObjectionKind.OPINION}), "o\n", ("approve_plan", 2, None, ("overrule", True))),
        (APPROVAL, "n\n", ("reject_plan",)),
        (APPROVAL, "\nleave version 9 out\n", ("revise_plan", {"guidance": "leave version 9 out"}, 2)),
        (APPROVAL.model_copy(update={"questions": ["Which one?"]}), "a\nthe second\n", ("answer", ["the second"], 2)),
        (QUESTIONS, "the second\n\n", ("answer", ["the second", ""], 1)),
    ],
    ids=["yes", "phrase", "phrase alone", "overruled", "no", "words", "questions of the plan", "answers"],
)  # fmt: skip
async def test_a_person_is_asked_in_place(keyboard: int, waiting: Waiting, typed: str, sent: tuple[Any, ...]) -> None:
    """Each reply becomes its message; a refused one is asked again."""
    handle = FakeHandle(refused=1 if typed == "y\n" else 0)
    against = [Objection(kind=waiting.objected, query="All?", text="too much")] if waiting.objected else []
    handle.shown = PLAN.model_copy(update={"questions": waiting.questions, "objections": against})
    os.write(keyboard, (typed * (1 + handle.refused)).encode())
    await asyncio.wait_for(ask_here(handle, waiting), 60)  # type: ignore[arg-type]
    assert handle.sent == [sent]
