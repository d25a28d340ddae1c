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


class Speeds:
    """Pace by model: two times per token fitted to the answers so far, newer ones counting more."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, ...]] = {}

    def learn(self, key: str, prompt_tokens: int, answer_tokens: int, seconds: float) -> None:
        """Take an answer into account; `prompt_tokens` without those that came from a cache."""
        if seconds < SHORTEST_SECONDS or answer_tokens < FEWEST_TOKENS:
            # A quick answer that is no measurement still proves an old one wrong.
            if seconds < SHORTEST_SECONDS:
                self._sums.pop(key, None)
            return
        spent = seconds - FIXED_SECONDS
        prompt, answer = prompt_tokens, answer_tokens
        newest = (prompt**2, prompt * answer, answer**2, prompt * spent, answer * spent)
        old = self._sums.get(key, (0.0,) * len(newest))
        self._sums[key] = tuple(before * OLD_WEIGHT + new for before, new in zip(old, newest, strict=True))

    def pace(self, key: str) -> Pace | None:
        """Seconds per token; None for a model that has not been measured."""
        sums = self._sums.get(key)
        return None if sums is None else _fit(*sums)


def _fit(prompts: float, crossed: float, answers: float, prompt_time: float, answer_time: float) -> Pace:
    """Least squares of time over both lengths, pulled towards the assumed relation of reading to writing."""
    weight = ASSUMED_TOKENS**2
    aa = prompts + weight
    ab = crossed - weight * READING_TO_WRITING
    bb = answers + weight * READING_TO_WRITING**2
    determinant = aa * bb - ab * ab
    reading = (prompt_time * bb - answer_time * ab) / determinant
    writing = (answer_time * aa - prompt_time * ab) / determinant
    if reading < 0:
        return Pace(0.0, answer_time / answers)
    if writing <= 0:
        weighted = prompts * READING_TO_WRITING**2 + 2 * crossed * READING_TO_WRITING + answers
        writing = (prompt_time * READING_TO_WRITING + answer_time) / weighted
        reading = writing * READING_TO_WRITING
    return Pace(reading, writing)
