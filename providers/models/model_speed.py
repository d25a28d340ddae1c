"""How fast a model reads and writes, learnt from the time that its answers took."""

from dataclasses import dataclass
from typing import Final

OLD_WEIGHT: Final = 0.8
"""Of everything seen before, when an answer more is seen."""
FIXED_SECONDS: Final = 1.0
"""Of an answer's time that depends on no length."""
SHORTEST_SECONDS: Final = 3.0
"""Less tells nothing about speed, and is never too slow."""
FEWEST_TOKENS: Final = 20
READING_TO_WRITING: Final = 0.1
"""Time to read a token, in times to write one, as long as answers do not show it."""
ASSUMED_TOKENS: Final = 300.0
"""Weight of that assumption."""


@dataclass(frozen=True)
class Pace:
    """Seconds for one token."""

    reading: float
    writing: float

    @property
    def tokens_per_second(self) -> float:
        """Tokens written in a second."""
        return 1 / self.writing

    def seconds(self, prompt_tokens: float, answer_tokens: float) -> float:
        """How long a call takes."""
        return prompt_tokens * self.reading + answer_tokens * self.writing


@dataclass
class _Sums:
    prompts: float = 0.0
    crossed: float = 0.0
    answers: float = 0.0
    prompt_time: float = 0.0
    answer_time: float = 0.0


class Speeds:
    """Pace by model: two times per token fitted to the answers so far, newer ones counting more."""

    def __init__(self) -> None:
        self._sums: dict[str, _Sums] = {}

    def learn(self, key: str, prompt_tokens: int, answer_tokens: int, seconds: float) -> None:
        """Take an answer into account; `prompt_tokens` without those that came from a cache."""
        if seconds < SHORTEST_SECONDS or answer_tokens < FEWEST_TOKENS:
            # A quick answer that is no measurement still proves an old one wrong.
            if key in self._sums and seconds < SHORTEST_SECONDS:
                self._sums.pop(key)
            return
        old = self._sums.get(key, _Sums())
        spent = seconds - FIXED_SECONDS
        self._sums[key] = _Sums(
            old.prompts * OLD_WEIGHT + prompt_tokens**2,
            old.crossed * OLD_WEIGHT + prompt_tokens * answer_tokens,
            old.answers * OLD_WEIGHT + answer_tokens**2,
            old.prompt_time * OLD_WEIGHT + prompt_tokens * spent,
            old.answer_time * OLD_WEIGHT + answer_tokens * spent,
        )

    def pace(self, key: str) -> Pace | None:
        """Seconds per token; null for a model that has not been measured."""
        sums = self._sums.get(key)
        return None if sums is None else _fitted(sums)


def _fitted(sums: _Sums) -> Pace:
    """Least squares of time over both lengths, pulled towards the assumed relation of reading to writing."""
    weight = ASSUMED_TOKENS**2
    aa = sums.prompts + weight
    ab = sums.crossed - weight * READING_TO_WRITING
    bb = sums.answers + weight * READING_TO_WRITING**2
    determinant = aa * bb - ab * ab
    reading = (sums.prompt_time * bb - sums.answer_time * ab) / determinant
    writing = (sums.answer_time * aa - sums.prompt_time * ab) / determinant
    if reading < 0:
        return Pace(0.0, sums.answer_time / sums.answers)
    if writing <= 0:
        both = (sums.prompt_time * READING_TO_WRITING + sums.answer_time) / (
            sums.prompts * READING_TO_WRITING**2 + 2 * sums.crossed * READING_TO_WRITING + sums.answers
        )
        return Pace(both * READING_TO_WRITING, both)
    return Pace(reading, writing)
