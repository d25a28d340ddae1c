"""One exchange with a language model, in the terms of the Messages API and free of any client library."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

ANSWER_TOOL = "give_answer"  # name of the tool whose input is the answer of a role without tools of its own


class ChatMode(StrEnum):
    """Ways to request an answer of a JSON schema, from the strongest guarantee to the weakest."""

    NATIVE = "native"
    """The schema is the output format of the request."""
    TOOL = "tool"
    """The schema is the input of one tool."""
    TEXT = "text"
    """The schema is a part of the prompt."""


class ToolUse(StrEnum):
    """Tool support of an endpoint, from the strongest to none."""

    FORCED = "forced"
    """A request can demand that a tool is called."""
    OFFERED = "offered"
    """The model may call tools."""
    NONE = "none"


@dataclass(frozen=True)
class ChatRequest:
    """One request. `max_tokens` counts everything that the model generates, `timeout_seconds` the whole exchange."""

    model: str
    system: str
    prompt: str
    max_tokens: int
    timeout_seconds: float
    json_schema: Mapping[str, Any] | None = None
    mode: ChatMode = ChatMode.TEXT
    common_ends: tuple[int, ...] = ()
    """Places where parts of the prompt end that other requests of the run begin with, in characters."""
    cache: bool = False
    """Mark the stable beginnings (system, common part, conversation so far) for the endpoint's cache."""
    messages: Sequence[Mapping[str, Any]] = ()
    """`role` and `content` of each message after the prompt; the last one is the user's."""
    tools: Sequence[Mapping[str, Any]] = ()
    """Tools of the role, as the Messages API has them; excludes `json_schema`."""
    must_call: bool = False
    """Demand a call of a tool; some endpoints accept tools but cannot force one."""


@dataclass(frozen=True)
class TokenCounts:
    """Billed tokens; the four kinds do not overlap. `known` is false for absent or absurd figures."""

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
    """The reply to a request, usable or not."""

    text: str
    tool_input: object | None
    """Input of `ANSWER_TOOL`; None if the model did not call it."""
    stop_reason: str | None
    tokens: TokenCounts
    model: str
    warnings: list[str] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    """The content blocks, unchanged."""


class Chat(Protocol):
    """A connection to one endpoint. Its methods raise `Retryable` or `Rejected`."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one request, once; every reply that arrives is returned."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
