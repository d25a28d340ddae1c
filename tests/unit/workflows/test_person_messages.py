"""The updates of a run: what is checked before a message is taken, and what the sender is told."""

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts import failures
from contracts.evidence import Source
from contracts.plan import Waiting, WaitKind
from contracts.request import Approve
from tests.unit.workflows.test_waiting_for_a_person import waits
from workflows.messages import PersonMessages
from workflows.run.inbox import Reply


def messages(approve: Approve = Approve.PLAN) -> PersonMessages:
    """Those of a run whose plan waits for approval."""
    made = PersonMessages()
    made._state = waits(approve)
    return made


def clarifying() -> PersonMessages:
    """Those of a run that asks a question."""
    made = PersonMessages()
    made._state.waiting = Waiting(kind=WaitKind.CLARIFICATION, questions=["Which?"], round=1)
    return made


async def test_what_is_right_is_put_down_and_answered() -> None:
    """Each message of a wait, with what comes next."""
    run = messages()
    run._check_revision({"brief": "new"}, 2)
    assert "version 3 now" in await run.revise_plan({"brief": "new"}, 2)
    assert run._inbox.replies[0].plan is not None
    run._check_approval(3)
    assert await run.approve_plan(3) == "approved: the research goes by plan version 3"
    assert run._inbox.replies[1] == Reply(approved=3)
    other = messages()
    other._check_rejection("no")
    assert "its plan is kept" in await other.reject_plan("no")
    assert other._inbox.replies == [Reply(rejected="no")]
    asked = clarifying()
    asked._check_answers(["the second"], 1)
    assert await asked.answer_clarification(["the second"], 1) == "taken: the run goes on with your answers"
    assert asked._inbox.replies == [Reply(answers=["the second"])]


@pytest.mark.parametrize(
    ("run", "check", "arguments", "problem"),
    [
        (messages(), "_check_approval", [1], "version: 1 is older"),
        (messages(Approve.PHRASE), "_check_approval", [2, "ok"], "phrase: this run wants exactly"),
        (messages(), "_check_answers", [["x"]], "the run waits for the approval"),
        (messages(), "_check_rejection", [7], "reason: expected a text"),
        (messages(), "_check_revision", [7], "revision: expected either"),
        (messages(), "_check_reply", [""], "text: expected 1 to"),
        (messages(), "_check_steer", [b"x"], "say what to look at"),
        (clarifying(), "_check_answers", [["a", "b"]], "answers: 2 were given to 1 question"),
        (clarifying(), "_check_answers", [[1]], "answers: expected a list of up to 1 texts"),
        (clarifying(), "_check_answers", [["x" * 3_000]], "answers.0: longer than 2000 characters"),
        (clarifying(), "_check_answers", [["x"], 2], "round: the questions of round 1 are open"),
        (PersonMessages(), "_check_approval", [1], "the run is getting ready"),
    ],
)
def test_what_is_wrong_is_refused_at_once(run: PersonMessages, check: str, arguments: list[Any], problem: str) -> None:
    """A failure of the type that clients know, with the field in front; nothing is put down."""
    with pytest.raises(ApplicationError) as refused:
        getattr(run, check)(*arguments)
    assert refused.value.type == failures.INVALID_REQUEST
    assert refused.value.message.startswith(problem), refused.value.message
    assert run._inbox.replies == []


async def test_a_word_while_a_plan_waits_makes_another_plan() -> None:
    """Steering and replying are guidance for the planner then; while a question waits a reply answers it."""
    for send in (PersonMessages.steer, PersonMessages.reply):
        run = messages()
        assert "the planner makes version 3" in await send(run, "look at locks")
        assert run._inbox.replies == [Reply(guidance="look at locks")]
        assert run._inbox.steering == []
    asked = clarifying()
    await asked.reply("the second")
    assert asked._inbox.replies == [Reply(answers=["the second"])]
    await asked.steer("look at locks")
    assert asked._inbox.steering == ["look at locks"]


async def test_stopping_says_whether_there_will_be_a_report() -> None:
    """Before any work there is nothing to write from."""
    assert "before any work" in await messages().stop_and_report()
    run = messages()
    run._state.sources = {"s": Source(id="s", url="https://a.test/", title="A", provider="p")}
    assert "the report is written" in await run.stop_and_report()
