"""A run as a turn of a conversation shows it: until it asks something new, or ends."""

import asyncio
from dataclasses import dataclass
from typing import cast

from client.chat.conversation import Pointer
from client.chat.turns import _follow, _plan_text, _tell
from client.cli.context import CommandContext, RunInfo
from client.client_errors import MessageRefused
from client.handle import ResearchHandle
from contracts.outcome import Event, EventPage, ResearchResult, ResearchStatus
from contracts.plan import Objection, ObjectionKind, PlanAnswer, PlanNode, Waiting, WaitKind
from contracts.vocabulary import RunStatus

PLAN = Waiting(kind=WaitKind.APPROVAL, plan_version=1)


@dataclass
class AskingRun:
    """Stands for a handle: it waits for the approval of one version, then of the next."""

    waits: list[Waiting | None]
    research_id: str = "chat-1"

    async def status(self) -> ResearchStatus:
        waiting = self.waits.pop(0) if len(self.waits) > 1 else self.waits[0]
        return ResearchStatus(research_id=self.research_id, query="How?", status=RunStatus.RUNNING, waiting=waiting)

    async def events(self, after: int = 0) -> EventPage:
        every = [
            Event(seq=1, type="x", time="", text="planning"),
            Event(seq=2, type="wait.started", time="", text="research approve"),
        ]
        return EventPage(events=every[after:], next=2)

    async def question(self) -> str:
        return "How?"

    async def steer(self, text: str) -> str:
        raise MessageRefused("too late: the report is being written")

    async def result(self) -> ResearchResult:
        return await asyncio.Event().wait()  # type: ignore[return-value]


async def test_an_answered_question_is_not_asked_once_more() -> None:
    """A run may still show it for a moment; the next one is asked. Commands of a terminal are no progress here."""
    run = AskingRun([PLAN, PLAN.with_fields(plan_version=2)])
    answered = Pointer.of_wait("chat-1", PLAN)
    shown = [item async for item in _follow(cast("ResearchHandle", run), answered)]
    assert shown == ["planning", PLAN.with_fields(plan_version=2)]


async def test_a_message_that_a_run_does_not_take_is_answered_with_the_reason() -> None:
    """Words for a run that writes its report already; those of its own question are no message."""
    run = AskingRun([None])
    info = RunInfo("chat-1", handle=cast("ResearchHandle", run), running=True)
    context = cast("CommandContext", None)
    assert "did not take the message: too late" in (await _tell(context, info, "Look at the ropes")).opening
    assert "is going on" in (await _tell(context, info, "how?")).opening


def test_a_plan_is_shown_with_the_words_that_begin_it() -> None:
    """The phrase where one is wanted, and objections with what overrules them; its markup is text."""
    node = PlanNode(id="q1", text="![ropes](http://tracker.example/)")
    plan = PlanAnswer(version=1, sub_queries=[node], outline=["# Ropes"], estimate="likely little")
    text = "\n".join(_plan_text(plan, PLAN))
    assert "![ropes](" not in text
    assert "**yes** begins" in text
    assert "likely little" in text
    assert "“Go” begins" in "\n".join(_plan_text(plan, PLAN.with_fields(phrase="Go")))
    opinion = Objection(kind=ObjectionKind.OPINION, text="It is wide.")
    binding = Objection(kind=ObjectionKind.STRUCTURAL, text="It needs more calls.")
    wide = "\n".join(_plan_text(plan.with_fields(objections=[opinion]), PLAN))
    assert "- Too wide: all queries together: It is wide." in wide
    assert "**overrule** begins" in wide
    phrased = PLAN.with_fields(phrase="Go")
    assert "**overrule Go** begins" in "\n".join(_plan_text(plan.with_fields(objections=[opinion]), phrased))
    bound = "\n".join(_plan_text(plan.with_fields(objections=[opinion, binding]), PLAN))
    assert "begins" not in bound
    assert "**no** ends it" in bound
