"""Whether something takes more than proportionally longer for a longer text, by the processor's time alone."""

import gc
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

SHORT = 4_096
LONG = 4 * SHORT
AT_ONCE = 0.0008
"""Seconds; what is done with half the short text within them is not quadratic, not even at a step a nanosecond."""
CLEARLY_LINEAR = 5.5
"""From half the short text to half the long one; worth no second look."""
NOT_JUDGED = 0.02
"""Seconds; what is done with the long text within them harms nobody."""
MOST_GROWTH = 8.0
"""The long text is four times as long: four is linear, sixteen quadratic."""
TRIES = 3
AT_MOST = 0.1
"""Seconds for the longest text that a pattern can meet."""


class Growth(NamedTuple):
    """Times of the processor, in seconds."""

    short: float
    long: float

    @property
    def is_linear(self) -> bool:
        return self.long <= MOST_GROWTH * self.short


def growth(run: Callable[[str], object], text_of: Callable[[int], str]) -> Growth | None:
    """How much longer four times the text takes; null if that is linear or not worth a judgement."""
    half = text_of(SHORT // 2)
    at_first = _seconds(run, half)
    if at_first < AT_ONCE or (at_first := min(at_first, _seconds(run, half))) < AT_ONCE:
        return None
    if _seconds(run, text_of(LONG // 2)) <= CLEARLY_LINEAR * at_first:
        return None
    short, long = text_of(SHORT), text_of(LONG)
    best = Growth(_seconds(run, short), _seconds(run, long))
    for _ in range(TRIES):
        if best.long < NOT_JUDGED or best.is_linear:
            return None
        best = Growth(min(best.short, _seconds(run, short)), min(best.long, _seconds(run, long)))
    return None if best.long < NOT_JUDGED or best.is_linear else best


def excess(run: Callable[[str], object], text: str) -> Growth | None:
    """The time for the longest text that there can be, at its best; null if it harms nobody."""
    best = min(_seconds(run, text) for _ in range(TRIES)) if _seconds(run, text) > AT_MOST else 0.0
    return Growth(best, best) if best > AT_MOST else None


def limit_this_process(seconds: float) -> None:
    """From now on the kernel ends this process after so many seconds of its own work; called again, it starts anew."""
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


def _seconds(run: Callable[[str], object], text: str) -> float:
    # The collector of cycles looks at everything again as more is made: that is no fault of what is measured.
    gc.disable()
    began = time.thread_time()
    try:
        run(text)
        return time.thread_time() - began
    finally:
        gc.enable()
