"""Tool turns: what a role with tools is sent, and what becomes of the turn that came. Pure, for a child process."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Final

from pydantic import ValidationError

from activities.roles.finishers import RoleWork
from activities.roles.labels import label_key
from activities.roles.prompt_blocks import PromptRendering, common_values
from activities.roles.prompt_files import prompt_of
from activities.roles.prompt_rendering import render_role, with_canary
from activities.roles.untrusted import break_lines, data, guard, remove_signs_of, seal
from contracts.addresses import digest
from contracts.canary import contains_canary
from contracts.evidence import DocumentRef
from contracts.outcome import CallAccount, Guidance
from contracts.roles import RoleSpec
from contracts.texts import shorten
from contracts.tool_turns import (
    TEXT_CHARACTERS,
    THOUGHTS,
    TRANSCRIPT_TYPE,
    TakenTurn,
    ToolTurnInput,
    Transcript,
    TurnAnswer,
    answers_to,
    offered_tools,
)
from contracts.tools import ANSWER_CHARACTERS, ARGUMENT_CHARACTERS, ToolAnswer, ToolCall, ToolSpec
from providers.errors import ContentCorrupt, InvalidCall, InvalidOutput
from providers.interfaces import Message, ShortPrompt
from providers.strict_json import JsonError, parse_json

FIRST_MESSAGES: Final = f"{__name__}:first_messages"
MOST_BLOCKS: Final = 64
"""Blocks of one turn that are kept; a cap on output holds real turns far below."""
MOST_PROBLEM_LINES: Final = 6
PROBLEM_CHARACTERS: Final = 160
SHORT_ANSWER: Final = 300
"""Characters that stay of an older answer where a conversation has no room for all of it."""
SHORTENED_AT_ONCE: Final = 4
USABLE_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
ODD_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")
NAME_CHARACTERS: Final = 64
NOTHING: Final = "(nothing)"
TAKEN_OUT: Final = "(taken out)"
GO_ON: Final = "Go on: call one of the tools."
REVEALS: Final = "this turn holds the mark that must never be written: words from outside were followed as orders"

FirstMessages = tuple[str, str, str, list[Message]]
"""System part, opening, version of the prompt, and what was said since."""


# --- what is sent ----------------------------------------------------------------------------------------------------
def first_messages(role: RoleSpec[Any, Any], request: ToolTurnInput, documents: Mapping[str, str]) -> FirstMessages:
    """What a turn sends.

    Raises `InvalidCall` for answers that fit no call and for tools that the role has not, and `ContentCorrupt` for a
    transcript that is none.
    """
    file = prompt_of(role)
    system = with_canary(file.system, request.canary)
    transcript = _transcript(role, request, documents)
    try:
        offered_tools(role, request)
        return system, _opening(transcript, request), file.version, _messages(transcript, request)
    except ValueError as error:
        raise InvalidCall(str(error)) from None


def _transcript(role: RoleSpec[Any, Any], request: ToolTurnInput, documents: Mapping[str, str]) -> Transcript:
    """The conversation so far: what is stored, or a new one that the role's prompt opens.

    A role with tools is shown no document: its transcript is all that was loaded for it.
    """
    if request.transcript is not None:
        try:
            return Transcript.model_validate_json(documents[request.transcript.hash])
        except ValidationError:
            raise ContentCorrupt("what is stored as the transcript of a role is none") from None
    rendering = PromptRendering({}, 0, label_key(request))
    return Transcript(opening=render_role(role, request, rendering.documents, 0).prompt)


def _opening(transcript: Transcript, request: ToolTurnInput) -> str:
    reminder = transcript.turns[0].reminder if transcript.turns else request.reminder
    return "\n\n".join(part for part in (transcript.opening, guard(reminder).strip()) if part)


def _messages(transcript: Transcript, request: ToolTurnInput) -> list[Message]:
    """What was said since the opening, and what is said now. Raises ValueError for answers that fit no call."""
    if not transcript.turns:
        if request.answers:
            raise ValueError("there are answers, and nothing was called yet")
        return []
    calls, new = transcript.turns[-1].calls, _untold(transcript, request)
    return [*_said(transcript, request), _user(calls, request.answers, request.reminder, new, request)]


def _said(transcript: Transcript, request: ToolTurnInput) -> list[Message]:
    """What was said since the opening, word for word as it was said in each turn before."""
    found: list[Message] = []
    calls: list[ToolCall] = []
    for place, turn in enumerate(transcript.turns):
        if place:
            found.append(_user(calls, turn.answers, turn.reminder, turn.guidance, request))
        found.append(Message("assistant", turn.content, turn.author))
        calls = turn.calls
    return found


def _untold(transcript: Transcript, request: ToolTurnInput) -> list[Guidance]:
    told = [one for turn in transcript.turns for one in turn.guidance]
    return [one for one in request.guidance if one not in told]


def _user(
    calls: Sequence[ToolCall],
    answers: Sequence[ToolAnswer],
    reminder: str,
    guidance: list[Guidance],
    request: ToolTurnInput,
) -> Message:
    """One answer for every call, in the calls' order, then what else is said."""
    blocks = [_answer(answer, request.canary) for answer in answers_to(calls, answers)]
    told = common_values(request.model_copy(update={"guidance": guidance, "wishes": []}))
    said = [told["wishes"].strip(), told["guidance"].strip(), guard(reminder).strip()]
    text = "\n\n".join(part for part in said if part) or ("" if blocks else GO_ON)
    return Message("user", [*blocks, *([{"type": "text", "text": seal(text, request.canary)}] if text else [])])


