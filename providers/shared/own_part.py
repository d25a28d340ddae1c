"""What part of a service's calls is this process's own: what it may go on with when it cannot reach the others."""

from collections.abc import Callable
from typing import Final

from providers.shared.rates import RECENT_SECONDS, Log, add_amount, drop_expired

MINUTE: Final = 60.0
NEWEST: Final = 0.1
"""Weight of the newest measurement: others that are silent for a moment do not make this process the only one."""


class OwnPart:
    """Measured while the shared store can be reached."""

    def __init__(self, clock: Callable[[], float], least: float) -> None:
        """`least` is the part before anything was measured, and the smallest one."""
        self._clock = clock
        self._least = least
        self._recent: dict[str, Log] = {}
        self._minutes: dict[str, Log] = {}
        self._best: dict[str, int] = {}
        self._parts: dict[str, float] = {}

    def granted(self, service: str, in_all: int) -> None:
        """Count a call of this process; `in_all` are the recent ones of all processes, with this one."""
        now = self._clock()
        recent = add_amount(drop_expired(self._recent.get(service, ()), now, RECENT_SECONDS), now, 1, RECENT_SECONDS)
        minute = add_amount(drop_expired(self._minutes.get(service, ()), now, MINUTE), now, 1, MINUTE)
        self._recent[service], self._minutes[service] = recent, minute
        self._best[service] = max(self.best_minute(service), sum(entry.amount for entry in minute))
        part = min(1.0, sum(entry.amount for entry in recent) / max(1, in_all))
        before = self._parts.get(service, part)
        self._parts[service] = before + NEWEST * (part - before)

    def share(self, service: str) -> float:
        """The part of the calls that was this process's own, above 0 and at most 1."""
        return max(self._least, self._parts.get(service, self._least))

    def best_minute(self, service: str) -> int:
        """How many calls went well in the best minute."""
        return self._best.get(service, 0)
