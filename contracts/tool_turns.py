"""Tool turns: a role that works by calling tools, one paid request at a time.

A turn reads the transcript of a conversation, an immutable document, and stores a longer one; the workflow runs the
tools between turns. A role with tools never sees page text: its input cannot contain a document, source or search hit
(`check_tools`), and the workflow itself writes the answers to calls.
"""

from collections.abc import Sequence
from typing import Any, Final, get_args

from contracts.base import CompactModel, Contract
from contracts.evidence import DocumentRef, SearchHit, Source
from contracts.outcome import Guidance
from contracts.roles import RoleAnswer, RoleInput, RoleSpec, SourceExtract
from contracts.texts import plural
from contracts.tools import MAX_CALLS, ToolAnswer, ToolCall, ToolSpec, refuse_call

TRANSCRIPT_TYPE: Final = "application/json"
TEXT_CHARACTERS: Final = 4_000
"""Longest text of a turn that is returned to the workflow."""
THINKING: Final = ("thinking", "redacted_thinking")
"""Kinds of thinking blocks, which are signed and sent back unchanged."""
CALL_TOKENS: Final = 100
"""Of one call of a tool with its arguments; real models wrote 25 to 95."""
NOT_EXECUTED: Final = "This call was not carried out."


class ToolTurnInput(RoleInput):
    """Hand-off to a role with tools; a role's additional fields are for its opening prompt."""

    transcript: DocumentRef | None = None
    """The conversation so far; None in the first turn, which starts with the role's prompt."""
    answers: list[ToolAnswer] = []
    """Answers to the last turn's calls; a call without one is answered as not carried out."""
    offered: list[str] = []
    """Names of the tools that may be called in this turn; empty: all of the role's tools."""
    reminder: str = ""
    """Text for the model after the answers; it stays in the transcript."""

    @property
    def asked_output_tokens(self) -> int:
        """Return the tokens of as many calls as one turn may have."""
        return MAX_CALLS * CALL_TOKENS

    def subject(self) -> str:
        """Return the position of the turn in its conversation."""
        if self.transcript is None:
            return "first turn"
        return f"turn after {plural(len(self.answers), 'answer')}"


class TurnResult(RoleAnswer):
    """The calls and text of a turn."""

    transcript: DocumentRef
    """The conversation including this turn; its size in bytes is sent again in the next turn."""
    calls: list[ToolCall] = []
    """In the model's order."""
    text: str = ""
    """Text besides the calls, at most `TEXT_CHARACTERS`."""
    steered: bool = False
    """True if a call or the text contained the run's canary and was removed."""


class TurnAnswer(RoleAnswer):
    """A turn of a role with tools, block by block."""

    content: list[dict[str, Any]]
    """Blocks in the format of the Messages API: `text`, `tool_use`, and thinking."""
    author: str = ""
    """Model and endpoint that wrote the turn; empty without a model."""


class TakenTurn(CompactModel):
    """One turn of a transcript: the message to the model, and its reply."""

    answers: list[ToolAnswer] = []
    reminder: str = ""
    guidance: list[Guidance] = []
    """Guidance since the last turn."""
    content: list[dict[str, Any]]
    calls: list[ToolCall] = []
    author: str = ""


class Transcript(CompactModel):
    """A conversation: its opening, then its turns."""

    opening: str
    turns: list[TakenTurn] = []


def pair_answers(calls: Sequence[ToolCall], answers: Sequence[ToolAnswer]) -> list[ToolAnswer]:
    """Return one answer per call, in order: the given one, else its problem, else "not carried out".

    Raises ValueError for an answer to no call, and for two answers to one call.
    """
    by_id = {answer.call_id: answer for answer in answers}
    if unknown := by_id.keys() - {call.id for call in calls}:
        raise ValueError(f"{len(unknown)} answers are to no call of the turn before")
    if len(by_id) < len(answers):
        raise ValueError("a call is answered twice")
    return [
        by_id.get(call.id)
        or (refuse_call(call) if call.problem else ToolAnswer(call_id=call.id, text=NOT_EXECUTED, is_error=True))
        for call in calls
    ]


def scripted_turn(*calls: tuple[ToolSpec[Any], Contract], text: str = "") -> TurnAnswer:
    """Return a turn without a model: calls with their arguments; ids are set when the turn is stored."""
    text_blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    tool_blocks = [
        {"type": "tool_use", "id": "", "name": tool.name, "input": arguments.model_dump(mode="json")}
        for tool, arguments in calls
    ]
    return TurnAnswer(content=[*text_blocks, *tool_blocks])


PAGE_TEXT_TYPES: Final = (DocumentRef, Source, SourceExtract, SearchHit)
"""Types that contain page text or lead to it."""


def check_tools(role: RoleSpec[Any, Any]) -> None:
    """Raise ValueError if a role with tools could see page text."""
    if not role.tools:
        return
    fits = issubclass(role.input, ToolTurnInput) and issubclass(role.result, TurnResult)
    if not fits or not issubclass(role.answer, TurnAnswer):
        raise ValueError(f"the role {role.name} has tools: its input, draft and output must be those of a tool turn")
    if len({tool.name for tool in role.tools}) < len(role.tools):
        raise ValueError(f"two tools of the role {role.name} have one name")
    for name, field in role.input.model_fields.items():
        if name != "transcript" and any(kind in PAGE_TEXT_TYPES for kind in _nested_types(field.annotation)):
            raise ValueError(f"the role {role.name} has tools: its field {name} must not lead to the text of a page")


def _nested_types(annotation: Any) -> set[Any]:
    """Return all types within an annotation, including fields of models."""
    kinds = set()
    queue = [annotation]
    while queue:
        kind = queue.pop()
        if kind not in kinds:
            kinds.add(kind)
            queue += get_args(kind)
            queue += [field.annotation for field in getattr(kind, "model_fields", {}).values()]
    return kinds


def offered_tools(role: RoleSpec[Any, Any], request: ToolTurnInput) -> list[ToolSpec[Any]]:
    """Return the tools of a turn, in the role's order. Raises ValueError for a tool that the role does not have."""
    if unknown := set(request.offered) - {tool.name for tool in role.tools}:
        raise ValueError(f"the role {role.name} has no tool {min(unknown)}")
    return [tool for tool in role.tools if not request.offered or tool.name in request.offered]


def list_offered(role: RoleSpec[Any, Any], request: ToolTurnInput) -> str:
    """Return the sentence that names the tools of a turn; empty where it offers all of the role's.

    Raises ValueError for a tool that the role does not have.
    """
    offered = offered_tools(role, request)
    if len(offered) == len(role.tools):
        return ""
    return f"Offered in this turn: {', '.join(f'`{tool.name}`' for tool in offered)}."
