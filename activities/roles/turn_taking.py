"""Turns of roles with tools: the conversation that is sent, and the turn that came as checked calls. Pure.

`first_messages` makes the request of a turn from the stored transcript, `ground_turn` makes the longer transcript.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

from pydantic import ValidationError

from activities.roles.grounding import RoleWork
from activities.roles.prompt_rendering import prompt_of, render_role, render_shared, with_canary
from activities.roles.untrusted import break_lines, data, guard, remove_signs_of, seal
from contracts import tool_turns
from contracts.addresses import digest
from contracts.canary import contains_canary
from contracts.evidence import DocumentRef
from contracts.outcome import Guidance
from contracts.roles import RoleSpec
from contracts.texts import shorten
from contracts.tools import ANSWER_CHARACTERS, ARGUMENT_CHARACTERS, ToolAnswer, ToolCall, ToolSpec
from providers.errors import ContentCorrupt, InvalidCall, InvalidOutput
from providers.interfaces import EngineTask, Message, ShortPrompt

MOST_BLOCKS: Final = 64
"""Blocks of one turn; the cap on output bounds real turns far below."""
SHORT_ANSWER: Final = 300
"""Characters that remain of an older answer where a conversation has no room for all of it."""
SHORTENED_AT_ONCE: Final = 4
USABLE_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
REVEALS: Final = "this turn has the mark that must never be written: words from outside were followed as orders"

Block = dict[str, Any]


# --- the conversation that is sent -----------------------------------------------------------------------------------
def turn_task(role: RoleSpec[Any, Any], request: tool_turns.ToolTurnInput, documents: Mapping[str, str]) -> EngineTask:
    """The task of one turn: opening, conversation so far, answers to the last calls.

    Raises `InvalidCall` for answers that fit no call and for tools that the role does not have, and `ContentCorrupt`
    for a transcript that is none.
    """
    file, transcript = prompt_of(role), _transcript(role, request, documents)
    opening = _opening(transcript, request)
    try:
        tool_turns.offered_tools(role, request)
        messages = _messages(transcript, request)
    except ValueError as error:
        raise InvalidCall(str(error)) from None
    return EngineTask(
        role,
        request,
        documents,
        system=with_canary(file.system, request.canary),
        prompt=opening,
        prompt_version=file.version,
        shortened=lambda share: shorten_answers(opening, messages, share),
        messages=messages,
    )


def _transcript(
    role: RoleSpec[Any, Any], request: tool_turns.ToolTurnInput, documents: Mapping[str, str]
) -> tool_turns.Transcript:
    """The stored conversation, or a new one that the role's prompt opens. No other document is shown to such a role."""
    if request.transcript is None:
        return tool_turns.Transcript(opening=render_role(role, request, {}).prompt)
    try:
        return tool_turns.Transcript.model_validate_json(documents[request.transcript.hash])
    except ValidationError:
        raise ContentCorrupt("the stored transcript of a role cannot be read") from None


def _opening(transcript: tool_turns.Transcript, request: tool_turns.ToolTurnInput) -> str:
    reminder = transcript.turns[0].reminder if transcript.turns else request.reminder
    return "\n\n".join(part for part in (transcript.opening, guard(reminder).strip()) if part)


def _messages(transcript: tool_turns.Transcript, request: tool_turns.ToolTurnInput) -> list[Message]:
    """The conversation after the opening, newest answers included. Raises ValueError for answers that fit no call."""
    if transcript.turns:
        new = _new_guidance(transcript, request)
        last = _user(transcript.turns[-1].calls, request.answers, request.reminder, new, request)
        return [*_earlier(transcript, request), last]
    if request.answers:
        raise ValueError("there are answers, and nothing was called yet")
    return []


def _earlier(transcript: tool_turns.Transcript, request: tool_turns.ToolTurnInput) -> list[Message]:
    """The turns of a transcript, word for word as they were sent before."""
    found: list[Message] = []
    for before, turn in zip([None, *transcript.turns], transcript.turns, strict=False):
        if before is not None:
            found.append(_user(before.calls, turn.answers, turn.reminder, turn.guidance, request))
        found.append(Message("assistant", turn.content, turn.author))
    return found


def _new_guidance(transcript: tool_turns.Transcript, request: tool_turns.ToolTurnInput) -> list[Guidance]:
    known = [one for turn in transcript.turns for one in turn.guidance]
    return [one for one in request.guidance if one not in known]


