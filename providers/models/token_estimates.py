"""How many tokens a text has: an estimate that errs high, put right by what endpoints count."""

from typing import Final

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


def estimated_tokens(text: str) -> float:
    """Tokens of a text for one of the older tokenizers, rather too many than too few."""
    data = text.encode("utf-8", "replace")
    letters = len(data) - len(data.translate(None, LETTERS))
    beyond = len(data) - len(data.translate(None, BEYOND_ASCII))
    signs = len(data) - letters - beyond
    return letters * TOKENS_PER_LETTER + signs * TOKENS_PER_SIGN + beyond * TOKENS_PER_BYTE_BEYOND


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
