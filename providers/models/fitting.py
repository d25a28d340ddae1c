"""Fitting a task to a model's context window, and estimates of tokens that err high. Pure."""

import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from contracts.tool_turns import THOUGHTS
from providers.errors import InvalidCall
from providers.interfaces import EngineTask, Message, ShortPrompt
from providers.models.endpoints import EndpointCapabilities, ModelCandidate

RUNTIME_OVERHEAD: Final = 10_000
"""Tokens left free in every window, never more than a quarter of it."""
STEPS: Final = 6
"""Halvings of the share of the content in search of the largest that fits: to 1/64."""
LETTERS: Final = f"{string.ascii_letters} \n".encode()
BEYOND_ASCII: Final = bytes(range(128, 256))
BREVITY: Final = "\n\nKeep the whole answer under {words} words."


@dataclass(frozen=True)
class Room:
    """Tokens for the whole prompt, for the visible answer, and for everything that the model generates."""

    prompt: int
    visible: int
    output: int


@dataclass(frozen=True)
class FittedPrompt:
    """The part of a task that is sent."""

    prompt: str
    common_length: int
    messages: list[dict[str, Any]]
    """The conversation after the prompt, of a role with tools."""
    end: str
    """A request for brevity to put at the very end, or nothing."""
    max_tokens: int
    estimate: int
    """Input tokens, rather too many than too few."""
    share: float = 1.0
    """Share of the task's content that is shown."""
    warnings: list[str] = field(default_factory=list)


def fit(task: EngineTask, candidate: ModelCandidate, extra: str, tokens_per_estimate: float) -> FittedPrompt:
    """Fit one task to one model: the whole content if there is room, else the largest share that fits.

    `extra` is text that is sent besides the task's own: schema, tools, instructions. Raises `InvalidCall` of kind
    context_too_long, with need, room and remedy, when the window is too small even for the least content.
    """

    def tokens_of(content: ShortPrompt) -> float:
        return tokens_per_estimate * estimated_request(task, content, candidate.key, extra)

    shown, share = task.whole(), 1.0
    tokens = tokens_of(shown)
    room = room_for(candidate.capabilities, task.role.output_tokens, tokens)
    warnings = []
    if tokens > room.prompt:
        shorten = task.shortened or (lambda _: task.whole())
        shown, share = shorten(0.0), 0.0
        tokens, most = tokens_of(shown), 1.0
        if tokens > room.prompt:
            raise too_long(task, candidate, int(tokens))
        for _ in range(STEPS):
            middle = (share + most) / 2
            longer = shorten(middle)
            needed = tokens_of(longer)
            if needed <= room.prompt:
                shown, share, tokens = longer, middle, needed
            else:
                most = middle
        warnings.append(f"shown {share:.0%} of the content: {candidate.shown} has room for {room.prompt} tokens")
    brief = room.visible < task.role.output_tokens // 2
    if brief:
        window = candidate.capabilities.window
        warnings.append(f"the model's window has {window} tokens: a shorter answer is requested")
    return FittedPrompt(
        shown.prompt,
        shown.common_length,
        messages_for(candidate.key, shown.messages),
        BREVITY.format(words=room.visible // 2) if brief else "",
        room.output,
        int(tokens),
        share,
        [*warnings, *shown.left_out],
    )


def too_long(task: EngineTask, candidate: ModelCandidate, needed: int) -> InvalidCall:
    """Error for a prompt that does not fit: need, room and remedy."""
    room, window = room_for(candidate.capabilities, task.role.output_tokens, needed), candidate.capabilities.window
    lower = "" if task.role.tools else ", or lower limits.max_sources_per_query"
    return InvalidCall(
        f"the prompt needs about {needed} tokens and {candidate.shown} has room for {room.prompt} (window {window}): "
        f"use a model with a larger window{lower}",
        kind="context_too_long",
    )


def room_for(capabilities: EndpointCapabilities, visible: int, prompt_tokens: float) -> Room:
    """Divide a window: the answer gets the rest after the prompt, or half of the window."""
    available = capabilities.window - min(RUNTIME_OVERHEAD, capabilities.window // 4)
    needed = visible + capabilities.reasoning_tokens
    limit = min(needed, capabilities.output_limit or needed)
    output = int(min(limit, max(available // 2, available - prompt_tokens)))
    return Room(available - output, visible * output // needed, output)


def estimated_request(task: EngineTask, content: ShortPrompt, author: str, extra: str) -> float:
    """Estimated input tokens of a whole request."""
    conversation = text_of(messages_for(author, content.messages))
    return sum(estimated_tokens(part) for part in (task.system, extra, BREVITY, content.prompt, conversation))


def estimated_tokens(text: str) -> float:
    """Tokens of a text for one of the older tokenizers, rather too many than too few.

    Letters and spaces count 0.27, digits, punctuation and markup 0.7; beyond ASCII each byte counts 0.5 (two or three
    bytes make a letter of another alphabet). Measured on prose, settings, hashes, addresses and JSON.
    """
    data = text.encode("utf-8", "replace")
    letters = len(data) - len(data.translate(None, LETTERS))
    beyond = len(data) - len(data.translate(None, BEYOND_ASCII))
    return letters * 0.27 + (len(data) - letters - beyond) * 0.7 + beyond * 0.5


def text_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """All blocks of messages as JSON; empty where there are none."""
    return "".join(json.dumps(block, ensure_ascii=False) for message in messages for block in message["content"])


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
