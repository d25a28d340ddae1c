"""From a reply to a draft: the tool's input, else JSON found in the text, lightly repaired; then the role's schema.

A problem is stated in lines `path: message` that repeat nothing of the answer: they go into the next prompt.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from pydantic import ValidationError

from contracts.base import Contract
from contracts.roles import RoleSpec
from providers.errors import AnswerCut, AnswerRefused, InvalidOutput
from providers.models.chat import ChatReply
from providers.models.message_envelope import FOREIGN_TOOL
from providers.strict_json import JsonError, NestingError, ParsedJson, bracketing, clean_text, parse_json

MAX_ANSWER_CHARACTERS: Final = 1_000_000
MAX_CANDIDATES: Final = 20
MAX_PROBLEM_LINES: Final = 8
MAX_LINE_CHARACTERS: Final = 160
COMPLETE: Final = {"end_turn", "stop_sequence", "tool_use"}
CUT: Final = {"max_tokens", "model_context_window_exceeded", "pause_turn", "length"}
REFUSED: Final = {"refusal", "content_filter"}
BEGINS_LIKE_OBJECT: Final = re.compile(r'\{\s*["}]')
STRING_OR_TRAILING_COMMA: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|,(?=\s*[}\]])', re.DOTALL)
THOUGHTS: Final = re.compile(r"\s*<think(?:ing)?>(?:.*?</think(?:ing)?>|.*)", re.DOTALL)
"""At the beginning of a text; thoughts that never end are all there is of it."""
END_OF_THOUGHTS: Final = re.compile(
    r"(?!\s*(?:\{|```))(?:(?!<think).)*?</think(?:ing)?>(?=[ \t]*(?:[\n{#]|\Z))", re.DOTALL
)
"""Where a server took the mark of their beginning for a part of the prompt. Within an object, and within a sentence,
it is a word like others."""
THOUGHTS_LEFT_OUT: Final = "the model's thoughts before its answer were left out"
WHOLE_FENCE: Final = re.compile(r"```[a-zA-Z]*\n(?P<inner>.*)\n```", re.DOTALL)
DRAFT_FIELDS: Final = f"{__name__}:draft_fields"
Role = RoleSpec[Any, Any]


@lru_cache(maxsize=64)
def schema_text(draft: type[Contract]) -> str:
    """The schema as JSON, fields in the order in which they are declared."""
    return json.dumps(draft.model_json_schema())


def schema_of(draft: type[Contract]) -> dict[str, Any]:
    """The schema; whoever gets it may change it."""
    schema: dict[str, Any] = json.loads(schema_text(draft))
    return schema


def draft_of(role: Role, reply: ChatReply) -> tuple[Contract, list[str]]:
    """The draft that a reply holds, with one short warning for each liberty that was taken.

    Raises `AnswerRefused`, `AnswerCut` (whatever a cut answer looks like), or `InvalidOutput`.
    """
    check_end(reply)
    if role.plain_text:
        return _plain_text(role, reply)
    if isinstance(reply.tool_input, dict):
        refuse_flaws(reply.flaws)
        return _validate(role, reply.tool_input), []
    text, left_out = without_thoughts(reply.tool_input if isinstance(reply.tool_input, str) else reply.text)
    _refuse_unreadable(text, reply)
    draft, warnings = _from_text(role, text, complete=reply.stop_reason in COMPLETE and not role.whole_answers)
    return draft, [*left_out, *warnings]


def check_end(reply: ChatReply) -> None:
    """Raises `AnswerRefused`, or `AnswerCut`, whatever a cut answer looks like."""
    if reply.stop_reason in REFUSED:
        raise AnswerRefused("the model declined to answer")
    if reply.stop_reason in CUT:
        raise AnswerCut("the answer was cut off before its end")


def needs_isolation(reply: ChatReply) -> bool:
    """Whether the answer must be looked for in a text: only that can take long, whatever a model writes."""
    return reply.stop_reason not in REFUSED | CUT and not isinstance(reply.tool_input, dict)


def draft_fields(role: Role, reply: ChatReply) -> tuple[dict[str, Any], list[str]]:
    """`draft_of` for a child process: the draft's fields, and the warnings. Raises as `draft_of` does."""
    draft, warnings = draft_of(role, reply)
    return draft.model_dump(), warnings


