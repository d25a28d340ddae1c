"""Whether it is worth asking somebody who did not answer."""

import time
from collections.abc import Callable
from typing import Final

FIRST_PAUSE_SECONDS: Final = 0.5
"""A server that is started anew is back soon, and until a worker notices it is alone."""
LONGEST_PAUSE_SECONDS: Final = 5.0


class StoreCircuit:
    """Closed while things go well; after a failure open, with an attempt let through now and then, ever more seldom."""

    def __init__(
        self, longest_pause_seconds: float = LONGEST_PAUSE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock` shows seconds and never jumps."""
        self._longest_pause = longest_pause_seconds
        self._pause = FIRST_PAUSE_SECONDS
        self._clock = clock
        self._next_attempt: float | None = None

    @property
    def open(self) -> bool:
        """Whether the last attempt failed."""
        return self._next_attempt is not None

    def failed(self) -> bool:
        """Take note of a failure; whether it was the first."""
        first = not self.open
        if first:
            self._pause = min(FIRST_PAUSE_SECONDS, self._longest_pause)
        self._next_attempt = self._clock() + self._pause
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
        self._pause = min(2 * self._pause, self._longest_pause)
        self._next_attempt = now + self._pause
        return True
