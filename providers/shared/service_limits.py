"""What services allow, as far as it is configured."""

import math
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class ServiceLimits:
    """What a service allows; null where nothing is known: then it is found out by being refused."""

    requests: int | None = None
    window_seconds: float = 60.0
    """Length of the window in which `requests` are allowed."""
    tokens_per_minute: int | None = None

    def __post_init__(self) -> None:
        """Raises `ValueError`."""
        if self.requests is not None and self.requests < 1:
            raise ValueError("a service must allow at least one request")
        if self.tokens_per_minute is not None and self.tokens_per_minute < 1:
            raise ValueError("a service must allow at least one token")
        if not (math.isfinite(self.window_seconds) and self.window_seconds > 0):
            raise ValueError("a window must have a length")


ANYTHING: Final = ServiceLimits()
ALONE: Final = ServiceLimits(requests=30, window_seconds=60.0)
"""Of a service without configured limits, for a worker that cannot agree with the others."""


def limits_alone(limits: ServiceLimits, share: float) -> ServiceLimits:
    """A process's share of limits, for when nobody knows what the others do; never no limit at all."""
    requests, window = limits.requests, limits.window_seconds
    if requests is None:
        requests, window = ALONE.requests, ALONE.window_seconds
    elif requests * share < 1:
        requests, window = 1, window / (requests * share)
    else:
        requests = math.floor(requests * share)
    tokens = limits.tokens_per_minute
    return ServiceLimits(requests, window, None if tokens is None else max(1, math.floor(tokens * share)))
