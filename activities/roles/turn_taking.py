"""Turns of roles with tools: a request from the stored transcript, and the transcript with the answer. Pure."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from pydantic import ValidationError

from activities.roles.grounding import RoleWork
from activities.roles.older_answers import REPORTED_BY_NUMBER, STAYS_IN_REPORT, shortened_answer
from activities.roles.prompt_rendering import render_role, render_shared, summary_of
from activities.roles.untrusted import break_lines, guard, remove_signs_of, seal, wrap
from contracts import tool_turns
from contracts.addresses import digest
from contracts.canary import contains_canary
from contracts.evidence import DocumentRef
from contracts.lenient import problem_lines
from contracts.orchestrator_roles import WorkInput
from contracts.outcome import Guidance
from contracts.roles import RoleSpec
from contracts.texts import shorten
from contracts.tokens import Level
from contracts.tools import ANSWER_CHARACTERS, ARGUMENT_CHARACTERS, MAX_CALLS, ToolAnswer, ToolCall, ToolSpec
from providers.errors import ContentCorrupt, InvalidCall
from providers.interfaces import PromptMessage, RenderedPrompt
from providers.tokens.allotment import ContentItem, estimated_tokens

SHORT_ANSWER: Final = 600  # characters; a tool's answer up to this length is never shortened
USABLE_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
REVEALS_CANARY: Final = "this turn has the mark that must never be written: words from outside were followed as orders"

ANSWERS_PER_GROUP: Final = 4
"""Older answers shortened together, so that the next turns share a prefix that an endpoint can cache."""
LEVELS: Final = (Level.COMPRESSED, Level.HEADLINE)
"""Of older answers. A conversation that has a little too much loses a little of it."""
SUMMARIZED_LEVELS: Final = (Level.HEADLINE,)
"""The same where a model summarises them, so that each is summarised once."""
Block = dict[str, Any]
Work = RoleWork[tool_turns.ToolTurnInput, tool_turns.TurnAnswer]


# --- the conversation that is sent -----------------------------------------------------------------------------------
def render_turn(
    role: RoleSpec[Any, Any], request: tool_turns.ToolTurnInput, documents: Mapping[str, str]
) -> tuple[RenderedPrompt, Callable[[Mapping[str, Level]], RenderedPrompt]]:
    """Return the full request of a turn (opening, conversation, answers to the last calls) and its renderer by level.

    Raises `InvalidCall` for answers that match no call and for tools that the role lacks, and `ContentCorrupt` for an
    unreadable transcript.
    """
    transcript = _transcript(role, request, documents)
    try:
        reminder = _reminder(role, request)
        opening = _opening(transcript, reminder)
        messages = _messages(transcript, request, reminder)
    except ValueError as error:
        raise InvalidCall(str(error)) from None
    older = {}
    if request.tokens.token_management_enabled:
        older = _older_answers(messages)
    answers = {answer.call_id: answer for turn in transcript.turns for answer in turn.answers}
    shorter = partial(_at_level, answers=answers, request=request, documents=documents)

    def render(levels: Mapping[str, Level]) -> RenderedPrompt:
        changed = {
            id(block): {**block, "content": shorter(block, level)}
            for name, level in levels.items()
            for block in older[name]
        }
        shown = [
            replace(message, content=[changed.get(id(block), block) for block in message.content])
            for message in messages
        ]
        return RenderedPrompt(opening, messages=shown)

    summarizes = request.tokens.summarization_provider or request.tokens.summarization_providers
    levels = SUMMARIZED_LEVELS if summarizes else LEVELS
    items = [
        _group(name, number, blocks, shorter, answers, levels)
        for number, (name, blocks) in enumerate(older.items(), start=1)
    ]
    return RenderedPrompt(opening, messages=messages, items=items), render


def _transcript(
    role: RoleSpec[Any, Any], request: tool_turns.ToolTurnInput, documents: Mapping[str, str]
) -> tool_turns.Transcript:
    """Return the stored conversation, or a new one opened by the role's prompt, which shows no documents."""
    if request.transcript is None:
        return tool_turns.Transcript(opening=render_role(role, request, {}).prompt)
    try:
        return tool_turns.Transcript.model_validate_json(documents[request.transcript.hash])
    except ValidationError:
        raise ContentCorrupt("the stored transcript of a role cannot be read") from None


def _reminder(role: RoleSpec[Any, Any], request: tool_turns.ToolTurnInput) -> str:
    """Return the text after the newest answers, which ends with the tools of the turn if these are not all."""
    return "\n\n".join(part for part in (request.reminder, tool_turns.list_offered(role, request)) if part)


def _opening(transcript: tool_turns.Transcript, newest: str) -> str:
    """Return the opening with the reminder of the first turn, which is `newest` if none was taken yet."""
    reminder = transcript.turns[0].reminder if transcript.turns else newest
    return "\n\n".join(part for part in (transcript.opening, guard(reminder).strip()) if part)


