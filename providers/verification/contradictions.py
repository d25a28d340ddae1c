"""Statements of different sources that cannot both be true: the same words with another quantity."""

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import Final

from providers.verification.quantities import Comparison, compare
from providers.verification.rules import Statement

MOST_STATEMENTS: Final = 200
"""Statements that are compared with each other: the time grows with their square."""
LONGEST: Final = 400
"""Characters from which on a statement asserts too much to be compared as one."""


def find_contradictions(
    statements: Sequence[str], sources: Sequence[Collection[str]], language: str = "en"
) -> list[tuple[int, int]]:
    """Return the pairs of statements, by their places, that contradict each other.

    `sources` are the ids of the sources of each statement: two statements of one source do not contradict each other.
    """
    read = [Statement(text, language) for text in statements[:MOST_STATEMENTS]]
    return list(_pairs(read, sources))


def _pairs(read: Sequence[Statement], sources: Sequence[Collection[str]]) -> Iterator[tuple[int, int]]:
    for first, second in combinations(range(len(read)), 2):
        one, other = read[first], read[second]
        short = max(len(one.text), len(other.text)) <= LONGEST
        if short and not set(sources[first]) & set(sources[second]) and _differ_in_one_quantity(one, other):
            yield first, second


def _differ_in_one_quantity(one: Statement, other: Statement) -> bool:
    """All other words must be the same: "opens at 9" and "closes at 17" are both true."""
    if len(one.quantities) != len(other.quantities) or len(one.stems) < 2 or len(one.stems ^ other.stems) > 1:
        return False
    same = (Comparison.EXACT, Comparison.APPROXIMATE)
    differing = [mine for mine in one.quantities if not any(compare(mine, each) in same for each in other.quantities)]
    return len(differing) == 1 and any(each.unit == differing[0].unit for each in other.quantities)
