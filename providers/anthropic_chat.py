"""The `anthropic` SDK against any endpoint that speaks the Messages API: transport only, one request per call."""

import asyncio
import logging
from typing import Any, Final

import httpx2
from anthropic import APIConnectionError, APIStatusError, AsyncAnthropic, transform_schema
from anthropic.types import MessageParam, ToolChoiceToolParam, ToolParam

from providers.chat import ANSWER_TOOL, ChatMode, ChatReply, ChatRequest
from providers.errors import NotConfigured, Unavailable
from providers.message_envelope import read_reply
from providers.model_errors import ADDRESS_VARIABLE, CREDENTIAL_VARIABLE, error_for_status

DEFAULT_BASE_URL: Final = "https://api.anthropic.com"
NO_KEY: Final = "no-key-needed"
"""Sent to endpoints of one's own, which ask for a credential's presence at most."""

CONNECT_SECONDS: Final = 10.0
MAX_REPLY_BYTES: Final = 8_000_000
MAX_CONNECTIONS: Final = 250


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

    def __init__(self, *, api_key: str | None, base_url: str = DEFAULT_BASE_URL) -> None:
        """Raises `NotConfigured` when the public API is meant and no key is there, or the address is no URL."""
        if not api_key and base_url.rstrip("/") == DEFAULT_BASE_URL:
            raise NotConfigured(f"the model endpoint needs a key: set {CREDENTIAL_VARIABLE}")
        if not base_url.startswith(("https://", "http://")):
            raise NotConfigured(f"{ADDRESS_VARIABLE} must begin with https:// or http://")
        # At its debug level the SDK logs whole requests, page text included.
        logging.getLogger("anthropic").setLevel(logging.WARNING)
        self._client = ExplicitClient(
            api_key=api_key or NO_KEY,
            base_url=base_url,
            http_client=httpx2.AsyncClient(
                trust_env=False, follow_redirects=False, limits=httpx2.Limits(max_connections=MAX_CONNECTIONS)
            ),
        )

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send one request, once.

        Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`; whatever else came is returned as it is.
        """
        try:
            # Timeouts of the transport count silence; a body that trickles needs a limit on the whole.
            async with asyncio.timeout(request.timeout_seconds):
                body = await self._send(request)
        except TimeoutError:
            raise Unavailable(f"the model endpoint gave no answer in {request.timeout_seconds:.0f} s") from None
        except APIStatusError as error:
            headers = error.response.headers.multi_items()
            raise error_for_status(error.status_code, headers, str(error.body), request.model) from None
        except (APIConnectionError, httpx2.HTTPError) as error:
            reason = type(error.__cause__ or error).__name__
            raise Unavailable(f"no connection to the model endpoint ({reason})") from None
        return read_reply(body, request.model)

    async def _send(self, request: ChatRequest) -> bytes:
        timeout = httpx2.Timeout(request.timeout_seconds, connect=min(CONNECT_SECONDS, request.timeout_seconds))
        messages: list[MessageParam] = [{"role": "user", "content": request.prompt}]
        received = bytearray()
        async with self._client.messages.with_streaming_response.create(
            model=request.model,
            max_tokens=request.max_tokens,
            system=request.system,
            messages=messages,
            timeout=timeout,
            **_schema_arguments(request),
        ) as response:
            async for chunk in response.iter_bytes():
                received += chunk
                if len(received) > MAX_REPLY_BYTES:
                    raise Unavailable("the model endpoint's answer exceeds 8 MB")
        return bytes(received)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


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
    choice: ToolChoiceToolParam = {"type": "tool", "name": ANSWER_TOOL}
    return {"tools": [tool], "tool_choice": choice}
