"""The `anthropic` SDK against any endpoint that speaks the Messages API: transport only, one request per call."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import httpx2
from anthropic import APIConnectionError, APIStatusError, AsyncAnthropic, transform_schema
from anthropic.types import CacheControlEphemeralParam, MessageParam, TextBlockParam, ToolChoiceParam, ToolParam

from providers.certificates import trusted_certificates
from providers.credentials import NO_KEY, ensure_confidential, ensure_key
from providers.errors import NotConfigured, Unavailable
from providers.models.chat import ANSWER_TOOL, ChatMode, ChatReply, ChatRequest
from providers.models.message_envelope import read_count, read_reply
from providers.models.model_errors import DEFAULT_PLACES, EndpointPlaces, error_for_status
from providers.shared.cancellation_grace import begin_request

DEFAULT_BASE_URL: Final = "https://api.anthropic.com"

CONNECT_SECONDS: Final = 10.0
MAX_REPLY_BYTES: Final = 8_000_000
IDLE_SECONDS: Final = 60.0
"""How long a connection is kept for the next call: between two phases of a run lie some seconds."""
MAX_CONNECTIONS: Final = 250
EPHEMERAL: Final[CacheControlEphemeralParam] = {"type": "ephemeral"}
COUNT_SECONDS: Final = 10.0
"""Counting saves a wrong guess; it is not worth a long wait."""


class ExplicitClient(AsyncAnthropic):
    """The SDK's client, told everything: credentials, address and headers never come from the environment.

    Being a subclass keeps the SDK from searching the machine for credentials; the headers of
    `ANTHROPIC_CUSTOM_HEADERS`, for which no argument exists, are taken out again.
    """

    def __init__(self, *, api_key: str, base_url: str, http_client: httpx2.AsyncClient) -> None:
        super().__init__(
            api_key=api_key,
            base_url=base_url,
            http_client=http_client,
            webhook_key="",
            max_retries=0,
            open_telemetry=False,
        )
        self._custom_headers = {}


class AnthropicChat:
    """One connection pool to one endpoint."""

    def __init__(
        self, *, api_key: str | None, base_url: str = DEFAULT_BASE_URL, places: EndpointPlaces = DEFAULT_PLACES
    ) -> None:
        """`places` name what an operator sets, for the messages.

        Raises `NotConfigured` when the public API is meant and no key is there, key or address cannot be one, or the
        key would be sent in clear.
        """
        if not api_key and base_url.rstrip("/") == DEFAULT_BASE_URL:
            raise NotConfigured(f"the model endpoint needs a key: set {places.credential}")
        if not base_url.startswith(("https://", "http://")):
            raise NotConfigured(f"{places.address} must begin with https:// or http://")
        if api_key:
            ensure_key(api_key, places.credential)
        # At its debug level the SDK logs whole requests, page text included.
        logging.getLogger("anthropic").setLevel(logging.WARNING)
        self._places = places
        connections = httpx2.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            limits=httpx2.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=IDLE_SECONDS),
            verify=trusted_certificates(),
        )
        try:
            self._client = ExplicitClient(api_key=api_key or NO_KEY, base_url=base_url, http_client=connections)
        except httpx2.InvalidURL:
            raise self._no_address() from None
        if api_key:
            ensure_confidential(api_key, base_url, places.address, places.credential)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one request, once.

        Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`; whatever else came is returned as it is.
        """
        async with self._translate_errors(request, request.timeout_seconds):
            return read_reply(await self._send(request), request.model, offers_tools=bool(request.tools))

    async def count_tokens(self, request: ChatRequest) -> int:
        """How many input tokens the request has, by the endpoint's own count. Raises what `complete` raises."""
        seconds = min(COUNT_SECONDS, request.timeout_seconds)
        counting = self._client.messages.with_streaming_response.count_tokens(
            model=request.model,
            system=request.system,
            messages=_messages(request),
            timeout=_timeout(seconds),
            **_tool_arguments(request),
            **_schema_arguments(request),
        )
        async with self._translate_errors(request, seconds), counting as response:
            return read_count(await _receive(response.iter_bytes()))

    @asynccontextmanager
    async def _translate_errors(self, request: ChatRequest, seconds: float) -> AsyncIterator[None]:
        try:
            # Timeouts of the transport count silence; a body that trickles needs a limit on the whole.
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise Unavailable(f"the model endpoint gave no answer in {seconds:.0f} s") from None
        except APIStatusError as error:
            headers = error.response.headers.multi_items()
            raise error_for_status(error.status_code, headers, str(error.body), request.model, self._places) from None
        except httpx2.InvalidURL:
            raise self._no_address() from None
        except (APIConnectionError, httpx2.HTTPError) as error:
            reason = type(error.__cause__ or error).__name__
            raise Unavailable(f"no connection to the model endpoint ({reason})") from None

    def _no_address(self) -> NotConfigured:
        return NotConfigured(f"{self._places.address} is no usable address")

    async def _send(self, request: ChatRequest) -> bytes:
        begin_request()
        async with self._client.messages.with_streaming_response.create(
            model=request.model,
            max_tokens=request.max_tokens,
            system=_system(request),
            messages=_messages(request),
            timeout=_timeout(request.timeout_seconds),
            **_tool_arguments(request),
            **_schema_arguments(request),
        ) as response:
            return await _receive(response.iter_bytes())

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def _timeout(seconds: float) -> httpx2.Timeout:
    return httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))