def _answer(answer: ToolAnswer, canary: str) -> dict[str, Any]:
    """Words that may come from outside stand as data; errors are our own words."""
    text, lost = answer.text[:ANSWER_CHARACTERS], len(answer.text) - ANSWER_CHARACTERS
    if answer.is_error:
        content = guard(text).strip() or NOTHING
    else:
        content = seal(data("answer", break_lines(guard(text).strip())), canary).strip() or NOTHING
    if lost > 0:
        content += f"\n[{lost} characters more were left out]"
    block = {"type": "tool_result", "tool_use_id": answer.call_id, "content": content}
    return block | {"is_error": True} if answer.is_error else block


def shorten_answers(opening: str, messages: Sequence[Message], share: float) -> ShortPrompt:
    """A conversation of which older answers are shortened until `share` of their characters is left, oldest first.

    The newest answers stay whole: nobody has seen them yet. What was said stays, and every call keeps an answer. Some
    are shortened at once, so that the next turns begin alike and can be read from an endpoint's cache.
    """
    places = [
        (number, place, _surplus(block["content"]))
        for number, message in enumerate(messages[:-1])
        for place, block in enumerate(message.content)
        if block.get("type") == "tool_result" and _surplus(block["content"]) > 0
    ]
    surplus = (1 - share) * sum(length for *_, length in places)
    changed = [list(message.content) for message in messages]
    lost = shortened = 0
    for number, place, length in places:
        if lost >= surplus and shortened % SHORTENED_AT_ONCE == 0:
            break
        block = changed[number][place]
        left = [block["content"][:SHORT_ANSWER], f"[{length} characters of this answer were left out]"]
        content = "\n".join([*left, *_end_of_element(block["content"])])
        changed[number][place] = {**block, "content": content}
        lost, shortened = lost + length, shortened + 1
    note = [f"{shortened} of the older answers of its tools were shortened by {lost} characters"] if shortened else []
    kept = [Message(one.role, content, one.author) for one, content in zip(messages, changed, strict=True)]
    return ShortPrompt(opening, 0, note, kept)


def _surplus(content: str) -> int:
    """Characters of an answer beyond what stays of it."""
    return len(content) - SHORT_ANSWER - sum(len(line) + 1 for line in _end_of_element(content))


def _end_of_element(content: str) -> list[str]:
    """The line that closes the element of an answer, if it is one."""
    last = content.rpartition("\n")[2]
    return [last] if last.startswith("</answer-") else []


# --- what came -------------------------------------------------------------------------------------------------------
def finish_turn(
    role: RoleSpec[Any, Any],
    request: ToolTurnInput,
    draft: TurnAnswer,
    documents: Mapping[str, str],
    account: CallAccount,
) -> tuple[str, list[str]]:
    """The turn's output as JSON, and the longer transcript. Raises `InvalidOutput` for a turn that says nothing."""
    work = RoleWork(request, draft, documents, account)
    before = _transcript(role, request, documents)
    content, calls, steered = _Turn(role, work, before).read()
    turn = TakenTurn(
        answers=[] if not before.turns else answers_to(before.turns[-1].calls, request.answers),
        reminder=request.reminder,
        guidance=_untold(before, request),
        content=content,
        calls=calls,
        author=draft.author,
    )
    longer = before.with_turn(turn)
    stored = longer.model_dump_json()
    said = "\n".join(block["text"] for block in content if block["type"] == "text")
    output = role.result(
        transcript=DocumentRef(hash=digest(stored), media_type=TRANSCRIPT_TYPE, size=_size(longer, request)),
        calls=calls,
        text=shorten(remove_signs_of(said).strip(), TEXT_CHARACTERS),
        stop=draft.stop,
        steered=steered,
        account=work.account_with_warnings(),
    )
    return output.model_dump_json(), [stored]


def _size(transcript: Transcript, request: ToolTurnInput) -> int:
    """Bytes of what is sent again when the conversation goes on."""
    blocks = [block for message in _said(transcript, request) for block in message.content]
    opening = _opening(transcript, request)
    return len(opening.encode()) + len(json.dumps(blocks, ensure_ascii=False).encode())