def _messages(
    transcript: tool_turns.Transcript, request: tool_turns.ToolTurnInput, reminder: str
) -> list[PromptMessage]:
    """Return the conversation after the opening, with the newest answers. Raises ValueError if they match no call."""
    if transcript.turns:
        new = _new_guidance(transcript, request)
        last = _user_message(transcript.turns[-1].calls, request.answers, reminder, new, request)
        return [*_earlier_messages(transcript, request), last]
    if request.answers:
        raise ValueError("there are answers, and nothing was called yet")
    return []


def _earlier_messages(transcript: tool_turns.Transcript, request: tool_turns.ToolTurnInput) -> list[PromptMessage]:
    """Return the turns of a transcript exactly as they were sent before."""
    messages: list[PromptMessage] = []
    for number, turn in enumerate(transcript.turns):
        if number:
            calls = transcript.turns[number - 1].calls
            messages.append(_user_message(calls, turn.answers, turn.reminder, turn.guidance, request))
        messages.append(PromptMessage("assistant", turn.content, turn.author))
    return messages


def _new_guidance(transcript: tool_turns.Transcript, request: tool_turns.ToolTurnInput) -> list[Guidance]:
    known = [item for turn in transcript.turns for item in turn.guidance]
    return [item for item in request.guidance if item not in known]


def _user_message(
    calls: Sequence[ToolCall],
    answers: Sequence[ToolAnswer],
    reminder: str,
    guidance: list[Guidance],
    request: tool_turns.ToolTurnInput,
) -> PromptMessage:
    """Return one answer per call, in the calls' order, then guidance and the reminder."""
    blocks = [_answer_block(answer, request.canary) for answer in tool_turns.pair_answers(calls, answers)]
    news = request.with_fields(guidance=guidance, preferences=[], reminder=reminder)
    text = render_shared("turn", news) or ("" if blocks else "Go on: call one of the tools.")
    if text:
        blocks.append({"type": "text", "text": seal(text, request.canary)})
    return PromptMessage("user", blocks)


def _answer_block(answer: ToolAnswer, canary: str) -> Block:
    """Return the block of a tool's answer."""
    text, lost = _text_of(answer)
    content = _sealed(answer.with_fields(text=text), canary) or "(nothing)"
    if lost > 0:
        content += f"\n[{lost} characters more were left out]"
    block = {"type": "tool_result", "tool_use_id": answer.call_id, "content": content}
    if answer.is_error:
        return {**block, "is_error": True}
    return block


def _older_answers(messages: Sequence[PromptMessage]) -> dict[str, list[Block]]:
    """Return the long answers of tools, grouped by content item, without the newest, which no turn has seen yet.

    A group is shortened as a whole, the oldest first, so that the next turns begin as this one does.
    """
    long = [
        block
        for message in messages[:-1]
        for block in message.content
        if block.get("type") == "tool_result" and len(block["content"]) > SHORT_ANSWER
    ]
    starts = range(0, len(long), ANSWERS_PER_GROUP)
    return {f"answers-{number}": long[start:][:ANSWERS_PER_GROUP] for number, start in enumerate(starts, start=1)}


def _group(
    name: str,
    number: int,
    blocks: list[Block],
    shorter: Callable[[Block, Level], str],
    answers: Mapping[str, ToolAnswer],
    levels: Sequence[Level],
) -> ContentItem:
    return ContentItem(
        name,
        "answer",
        lambda level: "\n".join(shorter(block, level) for block in blocks),
        priority=1 - 1 / (1 + number),
        levels=levels,
        originals=lambda: [_text_of(answers[block["tool_use_id"]])[0] for block in blocks],
        measure=lambda text: estimated_tokens(json.dumps(text, ensure_ascii=False)),
    )


def _at_level(
    block: Block,
    level: Level,
    *,
    answers: Mapping[str, ToolAnswer],
    request: tool_turns.ToolTurnInput,
    documents: Mapping[str, str],
) -> str:
    """Return the content of an answer's block at a level: its summary, or whole lines of it, sealed as it was."""
    if level is Level.FULL:
        return str(block["content"])
    answer = answers[block["tool_use_id"]]
    text, _ = _text_of(answer)
    if summary := summary_of(text, level, documents):
        return _sealed(answer.with_fields(text=summary), request.canary) + "[a summary of this answer]"
    stays = STAYS_IN_REPORT if isinstance(request, WorkInput) else REPORTED_BY_NUMBER
    shown, notice = shortened_answer(text, level, stays)
    content = _sealed(answer.with_fields(text=shown), request.canary)
    return f"{content}\n{notice}" if notice else content


def _text_of(answer: ToolAnswer) -> tuple[str, int]:
    """Return the text of an answer up to the limit, in whole lines if it has any, and the characters left out."""
    whole = answer.whole
    if len(whole) <= ANSWER_CHARACTERS:
        return whole, 0
    text = whole[:ANSWER_CHARACTERS]
    text = text.rpartition("\n")[0] or text
    return text, len(whole) - len(text)


def _sealed(answer: ToolAnswer, canary: str) -> str:
    """Return the text of an answer as data, since it may come from outside, unless it is an error."""
    text = guard(answer.text).strip()
    if answer.is_error:
        return text
    return seal(wrap("answer", break_lines(text)), canary).strip()


