"""What becomes of everything that people may send to a run, against a recorded table for each state of a run.

`python -m tests.unit.workflows.test_recorded_messages` records. Read the difference before you record.
"""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from contracts.plan import Plan, PlanNode
from contracts.request import Approve
from contracts.resolved import pack_words
from contracts.vocabulary import EngineKind, NodeKind, Phase, RunStatus
from contracts.waiting import ANSWER_CHARACTERS, APPROVAL_PHRASE, Waiting, WaitKind
from providers.language_words import guidance_words
from tests.fakes import states
from tests.unit.workflows.test_person_messages import clarifying, messages
from workflows.phases.claim_verification import VERIFICATION
from workflows.run.person_messages import MAX_STEERING_CHARACTERS, PersonMessages

RUN = re.compile(r"(x|y)\1{40,}")
FOLDER = Path(__file__).parent / "recorded_messages"
TEXTS: tuple[Any, ...] = (
    "Leave locks out", " what about  costs? ", "be nicer", "", " ", 7, None, b"x", ["a"],
    "x" * ANSWER_CHARACTERS, "x" * (ANSWER_CHARACTERS + 1),
    "y" * MAX_STEERING_CHARACTERS, "y" * (MAX_STEERING_CHARACTERS + 1),
)  # fmt: skip
REVISIONS: tuple[Any, ...] = (
    *TEXTS, {}, {"brief": " A new one. "}, {"guidance": "look at costs"}, {"guidance": " "},
    {"guidance": "a", "brief": "b"}, {"sub_queries": []}, {"sub_queries": ["What is vacuum?", "what is  VACUUM"]},
    {"sub_queries": ["What about part 1?", {"query": "What is new?", "rationale": "because", "priority": 3}]},
    {"sub_queries": [{"query": "what about one part"}, "A new one"], "brief": "both"}, {"sub_queries": ["?", "a b"]},
    {"sub_queries": [f"question {number}" for number in range(30)]}, {"sub_queries": "a"}, {"plan": 1}, {"brief": 7},
)  # fmt: skip
SENT: dict[str, tuple[tuple[Any, ...], ...]] = {
    "steer": tuple((text,) for text in TEXTS),
    "stop_and_report": ((),),
    "answer_clarification": (
        ([],), (["a"],), ([" a  b ", "c"],), (["a", "b", "c"],), ("a",), (7,), ([1],), (["a"], 1), (["a"], 2), (["", ""],),
        (["x" * (ANSWER_CHARACTERS + 1)],), (["x" * ANSWER_CHARACTERS],),
    ),
    "reply": tuple((text,) for text in TEXTS),
    "revise_plan": (*((given,) for given in REVISIONS), ("look at costs", 2), ("look at costs", 1), ({"brief": "b"}, "2")),
    "approve_plan": (
        (2,), (1,), (0,), (3,), (-1,), ("2",), (True,), (None,), (2, APPROVAL_PHRASE), (2, f" “{APPROVAL_PHRASE.upper()}”. "),
        (2, f"not {APPROVAL_PHRASE}"), (2, 7), (2, ""),
    ),
    "reject_plan": ((), ("",), (" too  broad ",), (7,), ("x" * ANSWER_CHARACTERS,), ("x" * (ANSWER_CHARACTERS + 1),)),
}  # fmt: skip
CHECKS = {
    "steer": "_check_steer",
    "answer_clarification": "_check_answers",
    "reply": "_check_reply",
    "revise_plan": "_check_revision",
    "approve_plan": "_check_approval",
    "reject_plan": "_check_rejection",
}


def tree() -> PersonMessages:
    """A plan with a question below another."""
    made = messages()
    root = PlanNode(id="t", text="all", needs_search=False, kind=NodeKind.TASK)
    leaf = PlanNode(id="l", text="What about one part?", parent="t", depth=1, kind=NodeKind.LEAF)
    made._state.plan = Plan(version=2, nodes=[root, leaf])
    return made


def two_questions() -> PersonMessages:
    """Two questions at once."""
    made = clarifying()
    made._state.waiting = Waiting(kind=WaitKind.CLARIFICATION, questions=["Which?", "When?"], round=1)
    return made


def working(engine: EngineKind = EngineKind.EXTRACTIVE, **changes: Any) -> PersonMessages:
    """A run that waits for nobody."""
    made = PersonMessages()
    made._state = states.state(**({"phase": Phase.GATHERING, "status": RunStatus.RUNNING} | changes))
    made._state.resolved = states.resolved(engine=engine, guidance_words=pack_words(guidance_words("en")))
    return made


def closing() -> PersonMessages:
    """The report is being written."""
    made = working()
    made._inbox.closing = True
    return made


def checking() -> PersonMessages:
    """The report is being checked."""
    made = working(phase=VERIFICATION)
    made._inbox.closing = True
    return made


def edited() -> PersonMessages:
    """Somebody has put another plan in the place of the first."""
    made = messages()
    asyncio.run(made.revise_plan({"brief": "new"}))
    return made


def said_already() -> PersonMessages:
    """A message lies there that is not taken up yet."""
    made = messages()
    asyncio.run(made.reject_plan("no"))
    return made


STATES: dict[str, Callable[[], PersonMessages]] = {
    "not_begun": PersonMessages,
    "approval": messages,
    "phrase": lambda: messages(Approve.PHRASE),
    "tree": tree,
    "edited": edited,
    "said_already": said_already,
    "one_question": clarifying,
    "two_questions": two_questions,
    "working": working,
    "working_with_a_model": lambda: working(EngineKind.MODEL),
    "approved": lambda: working(approved_version=1),
    "closing": closing,
    "checking": checking,
}


def short(value: object) -> str:
    """A value in one line; a letter that is repeated is counted."""
    return RUN.sub(lambda run: f"{run[1]}×{len(run[0])}", repr(value))


def answered(make: Callable[[], PersonMessages], update: str, arguments: tuple[Any, ...]) -> list[str]:
    """What the sender is told, and what is put down; the check before it has to say the same."""
    run = make()
    before = len(run._inbox.said), len(run._inbox.steering)
    try:
        if update in CHECKS:
            getattr(run, CHECKS[update])(*arguments)
    except ApplicationError as error:
        assert (len(run._inbox.said), len(run._inbox.steering)) == before
        return [f"  refused ({error.type}): {error.message}"]
    told = [f"  {short(asyncio.run(getattr(run, update)(*arguments)))}"]
    put = [*run._inbox.said[before[0] :], *run._inbox.steering[before[1] :]]
    told += [f"    {short(each)}" for each in put]
    return told if run._inbox.interruption is None else [*told, f"    {run._inbox.interruption!r}"]


def transcript(state: str) -> str:
    """Every message to a run in this state, each to a run of its own."""
    lines = []
    for update, calls in SENT.items():
        for arguments in calls:
            lines += [f"{update} {short(arguments)}", *answered(STATES[state], update, arguments)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("state", STATES)
def test_what_people_are_told_is_what_was_recorded(state: str) -> None:
    """Taken or refused, the answer, and what the run will take up are, word for word, what they were."""
    recorded = (FOLDER / f"{state}.txt").read_text(encoding="utf-8")
    assert transcript(state).splitlines() == recorded.splitlines()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for state_name in STATES:
        (FOLDER / f"{state_name}.txt").write_text(transcript(state_name), encoding="utf-8")
