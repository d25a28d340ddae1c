"""How fast to go after a service said that we were too fast: half of what went well before, then more and more."""

import math
from typing import Final

from pydantic import BaseModel, ConfigDict

SLOWEST: Final = 1 / 60
"""Calls per second that are tried at least, however often we were refused."""
FORGOTTEN_AFTER_SECONDS: Final = 300.0
ISOLATED_SECONDS: Final = 5.0
"""A refusal that no other follows until so long after the probe was a single one."""
FAR_BEYOND: Final = 4.0
"""Times the rate that was refused once, and times what is asked for: then it limits nobody any more."""

NEAR: Final = 0.9
PAST: Final = 1.1
"""Between these shares of the rate that was refused, growth is slow: there it hurts, and there it pays to stay."""
FAST_SHARE: Final = 1 / 20
SLOW_SHARE: Final = 1 / 400
"""Growth per second as a share of the rate that was refused."""
LEAST_GROWTH: Final = 0.002
SURE_AFTER_SECONDS: Final = 2.0
"""What was measured for less says little: of a burst at the beginning, or of the first calls after a probe."""


class Slowdown(BaseModel):
    """What is known of a service that refused. Times are seconds since the epoch by the store's clock."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    since: float
    """When the rate was lowered last: a refusal of a call begun before that was expected and lowers nothing."""
    refused_at: float
    granted: int
    """Calls that were allowed before the refusal, without those that were refused."""
    span: float
    """Seconds in which that was."""
    ceiling: float | None = None
    """The rate allowed at that time, if there was one already."""
    halvings: int = 1
    """0 after a single refusal: it pauses everybody once, and lowers no rate."""
    started_at: float | None = None
    """When a probe had gone well; null while none has."""

    @property
    def is_isolated(self) -> bool:
        """Whether a single refusal is all there was: one of many calls may be refused by chance."""
        return self.halvings == 0

    @property
    def measured(self) -> float:
        """Calls per second that went well before the refusal."""
        rate = max(1, self.granted) / self.span
        return max(SLOWEST, rate if self.ceiling is None else min(rate, self.ceiling))

    @property
    def start(self) -> float:
        """Calls per second to begin with after the probe."""
        return max(SLOWEST, self.measured * 0.5 ** min(self.halvings, 64))

    def allowed(self, at: float, opening: float = math.inf) -> float:
        """Calls per second at this time; `opening` is when they are expected to start, if they have not."""
        started_at = opening if self.started_at is None else self.started_at
        return grown(self.start, self.measured, max(0.0, at - started_at), sure=self.span >= SURE_AFTER_SECONDS)

    def moved(self, seconds: float) -> "Slowdown":
        """The same by a clock that is ahead by so much."""
        started_at = None if self.started_at is None else self.started_at + seconds
        times = {"since": self.since + seconds, "refused_at": self.refused_at + seconds, "started_at": started_at}
        return self.model_copy(update=times)


def grown(start: float, measured: float, seconds: float, *, sure: bool) -> float:
    """A rate after some seconds of growth: evenly, but if the measured rate is `sure`, slowly around it."""
    fast, slow = (max(LEAST_GROWTH, measured * share) for share in (FAST_SHARE, SLOW_SHARE))
    rate = start
    for end, slope in ((NEAR * measured, fast), (PAST * measured, slow)) if sure else ():
        needed = max(0.0, (end - rate) / slope)
        if seconds <= needed:
            return rate + slope * seconds
        rate, seconds = max(rate, end), seconds - needed
    return rate + fast * seconds


def forgotten(slowdown: Slowdown, now: float, asked_for: float) -> bool:
    """Whether it is no longer of use. `asked_for` is the present rate of calls, per second."""
    if slowdown.started_at is None:  # the probe is still to come
        return False
    if slowdown.is_isolated:
        return now - slowdown.started_at > ISOLATED_SECONDS
    if now - max(slowdown.refused_at, slowdown.started_at) > FORGOTTEN_AFTER_SECONDS:
        return True
    return slowdown.allowed(now) > FAR_BEYOND * max(slowdown.measured, asked_for)