def _user(
    calls: Sequence[ToolCall],
    answers: Sequence[ToolAnswer],
    reminder: str,
    guidance: list[Guidance],
    request: tool_turns.ToolTurnInput,
) -> Message:
    """One answer for every call, in the calls' order, then guidance and the reminder."""
    blocks = [_answer(answer, request.canary) for answer in tool_turns.answers_to(calls, answers)]
    news = request.model_copy(update={"guidance": guidance, "preferences": [], "reminder": reminder})
    text = render_shared("turn", news) or ("" if blocks else "Go on: call one of the tools.")
    return Message("user", [*blocks, *([{"type": "text", "text": seal(text, request.canary)}] if text else [])])


def _answer(answer: ToolAnswer, canary: str) -> Block:
    """Words that may come from outside are data; errors are our own words."""
    text, lost = answer.text[:ANSWER_CHARACTERS], len(answer.text) - ANSWER_CHARACTERS
    content = guard(text).strip() if answer.is_error else seal(data("answer", break_lines(guard(text).strip())), canary)
    content = content.strip() or "(nothing)"
    if lost > 0:
        content += f"\n[{lost} characters more were left out]"
    block = {"type": "tool_result", "tool_use_id": answer.call_id, "content": content}
    return {**block, "is_error": True} if answer.is_error else block


def shorten_answers(opening: str, messages: Sequence[Message], share: float) -> ShortPrompt:
    """Shorten older answers, the oldest first, down to a share of them.

    The newest answers stay whole: no turn has seen them yet. Several are shortened at once, so that the next turns
    have the same beginning, which an endpoint's cache can serve.
    """
    long = [
        (message, place)
        for message in messages[:-1]
        for place, block in enumerate(message.content)
        if block.get("type") == "tool_result" and len(block["content"]) > 2 * SHORT_ANSWER
    ]
    chosen = long[: SHORTENED_AT_ONCE * math.ceil((1 - share) * len(long) / SHORTENED_AT_ONCE)]
    contents = {id(message): list(message.content) for message in messages}
    lost = 0
    for message, place in chosen:
        whole = message.content[place]["content"]
        shorter = _shortened(whole)
        contents[id(message)][place] = {**message.content[place], "content": shorter}
        lost += len(whole) - len(shorter)
    note = [f"{len(chosen)} of the older answers of its tools were shortened by {lost} characters"]
    return ShortPrompt(
        opening, 0, note if lost else [], [Message(one.role, contents[id(one)], one.author) for one in messages]
    )


def _shortened(content: str) -> str:
    """The beginning of an answer, with the line that closes its element."""
    last = content.rpartition("\n")[2]
    closing = [last] if last.startswith("</answer-") else []
    return "\n".join([content[:SHORT_ANSWER], "[the rest of this answer was left out]", *closing])


# --- the turn that came ----------------------------------------------------------------------------------------------
def ground_turn(work: RoleWork[tool_turns.ToolTurnInput, tool_turns.TurnAnswer]) -> tool_turns.TurnResult:
    """The calls of a turn, checked, and a reference to the longer transcript, whose text is put into `work.texts`.

    Raises `InvalidOutput` for an empty turn.
    """
    request, before = work.request, _transcript(work.role, work.request, work.documents)
    content, calls, steered = _TurnReader(work, before).read()
    turn = tool_turns.TakenTurn(
        answers=[] if not before.turns else tool_turns.answers_to(before.turns[-1].calls, request.answers),
        reminder=request.reminder,
        guidance=_new_guidance(before, request),
        content=content,
        calls=calls,
        author=work.answer.author,
    )
    longer = before.model_copy(update={"turns": [*before.turns, turn]})
    stored = longer.model_dump_json()
    work.texts.append(stored)
    # The next turn sends so many bytes again.
    sent = [block for message in _earlier(longer, request) for block in message.content]
    size = len(_opening(longer, request).encode()) + len(json.dumps(sent, ensure_ascii=False).encode())
    text = "\n".join(block["text"] for block in content if block["type"] == "text")
    return tool_turns.TurnResult(
        transcript=DocumentRef(hash=digest(stored), media_type=tool_turns.TRANSCRIPT_TYPE, size=size),
        calls=calls,
        text=shorten(remove_signs_of(text).strip(), tool_turns.TEXT_CHARACTERS),
        stop=work.answer.stop,
        steered=steered,
    )


