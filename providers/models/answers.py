"""Model replies: read from the wire, checked against the role's schema, and written for the journal of paid calls.

A structured answer is the input of the answer tool, else the first JSON object in the text that fits, repaired if
needed. A problem has lines `path: message` without any text of the answer, because it goes into a repair prompt.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, TypeGuard

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_jsonable_python

from contracts.lenient import problem_lines
from contracts.outcome import Usage
from contracts.roles import RoleAnswer, RoleSpec, answer_schema
from contracts.tool_turns import THINKING, ToolTurnInput, TurnAnswer, offered_tools
from providers.errors import AnswerCut, AnswerRefused, AnswerUnusable, ContentCorrupt, InvalidOutput, Unavailable
from providers.interfaces import EngineAnswer, EngineTask
from providers.models.chat import ANSWER_TOOL, ChatReply, safe_name
from providers.schemas import ANSWER, StoredSchema

Role = RoleSpec[Any, Any]
MAX_ANSWER_CHARACTERS: Final = 200_000  # three times the longest output cap of a role; repaired in at most two seconds
COMPLETE: Final = {"end_turn", "stop_sequence", "tool_use"}
CUT: Final = {"max_tokens", "model_context_window_exceeded", "pause_turn", "length"}
REFUSED: Final = {"refusal", "content_filter"}
OBJECT_START: Final = re.compile(r'\{\s*["}]')
THOUGHTS_AT_START: Final = re.compile(
    r"\s*<think(?:ing)?>(?:.*?</think(?:ing)?>|.*)"
    r"|(?!\s*(?:\{|```))(?:(?!<think).)*?</think(?:ing)?>(?=[ \t]*(?:[\n{#]|\Z))",
    re.DOTALL,
)
"""Thoughts before an answer, with their opening tag or, where a server put that into the prompt, without it. Tags in a
JSON object or a sentence are ordinary text."""


# --- from the wire ---------------------------------------------------------------------------------------------------
def read_reply(body: bytes, requested_model: str) -> ChatReply:
    """Read a response of status 200. Raises `Unavailable` if the body is not a message: no answer was given.

    A message nested too deeply to parse was still answered and billed: it becomes an empty reply.
    """
    try:
        message = _read_json(body)
    except RecursionError:
        return ChatReply("", None, None, Usage(model_calls=1, cost_usd=None), requested_model)
    except ValueError:
        raise Unavailable("the model endpoint answered with status 200 but not with readable JSON") from None
    return reply_of(message, requested_model)


def reply_of(message: Any, requested_model: str) -> ChatReply:
    """Read a message in the form of the Messages API. Raises `Unavailable` if it is none."""
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        raise Unavailable("the model endpoint answered with status 200 but with no message")
    blocks = [block for block in message["content"] if isinstance(block, dict)]
    usage, warnings = read_usage(message.get("usage"))
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    called = (block for block in blocks if block.get("type") == "tool_use" and block.get("name") == ANSWER_TOOL)
    model = message.get("model")
    stop_reason = message.get("stop_reason")
    return ChatReply(
        text="\n".join(text for text in texts if isinstance(text, str)),
        tool_input=next((block.get("input") for block in called), None),
        stop_reason=safe_name(stop_reason) if isinstance(stop_reason, str) else None,
        usage=usage,
        model=safe_name(model) if isinstance(model, str) else requested_model,
        warnings=warnings,
        blocks=blocks,
    )


def read_usage(usage: Any) -> tuple[Usage, list[str]]:
    """Read the token counts of an answer, with a warning for absent or absurd ones; those of caches may be missing."""
    usage_fields = usage if isinstance(usage, dict) else {}
    fields = {
        "input": usage_fields.get("input_tokens"),
        "output": usage_fields.get("output_tokens"),
        "cache_read": usage_fields.get("cache_read_input_tokens") or 0,
        "cache_write": usage_fields.get("cache_creation_input_tokens") or 0,
    }
    counts = {name: count for name, count in fields.items() if is_count(count)}
    unusable = [name for name in fields if name not in counts]
    warnings = []
    if unusable:
        warnings = [f"the endpoint gave no usable number of tokens for {', '.join(unusable)}"]
    read = counts.get("cache_read", 0)
    written = counts.get("cache_write", 0)
    spent = Usage(
        model_calls=1,
        input_tokens=counts.get("input", 0) + read + written,
        output_tokens=counts.get("output", 0),
        cached_tokens=read,
        cache_write_tokens=written,
        cost_usd=None if unusable else 0.0,
    )
    return spent, warnings


def is_count(value: Any) -> TypeGuard[int]:
    """Return true for a whole number from 0 to 10¹²."""
    return type(value) is int and 0 <= value <= 10**12


def _read_json(body: bytes) -> Any:
    try:
        return from_json(body)
    except ValueError:
        # Lone surrogates, invalid UTF-8 and endless numbers are not strict JSON, but the answer was paid for.
        return _encodable(json.loads(body.decode("utf-8", "replace"), parse_int=_integer))


def _integer(digits: str) -> int:
    """Read the first 19 digits of an integer, as many as 64 bits have; Python refuses to read more than 4,300."""
    return int(digits[:19])


def _encodable(value: Any) -> Any:
    """Replace lone surrogates, which JSON can spell and UTF-8 cannot encode."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


