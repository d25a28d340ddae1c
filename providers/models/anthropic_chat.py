"""The `anthropic` SDK against any endpoint that speaks the Messages API: transport only, one request per call."""

import itertools
import json
import logging
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import httpx2
from anthropic import APIConnectionError, APIStatusError, AsyncAnthropic, transform_schema
from anthropic.types import CacheControlEphemeralParam, MessageParam, TextBlockParam

from providers.errors import Unavailable
from providers.models.answers import read_reply
from providers.models.chat import (
    ANSWER_TOOL,
    CONNECT_SECONDS,
    DEFAULT_SETTING_NAMES,
    MAX_REPLY_BYTES,
    ChatMode,
    ChatReply,
    ChatRequest,
    SettingNames,
    error_for_status,
)
from providers.models.chat_failures import check_endpoint, no_address, translated_failures
from providers.models.connections import AttentiveTransport
from providers.service_calls import NO_KEY

DEFAULT_BASE_URL: Final = "https://api.anthropic.com"
STATUS_OF_STREAM_ERROR: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}
"""HTTP status of these errors outside of a stream; any other error counts as transient."""
EPHEMERAL: Final[CacheControlEphemeralParam] = {"type": "ephemeral"}


class ExplicitClient(AsyncAnthropic):
    """The SDK's client with nothing from the environment: no credentials, no address, no headers, no retries.

    The SDK does not search for credentials in a subclass; headers of `ANTHROPIC_CUSTOM_HEADERS` are removed again.
    """

    def __init__(self, *, api_key: str, base_url: str, http_client: httpx2.AsyncClient) -> None:
        super().__init__(
            api_key=api_key,
            base_url=base_url,
            http_client=http_client,
            webhook_key="",
            max_retries=0,
            # Its spans could have whole messages, by a variable of the environment; and no trace id goes to a provider.
            open_telemetry={"traces": False, "propagation": False},
        )
        self._custom_headers = {}


class AnthropicChat:
    """A connection pool to one endpoint."""

    def __init__(
        self,
        *,
        api_key: str | None,
        base_url: str = DEFAULT_BASE_URL,
        names: SettingNames = DEFAULT_SETTING_NAMES,
        silence_seconds: float | None = None,
    ) -> None:
        """Open the pool; messages name settings by `names`; `silence_seconds` is the timeout for silence.

        Without it each request has its own. The address may be written with or without `/v1`. Raises `NotConfigured`
        if the public API has no key, if the key or the address is invalid, or if the key would be sent unencrypted.
        """
        check_endpoint(base_url, api_key, names, public=DEFAULT_BASE_URL)
        # At debug level the SDK logs whole requests, page text included.
        logging.getLogger("anthropic").setLevel(logging.WARNING)
        self._names = names
        self._silence_seconds = silence_seconds
        connections = httpx2.AsyncClient(trust_env=False, follow_redirects=False, transport=AttentiveTransport())
        try:
            address = base_url.rstrip("/").removesuffix("/v1")  # which the SDK adds
            self._client = ExplicitClient(api_key=api_key or NO_KEY, base_url=address, http_client=connections)
        except httpx2.InvalidURL:
            raise no_address(self._names) from None

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one streamed request, once. Raises `RateLimited`, `Unavailable`, `NotConfigured`, `InvalidCall`.

        An endpoint that hangs times out sooner than one that writes: anything that arrives, even a ping, ends a
        silence.
        """
        seconds = request.timeout_seconds
        allowed = self._silence_seconds
        silence = min(request.silence_seconds if allowed is None else allowed, seconds)
        # Plain text unless it is marked for the cache: not every endpoint reads blocks here.
        system: list[TextBlockParam] = [{"type": "text", "text": request.system, "cache_control": EPHEMERAL}]
        sending = self._client.messages.with_streaming_response.create(
            model=request.model,
            max_tokens=request.max_tokens,
            system=system if request.cache else request.system,
            messages=_conversation(request) if request.tools else _prompt(request),
            timeout=httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds), read=silence),
            stream=True,
            **_tool_arguments(request),
        )
        failures = translated_failures(
            request, silence, self._names, refused=APIStatusError, unreached=APIConnectionError
        )
        async with failures, _stream_errors(request, self._names), sending as response:
            received = bytearray()
            async for chunk in response.iter_bytes():
                received += chunk
                if len(received) > MAX_REPLY_BYTES:
                    raise Unavailable("the model endpoint's answer exceeds 8 MB")
            body = bytes(received)
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                body = message_of(body)
            else:
                self._silence_seconds = math.inf  # it does not stream, so a long answer is a long silence
            return read_reply(body, request.model)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _prompt(request: ChatRequest) -> list[MessageParam]:
    """Return the prompt in blocks, with cache marks at the ends of the last two parts shared with other requests."""
    if not request.cache or not request.common_ends:
        return [{"role": "user", "content": request.prompt}]
    ends = [0, *request.common_ends, len(request.prompt)]
    blocks: list[TextBlockParam] = [
        {"type": "text", "text": request.prompt[start:end]} for start, end in itertools.pairwise(ends)
    ]
    for block in blocks[-3:-1]:
        block["cache_control"] = EPHEMERAL
    return [{"role": "user", "content": blocks}]


def _conversation(request: ChatRequest) -> list[MessageParam]:
    """Return the whole conversation, with cache marks at the ends of the last two user messages.

    The older mark is where the previous turn was cached, which an endpoint finds by itself only within a few blocks.
    """
    opening = {"role": "user", "content": [{"type": "text", "text": request.prompt}]}
    messages = [opening, *({"role": one["role"], "content": list(one["content"])} for one in request.messages)]
    if request.cache:
        for message in [one for one in messages if one["role"] == "user"][-2:]:
            *earlier, last = message["content"]
            message["content"] = [*earlier, {**last, "cache_control": EPHEMERAL}]
    return cast("list[MessageParam]", messages)


def _tool_arguments(request: ChatRequest) -> dict[str, Any]:
    """Return the role's tools, or the schema as output format or as input of the answer tool."""
    if request.tools:
        choice = {"type": "any"} if request.must_call else {"type": "auto"}
        return {"tools": [dict(tool) for tool in request.tools], "tool_choice": choice}
    if request.json_schema is None or request.mode is ChatMode.TEXT:
        return {}
    schema = dict(request.json_schema)
    if request.mode is ChatMode.NATIVE:
        return {"output_config": {"format": {"type": "json_schema", "schema": transform_schema(schema)}}}
    description = "Submits the whole answer. Call it exactly once."
    return {
        "tools": [{"name": ANSWER_TOOL, "description": description, "input_schema": schema}],
        "tool_choice": {"type": "tool", "name": ANSWER_TOOL} if request.must_call else {"type": "auto"},
    }