class _Turn:
    """Reads the blocks of one turn: ids that are unique, calls that are checked, nothing that gives the run away."""

    def __init__(self, role: RoleSpec[Any, Any], work: RoleWork[ToolTurnInput, TurnAnswer], before: Transcript) -> None:
        self._request = work.request
        self._warnings = work.warnings
        self._offered = offered_tools(role, work.request)
        self._known = {tool.name for tool in role.tools}
        self._used = {call.id for turn in before.turns for call in turn.calls}
        self._unused = (f"call-{len(before.turns) + 1}-{number}" for number in count(1))
        # The journal sorts what it keeps: a turn is the same whether it was just answered or taken from there.
        self._blocks: list[dict[str, Any]] = json.loads(json.dumps(work.answer.content, sort_keys=True))
        self._carried_out = 0

    def read(self) -> tuple[list[dict[str, Any]], list[ToolCall], bool]:
        """What is kept of the turn, its calls, and whether something was taken out of it."""
        blocks = [block for block in self._blocks if _says_something(block)]
        if len(blocks) > MOST_BLOCKS:
            self._warnings.append(f"{len(blocks) - MOST_BLOCKS} blocks of a turn beyond {MOST_BLOCKS} were dropped")
            blocks = blocks[:MOST_BLOCKS]
        if not _aloud(blocks):
            raise InvalidOutput("$: the answer is empty: call one of the tools")
        reveals = self._reveals(blocks)
        content: list[dict[str, Any]] = []
        calls: list[ToolCall] = []
        for block in blocks:
            if block["type"] == "tool_use":
                call, given = self._call(block, REVEALS if reveals else "")
                calls.append(call)
                content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": given})
            elif block["type"] == "text":
                content.append({"type": "text", "text": TAKEN_OUT if reveals else block["text"]})
            else:
                content.append(block)
        return content, calls, reveals

    def _reveals(self, blocks: list[dict[str, Any]]) -> bool:
        """Return true if a call or the text contains the canary: nothing of such a turn is used.

        Thoughts may weigh it: they go to nobody but the model that knows it anyway.
        """
        aloud = [(block.get("text"), block.get("name"), block.get("input")) for block in _aloud(blocks)]
        return contains_canary(json.dumps(aloud, ensure_ascii=False), self._request.canary)

    def _call(self, block: dict[str, Any], problem: str) -> tuple[ToolCall, dict[str, Any]]:
        """The call as checked, and its arguments as they go back to the model."""
        name = (ODD_IN_NAMES.sub("_", str(block.get("name") or ""))[:NAME_CHARACTERS]) or "unnamed"
        given = _object(block.get("input"))
        arguments: dict[str, Any] = {}
        if problem:
            name = name if name in self._known else "unnamed"
        else:
            arguments, problem = self._arguments(name, given)
        if not problem:
            self._carried_out += 1
        too_long = given is None or len(json.dumps(given)) > ARGUMENT_CHARACTERS
        back = {} if given is None or too_long or problem == REVEALS else given
        return ToolCall(id=self._id(block.get("id")), name=name, arguments=arguments, problem=problem), back

    def _arguments(self, name: str, given: dict[str, Any] | None) -> tuple[dict[str, Any], str]:
        """The arguments as the tool's model reads them, or why the call cannot be carried out."""
        names = ", ".join(tool.name for tool in self._offered)
        tool = next((tool for tool in self._offered if tool.name == name), None)
        if tool is None:
            wrong = "cannot be called in this turn" if name in self._known else "is no tool"
            return {}, f"{name} {wrong}: call one of {names}"
        if given is None:
            return {}, "the arguments are no JSON object"
        if len(json.dumps(given)) > ARGUMENT_CHARACTERS:
            return {}, f"the arguments are longer than {ARGUMENT_CHARACTERS} characters: say it more briefly"
        if self._carried_out >= self._request.most_calls:
            return (
                {},
                f"at most {self._request.most_calls} calls are carried out in one turn: call it in the next one",
            )
        return _read_arguments(tool, remove_signs_of(given))

    def _id(self, given: Any) -> str:
        """The id that was given, if it is one and new in this conversation; else a new one."""
        fits = isinstance(given, str) and USABLE_ID.fullmatch(given) and given not in self._used
        chosen = given if fits else next(each for each in self._unused if each not in self._used)
        self._used.add(chosen)
        return chosen


def _read_arguments(tool: ToolSpec[Any], given: dict[str, Any]) -> tuple[dict[str, Any], str]:
    try:
        read: dict[str, Any] = tool.arguments.model_validate(given).model_dump(mode="json")
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False, include_context=False)
        lines = [
            f"{'.'.join(str(part) for part in item['loc']) or '$'}: {item['msg']}"[:PROBLEM_CHARACTERS]
            for item in found[:MOST_PROBLEM_LINES]
        ]
        return {}, f"the arguments do not fit {tool.name}: {'; '.join(lines)}"
    return read, ""


def _aloud(blocks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block for block in blocks if block["type"] not in THOUGHTS]


def _says_something(block: dict[str, Any]) -> bool:
    kind = block.get("type")
    if kind == "text":
        return isinstance(block.get("text"), str) and bool(block["text"].strip())
    return kind == "tool_use" or kind in THOUGHTS


def _object(given: Any) -> dict[str, Any] | None:
    """The arguments as an object; some endpoints write it as a text."""
    if isinstance(given, str):
        try:
            given = parse_json(given).value
        except JsonError:
            return None
    return given if isinstance(given, dict) else None
