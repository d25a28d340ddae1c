"""Whether it is worth asking somebody who did not answer."""

import time
from collections.abc import Callable
from typing import Final

TRY_AGAIN_SECONDS: Final = 5.0


class Circuit:
    """Closed while things go well; after a failure open, with one attempt let through every few seconds."""

    def __init__(
        self, try_again_seconds: float = TRY_AGAIN_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock` shows seconds and never jumps."""
        self._try_again_seconds = try_again_seconds
        self._clock = clock
        self._next_attempt: float | None = None

    @property
    def open(self) -> bool:
        """Whether the last attempt failed."""
        return self._next_attempt is not None

    def failed(self) -> bool:
        """Take note of a failure; whether it was the first."""
        first = not self.open
        self._next_attempt = self._clock() + self._try_again_seconds
        return first

    def succeeded(self) -> bool:
        """Take note of a success; whether there was a failure before it."""
        recovered = self.open
        self._next_attempt = None
        return recovered

    def attempt_is_due(self) -> bool:
        """Whether the caller is the one to try again now; nobody else is until the next time."""
        now = self._clock()
        if self._next_attempt is None or now < self._next_attempt:
            return False
        self._next_attempt = now + self._try_again_seconds
        return True
