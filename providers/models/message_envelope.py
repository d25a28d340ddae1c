"""The body of a Messages API response, read without trust: endpoints differ, gateways answer in their own words."""

import re
from typing import Any, Final, TypeGuard

from providers.errors import Unavailable
from providers.models.chat import ANSWER_TOOL, ChatReply, TokenCounts
from providers.strict_json import MAX_DEPTH, TOO_DEEP, JsonError, NestingError, ParsedJson, clean_text, parse_json

ENVELOPE_DEPTH: Final = MAX_DEPTH + 8
"""A tool's input lies a few levels inside the envelope."""

FOREIGN_TOOL: Final = "the answer called a tool that was not offered"

LONGEST_NAME: Final = 100
NAME_SHARE: Final = 4
NO_NAME: Final = re.compile(r"[^\w.:/@+, -]+")
"""What names of models and of reasons are not made of; they stand in reports, in lines and in logs."""

TOKEN_FIELDS: Final = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}


def read_reply(body: bytes, asked_model: str, *, offers_tools: bool = False) -> ChatReply:
    """Read a response of status 200; only where tools were offered may one but ours be called.

    Raises `Unavailable` when the body is no message at all (an HTML page, an error object, nothing): then no answer
    was given, and trying again may help. A message nested too deep was given and paid: a reply with that flaw.
    """
    try:
        envelope = _envelope(body)
    except NestingError:
        return ChatReply("", None, None, TokenCounts(known=False), asked_model, frozenset({TOO_DEEP}))
    message = envelope.value
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        raise Unavailable("the model endpoint answered with status 200 but with no message")
    blocks = [block for block in message["content"] if isinstance(block, dict)]
    tokens, warnings = read_tokens(message.get("usage"))
    called = [block for block in blocks if block.get("type") == "tool_use"]
    ours = [block.get("input") for block in called if block.get("name") == ANSWER_TOOL]
    if len(called) > len(ours) and not offers_tools:
        warnings.append(FOREIGN_TOOL)
    if envelope.cleaned:
        warnings.append("lone surrogates were replaced in the answer")
    return ChatReply(
        text="\n".join(
            block["text"] for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str)
        ),
        tool_input=ours[0] if ours else None,
        stop_reason=_name(message.get("stop_reason")) or None,
        tokens=tokens,
        model=_name(message.get("model")) or asked_model,
        flaws=envelope.flaws,
        warnings=warnings,
        blocks=blocks,
    )


def is_count(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number from 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def read_count(body: bytes) -> int:
    """Read how many tokens were counted. Raises `Unavailable` when the body names no number."""
    try:
        counted = _envelope(body).value
    except NestingError:
        counted = None
    count = counted.get("input_tokens") if isinstance(counted, dict) else None
    if not is_count(count) or count == 0:
        raise Unavailable("the model endpoint counted no tokens")
    return count


def _envelope(body: bytes) -> ParsedJson:
    try:
        return parse_json(clean_text(body.decode("utf-8", "replace")), ENVELOPE_DEPTH)
    except NestingError:
        raise
    except JsonError:
        raise Unavailable("the model endpoint answered with status 200 but not with readable JSON") from None


def _name(given: Any) -> str:
    """A name that an endpoint gave: bounded, on one line, of letters and few other signs; empty for none."""
    if not isinstance(given, str):
        return ""
    return " ".join(NO_NAME.sub("", given[: NAME_SHARE * LONGEST_NAME]).split())[:LONGEST_NAME].rstrip()


def read_tokens(usage: Any) -> tuple[TokenCounts, list[str]]:
    """What an answer says of its tokens, and a line for each figure that cannot be; those of caches may be missing."""
    if not isinstance(usage, dict):
        return TokenCounts(known=False), ["the endpoint did not say how many tokens it counted"]
    counts = dict.fromkeys(TOKEN_FIELDS, 0)
    wrong = []
    for field, name in TOKEN_FIELDS.items():
        count = usage.get(name)
        if is_count(count):
            counts[field] = count
        elif count is not None or field in {"input", "output"}:
            wrong.append(name)
    warnings = [f"the endpoint gave no usable number for {', '.join(wrong)}"] if wrong else []
    return TokenCounts(**counts, known=not wrong), warnings
