"""What happened in the last while, in a few cells, and when there is room for more."""

from collections.abc import Iterable
from typing import Final, NamedTuple

CELLS: Final = 20
"""Parts of a window; what was granted counts as granted at the end of its part, so that a window is never too short."""


class Amount(NamedTuple):
    """So much, from this time on for the length of a cell. Seconds since the epoch."""

    start: float
    amount: int


Log = tuple[Amount, ...]


def added(log: Log, now: float, amount: int, window: float) -> Log:
    """Count an amount at this time. A negative one takes back from what came last, as far as there is something."""
    if amount < 0:
        return _taken_back(log, -amount)
    if log and now < log[-1].start + window / CELLS:
        return (*log[:-1], Amount(log[-1].start, log[-1].amount + amount))
    return (*log, Amount(now, amount))


def kept(log: Log, now: float, window: float) -> Log:
    """Without what left the window."""
    return tuple(entry for entry in log if leaves(entry, window) > now)


def moved(log: Log, seconds: float) -> Log:
    """The same by a clock that is ahead by so much."""
    return tuple(entry._replace(start=entry.start + seconds) for entry in log)


def leaves(entry: Amount, window: float) -> float:
    """When an amount counts no more."""
    return entry.start + window / CELLS + window


def earliest(
    log: Log, planned: Iterable[tuple[float, int]], amount: int, *, limit: int, window: float, floor: float
) -> float:
    """First time from `floor` on at which the amount and all in the window before it stay within the limit.

    `planned` are times and amounts that are promised, none after `floor`. More than the limit counts as the limit.
    """
    leaving = sorted(
        [(leaves(entry, window), entry.amount) for entry in log]
        + [(at + window / CELLS + window, promised) for at, promised in planned]
    )
    inside = sum(entry_amount for _, entry_amount in leaving)
    when = floor
    for left_at, entry_amount in leaving:
        if left_at > when:
            if inside + min(amount, limit) <= limit:
                break
            when = left_at
        inside -= entry_amount
    return when


def _taken_back(log: Log, amount: int) -> Log:
    entries = list(log)
    for index in reversed(range(len(entries))):
        taken = min(amount, entries[index].amount)
        entries[index] = Amount(entries[index].start, entries[index].amount - taken)
        amount -= taken
    return tuple(entry for entry in entries if entry.amount)
