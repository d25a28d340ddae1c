"""Which beginnings of a request an endpoint is asked to keep: only those that it will keep. Pure."""

import json
from dataclasses import replace
from typing import Final

from providers.models.capabilities import EndpointCapabilities
from providers.models.chat import ChatMode, ChatRequest
from providers.models.token_estimates import estimated_tokens

TOOLS_SHARE: Final = 0.5
"""JSON is estimated with the widest margin of all, and is not sent to the model as it is."""
WORTH_WAITING: Final = 0.25
"""Share of a request's input from which on it pays to let another call write the beginning first."""


def cache_marks(request: ChatRequest, capabilities: EndpointCapabilities, ratio: float) -> ChatRequest:
    """The request with its marks; `ratio` gives rather too few tokens for an estimated one.

    A mark on a beginning below the model's minimum would do nothing, and each kept token is paid for when written.
    """
    if not capabilities.caching:
        return request
    offered = request.json_schema is not None and request.mode in {ChatMode.TOOL, ChatMode.TOOL_OFFERED}
    tools = json.dumps(request.json_schema) if offered else ""
    before = (estimated_tokens(tools) * TOOLS_SHARE + estimated_tokens(request.system)) * ratio
    common = estimated_tokens(request.prompt[: request.common_length]) * ratio
    return replace(
        request,
        cache_system=before >= capabilities.cacheable_tokens,
        cache_common=request.common_length > 0 and before + common >= capabilities.cacheable_tokens,
    )


def worth_waiting(request: ChatRequest, input_tokens: float) -> bool:
    """Whether a call should let an equal beginning be written first; `input_tokens` errs high."""
    if not (request.cache_system or request.cache_common):
        return False
    kept = request.system + (request.prompt[: request.common_length] if request.cache_common else "")
    return estimated_tokens(kept) >= WORTH_WAITING * input_tokens
