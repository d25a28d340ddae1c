"""The `openai` SDK against any endpoint that speaks chat completions: transport only, one request per call.

Conversations, tools and replies of this product have the form of the Messages API; this module translates both ways.
Servers of this protocol differ in what they accept and send; what a server is known to refuse is in
`ChatRequest.refuses`.
"""

import json
import logging
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

import httpx2
from anthropic import transform_schema
from openai import APIConnectionError, APIError, APIStatusError, AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletionChunk

from providers.errors import Unavailable
from providers.models.answers import is_count, reply_of
from providers.models.chat import (
    ANSWER_TOOL,
    CONNECT_SECONDS,
    MAX_REPLY_BYTES,
    ChatMode,
    ChatReply,
    ChatRequest,
    Parameter,
    SettingNames,
    error_for_status,
)
from providers.models.chat_failures import check_endpoint, no_address, translated_failures
from providers.models.connections import AttentiveTransport
from providers.models.servers import completions_address
from providers.service_calls import NO_KEY

OPENAI_BASE_URL: Final = "https://api.openai.com/v1"
OPENAI_SETTING_NAMES: Final = SettingNames(credential="OPENAI_API_KEY", address="OPENAI_BASE_URL")
FINISH_REASONS: Final = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
"""Stop reason of the Messages API by finish reason; others keep their name."""
THOUGHT_FIELDS: Final = ("reasoning_content", "reasoning")
"""Fields of a message with the model's thoughts, which servers name differently."""
STATUS_OF_ERROR_CODE: Final = {
    "context_length_exceeded": 400,
    "invalid_request_error": 400,
    "insufficient_quota": 402,
    "rate_limit_exceeded": 429,
}
"""HTTP status of these errors outside of a stream; any other error in a stream counts as transient."""


class ExplicitOpenAI(AsyncOpenAI):
    """The SDK's client with nothing from the environment: no address, no organization, no headers, no retries."""

    def __init__(self, *, api_key: str, base_url: str, http_client: httpx2.AsyncClient) -> None:
        super().__init__(
            api_key=api_key,
            admin_api_key="",
            organization="",
            project="",
            webhook_secret="",
            base_url=base_url,
            http_client=http_client,
            max_retries=0,
        )
        self.organization = None
        self.project = None
        self._custom_headers = {}