def _plain_text(role: Role, reply: ChatReply) -> tuple[Contract, list[str]]:
    if reply.stop_reason not in COMPLETE:
        raise AnswerCut("the endpoint did not say that the answer was complete")
    text, left_out = without_thoughts(clean_text(reply.text))
    _refuse_unreadable(text, reply)
    fence = WHOLE_FENCE.fullmatch(text)
    if fence is not None and "```" not in fence["inner"]:
        text = fence["inner"].strip()
    field = next(iter(role.draft.model_fields))
    return _validate(role, {field: text}), left_out


def without_thoughts(text: str) -> tuple[str, list[str]]:
    """What a model says after it has thought aloud: thoughts are no part of an answer, whatever they hold.

    With a line for the account if there were any.
    """
    thoughts = THOUGHTS.match(text) or END_OF_THOUGHTS.match(text)
    return (text.strip(), []) if thoughts is None else (text[thoughts.end() :].strip(), [THOUGHTS_LEFT_OUT])


def _refuse_unreadable(text: str, reply: ChatReply) -> None:
    if not text.strip():
        refuse_flaws(reply.flaws)
        raise InvalidOutput(f"$: {FOREIGN_TOOL}" if FOREIGN_TOOL in reply.warnings else "$: the answer is empty")
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise InvalidOutput(f"$: the answer is longer than {MAX_ANSWER_CHARACTERS} characters")


def refuse_flaws(flaws: frozenset[str]) -> None:
    """Raises `InvalidOutput` that names what strict JSON forbids."""
    if flaws:
        raise InvalidOutput("\n".join(f"$: {flaw}" for flaw in sorted(flaws)))


def _from_text(role: Role, text: str, *, complete: bool) -> tuple[Contract, list[str]]:
    """The first object in the text that is a draft; the first problem met, if none is."""
    problem: InvalidOutput | None = None
    try:
        for candidate, warnings in _candidates(text, complete=complete):
            try:
                parsed, repairs = _parse(candidate)
                refuse_flaws(parsed.flaws)
                cleaned = ["lone surrogates were replaced in the answer"] if parsed.cleaned else []
                return _validate(role, parsed.value), [*warnings, *repairs, *cleaned]
            except NestingError:
                raise
            except JsonError as error:
                problem = problem or InvalidOutput(f"$: not readable as JSON: {error}")
            except InvalidOutput as error:
                problem = problem or error
    except NestingError as error:
        raise InvalidOutput(f"$: {error}") from None
    raise problem or InvalidOutput("$: the answer holds no JSON object")


def _candidates(text: str, *, complete: bool) -> Iterator[tuple[str, list[str]]]:
    """Stretches of the text that may be the object, in order, each with the liberties taken to find it."""
    start = text.find("{")
    for _ in range(MAX_CANDIDATES):
        if start < 0:
            return
        try:
            reach = bracketing(text, start)
        except NestingError:
            raise
        except JsonError:
            start = text.find("{", start + 1)
            continue
        if reach.end is not None:
            around = text[:start].strip() or text[reach.end :].strip()
            yield text[start : reach.end], ["text around the JSON was ignored"] if around else []
            start = text.find("{", reach.end)
        elif BEGINS_LIKE_OBJECT.match(text, start):
            # Its parts must not be taken for the whole, so nothing inside it is tried.
            if complete and not reach.in_string:
                yield text[start:].rstrip("` \n") + reach.missing, ["missing closing brackets were added"]
            else:
                yield text[start:], []
            return
        else:
            start = text.find("{", start + 1)


def _parse(candidate: str) -> tuple[ParsedJson, list[str]]:
    try:
        return parse_json(candidate), []
    except NestingError:
        raise
    except JsonError:
        repaired = STRING_OR_TRAILING_COMMA.sub(lambda found: "" if found.group() == "," else found.group(), candidate)
        if repaired == candidate:
            raise
        return parse_json(repaired), ["trailing commas were removed"]


def _validate(role: Role, value: Any) -> Contract:
    try:
        return role.draft.model_validate(value)
    except ValidationError as error:
        raise InvalidOutput(_problem(error)) from None


def _problem(error: ValidationError) -> str:
    """Which fields are wrong and how; paths are of our own schema's names and of positions."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    lines = [
        f"{'.'.join(str(part) for part in item['loc']) or '$'}: {item['msg']}"[:MAX_LINE_CHARACTERS]
        for item in found[:MAX_PROBLEM_LINES]
    ]
    left_out = len(found) - len(lines)
    return "\n".join([*lines, *([f"and {left_out} more"] if left_out else [])])
