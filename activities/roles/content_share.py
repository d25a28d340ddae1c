"""How much of its content a prompt shows when not all of it has room. Pure."""

from collections.abc import Sequence
from typing import Final

LEAST_CHARACTERS: Final = 200
"""Fewer of a source tell nothing: rather one source less."""
FINDINGS_FROM: Final = 0.3
"""Down to this share only the words of sources are shortened; below it findings are left out too."""
FEWEST_FINDINGS: Final = 5


def allotted(lengths: Sequence[int], most: int, share: float) -> list[int]:
    """Characters for each text, at most `most`: what short texts do not need, longer ones get.

    The list is shorter than `lengths` when texts at its end would have too few; one is always left.
    """
    if share >= 1:
        return [most] * len(lengths)
    wanted = [min(length, most) for length in lengths]
    budget = int(share * sum(wanted))
    while True:
        level = _level(wanted, budget)
        if len(wanted) <= 1 or level >= LEAST_CHARACTERS:
            return [min(most, max(level, LEAST_CHARACTERS))] * len(wanted)
        wanted.pop()


def _level(wanted: Sequence[int], budget: int) -> int:
    """The height up to which all are filled so that the budget is used up."""
    left = budget
    ordered = sorted(wanted)
    for position, height in enumerate(ordered):
        level = left // (len(ordered) - position)
        if height >= level:
            return level
        left -= height
    return max(ordered, default=0)


def part_of(limit: int, share: float, least: int = 0) -> int:
    """A limit in characters for that share; `least` where less than `LEAST_CHARACTERS` would be left."""
    if share >= 1:
        return limit
    part = int(limit * max(share, 0.0))
    return part if part >= LEAST_CHARACTERS else min(limit, least)


def findings_shown(count: int, share: float) -> int:
    """How many findings a writer is shown."""
    if share >= FINDINGS_FROM:
        return count
    return min(count, max(FEWEST_FINDINGS, int(count * share / FINDINGS_FROM)))
