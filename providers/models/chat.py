"""One exchange with a language model, in the terms of the Messages API and free of any client library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

ANSWER_TOOL = "give_answer"
"""Name of the tool that takes the answer of a role without tools: its input is the answer."""


class ChatMode(StrEnum):
    """How an answer of a schema is asked for, from the strongest guarantee to the weakest."""

    NATIVE = "native"
    TOOL = "tool"
    """One tool, which the model must call."""
    TOOL_OFFERED = "tool_offered"
    """The same tool, which it may call: some endpoints take tools but force none."""
    TEXT = "text"


class ToolUse(StrEnum):
    """What an endpoint makes of tools, from the strongest to none."""

    FORCED = "forced"
    """It can be told that one must be called."""
    OFFERED = "offered"
    """A model may call them."""
    NONE = "none"


@dataclass(frozen=True)
class ChatRequest:
    """What is asked. `max_tokens` counts everything that the model generates, `timeout_seconds` the whole exchange."""

    model: str
    system: str
    prompt: str
    max_tokens: int
    timeout_seconds: float
    json_schema: Mapping[str, Any] | None = None
    mode: ChatMode = ChatMode.TEXT
    common_length: int = 0
    """How many leading characters of the prompt other requests share."""
    cache_system: bool = False
    """Whether the endpoint is to keep what comes before the messages."""
    cache_common: bool = False
    """Whether it is to keep the common part of the prompt too."""
    messages: Sequence[Mapping[str, Any]] = ()
    """What was said since the prompt, `role` and `content` of each; the last one is the user's."""
    tools: Sequence[Mapping[str, Any]] = ()
    """Tools that may be called, as the Messages API has them; they and a schema exclude each other."""
    must_call: bool = False
    """Whether one of them must be called."""
    cache_messages: bool = False
    """Whether the endpoint is to keep all that was said so far, for the next turn."""


@dataclass(frozen=True)
class TokenCounts:
    """Tokens as they are billed; the four kinds do not overlap. `known` is false for absent or absurd figures."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    known: bool = True

    @property
    def prompt(self) -> int:
        """All input tokens, cached or not."""
        return self.input + self.cache_read + self.cache_write


@dataclass(frozen=True)
class ChatReply:
    """What came back, whatever it is worth.

    `tool_input` is set when the model called `ANSWER_TOOL`; `flaws` name what strict JSON forbids and the reply's
    own envelope contained.
    """

    text: str
    tool_input: object | None
    stop_reason: str | None
    tokens: TokenCounts
    model: str
    flaws: frozenset[str] = frozenset()
    warnings: list[str] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    """The content as it came."""


class Chat(Protocol):
    """Makes one exchange."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one request, once. Raises `Retryable` or `Rejected`; any reply that came is returned."""
        ...

    async def count_tokens(self, request: ChatRequest) -> int:
        """How many input tokens the request has, by the endpoint's own count. Raises `Retryable` or `Rejected`."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
