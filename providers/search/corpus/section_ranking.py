"""Ranking: from matching passages to sections to documents. Pure, and the same for the same index."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final

from providers.search.corpus.index_reader import Match
from providers.search.corpus.indexed_passages import PARTS, word_keys
from providers.text import meaning_words, question_stems, stem, words

BEST_BLOCKS: Final = 4
"""Passages whose scores make up a section's."""
BLOCK_SHARES: Final = (1.0, 0.8, 0.6, 0.4)
"""What the best, second, … passage adds: a short section that answers must not lose to a long one that only repeats."""
HEADING_GAIN: Final = 0.6
"""Most that a section gains whose heading, or whose document's title, speaks of the question and of nothing else."""
LARGE_DOCUMENT: Final = 150_000
"""Characters from which a document has more chances than others to hold any words, and loses for it."""
SIZE_COST: Final = 0.3
"""What each doubling beyond a large document costs."""
LIGHT: Final = 0.1
"""Share of a question's weight below which one of its words tells nothing in a heading."""
SAME_TEXT: Final = 0.8
"""Share of equal passages from which one document is a copy of another."""
LEAST_COPIED: Final = 3
"""Equal passages from which likeness is no chance: short notes may well say the same."""
HISTORY: Final = re.compile(
    r"\b(?:release\s+notes?|change\s*log|release\s+(?:history|v?\d)|version\s+history)\b", re.IGNORECASE
)
HISTORY_ASKED: Final = re.compile(
    r"\b(?:releases?|versions?|chang(?:e|es|ed)|new|history|since|added|introduced)\b", re.IGNORECASE
)
HISTORY_FACTOR: Final = 0.6
"""For documents that list what changed from release to release, unless that is asked: one line speaks of each thing."""
SECTIONS_OF_A_DOCUMENT: Final = 8
SECTION_FLOOR: Final = 0.25
"""Share of the best section's score below which a further section of a document is not worth a hint."""
COVERAGE_FLOOR: Final = 0.2
HEADING_CREDIT: Final = 0.5
LARGE_CORPUS: Final = 100
COMMON_SHARE: Final = 0.5


@dataclass(frozen=True)
class RankedSection:
    """A section with its matching passages, best first."""

    document: int
    number: int
    score: float
    matches: tuple[Match, ...]


@dataclass(frozen=True)
class RankedDocument:
    """A document with its matching sections, best first."""

    document: int
    score: float
    sections: tuple[RankedSection, ...]

    def best_matches(self) -> list[Match]:
        """The passages that its coverage is measured on."""
        return [match for section in self.sections for match in section.matches[:BEST_BLOCKS]]


def searched_keys(text: str, stems: Sequence[str], language: str) -> list[str]:
    """The stems to look for: those of the question, and the parts of its compounds."""
    kept = set(stems)
    keys = [key for word in words(text) if (found := word_keys(word, language))[0] in kept for key in found]
    return list(dict.fromkeys([*stems, *keys, *joined_keys(text, language).values()]))


def joined_keys(text: str, language: str) -> dict[str, str]:
    """Neighbouring words may be written as one (`data types`, `datatypes`): the stem of each word → that of both."""
    found: dict[str, str] = {}
    if language == "en":
        kept = [word for word in meaning_words(text) if word.isalpha()]
        for one, other in pairwise(kept):
            if f"{one} {other}" in text:
                found[stem(one, language)] = found[stem(other, language)] = stem(one + other, language)
    return found


def selective(keys: Sequence[str], documents: int, counts: Mapping[str, int]) -> list[str]:
    """The stems worth looking for in a large corpus: one that most documents hold ranks nothing, but costs time."""
    if documents < LARGE_CORPUS:
        return list(keys)
    rare = [key for key in keys if counts[key] <= COMMON_SHARE * documents]
    return rare if any(counts[key] for key in rare) else list(keys)


@lru_cache(maxsize=20_000)
def heading_keys(heading: str, language: str) -> frozenset[str]:
    """The stems of a heading's words of meaning, without its number."""
    kept = (word for word in meaning_words(heading, language) if not word[0].isdigit())
    return frozenset(key for word in kept for key in word_keys(word, language))