async def _receive(chunks: AsyncIterator[bytes]) -> bytes:
    received = bytearray()
    async for chunk in chunks:
        received += chunk
        if len(received) > MAX_REPLY_BYTES:
            raise Unavailable("the model endpoint's answer exceeds 8 MB")
    return bytes(received)


def _system(request: ChatRequest) -> str | list[TextBlockParam]:
    """As plain text unless it is marked: not every endpoint reads blocks here."""
    if not request.cache_system:
        return request.system
    return [{"type": "text", "text": request.system, "cache_control": EPHEMERAL}]


def _messages(request: ChatRequest) -> list[MessageParam]:
    if request.tools:
        return _conversation(request)
    if not request.cache_common:
        return [{"role": "user", "content": request.prompt}]
    common, own = request.prompt[: request.common_length], request.prompt[request.common_length :]
    blocks: list[TextBlockParam] = [
        {"type": "text", "text": common, "cache_control": EPHEMERAL},
        {"type": "text", "text": own},
    ]
    return [{"role": "user", "content": blocks}]


def _conversation(request: ChatRequest) -> list[MessageParam]:
    """All that was said, with marks at the ends of the last two messages of the user.

    The newer mark has everything kept for the next turn; the older one is where the turn before was kept, which an
    endpoint finds by itself only behind few blocks.
    """
    opening = {"role": "user", "content": [{"type": "text", "text": request.prompt}]}
    messages = [opening, *({"role": one["role"], "content": list(one["content"])} for one in request.messages)]
    if request.cache_messages:
        for message in [one for one in messages if one["role"] == "user"][-2:]:
            *before, last = message["content"]
            message["content"] = [*before, {**last, "cache_control": EPHEMERAL}]
    return cast("list[MessageParam]", messages)


def _tool_arguments(request: ChatRequest) -> dict[str, Any]:
    """The tools of a role that has some, and whether one must be called."""
    if not request.tools:
        return {}
    choice: ToolChoiceParam = {"type": "any"} if request.must_call else {"type": "auto"}
    return {"tools": [dict(tool) for tool in request.tools], "tool_choice": choice}


def _schema_arguments(request: ChatRequest) -> dict[str, Any]:
    """How the schema is asked for: as the output's format, as the input of the one tool, or not at all."""
    if request.json_schema is None or request.mode is ChatMode.TEXT:
        return {}
    schema = dict(request.json_schema)
    if request.mode is ChatMode.NATIVE:
        return {"output_config": {"format": {"type": "json_schema", "schema": transform_schema(schema)}}}
    tool: ToolParam = {
        "name": ANSWER_TOOL,
        "description": "Hands over the whole answer. Call it exactly once.",
        "input_schema": schema,
    }
    forced = request.mode is ChatMode.TOOL
    choice: ToolChoiceParam = {"type": "tool", "name": ANSWER_TOOL} if forced else {"type": "auto"}
    return {"tools": [tool], "tool_choice": choice}