# --- answers of a schema ---------------------------------------------------------------------------------------------
@lru_cache(maxsize=128)
def schema_text(answer: type[RoleAnswer], left_out: tuple[str, ...] = ()) -> str:
    """Return the JSON schema of an answer, with fields in the order of their declaration, without omitted ones.

    A field without which no answer is valid is always asked for.
    """
    schema = json.loads(answer_schema(answer))
    for part in (schema, *schema.get("$defs", {}).values()):
        for name in set(left_out) - set(part.get("required", ())):
            part.get("properties", {}).pop(name, None)
    definitions = schema.get("$defs", {})
    while unused := [name for name in definitions if f'"#/$defs/{name}"' not in json.dumps(schema)]:
        for name in unused:
            del definitions[name]
    return json.dumps(_without_titles(schema))


def _without_titles(schema: Any) -> Any:
    """Return a schema without the titles of its parts, which repeat their names; every call pays for its schema."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    # A field may be named so: its description is no string.
    return {name: _without_titles(part) for name, part in schema.items() if name != "title" or isinstance(part, dict)}


def answer_of(role: Role, reply: ChatReply) -> tuple[RoleAnswer, list[str]]:
    """Read an answer, with warnings. Raises `AnswerRefused`, `AnswerCut` (even if readable), `InvalidOutput`."""
    check_end(reply)
    if isinstance(reply.tool_input, dict) and not role.plain_text:
        return _validated(role, reply.tool_input), []
    text, warnings = without_thoughts(reply.tool_input if isinstance(reply.tool_input, str) else reply.text)
    if not text:
        raise InvalidOutput("$: the answer is empty")
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise InvalidOutput(f"$: the answer is longer than {MAX_ANSWER_CHARACTERS} characters")
    complete = reply.stop_reason in COMPLETE
    if role.plain_text:
        if not complete:
            raise AnswerCut("the endpoint did not say that the answer was complete")
        text_field = next(name for name in role.answer.model_fields if name not in RoleAnswer.model_fields)
        return _validated(role, {text_field: _without_fence(text)}), warnings
    answer, notes = _from_text(role, text, may_close=complete and role.has_fallback)
    return answer, [*warnings, *notes]


def check_end(reply: ChatReply) -> None:
    """Raise `AnswerRefused` or `AnswerCut` if the stop reason is one of theirs."""
    if reply.stop_reason in REFUSED:
        raise AnswerRefused("the model declined to answer")
    if reply.stop_reason in CUT:
        raise AnswerCut("the answer was cut off before its end")


def without_thoughts(text: str) -> tuple[str, list[str]]:
    """Remove the thoughts before an answer, with a warning if there were any."""
    thoughts = THOUGHTS_AT_START.match(text)
    if thoughts is None:
        return text.strip(), []
    return text[thoughts.end() :].strip(), ["the model's thoughts before its answer were left out"]


def _without_fence(text: str) -> str:
    """Remove a code fence around the whole text."""
    opening, _, inner = text.partition("\n")
    body = inner.removesuffix("```")
    fenced = opening.startswith("```") and len(body) < len(inner) and "```" not in body
    return body.strip() if fenced else text


def _from_text(role: Role, text: str, *, may_close: bool) -> tuple[RoleAnswer, list[str]]:
    """Return the first object in the text that fits the schema. Raises `InvalidOutput` with the first problem."""
    problem: InvalidOutput | None = None
    for value, warnings in _objects(text.rstrip("` \n"), may_close=may_close):
        try:
            return _validated(role, _encodable(value) if "\\u" in text else value), warnings
        except InvalidOutput as error:
            problem = problem or error
    raise problem or InvalidOutput("$: the answer holds no JSON object that can be read")


def _objects(text: str, *, may_close: bool) -> Iterator[tuple[Any, list[str]]]:
    """Yield the JSON objects of a text in order, with warnings about how each was read; the last may be repaired."""
    decoder = json.JSONDecoder(strict=False, parse_int=_integer)  # models write bare line breaks
    position = 0
    for _ in range(20):  # more objects than any answer needs
        start = OBJECT_START.search(text, position)
        if start is None:
            return
        try:
            value, position = decoder.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            # Only whole answers are repaired, not mere beginnings: at the end, only closing brackets may be missing.
            at_end = error.pos >= len(text)
            is_complete = may_close and error.msg == "Expecting ',' delimiter" if at_end else "}" in text[-200:]
            if is_complete and not error.msg.startswith("Unterminated string"):
                import json_repair  # noqa: PLC0415  few answers need it, and every command would wait for it

                yield json_repair.loads(text[start.start() :], skip_json_loads=True), ["faulty JSON was repaired"]
            return
        except RecursionError:  # nesting beyond every schema
            return
        has_other_text = len(text) > position - start.start()
        yield value, ["text around the JSON was ignored"] if has_other_text else []


def _validated(role: Role, value: Any) -> RoleAnswer:
    try:
        return role.answer.model_validate(value)
    except ValidationError as error:
        raise InvalidOutput("\n".join(problem_lines(error, 8))) from None


# --- turns of roles with tools ---------------------------------------------------------------------------------------
def tool_definitions(task: EngineTask) -> list[dict[str, Any]]:
    """Return the tools that may be called in this turn, in Messages API form; none for a role without tools."""
    tools = []
    if isinstance(task.input, ToolTurnInput):
        tools = offered_tools(task.role, task.input)
    return [{"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in tools]


def turn_of(author: str, reply: ChatReply) -> tuple[TurnAnswer, list[str]]:
    """Read a turn, with warnings. Raises `AnswerRefused`, `InvalidOutput`, `AnswerCut`: a cut-off call is not made."""
    check_end(reply)
    content: list[dict[str, Any]] = []
    warnings: list[str] = []
    for block in reply.blocks:
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            text, notes = without_thoughts(block["text"])
            warnings += notes
            if text:
                content += [{"type": "text", "text": text}]
        elif block.get("type") in ("tool_use", *THINKING):
            content.append(block)
    if all(block["type"] in THINKING for block in content):
        raise InvalidOutput("$: the answer is empty: call one of the tools")
    return TurnAnswer(content=content, author=author), list(dict.fromkeys(warnings))


# --- the journal of paid calls ---------------------------------------------------------------------------------------
def request_fingerprint(task: EngineTask) -> str:
    """Return the SHA-256, in hexadecimal, of all that determines the answer: equal requests are paid only once."""
    role = task.role
    request = task.input
    parts: dict[str, Any] = {
        "role": [role.name, schema_text(role.answer, request.fields_left_out), role.plain_text, role.output_tokens],
        "prompt": [task.system, task.whole.prompt, request.repair],
        "model": request.model,
        "messages": [[message.role, message.content] for message in task.whole.messages],
        "tools": tool_definitions(task),
    }
    if request.more:
        parts["more"] = True
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def answer_to_json(answer: EngineAnswer | AnswerUnusable) -> str:
    """Write an answer for the journal, even an unusable one: it was paid for, and another request would pay again."""
    if isinstance(answer, EngineAnswer):
        entry = to_jsonable_python(answer)
    else:
        problem = {"unusable": type(answer).__name__, "problem": str(answer)}
        entry = {"model": answer.model, "usage": to_jsonable_python(answer.usage), **problem}
    return ANSWER.write(json.dumps(entry, sort_keys=True))


def answer_from_json(text: str, role: Role, schema: StoredSchema[dict[str, Any]] = ANSWER) -> EngineAnswer:
    """Read a journal entry.

    Raises the stored `AnswerUnusable`, `NewerSchema`, or `ContentCorrupt` if it does not fit the role.
    """
    try:
        entry = json.loads(schema.read(text))
        if "unusable" not in entry:
            content = role.answer.model_validate(entry["content"])
            return TypeAdapter(EngineAnswer).validate_python({**entry, "content": content})
        kind = next(leaf for leaf in (InvalidOutput, AnswerCut, AnswerRefused) if leaf.__name__ == entry["unusable"])
        error = kind(str(entry["problem"]), usage=Usage.model_validate(entry["usage"]), model=entry["model"])
    except (ValueError, KeyError, TypeError, StopIteration, RecursionError):
        raise ContentCorrupt("an answer in the journal cannot be read") from None
    raise error