class LimitedTransport(AttentiveTransport):
    """A transport whose responses raise `Unavailable` after `MAX_REPLY_BYTES`."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and count what comes back."""
        response = await super().handle_async_request(request)
        response.stream = _LimitedStream(response.stream)
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in self._stream:
            received += len(chunk)
            if received > MAX_REPLY_BYTES:
                raise Unavailable("the model endpoint's answer exceeds 8 MB")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class OpenAIChat:
    """A connection pool to one endpoint."""

    def __init__(
        self,
        *,
        api_key: str | None,
        base_url: str = OPENAI_BASE_URL,
        names: SettingNames = OPENAI_SETTING_NAMES,
        silence_seconds: float | None = None,
    ) -> None:
        """Open the pool; messages name settings by `names`; `silence_seconds` is the timeout for silence.

        The address may be written with or without `/v1`. Raises `NotConfigured` if the public API has no key, if the
        key or the address is invalid, or if the key would be sent unencrypted.
        """
        address = completions_address(base_url)
        check_endpoint(address, api_key, names, public=OPENAI_BASE_URL)
        # At debug level the SDK logs whole requests, page text included.
        logging.getLogger("openai").setLevel(logging.WARNING)
        self._names = names
        self._silence_seconds = silence_seconds
        connections = httpx2.AsyncClient(trust_env=False, follow_redirects=False, transport=LimitedTransport())
        try:
            self._client = ExplicitOpenAI(api_key=api_key or NO_KEY, base_url=address, http_client=connections)
        except httpx2.InvalidURL:
            raise no_address(self._names) from None

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one streamed request, once. Raises `RateLimited`, `Unavailable`, `NotConfigured`, `InvalidCall`."""
        seconds = request.timeout_seconds
        allowed = request.silence_seconds if self._silence_seconds is None else self._silence_seconds
        silence = min(allowed, seconds)
        sending = self._client.chat.completions.with_streaming_response.create(
            model=request.model,
            messages=_conversation(request),  # type: ignore[arg-type]
            stream=True,
            timeout=httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds), read=silence),
            extra_body=_optional_arguments(request) | _tool_arguments(request),
        )
        failures = translated_failures(
            request, silence, self._names, refused=APIStatusError, unreached=APIConnectionError
        )
        async with failures, _stream_errors(request, self._names), sending as response:
            answer = CompletionBuilder(request.model)
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                chunks = cast("AsyncStream[ChatCompletionChunk]", await response.parse())
                async for chunk in chunks:
                    answer.add(chunk.model_dump(warnings=False))  # servers send other types
            else:
                self._silence_seconds = math.inf  # it does not stream, so a long answer is a long silence
                answer.add(await response.json())
            return reply_of(answer.message(), request.model)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


@asynccontextmanager
async def _stream_errors(request: ChatRequest, names: SettingNames) -> AsyncIterator[None]:
    """Translate an error within a stream, and a stream that cannot be read (statuses: `chat.error_for_status`)."""
    try:
        yield
    except (APIStatusError, APIConnectionError):
        raise
    except APIError as error:
        status = STATUS_OF_ERROR_CODE.get(str(error.code), STATUS_OF_ERROR_CODE.get(str(error.type), 500))
        raise error_for_status(status, [], str(error.body), request.model, names) from None
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        message = "the model endpoint answered with status 200 but with an unreadable event stream"
        raise Unavailable(message) from None


# --- requests ---------------------------------------------------------------------------------------------------------
def _conversation(request: ChatRequest) -> list[dict[str, Any]]:
    """Return all messages; the system prompt begins the first one where the server has no such role."""
    opening = request.prompt
    messages: list[dict[str, Any]] = []
    if Parameter.SYSTEM in request.refuses:
        opening = f"{request.system}\n\n{opening}"
    else:
        messages.append({"role": "system", "content": request.system})
    messages.append({"role": "user", "content": opening})
    for message in request.messages:
        blocks = message["content"]
        if message["role"] == "assistant":
            messages += _assistant_message(blocks)
        else:
            messages += _user_messages(blocks)
    return messages


def _assistant_message(blocks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a turn of the model: text, thoughts in the field that they came in, and calls of tools."""
    message: dict[str, Any] = {"role": "assistant", "content": _joined_text(blocks)}
    calls = [block for block in blocks if block["type"] == "tool_use"]
    if calls:
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": json.dumps(call["input"], ensure_ascii=False)},
            }
            for call in calls
        ]
    for block in blocks:
        if block["type"] == "thinking" and block.get("field") in THOUGHT_FIELDS:
            message[block["field"]] = block["thinking"]
    return [message]


def _user_messages(blocks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the results of tools, each a message of its own, and then the text."""
    messages: list[dict[str, Any]] = []
    for block in blocks:
        if block["type"] == "tool_result":
            content = block["content"]
            if isinstance(content, str):
                text = content
            else:
                text = _joined_text(content)
            messages.append({"role": "tool", "tool_call_id": block["tool_use_id"], "content": text})
    text = _joined_text(blocks)
    if text:
        return [*messages, {"role": "user", "content": text}]
    return messages


def _joined_text(blocks: Sequence[Mapping[str, Any]]) -> str:
    return "\n\n".join(block["text"] for block in blocks if block["type"] == "text")


def _optional_arguments(request: ChatRequest) -> dict[str, Any]:
    """Return the parameters that the server is not known to refuse."""
    arguments: dict[str, Any] = {}
    if Parameter.STREAM_OPTIONS not in request.refuses:
        arguments["stream_options"] = {"include_usage": True}
    for name in (Parameter.MAX_TOKENS, Parameter.MAX_COMPLETION_TOKENS):
        if name not in request.refuses:
            arguments[name.value] = request.max_tokens
            break
    return arguments


def _tool_arguments(request: ChatRequest) -> dict[str, Any]:
    """Return the role's tools, or the schema as response format or as parameters of the answer tool."""
    if request.tools:
        tools = [_function(tool["name"], tool["description"], tool["input_schema"]) for tool in request.tools]
        return _with_choice(tools, "required", request)
    if request.json_schema is None or request.mode is ChatMode.TEXT:
        return {}
    schema = dict(request.json_schema)
    if request.mode is ChatMode.NATIVE:
        answer_format = {"name": ANSWER_TOOL, "schema": _strict(transform_schema(schema)), "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": answer_format}}
    choice = {"type": "function", "function": {"name": ANSWER_TOOL}}
    tools = [_function(ANSWER_TOOL, "Submits the whole answer. Call it exactly once.", schema)]
    return _with_choice(tools, choice, request)


def _with_choice(tools: list[Any], choice: str | dict[str, Any], request: ChatRequest) -> dict[str, Any]:
    """Return the arguments for tools, with the choice of one if the model must call it."""
    if request.must_call:
        return {"tools": tools, "tool_choice": choice}
    return {"tools": tools}