# --- the turn that came ----------------------------------------------------------------------------------------------
def ground_turn(work: Work) -> tool_turns.TurnResult:
    """Check the calls of a turn, put the longer transcript into `work.texts`, and return a reference to it."""
    request = work.request
    transcript = _transcript(work.role, work.request, work.documents)
    # The journal sorts keys: a turn must be the same whether new or read from the journal.
    blocks: list[Block] = json.loads(json.dumps(work.answer.content, sort_keys=True))
    # Thoughts may mention the canary: only the model, which has it anyway, gets them back.
    visible = [
        (one.get("text"), one.get("name"), one.get("input")) for one in blocks if one["type"] not in tool_turns.THINKING
    ]
    steered = contains_canary(json.dumps(visible, ensure_ascii=False), request.canary)
    used = {call.id for turn in transcript.turns for call in turn.calls}
    content: list[Block] = []
    calls: list[ToolCall] = []
    for block in blocks:
        if block["type"] == "tool_use":
            accepted = sum(not call.problem for call in calls)
            call, arguments = _check_call(work, block, accepted, steered=steered)
            if not USABLE_ID.fullmatch(call.id) or call.id in used:
                call = call.with_fields(id=f"call-{len(transcript.turns) + 1}-{len(calls) + 1}")
            used.add(call.id)
            calls.append(call)
            content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
        elif block["type"] == "text" and steered:
            content.append({"type": "text", "text": "(taken out)"})
        else:
            content.append(block)
    turn = tool_turns.TakenTurn(
        answers=_answers_seen(transcript, request),
        reminder=_reminder(work.role, request),
        guidance=_new_guidance(transcript, request),
        content=content,
        calls=calls,
        author=work.answer.author,
    )
    extended = transcript.with_fields(turns=[*transcript.turns, turn])
    stored = extended.compact_json()
    work.texts.append(stored)
    # Bytes that the next turn sends again.
    sent = [block for message in _earlier_messages(extended, request) for block in message.content]
    size = len(_opening(extended, "").encode()) + len(json.dumps(sent, ensure_ascii=False).encode())
    text = "\n".join(block["text"] for block in content if block["type"] == "text")
    return tool_turns.TurnResult(
        transcript=DocumentRef(hash=digest(stored), media_type=tool_turns.TRANSCRIPT_TYPE, size=size),
        calls=calls,
        text=shorten(remove_signs_of(text).strip(), tool_turns.TEXT_CHARACTERS),
        steered=steered,
    )


def _answers_seen(transcript: tool_turns.Transcript, request: tool_turns.ToolTurnInput) -> list[ToolAnswer]:
    """Return the answers to the last turn's calls, without the lines that only this turn was shown."""
    if not transcript.turns:
        return []
    return [answer.seen() for answer in tool_turns.pair_answers(transcript.turns[-1].calls, request.answers)]


def _check_call(work: Work, block: Block, accepted: int, *, steered: bool) -> tuple[ToolCall, Block]:
    """Return the checked call and its arguments as sent back to the model; `accepted` calls precede it in the turn."""
    offered = {tool.name: tool for tool in tool_turns.offered_tools(work.role, work.request)}
    known = {tool.name for tool in work.role.tools}
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", str(block.get("name") or ""))[:64] or "unnamed"
    raw = _object(block.get("input"))
    too_long = raw is not None and len(json.dumps(raw)) > ARGUMENT_CHARACTERS
    arguments: Block = {}
    if steered:
        name = name if name in known else "unnamed"
        problem = REVEALS_CANARY
    elif name not in offered:
        reason = "cannot be called in this turn" if name in known else "is no tool"
        problem = f"{name} {reason}: call one of {', '.join(offered)}"
    elif raw is None:
        problem = "the arguments are no JSON object"
    elif too_long:
        problem = f"the arguments are longer than {ARGUMENT_CHARACTERS} characters: shorten them"
    elif accepted >= MAX_CALLS:
        problem = f"at most {MAX_CALLS} calls are carried out in one turn: call it in the next one"
    else:
        arguments, problem = _read_arguments(offered[name], remove_signs_of(raw))
    call = ToolCall(id=str(block.get("id") or ""), name=name, arguments=arguments, problem=problem)
    return call, {} if steered or raw is None or too_long else raw


def _read_arguments(tool: ToolSpec[Any], raw: Block) -> tuple[Block, str]:
    """Return the arguments as validated by the tool's schema, or the problem in words for the model."""
    try:
        return tool.arguments.model_validate(raw).model_dump(mode="json"), ""
    except ValidationError as error:
        return {}, f"the arguments do not fit {tool.name}: {'; '.join(problem_lines(error, 6))}"


def _object(raw: Any) -> Block | None:
    """Return arguments as an object, also from a JSON string, as some endpoints send; None for anything else."""
    try:
        if isinstance(raw, str):
            read = json.loads(raw, strict=False)
        else:
            read = raw
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None
