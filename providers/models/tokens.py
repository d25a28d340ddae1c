"""How many tokens a request has: estimates that err high, corrected by the counts of endpoints."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cachetools import LRUCache

from contracts.addresses import digest
from providers.errors import ProviderError, Retryable
from providers.models.chat import ChatRequest
from providers.models.model_directory import ModelCandidate

LETTERS: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \n"
BEYOND_ASCII: Final = bytes(range(128, 256))
TOKENS_PER_LETTER: Final = 0.27
TOKENS_PER_SIGN: Final = 0.7
"""Digits, punctuation and markup."""
TOKENS_PER_BYTE_BEYOND: Final = 0.5
"""Two or three bytes make a letter of another alphabet."""

LOW_SHARE: Final = 0.7
"""What is certainly there of an estimate that errs high."""
LOWEST_RATIO: Final = 0.4
HIGHEST_RATIO: Final = 4.0
HIGH_MARGIN: Final = 1.05
LOW_MARGIN: Final = 0.9
NEWEST_WEIGHT: Final = 0.2
FEWEST_TOKENS: Final = 200
"""A count of fewer says little about texts."""
MOST_REMEMBERED: Final = 500


def estimated_tokens(text: str) -> float:
    """Tokens of a text for one of the older tokenizers, rather too many than too few."""
    data = text.encode("utf-8", "replace")
    letters = len(data) - len(data.translate(None, LETTERS))
    beyond = len(data) - len(data.translate(None, BEYOND_ASCII))
    signs = len(data) - letters - beyond
    return letters * TOKENS_PER_LETTER + signs * TOKENS_PER_SIGN + beyond * TOKENS_PER_BYTE_BEYOND


def text_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """All blocks of messages as they are sent; empty where there are none."""
    return "".join(json.dumps(block, ensure_ascii=False) for message in messages for block in message["content"])


class Calibration:
    """Counted tokens per estimated token, by model, learnt from answers; bounded, because endpoints err too."""

    def __init__(self) -> None:
        self._high: dict[str, float] = {}
        self._usual: dict[str, float] = {}

    def high(self, key: str, token_factor: float) -> float:
        """The ratio to plan with: at least what was seen lately."""
        return self._high.get(key, token_factor)

    def low(self, key: str, token_factor: float) -> float:
        """The ratio for what must not be overrated."""
        usual = self._usual.get(key)
        return token_factor * LOW_SHARE if usual is None else usual * LOW_MARGIN

    def learn(self, key: str, estimated: float, counted: int) -> None:
        """Take a count into account: upwards at once, downwards slowly."""
        if counted < FEWEST_TOKENS or estimated <= 0:
            return
        ratio = min(HIGHEST_RATIO, max(LOWEST_RATIO, counted / estimated))
        usual = self._usual.get(key, ratio)
        self._usual[key] = usual + NEWEST_WEIGHT * (ratio - usual)
        high = self._high.get(key, 0.0)
        newest = ratio * HIGH_MARGIN
        self._high[key] = newest if newest >= high else high + NEWEST_WEIGHT * (newest - high)


class TokenCounter:
    """Counts of requests, by hash; an endpoint that cannot count is not asked again."""

    def __init__(self) -> None:
        self._counts: LRUCache[str, int] = LRUCache(MOST_REMEMBERED)
        self._unable: set[str] = set()

    async def count(self, candidate: ModelCandidate, request: ChatRequest) -> int | None:
        """Input tokens of the request; None where the endpoint does not say."""
        if candidate.endpoint.name in self._unable:
            return None
        key = _request_key(candidate, request)
        if key in self._counts:
            return self._counts[key]
        try:
            counted = await candidate.endpoint.chat.count_tokens(request)
        except ProviderError as error:
            # An estimate serves as well; what is wrong with the endpoint, the call itself will tell.
            if not isinstance(error, Retryable):
                self._unable.add(candidate.endpoint.name)
            return None
        self._counts[key] = counted
        return counted


def _request_key(candidate: ModelCandidate, request: ChatRequest) -> str:
    said = [request.system, request.prompt, list(request.messages), list(request.tools)]
    return digest(json.dumps([candidate.name, request.mode, said, request.json_schema]))