def _function(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": dict(parameters)}}


def _strict(schema: Any) -> Any:
    """Return a schema whose objects require all their properties, as strict mode demands."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {name: _strict(value) for name, value in schema.items() if name != "default"}
    if isinstance(strict.get("properties"), dict):
        strict["required"] = list(strict["properties"])
    return strict


# --- replies ----------------------------------------------------------------------------------------------------------
@dataclass
class _ToolCall:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    whole: Any = None
    """Arguments that arrived as an object instead of as text."""

    def block(self, number: int) -> dict[str, Any]:
        """Return the call in the form of the Messages API; unreadable arguments stay text, which schemas refuse."""
        text = "".join(self.arguments)
        value: Any = self.whole
        if value is None:
            try:
                value = json.loads(text) if text.strip() else {}
            except (ValueError, RecursionError):
                value = text
        return {"type": "tool_use", "id": self.id or f"call_{number}", "name": self.name, "input": value}


class CompletionBuilder:
    """Joins the chunks of a streamed completion, or takes a whole one, and returns it as a message."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._texts: list[str] = []
        self._thoughts: dict[str, list[str]] = {}
        self._calls: list[_ToolCall] = []
        self._by_index: dict[Any, _ToolCall] = {}
        self._finish_reason: str | None = None
        self._usage: Any = None
        self._has_choice = False

    def add(self, chunk: Any) -> None:
        """Add one chunk, or one whole completion. Raises TypeError for one that is neither."""
        if not isinstance(chunk, dict):
            raise TypeError("the chunk is no object")
        if chunk.get("usage"):
            self._usage = chunk["usage"]
        if isinstance(chunk.get("model"), str):
            self._model = chunk["model"] or self._model
        for choice in (chunk.get("choices") or [])[:1]:
            self._has_choice = True
            self._add_delta(choice.get("delta") or choice.get("message") or {})
            if isinstance(choice.get("finish_reason"), str):
                self._finish_reason = choice["finish_reason"]

    def _add_delta(self, delta: Mapping[str, Any]) -> None:
        content = delta.get("content")
        if isinstance(content, list):  # parts, as some servers send them
            content = "".join(part.get("text") or "" for part in content if part.get("type") == "text")
        if content:
            self._texts.append(content)
        if delta.get("refusal"):
            self._finish_reason = "content_filter"
        for name in THOUGHT_FIELDS:
            if isinstance(delta.get(name), str) and delta[name]:
                self._thoughts.setdefault(name, []).append(delta[name])
                break
        for piece in delta.get("tool_calls") or []:
            self._add_piece(piece)

    def _add_piece(self, piece: Mapping[str, Any]) -> None:
        """Add a piece of a tool call. A new id is a new call, even at the index of another one."""
        index = piece.get("index")
        identity = piece.get("id") or ""
        function = piece.get("function") or {}
        call = self._by_index.get(index)
        if call is None or (identity and call.id and identity != call.id):
            call = self._by_index[index] = _ToolCall()
            self._calls.append(call)
        call.id = call.id or identity
        call.name = call.name or function.get("name") or ""
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif arguments is not None:
            call.whole = arguments

    def message(self) -> dict[str, Any]:
        """Return the message in the form of the Messages API. Raises `Unavailable` if nothing arrived."""
        if not self._has_choice:
            raise Unavailable("the model endpoint's answer ended in the middle")
        blocks: list[dict[str, Any]] = [
            {"type": "thinking", "thinking": "".join(texts), "field": name} for name, texts in self._thoughts.items()
        ]
        if self._texts:
            blocks.append({"type": "text", "text": "".join(self._texts)})
        blocks += [call.block(number) for number, call in enumerate(self._calls, start=1)]
        # Some servers end a stream without a reason; a connection that broke has raised before.
        reason = self._finish_reason or ("tool_calls" if self._calls else "stop")
        return {
            "content": blocks,
            "model": self._model,
            "stop_reason": FINISH_REASONS.get(reason, reason),
            "usage": _usage_fields(self._usage),
        }


def _usage_fields(usage: Any) -> dict[str, Any]:
    """Return token counts by the names of the Messages API, where cached tokens are not part of the input."""
    if not isinstance(usage, dict):
        return {}
    prompt = usage.get("prompt_tokens")
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    if is_count(prompt) and is_count(cached) and cached <= prompt:
        return {
            "input_tokens": prompt - cached,
            "cache_read_input_tokens": cached,
            "output_tokens": usage.get("completion_tokens"),
        }
    return {"input_tokens": prompt, "output_tokens": usage.get("completion_tokens")}