class _TurnReader:
    """Reads the blocks of one turn: unique ids, checked calls, no words that reveal the canary."""

    def __init__(
        self, work: RoleWork[tool_turns.ToolTurnInput, tool_turns.TurnAnswer], before: tool_turns.Transcript
    ) -> None:
        self._request = work.request
        self._warnings = work.warnings
        self._offered = {tool.name: tool for tool in tool_turns.offered_tools(work.role, work.request)}
        self._known = {tool.name for tool in work.role.tools}
        self._used = {call.id for turn in before.turns for call in turn.calls}
        self._unused = (f"call-{len(before.turns) + 1}-{number}" for number in count(1))
        # The journal sorts its entries: a turn is the same whether it was just answered or read from there.
        self._blocks: list[Block] = json.loads(json.dumps(work.answer.content, sort_keys=True))
        self._accepted = 0

    def read(self) -> tuple[list[Block], list[ToolCall], bool]:
        """Content of the turn, its calls, and whether it was steered."""
        blocks = [block for block in self._blocks if not _is_empty(block)]
        if len(blocks) > MOST_BLOCKS:
            self._warnings.append(f"{len(blocks) - MOST_BLOCKS} blocks of a turn beyond {MOST_BLOCKS} were dropped")
            blocks = blocks[:MOST_BLOCKS]
        # Thoughts may weigh the canary: they go to nobody but the model that knows it anyway.
        aloud = [
            (one.get("text"), one.get("name"), one.get("input"))
            for one in blocks
            if one["type"] not in tool_turns.THOUGHTS
        ]
        if not aloud:
            raise InvalidOutput("$: the answer is empty: call one of the tools")
        reveals = contains_canary(json.dumps(aloud, ensure_ascii=False), self._request.canary)
        content: list[Block] = []
        calls: list[ToolCall] = []
        for block in blocks:
            if block["type"] == "tool_use":
                call, arguments = self._call(block, reveals=reveals)
                calls.append(call)
                content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
            elif block["type"] == "text":
                content.append({"type": "text", "text": "(taken out)" if reveals else block["text"]})
            else:
                content.append(block)
        return content, calls, reveals

    def _call(self, block: Block, *, reveals: bool) -> tuple[ToolCall, Block]:
        """The call as checked, and its arguments as they go back to the model."""
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", str(block.get("name") or ""))[:64] or "unnamed"
        given = _object(block.get("input"))
        back = {} if reveals or given is None or len(json.dumps(given)) > ARGUMENT_CHARACTERS else given
        arguments: Block = {}
        if reveals:
            name, problem = name if name in self._known else "unnamed", REVEALS
        elif name not in self._offered:
            reason = "cannot be called in this turn" if name in self._known else "is no tool"
            problem = f"{name} {reason}: call one of {', '.join(self._offered)}"
        elif given is None:
            problem = "the arguments are no JSON object"
        elif back != given:
            problem = f"the arguments are longer than {ARGUMENT_CHARACTERS} characters: shorten them"
        elif self._accepted >= self._request.most_calls:
            most = self._request.most_calls
            problem = f"at most {most} calls are carried out in one turn: call it in the next one"
        else:
            arguments, problem = _read_arguments(self._offered[name], remove_signs_of(given))
        self._accepted += not problem
        return ToolCall(id=self._id(block.get("id")), name=name, arguments=arguments, problem=problem), back

    def _id(self, given: Any) -> str:
        """The id that was given, if it is usable and new in this conversation; else a new one."""
        fits = isinstance(given, str) and USABLE_ID.fullmatch(given) and given not in self._used
        chosen = given if fits else next(each for each in self._unused if each not in self._used)
        self._used.add(chosen)
        return chosen


def _read_arguments(tool: ToolSpec[Any], given: Block) -> tuple[Block, str]:
    """The arguments as the tool's model reads them, or the problem in words for the model."""
    try:
        return tool.arguments.model_validate(given).model_dump(mode="json"), ""
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False, include_context=False)
        lines = [f"{'.'.join(str(part) for part in item['loc']) or '$'}: {item['msg']}"[:160] for item in found[:6]]
        return {}, f"the arguments do not fit {tool.name}: {'; '.join(lines)}"


def _is_empty(block: Block) -> bool:
    """Return whether a block is of no known kind, or has no words."""
    if block.get("type") == "text":
        return not (isinstance(block.get("text"), str) and block["text"].strip())
    return block.get("type") not in ("tool_use", *tool_turns.THOUGHTS)


def _object(given: Any) -> Block | None:
    """Arguments as an object; some endpoints write it as a text."""
    try:
        read = json.loads(given, strict=False) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None
