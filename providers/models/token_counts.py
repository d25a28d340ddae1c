"""Counting by the endpoint itself: remembered, and never a reason for a call to fail."""

import hashlib
import json
from collections import OrderedDict
from typing import Final

from providers.errors import ProviderError, Retryable
from providers.models.chat import ChatRequest
from providers.models.model_directory import ModelCandidate

MOST_REMEMBERED: Final = 500


class TokenCounter:
    """Counts of requests, by hash; an endpoint that cannot count is not asked again."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._unable: set[str] = set()

    async def count(self, candidate: ModelCandidate, request: ChatRequest) -> int | None:
        """Input tokens of the request; null where the endpoint does not say."""
        if candidate.endpoint.name in self._unable:
            return None
        key = _hash(candidate, request)
        if key in self._counts:
            self._counts.move_to_end(key)
            return self._counts[key]
        try:
            counted = await candidate.endpoint.chat.count_tokens(request)
        except ProviderError as error:
            # An estimate serves as well; what is wrong with the endpoint, the call itself will tell.
            if not isinstance(error, Retryable):
                self._unable.add(candidate.endpoint.name)
            return None
        self._counts[key] = counted
        while len(self._counts) > MOST_REMEMBERED:
            self._counts.popitem(last=False)
        return counted


def _hash(candidate: ModelCandidate, request: ChatRequest) -> str:
    parts = [candidate.name, request.mode, request.system, request.prompt, request.json_schema]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
