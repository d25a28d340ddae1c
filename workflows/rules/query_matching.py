"""Comparison of queries, over iterations and parallel branches. Pure.

Two queries are one if their words are the same in the same order, or nearly so. A new question that is dropped loses
an answer, a repeated one costs one search: in doubt they are two.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from contracts.addresses import normalize, normalized_text
from contracts.evidence import QueryOutcome, QueryRecord
from contracts.plan import PlanNode

LEAST_OVERLAP: Final = 0.85
"""Share of all words that two unequal queries must have in common (Jaccard)."""
LEAST_WORDS: Final = 4
"""Shorter queries are compared exactly."""
LEAST_WORDS_TO_DIFFER: Final = 8
"""In a shorter query one more word is another question."""

LETTER: Final = (
    r"[^\s\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\xa9\xab-\xb4\xb6-\xb9\xbb-\xbf×÷"
    r"\u060c\u061b\u061f\u0964\u0965\u2000-\u206f\u2190-\u2bff\u3000-\u303f]"
)
"""Anything but blanks, controls and punctuation: `\\w` would lose the vowel signs of many scripts."""
WORD: Final = re.compile(rf"(?:(?<!\S)-|(?<!\S)\.)?{LETTER}+(?:[.'’_/-]{LETTER}+)*[+#%°]*")
EMPTY_WORDS: Final = frozenset(
    "a an the of in on at for with is are was were be been being do does did has have had please".split()
)
SYMMETRIC_WORDS: Final = frozenset("vs versus between compare compared comparing comparison difference differ".split())
"""Words that join others in any order."""
DIRECTED_WORDS: Final = frozenset("from to into than over by under before after through against".split())
DECISIVE_WORDS: Final = frozenset(
    """no not never none neither nor without except non cannot only unless against before after since until more less
    most least best worst high higher highest low lower lowest increase decrease rise fall gain loss pro con advantage
    disadvantage benefit risk cause effect true false first last latest old new how why when where who what which
    from to into than over by under through and or vs versus child children adult man woman men women""".split()
)
"""Words that turn a question into another one, even a long one."""


@dataclass(frozen=True)
class Fingerprint:
    """The parts of a query that are compared."""

    normalized: str
    words: tuple[str, ...]
    firm: frozenset[str]
    """Words that must be in both: names, numbers, negations."""


def record_of(query: PlanNode, provider: str, *, found: int | None, source_type: str = "web") -> QueryRecord:
    """Return the record of a query; `found` is the number of hits, None if the search failed."""
    return QueryRecord(
        text=query.text,
        normalized_text=normalized_query(query.text),
        provider=provider,
        source_type=source_type,
        sub_query_id=query.id,
        iteration=query.iteration,
        found=found or 0,
        outcome=QueryOutcome.FAILED if found is None else QueryOutcome.ANSWERED,
    )


def asked_before(
    ledger: Iterable[QueryRecord], text: str, provider: str | None = None, source_type: str | None = None
) -> QueryRecord | None:
    """Return the first answered record of the same query; None if there is none: a failed one may be repeated.

    `provider` and `source_type` restrict the records; None means any.
    """
    for record in ledger:
        if record.outcome is not QueryOutcome.ANSWERED:
            continue
        if provider not in (None, record.provider) or source_type not in (None, record.source_type):
            continue
        if same_query(record.text, text):
            return record
    return None


def drop_repeated(texts: Sequence[str], before: Iterable[str] = ()) -> list[str]:
    """Return the texts that repeat neither one of `before` nor an earlier one of their own, in order."""
    seen = list(before)
    fresh: list[str] = []
    for text in texts:
        if normalized_query(text) and not any(same_query(text, other) for other in seen):
            seen.append(text)
            fresh.append(text)
    return fresh


def same_query(one: str, other: str) -> bool:
    """Return true if two queries ask the same. Symmetric and reflexive.

    Numbers, names, negations and decisive words must agree; so must the order of the words, but for comparisons.
    """
    left, right = fingerprint(one), fingerprint(other)
    # Texts with one sub-query id are one query.
    if left.normalized == right.normalized or normalized_text(one) == normalized_text(other):
        return True
    left_set, right_set = frozenset(left.words), frozenset(right.words)
    shorter = min(len(left_set), len(right_set))
    if shorter < LEAST_WORDS:
        return False
    differing, common = left_set ^ right_set, left_set & right_set
    if differing:
        close = len(common) / len(left_set | right_set) >= LEAST_OVERLAP
        if not close or shorter < LEAST_WORDS_TO_DIFFER or differing & (left.firm | right.firm):
            return False
    if common & SYMMETRIC_WORDS and not common & DIRECTED_WORDS:
        return True
    return [word for word in left.words if word in common] == [word for word in right.words if word in common]


def normalized_query(text: str) -> str:
    """Return the words of a query in order, without case, white space and punctuation."""
    return fingerprint(text).normalized


@lru_cache(maxsize=2_048)
def fingerprint(text: str) -> Fingerprint:
    """Return the parts of a query that are compared; plurals are cut off, because workflows have no stemmer."""
    written = [match.group() for match in WORD.finditer(normalize("NFKC", text))]
    folded = [word.casefold().replace("’", "'") for word in written]
    words: list[str] = []
    firm: set[str] = set()
    for position, (word, plain) in enumerate(zip(written, folded, strict=True)):
        named = _names(word, position, text)
        if plain in EMPTY_WORDS and not (named and word.isupper()):
            continue
        base = plain if named else _singular(plain)
        words.append(base)
        if named or base in DECISIVE_WORDS or plain in DECISIVE_WORDS or base.endswith("n't"):
            firm.add(base)
    return Fingerprint(" ".join(folded), tuple(words), frozenset(firm))


def _names(word: str, position: int, text: str) -> bool:
    """Return true for a name, a number or an operator, by its spelling."""
    if not word.isalpha():
        return True
    if text.isupper():
        return False
    return any(letter.isupper() for letter in (word if position else word[1:]))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
