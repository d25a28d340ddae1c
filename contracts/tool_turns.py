"""Tool turns: a role that works by calling tools, one paid request at a time.

A *transcript* is what was said so far: a document in the content store that is never changed. A turn reads one, sends
it with the answers to the calls of the turn before, and stores a longer one. The workflow holds references alone,
runs the tools between two turns, and answers every call by its id. (`contracts.messages.QueueTurn` is something
else: a run's turn in the queue of runs.)

Whoever sees the text of pages has no tools, and whoever has tools never sees such text. So the input of a role with
tools can hold no document, source or hit of a search (`check_tools`), and an answer is a text of the workflow's own or
an entry that was stored as an answer.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, get_args

from contracts.base import Contract, Terse
from contracts.evidence import DocumentRef, SearchHit, Source
from contracts.outcome import Guidance
from contracts.roles import RoleAnswer, RoleInput, RoleSpec, SourceExtract
from contracts.tools import MOST_CALLS, ToolAnswer, ToolCall, ToolSpec, refusal_of

TRANSCRIPT_TYPE: Final = "application/json"
TEXT_CHARACTERS: Final = 4_000
"""Of what a model says beside its calls, as the workflow is told it."""
THOUGHTS: Final = ("thinking", "redacted_thinking")
"""Blocks in which a model thinks; they are signed, and go back as they came."""
NOT_DONE: Final = "This call was not carried out."


class ToolTurnInput(RoleInput):
    """Hand-off to a role with tools. Fields that a role adds are for its opening: its prompt shows them once."""

    transcript: DocumentRef | None = None
    """What was said so far; None in the first turn, which the role's prompt opens."""
    answers: list[ToolAnswer] = []
    """To the calls of the turn before. A call with a problem needs none; one that is left out is said to be undone."""
    offered: list[str] = []
    """Names of the role's tools that may be called in this turn; empty: all of them."""
    reminder: str = ""
    """What is said to the model in this turn besides the answers; it stays in the transcript."""
    most_calls: int = MOST_CALLS


class TurnResult(RoleAnswer):
    """A turn as the workflow gets it."""

    transcript: DocumentRef
    """What was said so far, this turn included; its size is the bytes of it that the next turn sends again."""
    calls: list[ToolCall] = []
    """In the model's order; empty where it called nothing."""
    text: str = ""
    """What it said beside its calls, bounded."""
    stop: str = ""
    """Why the endpoint says that it stopped."""
    steered: bool = False
    """Whether a call or the text held the run's canary: it was taken out."""


class TurnAnswer(RoleAnswer):
    """What an engine returns: the turn as it was given, block by block."""

    content: list[dict[str, Any]]
    """Blocks as the Messages API has them: `text`, `tool_use`, and thoughts, which go back as they came."""
    stop: str = ""
    author: str = ""
    """The model at its endpoint that thought the thoughts; empty without a model."""


class TakenTurn(Terse):
    """One turn of a transcript: what was said to the model before it, and what came."""

    answers: list[ToolAnswer] = []
    reminder: str = ""
    guidance: list[Guidance] = []
    """What was said to the run since the turn before."""
    content: list[dict[str, Any]]
    calls: list[ToolCall] = []
    author: str = ""


class Transcript(Terse):
    """A conversation: its opening, then turn after turn. It is never changed, only made longer."""

    opening: str
    turns: list[TakenTurn] = []

    def with_turn(self, turn: TakenTurn) -> "Transcript":
        """A longer transcript."""
        return self.model_copy(update={"turns": [*self.turns, turn]})

    def told(self, newest: Sequence[ToolAnswer] = ()) -> Iterator[tuple[ToolCall, ToolAnswer]]:
        """Every call with its answer, in order; `newest` are those to the calls of the last turn."""
        following = [*(turn.answers for turn in self.turns[1:]), list(newest)][: len(self.turns)]
        for turn, answers in zip(self.turns, following, strict=True):
            yield from zip(turn.calls, answers_to(turn.calls, answers), strict=True)


def answers_to(calls: Sequence[ToolCall], given: Sequence[ToolAnswer]) -> list[ToolAnswer]:
    """One answer for each call, in order: what was given, else its problem, else that it was not done.

    Raises ValueError for answers to no call of these, and for two to one.
    """
    by_id = {answer.call_id: answer for answer in given}
    if unknown := by_id.keys() - {call.id for call in calls}:
        raise ValueError(f"{len(unknown)} answers are to no call of the turn before")
    if len(by_id) < len(given):
        raise ValueError("a call is answered twice")
    return [
        by_id.get(call.id)
        or (refusal_of(call) if call.problem else ToolAnswer(call_id=call.id, text=NOT_DONE, is_error=True))
        for call in calls
    ]


def scripted_turn(*calls: tuple[str, Contract], text: str = "") -> TurnAnswer:
    """What a role does without a model: calls by name with their arguments. Ids are given when the turn is kept."""
    said: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    called = [
        {"type": "tool_use", "id": "", "name": name, "input": arguments.model_dump(mode="json")}
        for name, arguments in calls
    ]
    return TurnAnswer(content=[*said, *called], stop="tool_use" if called else "end_turn")


OUTSIDE_TEXT: Final = (DocumentRef, Source, SourceExtract, SearchHit)
"""What holds text of pages, or leads to it."""


def check_tools(role: RoleSpec[Any, Any]) -> None:
    """Hold a role with tools to the rule that it sees no text of pages. Raises ValueError."""
    if not role.tools:
        return
    fits = issubclass(role.input, ToolTurnInput) and issubclass(role.result, TurnResult)
    if not fits or not issubclass(role.answer, TurnAnswer):
        raise ValueError(f"the role {role.name} has tools: its input, draft and output must be those of a tool turn")
    if len({tool.name for tool in role.tools}) < len(role.tools):
        raise ValueError(f"two tools of the role {role.name} have one name")
    for name, field in role.input.model_fields.items():
        if name != "transcript" and any(kind in OUTSIDE_TEXT for kind in _kinds(field.annotation)):
            raise ValueError(f"the role {role.name} has tools: its field {name} must not lead to the text of a page")


def _kinds(annotation: Any) -> set[Any]:
    """All types within an annotation, those of the fields of models included."""
    found, waiting = set(), [annotation]
    while waiting:
        kind = waiting.pop()
        if kind not in found:
            found.add(kind)
            waiting += get_args(kind)
            waiting += [field.annotation for field in getattr(kind, "model_fields", {}).values()]
    return found


def offered_tools(role: RoleSpec[Any, Any], request: ToolTurnInput) -> list[ToolSpec[Any]]:
    """The tools of a turn, in the role's order. Raises ValueError for a name that is none of the role's."""
    if unknown := set(request.offered) - {tool.name for tool in role.tools}:
        raise ValueError(f"the role {role.name} has no tool {min(unknown)}")
    return [tool for tool in role.tools if not request.offered or tool.name in request.offered]
