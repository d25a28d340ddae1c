"""Prompt caching: which prefixes are marked for the endpoint's cache, and one call at a time to fill it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

from cachetools import TTLCache

from providers.models.capabilities import EndpointCapabilities
from providers.models.chat import ChatMode, ChatRequest
from providers.models.tokens import estimated_tokens, text_of

TOOLS_SHARE: Final = 0.5
"""JSON is estimated with the widest margin of all, and is not sent to the model as it is."""
WORTH_WAITING: Final = 0.25
"""Share of a request's input from which on it pays to let another call write the prefix first."""
KEPT_SECONDS: Final = 290.0
"""An endpoint keeps a prefix for five minutes after its last use."""
MOST_REMEMBERED: Final = 1_000


def mark_prefixes(request: ChatRequest, capabilities: EndpointCapabilities, ratio: float) -> ChatRequest:
    """The request with its cache marks; `ratio` gives rather too few tokens for an estimated one.

    A mark on a prefix below the model's minimum would do nothing, and each kept token is paid for when written.
    """
    if not capabilities.caching:
        return request
    if request.tools:
        return _mark_conversation(request, capabilities, ratio)
    offered = request.json_schema is not None and request.mode in {ChatMode.TOOL, ChatMode.TOOL_OFFERED}
    tools = json.dumps(request.json_schema) if offered else ""
    before = (estimated_tokens(tools) * TOOLS_SHARE + estimated_tokens(request.system)) * ratio
    common = estimated_tokens(request.prompt[: request.common_length]) * ratio
    return replace(
        request,
        cache_system=before >= capabilities.cacheable_tokens,
        cache_common=request.common_length > 0 and before + common >= capabilities.cacheable_tokens,
    )


def _mark_conversation(request: ChatRequest, capabilities: EndpointCapabilities, ratio: float) -> ChatRequest:
    """What was said so far is the beginning of the next turn."""
    tools = estimated_tokens(json.dumps(list(request.tools))) * TOOLS_SHARE
    before = (tools + estimated_tokens(request.system)) * ratio
    said = (estimated_tokens(request.prompt) + estimated_tokens(text_of(request.messages))) * ratio
    return replace(
        request,
        cache_system=before >= capabilities.cacheable_tokens,
        cache_messages=before + said >= capabilities.cacheable_tokens,
    )


def worth_waiting(request: ChatRequest, input_tokens: float) -> bool:
    """Whether a call should wait until another one has written the same prefix; `input_tokens` errs high."""
    if not (request.cache_system or request.cache_common):
        return False
    kept = request.system + (request.prompt[: request.common_length] if request.cache_common else "")
    return estimated_tokens(kept) >= WORTH_WAITING * input_tokens


class PrefixQueue:
    """Lets one call per prefix go ahead unless the endpoint's cache holds it already."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._written: TTLCache[str, None] = TTLCache(MOST_REMEMBERED, KEPT_SECONDS, timer=clock)
        self._leaders: dict[str, asyncio.Event] = {}

    @asynccontextmanager
    async def turn(self, key: str, patience_seconds: float) -> AsyncIterator[None]:
        """Hold the block back until the first call with this prefix has ended, however it ended.

        A call waits once and no longer than `patience_seconds`: if the first one failed, all others go at once.
        """
        leader = self._leaders.get(key)
        if leader is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_seconds):
                    await leader.wait()
        elif key not in self._written:
            async with self._lead(key):
                yield
            self._written[key] = None
            return
        yield
        self._written[key] = None

    @asynccontextmanager
    async def _lead(self, key: str) -> AsyncIterator[None]:
        ended = self._leaders[key] = asyncio.Event()
        try:
            yield
        finally:
            del self._leaders[key]
            ended.set()
