"""Requests that fit into a model's context window. Pure.

`fit_request` shows the whole content of a task if there is room, else the largest of a few shares of it.
"""

import json
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from contracts.tool_turns import THOUGHTS
from providers.errors import InvalidCall
from providers.interfaces import EngineTask, Message
from providers.models.answers import schema_text, tool_definitions
from providers.models.chat import ChatMode, ChatRequest, ToolUse
from providers.models.endpoints import EndpointCapabilities, ModelCandidate

RUNTIME_OVERHEAD: Final = 10_000
"""Tokens left free in every window, never more than a quarter of it."""
SHARES: Final = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.0)
"""Shares of the content that are tried; 0 shows as little as makes sense."""
LETTERS: Final = f"{string.ascii_letters} \n".encode()
BEYOND_ASCII: Final = bytes(range(128, 256))
BREVITY: Final = "\n\nKeep the whole answer under {words} words."
JSON_INSTRUCTION: Final = """

Reply with one JSON object and nothing before or after it. It must fit this JSON schema:
{schema}"""
REPAIR_INSTRUCTION: Final = """

An earlier reply to this request could not be used, for these reasons:
{problem}
Do the work again and avoid them."""


@dataclass(frozen=True)
class FittedRequest:
    """A request that fits, and how it was made to."""

    request: ChatRequest
    estimate: int
    """Input tokens, rather too many than too few."""
    share: float
    """Share of the task's content that is shown."""
    warnings: list[str]


def fit_request(task: EngineTask, candidate: ModelCandidate) -> FittedRequest:
    """Make the request of a task in the strongest mode that the model supports.

    Raises `InvalidCall` of kind context_too_long, with need, room and remedy, if even the least content does not fit.
    """
    capabilities, tools = candidate.capabilities, tool_definitions(task)
    plain = task.role.plain_text or bool(tools)
    mode = ChatMode.TEXT if plain else capabilities.mode
    if mode is ChatMode.TOOL and capabilities.tools is ToolUse.NONE:
        mode = ChatMode.TEXT
    schema = "" if plain else schema_text(task.role.answer)
    end = JSON_INSTRUCTION.format(schema=schema) if schema and mode is ChatMode.TEXT else ""
    end += "" if task.input.repair is None else REPAIR_INSTRUCTION.format(problem=task.input.repair)
    room, output = room_for(capabilities, task.role.output_tokens)
    warnings: list[str] = []
    if output < (task.role.output_tokens + capabilities.reasoning_tokens) // 2:
        words = task.role.output_tokens * output // (task.role.output_tokens + capabilities.reasoning_tokens) // 2
        end = BREVITY.format(words=words) + end
        warnings.append(f"the model allows {output} tokens of output: a shorter answer is requested")
    besides = estimated_tokens(task.system + schema + end + (json.dumps(tools) if tools else ""))
    for share in SHARES:
        shown = task.shown(share)
        messages = messages_for(candidate.key, shown.messages)
        content = shown.prompt + (json.dumps(messages, ensure_ascii=False) if messages else "")
        estimate = int(capabilities.token_factor * (besides + estimated_tokens(content)))
        if estimate <= room:
            break
    else:
        raise too_long(task, candidate, estimate)
    if share < 1:
        warnings.append(f"shown {share:.0%} of the content: {candidate.shown} has room for {room} tokens")
    if messages and end:
        messages[-1]["content"].append({"type": "text", "text": end.strip()})
    request = ChatRequest(
        model=candidate.model,
        system=task.system,
        prompt=shown.prompt if messages else shown.prompt + end,
        max_tokens=output,
        timeout_seconds=task.input.time_limit_seconds,
        json_schema=json.loads(schema) if schema else None,
        mode=mode,
        common_length=shown.common_length,
        cache=capabilities.caching,
        messages=messages,
        tools=tools,
        must_call=(mode is ChatMode.TOOL or bool(tools)) and capabilities.tools is ToolUse.FORCED,
    )
    return FittedRequest(request, estimate, share, [*warnings, *shown.left_out])


def too_long(task: EngineTask, candidate: ModelCandidate, needed: int) -> InvalidCall:
    """Error for a prompt that does not fit: need, room and remedy."""
    room, _ = room_for(candidate.capabilities, task.role.output_tokens)
    lower = "" if task.role.tools else ", or lower limits.max_sources_per_query"
    return InvalidCall(
        f"the prompt needs about {needed} tokens and {candidate.shown} has room for {room} "
        f"(window {candidate.capabilities.window}): use a model with a larger window{lower}",
        kind="context_too_long",
    )


def room_for(capabilities: EndpointCapabilities, visible: int) -> tuple[int, int]:
    """Divide a window into tokens for the prompt and for all output, reasoning included; at most half is output."""
    available = capabilities.window - min(RUNTIME_OVERHEAD, capabilities.window // 4)
    needed = visible + capabilities.reasoning_tokens
    output = min(needed, capabilities.output_limit or needed, available // 2)
    return available - output, output


def estimated_tokens(text: str) -> float:
    """Tokens of a text for one of the older tokenizers, rather too many than too few.

    Letters and spaces count 0.27, digits, punctuation and markup 0.7; beyond ASCII each byte counts 0.5 (two or three
    bytes make a letter of another alphabet). Measured on prose, settings, hashes, addresses and JSON.
    """
    data = text.encode("utf-8", "replace")
    letters = len(data) - len(data.translate(None, LETTERS))
    beyond = len(data) - len(data.translate(None, BEYOND_ASCII))
    return letters * 0.27 + (len(data) - letters - beyond) * 0.7 + beyond * 0.5


def messages_for(author: str, messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The conversation for one model: thoughts go back unchanged to the model that wrote them, and to no other."""
    return [
        {
            "role": message.role,
            "content": [
                block for block in message.content if message.author == author or block.get("type") not in THOUGHTS
            ],
        }
        for message in messages
    ]