# --- event streams ----------------------------------------------------------------------------------------------------
DELTA_FIELDS: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""Field of each type of delta; its pieces are joined in the block's field of that name."""


class StreamError(Exception):
    """The endpoint reported an error within the stream: `kind` is its type, such as `overloaded_error`."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@asynccontextmanager
async def _stream_errors(request: ChatRequest, names: SettingNames) -> AsyncIterator[None]:
    """Translate an error that the endpoint reports within its stream (statuses: `chat.error_for_status`)."""
    try:
        yield
    except StreamError as error:
        status = STATUS_OF_STREAM_ERROR.get(error.kind, 500)
        raise error_for_status(status, [], error.kind, request.model, names) from None


def message_of(stream: bytes) -> bytes:
    """Return, as JSON, the message that the endpoint would have sent without streaming.

    Raises `StreamError` for an error event, and `Unavailable` for a stream that is unreadable or incomplete: no answer
    was given.
    """
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    pieces: dict[tuple[int, str], list[str]] = {}
    try:
        lines = stream.decode("utf-8", "replace").split("\n")
        for event in (json.loads(line.removeprefix("data:")) for line in lines if line.startswith("data:")):
            match event["type"]:
                case "message_start":
                    message = dict(event["message"])
                case "content_block_start":
                    blocks[event["index"]] = dict(event["content_block"])
                case "content_block_delta":
                    if name := DELTA_FIELDS.get(event["delta"]["type"]):
                        pieces.setdefault((event["index"], name), []).append(event["delta"][name])
                case "message_delta":
                    usage = {name: count for name, count in (event.get("usage") or {}).items() if count is not None}
                    message |= event["delta"] | {"usage": (message.get("usage") or {}) | usage}
                case "error":
                    raise StreamError(str(event["error"]["type"]))
                case "message_stop":
                    for (index, name), texts in pieces.items():
                        blocks[index][name] = blocks[index].get(name, "") + "".join(texts)
                    content = [_closed(blocks[index]) for index in sorted(blocks)]
                    return json.dumps(message | {"content": content}).encode()
                case _:
                    pass  # pings, ends of blocks, and additions of later versions of the API
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Unavailable("the model endpoint answered with status 200 but with an unreadable event stream") from None
    raise Unavailable("the model endpoint's answer ended in the middle")


def _closed(block: dict[str, Any]) -> dict[str, Any]:
    """Return the block with its tool input; text that is not valid JSON stays text, which the schema refuses."""
    partial = block.pop("partial_json", "")
    if not partial:
        return block
    try:
        return block | {"input": json.loads(partial)}
    except (ValueError, RecursionError):
        return block | {"input": partial}
