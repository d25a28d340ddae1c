"""Statements of different sources that cannot both be true, found by rules.

Two statements contradict each other if they say the same of the same, but for one thing: one number, or a denial or an
opposite. Other names, or several other numbers, mean that they speak of other things.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import Final

from contracts.evidence import Verdict
from providers.verification.quantities import Comparison, compare
from providers.verification.rules_checker import check
from providers.verification.statement import Statement

SAME_WORDS: Final = 0.6
"""Share of common words from which on two statements are taken to be about the same."""
MOST_STATEMENTS: Final = 200
LONGEST: Final = 400
"""Characters: a longer statement says too much to be laid beside another one."""


def find_contradictions(
    statements: Sequence[str], sources: Sequence[Collection[str]], language: str = "en"
) -> list[tuple[int, int]]:
    """The pairs of statements that contradict each other, by their numbers; `sources` are those of each statement.

    What one source says twice is no contradiction between sources.
    """
    read = [Statement(text, language) for text in statements[:MOST_STATEMENTS]]
    return list(_pairs(read, sources, language))


def _pairs(read: Sequence[Statement], sources: Sequence[Collection[str]], language: str) -> Iterator[tuple[int, int]]:
    for first, second in combinations(range(len(read)), 2):
        one, other = read[first], read[second]
        if set(sources[first]) & set(sources[second]) or max(len(one.text), len(other.text)) > LONGEST:
            continue
        if _about_the_same(one, other) and _denied(one, other, language) and _denied(other, one, language):
            yield first, second


def _about_the_same(one: Statement, other: Statement) -> bool:
    if _names(one) != _names(other) or len(one.quantities) != len(other.quantities):
        return False
    same = sum(
        any(compare(mine, theirs) in (Comparison.EXACT, Comparison.APPROXIMATE) for theirs in other.quantities)
        for mine in one.quantities
    )
    differing = len(one.quantities) - same
    shared = len(one.stems & other.stems) + same
    fewest = min(len(one.stems), len(other.stems)) + same
    if shared < max(2, SAME_WORDS * fewest) or shared * 2 < len(one.stems | other.stems) + same:
        return False
    # With another number, all other words must be the same: `opens at 9` and `closes at 17` are both true.
    return differing == 0 or (differing == 1 and len(one.stems ^ other.stems) <= 1)


def _names(statement: Statement) -> set[str]:
    return {word.low for word in statement.words if word.name or word.may_be_name}


def _denied(claim: Statement, passage: Statement, language: str) -> bool:
    return check(claim.text, [passage.text], (), language).verdict is Verdict.CONTRADICTED
