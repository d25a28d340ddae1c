"""One exchange with a language model, in terms of the Messages API and independent of any client library."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol, TypedDict

from contracts.outcome import Usage
from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from providers.service_calls import StatusKind, classify, retry_after_seconds

ANSWER_TOOL = "give_answer"  # name of the tool whose input is the answer of a role without tools of its own
SILENCE_SECONDS: Final = 25.0
"""Timeout for a call that sends nothing, after which it is retried; the Messages API sends a ping every few seconds,
and a run may lose 45 s to an outage."""
FAILOVER_SILENCE_SECONDS: Final = 10.0  # the same if another endpoint can answer instead
CONNECT_SECONDS: Final = 10.0  # connection timeout, after which another endpoint can be tried
RETRY_SECONDS: Final = 1.0  # pause after a call timed out in silence, which was a wait already
MAX_REPLY_BYTES: Final = 8_000_000


class ChatApi(StrEnum):
    """Protocols of model endpoints."""

    MESSAGES = "messages"
    """The Messages API of Anthropic."""
    CHAT = "chat"
    """Chat completions, as OpenAI introduced them."""


class Parameter(StrEnum):
    """Parts of a request of chat completions that some servers refuse."""

    SYSTEM = "system"
    """Messages of the role `system`; their text begins the first message of the user instead."""
    STREAM_OPTIONS = "stream_options"
    MAX_TOKENS = "max_tokens"
    MAX_COMPLETION_TOKENS = "max_completion_tokens"
    """The limit of the answer where `max_tokens` is refused."""


class ChatMode(StrEnum):
    """Ways to request an answer that matches a JSON schema, the strongest guarantee first."""

    NATIVE = "native"  # the schema is the output format of the request
    TOOL = "tool"  # the schema is the input of one tool
    TEXT = "text"  # the schema is a part of the prompt


class ToolUse(StrEnum):
    """Tool support of an endpoint, the strongest first."""

    FORCED = "forced"  # a request can demand a tool call
    OFFERED = "offered"  # the model may call tools
    NONE = "none"


@dataclass(frozen=True)
class ChatRequest:
    """A request. `max_tokens` counts everything that the model generates, `timeout_seconds` the whole exchange."""

    model: str
    system: str
    prompt: str
    max_tokens: int
    timeout_seconds: float
    json_schema: Mapping[str, Any] | None = None
    mode: ChatMode = ChatMode.TEXT
    common_ends: tuple[int, ...] = ()
    """Offsets in characters at the ends of prompt parts with which other requests of the run begin, too."""
    cache: bool = False
    """Mark the stable prefixes (system, common part, conversation so far) for the endpoint's cache."""
    messages: Sequence[Mapping[str, Any]] = ()
    """`role` and `content` of each message after the prompt; the last one is the user's."""
    tools: Sequence[Mapping[str, Any]] = ()
    """Tools of the role, in Messages API form; excludes `json_schema`."""
    must_call: bool = False  # demand a call of a tool; some endpoints accept tools but cannot force one
    silence_seconds: float = SILENCE_SECONDS
    """Timeout for silence, unless the endpoint has a setting of its own."""
    refuses: Sequence[Parameter] = ()
    """Parameters that the endpoint refuses, so they are omitted."""


@dataclass(frozen=True)
class ChatReply:
    """The reply to a request, usable or not."""

    text: str
    tool_input: object | None  # input of `ANSWER_TOOL`; None if the model did not call it
    stop_reason: str | None
    usage: Usage
    """Billed tokens, not priced yet; the cost is None for absent or absurd figures."""
    model: str
    warnings: list[str] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)  # the content blocks, unchanged


class Chat(Protocol):
    """A connection to one endpoint. Its methods raise `Retryable` or `Rejected`."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one request, once; return every reply that arrives."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


ADDRESS_VARIABLE: Final = "ANTHROPIC_BASE_URL"
MODEL_VARIABLE: Final = "RESEARCH_MODEL"


@dataclass(frozen=True)
class SettingNames:
    """Names of the settings that an operator changes for an endpoint."""

    credential: str = "ANTHROPIC_API_KEY"
    address: str = ADDRESS_VARIABLE
    silence: str = "models.endpoints.default.silence_seconds"


DEFAULT_SETTING_NAMES: Final = SettingNames()


class ChatOptions(TypedDict):
    """Arguments of a client of either protocol."""

    api_key: str | None
    base_url: str
    names: SettingNames
    silence_seconds: float | None


class UndeterminedChat:
    """An endpoint whose protocol is found out by the first call: the Messages API is tried first.

    A server without it answers with 404 or 405, which costs nothing.
    """

    def __init__(self, messages: Chat, completions: Callable[[], Chat], address: str) -> None:
        """`completions` makes the other client when it is needed; `address` is the setting with the address."""
        self._messages = messages
        self._make_completions = completions
        self._completions: Chat | None = None
        self._address = address
        self._found = False

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one request, once. Raises the errors of the client, and `InvalidCall` if neither protocol answers."""
        if self._completions is None:
            try:
                reply = await self._messages.complete(request)
            except InvalidCall as error:
                if error.kind != "unknown_address" or self._found:
                    raise
                self._completions = self._make_completions()
            else:
                self._found = True
                return reply
        try:
            return await self._completions.complete(request)
        except InvalidCall as error:
            if error.kind != "unknown_address":
                raise
            message = f"neither the Messages API nor chat completions answer at {self._address} (404)"
            raise InvalidCall(message, kind=error.kind) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._messages.close()
        if self._completions is not None:
            await self._completions.close()


