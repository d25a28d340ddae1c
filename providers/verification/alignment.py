"""A claim laid over the sentence that it is closest to: what is the same in the same order, and what differs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Final

from providers.verification.quantities import Comparison, Quantity, compare
from providers.verification.statement import Statement, Word
from providers.verification.wording import (
    BY,
    COMPARING,
    EXCLUSIVE,
    HEDGES,
    MOSTLY,
    NEGATIONS,
    OBLIGATIONS,
    OPPOSITES_OF,
    OPTIONS,
    PARTLY,
    PASSIVE,
    RARELY,
    REFUSALS,
    UNIVERSAL,
)

LONGEST: Final = 60
"""Parts of a sentence that are laid over each other: beyond them the time would grow with the square."""
SAME_BEGINNING: Final = 5
"""Letters that two forms of one word share: `approved`, `approval`."""


class Sort(StrEnum):
    """What a part of a sentence is."""

    WORD = "word"
    NAME = "name"
    QUANTITY = "quantity"
    SIGN = "sign"
    """A negation, a quantifier, a hedge, a duty: small words that change everything."""


@dataclass(frozen=True)
class Part:
    """The smallest thing that is compared."""

    key: str
    sort: Sort
    text: str


@dataclass(frozen=True)
class Difference:
    """What a claim makes of a sentence."""

    share: float
    """The share of the claim that stands in the sentence, in the same order."""
    kept: float
    """The same in any order."""
    replaced: list[tuple[list[Part], list[Part]]]
    """Parts of the sentence, and what the claim has in their place."""
    added: list[Part]
    left_out: list[list[Part]]
    """What the claim skips between two parts that it keeps, stretch by stretch, and signs at its edges."""
    moved: list[Part]
    """What both have, elsewhere."""
    names: int
    """How many names the claim has."""
    same: bool
    """Whether the claim is a stretch of the sentence, with nothing left out that governs it."""
    turned: bool
    """Whether one is a passive and the other is not: an exchange of names then keeps the meaning."""
    denied: bool
    """Whether one of the two denies more often than the other."""
    other_signs: list[Part]
    """Signs of the claim that the sentence lacks."""
    other_names: list[Part]
    """Names of the claim that the sentence lacks, if it has names of its own that the claim lacks."""
    compares: bool
    """Whether the claim is a comparison, in which the order says which is which."""
    opposites: bool
    """Whether the two have words that are opposites: with exchanged names they may say the same."""


_SIGNS: Final = {
    word: sign
    for sign, words in (
        ("may", HEDGES | OPTIONS),
        ("must", OBLIGATIONS),
        ("some", PARTLY),
        ("most", MOSTLY),
        ("few", RARELY),
        ("only", EXCLUSIVE),
        ("all", UNIVERSAL),
        ("not", NEGATIONS),
    )
    for word in words
}


def difference(claim: Statement, sentence: Statement) -> Difference:
    """Lay a claim over a sentence. Time is linear in both: only the first parts of each are compared."""
    theirs = _parts(sentence, sentence.quantities[:LONGEST])[:LONGEST]
    ours = _parts(claim, sentence.quantities[:LONGEST])[:LONGEST]
    matcher = SequenceMatcher(None, [part.key for part in theirs], [part.key for part in ours], autojunk=False)
    common, replaced, added, left_out = 0, [], [], []
    for action, first, last, begin, end in matcher.get_opcodes():
        if action == "equal":
            common += last - first
        elif action == "replace":
            replaced.append((theirs[first:last], ours[begin:end]))
        elif action == "insert":
            added += ours[begin:end]
        elif 0 < begin < len(ours):
            left_out.append(theirs[first:last])
        elif (edge := theirs[first] if begin else theirs[last - 1]).sort is Sort.SIGN:
            # The rest of a sentence may be left out, but not the word that governs what is kept.
            left_out.append([edge])
    matched = {id(part) for block in matcher.get_matching_blocks() for part in ours[block.b : block.b + block.size]}
    rest = Counter(part.key for part in theirs)
    rest.subtract(part.key for part in ours if id(part) in matched)
    moved = [part for part in ours if id(part) not in matched and rest[part.key] > 0]
    turned = _passive(claim) != _passive(sentence)
    count = len(ours) or 1
    return Difference(
        share=common / count,
        kept=(common + len(moved)) / count,
        replaced=replaced,
        added=added,
        left_out=left_out,
        moved=moved,
        names=sum(part.sort is Sort.NAME for part in ours),
        turned=turned,
        other_signs=[part for part in ours if part.sort is Sort.SIGN and part.key not in {one.key for one in theirs}],
        other_names=_other_names(ours, theirs),
        opposites=any(OPPOSITES_OF.get(word, frozenset()) & sentence.low_words for word in claim.low_words),
        same=bool(ours) and common == len(ours) and not left_out,
        compares=bool(claim.low_words & COMPARING),
        denied=_denials(claim) != _denials(sentence),
    )


def _other_names(ours: Sequence[Part], theirs: Sequence[Part]) -> list[Part]:
    mine, known = {part.key for part in ours}, {part.key for part in theirs}
    if all(part.key in mine for part in theirs if part.sort is Sort.NAME):
        return []
    return [part for part in ours if part.sort is Sort.NAME and part.key not in known]


def _denials(statement: Statement) -> int:
    return sum(word.negation or word.low in REFUSALS for word in statement.words)


def _passive(statement: Statement) -> bool:
    return bool(statement.low_words & BY and statement.low_words & PASSIVE)


def _parts(statement: Statement, sources: Sequence[Quantity]) -> list[Part]:
    """Words, names, quantities and signs in order. Quantities that agree with one of the source have its key."""
    found: list[tuple[int, Part]] = []
    spans = []
    for quantity in statement.quantities[:LONGEST]:
        spans.append((quantity.start, quantity.end))
        same = (other for other in sources if compare(quantity, other) in (Comparison.EXACT, Comparison.APPROXIMATE))
        known = next(same, quantity)
        key = f"{known.unit}:{known.values}:{known.forms}"
        found.append((quantity.start, Part(key, Sort.QUANTITY, quantity.raw)))
    starts = {start for start, _ in spans}
    inside = {place for start, end in spans for place in range(start, end)}
    words = statement.words
    for place, word in enumerate(words):
        number_follows = any(other.start in starts for other in words[place + 1 : place + 3])
        if word.start in inside or (number_follows and word.low in _BEFORE_NUMBERS):
            continue
        part = _part_of(word)
        if part is not None:
            found.append((word.start, part))
    return [part for _, part in sorted(found, key=lambda each: each[0])]


_BEFORE_NUMBERS: Final = frozenset("up most more less least over under above below than maximum minimum".split())
"""Words that belong to a number: quantities are compared with them."""


def _part_of(word: Word) -> Part | None:
    sign = "not" if word.low.endswith("n't") else _SIGNS.get(word.low)
    if sign == "not" and word.limiting:
        return None
    if sign is not None:
        return Part(f"({sign})", Sort.SIGN, word.text)
    if word.content:
        return Part(word.stem, Sort.NAME if word.name or word.may_be_name else Sort.WORD, word.text)
    return Part(word.stem, Sort.WORD, word.text) if word.low in OPPOSITES_OF else None


def same_word(one: str, other: str) -> bool:
    """Whether two stems may be forms of one word."""
    return one[:SAME_BEGINNING] == other[:SAME_BEGINNING] and min(len(one), len(other)) >= SAME_BEGINNING - 1