def rank(
    matches: Iterable[Match], paths: Mapping[int, str], factors: Mapping[tuple[int, int], float] | None = None
) -> list[RankedDocument]:
    """Documents by their best section, best first; equal ones by path.

    `factors` weighs sections, by document and number: what `section_factor` says of them, 1 where it says nothing.
    """
    factors = factors or {}
    sections: dict[tuple[int, int], list[Match]] = {}
    for match in matches:
        sections.setdefault((match.document, match.section), []).append(match)
    documents: dict[int, list[RankedSection]] = {}
    for (document, number), found in sections.items():
        found.sort(key=lambda match: (-match.score, match.start))
        sum_of_best = sum(share * match.score for share, match in zip(BLOCK_SHARES, found[:BEST_BLOCKS], strict=False))
        score = round(sum_of_best * factors.get((document, number), 1.0), 9)
        documents.setdefault(document, []).append(RankedSection(document, number, score, tuple(found)))
    ranked = [_ranked_document(document, found) for document, found in documents.items()]
    return sorted(ranked, key=lambda one: (-one.score, paths[one.document]))


def section_factor(likeness: float, characters: int) -> float:
    """What the score of a section is multiplied with: more for a fitting heading, less in a huge document."""
    doublings = math.log2(characters / LARGE_DOCUMENT) if characters > LARGE_DOCUMENT else 0.0
    return (1.0 + HEADING_GAIN * likeness) / (1.0 + SIZE_COST * doublings)


def is_copy(passages: Sequence[frozenset[str]], of: Iterable[frozenset[str]]) -> bool:
    """Whether most of the matching passages of a document stand in another one as well."""
    known = set(of)
    return len(passages) >= LEAST_COPIED and sum(one in known for one in passages) >= SAME_TEXT * len(passages)


def _ranked_document(document: int, sections: list[RankedSection]) -> RankedDocument:
    sections.sort(key=lambda section: (-section.score, section.number))
    best = sections[0].score
    kept = [section for section in sections[:SECTIONS_OF_A_DOCUMENT] if section.score >= SECTION_FLOOR * best]
    return RankedDocument(document, best, tuple(kept))


@dataclass(frozen=True)
class QueryWeights:
    """How much each stem of a question tells, from its number of documents."""

    weights: Mapping[str, float]
    parts: Mapping[str, frozenset[str]]
    joined: Mapping[str, str] = field(default_factory=dict)
    """Stem → the stem of it and its neighbour written as one word."""

    @classmethod
    def of(cls, text: str, language: str, documents: int, counts: Mapping[str, int]) -> "QueryWeights":
        """Inverse document frequency in BM25's form."""
        weights = {
            stem: math.log(1 + (max(documents - counts[stem], 0) + 0.5) / (counts[stem] + 0.5))
            for stem in question_stems(text, language)
        }
        keys = (word_keys(word, language) for word in words(text))
        parts = {whole: frozenset(rest) for whole, *rest in keys if rest and whole in weights}
        return cls(weights, parts, joined_keys(text, language))

    def likeness(self, heading: str, language: str) -> float:
        """How much a heading is about the question (0 to 1): what it covers, lowered by what else it speaks of."""
        keys = heading_keys(heading, language)
        plain = {key for key in keys if not PARTS.search(key)}
        telling = plain - self._light
        if not telling:
            return 0.0
        return len(telling & self._asked) / len(telling) * self.coverage(keys, frozenset())

    def coverage(self, body: frozenset[str], context: frozenset[str]) -> float:
        """Share of the question's weight that a passage covers (0 to 1); words of its headings count half."""
        if not self._total:
            return 0.0
        covered = 0.0
        for key, weight in self.weights.items():
            parts = self.parts.get(key)
            if key in body or (parts and parts <= body) or self.joined.get(key) in body:
                covered += weight
            elif key in context or (parts and parts <= context) or self.joined.get(key) in context:
                covered += HEADING_CREDIT * weight
        return covered / self._total

    @cached_property
    def _total(self) -> float:
        return sum(self.weights.values())

    @cached_property
    def _light(self) -> frozenset[str]:
        return frozenset(stem for stem, weight in self.weights.items() if weight < LIGHT * self._total)

    @cached_property
    def _asked(self) -> frozenset[str]:
        return frozenset(self.weights).union(*self.parts.values(), self.joined.values())