# --- error responses --------------------------------------------------------------------------------------------------
UNKNOWN: Final = r"(?:not support|unsupported|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|extra)"
REFUSALS: Final[Mapping[str, str]] = {
    "context_too_long": r"prompt is too long|context (length|window|size|limit)|too many (input )?tokens|too large",
    "refuses_stream_options": r"stream_options|include_usage",
    "refuses_max_completion_tokens": rf"{UNKNOWN}[^.]{{0,40}}max_completion_tokens"
    rf"|max_completion_tokens[^.]{{0,60}}{UNKNOWN}",
    "refuses_max_tokens": rf"{UNKNOWN}[^.]{{0,40}}\bmax_tokens|\bmax_tokens[^.]{{0,60}}{UNKNOWN}",
    "output_too_long": r"max_(completion_|output_)?tokens",
    "refuses_system": r"system (role|message)s?\b|role:? .{0,3}system",
    "unsupported_caching": r"cache_control|prompt.caching|should be a valid string",
    "unsupported_parameter": r"(output|response)_(config|format)|(json|input)_schema|structured output|tool_choice"
    r"|\btools?\b",
    "unknown_model": r"\bmodel\b",
}
"""Kinds of `InvalidCall` by patterns of the endpoint's message in lower case; the first match counts."""
UNSAFE_CHARACTER: Final = re.compile(r"[^\w.:/@-]")


def error_for_status(
    status: int, headers: Iterable[tuple[str, str]], detail: str, model: str, names: SettingNames
) -> ProviderError:
    """Translate an error response; `detail`, the endpoint's own wording, is searched but never repeated."""
    lowered = detail[:4_000].lower()
    kind = classify(status)
    if kind is StatusKind.BUSY:
        return RateLimited(f"the model endpoint asks to wait ({status})", retry_after=retry_after_seconds(headers))
    if kind is StatusKind.UNAVAILABLE:
        wait = retry_after_seconds(headers)
        return Unavailable(f"the model endpoint is not available ({status})", retry_after=wait)
    if status in {401, 403}:
        return NotConfigured(f"the model endpoint refuses the credentials ({status}): set {names.credential}")
    if status == 402 or (status == 400 and any(word in lowered for word in ("credit balance", "billing", "quota"))):
        return NotConfigured(f"the account behind {names.credential} cannot pay ({status}): add credit to it")
    if kind is StatusKind.MOVED:
        return NotConfigured(f"the model endpoint has moved ({status}): set {names.address} to its new address")
    return _invalid_call(status, lowered, safe_name(model), names)


def safe_name(model: str) -> str:
    """Make a name safe for messages, reports and logs: requests and endpoints may name anything."""
    return UNSAFE_CHARACTER.sub("?", model)[:80]


def _invalid_call(status: int, detail: str, model: str, names: SettingNames) -> InvalidCall:
    kind = next((kind for kind, pattern in REFUSALS.items() if re.search(pattern, detail)), "refused")
    if status == 413:
        kind = "context_too_long"
    elif status == 405 or (status == 404 and kind != "unknown_model"):
        kind = "unknown_address"
    messages = {
        "context_too_long": f"the prompt is too long for the model {model}",
        "output_too_long": f"the model {model} allows no answer as long as that",
        "unsupported_caching": "the model endpoint does not accept cache marks",
        "unsupported_parameter": f"the model {model} lacks a parameter for tools or answers of a schema",
        "unknown_model": f"the model endpoint does not know the model {model}: see {MODEL_VARIABLE}",
        "unknown_address": f"no model endpoint answers at {names.address}",
        "refused": "the model endpoint refuses the request",
    }
    message = messages.get(kind) or f"the model endpoint refuses the parameter {kind.removeprefix('refuses_')}"
    return InvalidCall(f"{message} ({status})", kind=kind)
