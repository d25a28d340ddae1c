"""Ranking: from matching passages to sections to documents. Pure, and the same for the same index."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from providers.search.corpus.index_reader import Match
from providers.search.corpus.passages import word_keys
from providers.text import question_stems, words

BEST_BLOCKS: Final = 4
"""Passages whose scores make up a section's."""
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
    return list(dict.fromkeys([*stems, *keys]))


def selective(keys: Sequence[str], documents: int, counts: Mapping[str, int]) -> list[str]:
    """The stems worth looking for in a large corpus: one that most documents hold ranks nothing, but costs time."""
    if documents < LARGE_CORPUS:
        return list(keys)
    rare = [key for key in keys if counts[key] <= COMMON_SHARE * documents]
    return rare if any(counts[key] for key in rare) else list(keys)


def rank(matches: Iterable[Match], paths: Mapping[int, str]) -> list[RankedDocument]:
    """Documents by their best section, best first; equal ones by path."""
    sections: dict[tuple[int, int], list[Match]] = {}
    for match in matches:
        sections.setdefault((match.document, match.section), []).append(match)
    documents: dict[int, list[RankedSection]] = {}
    for (document, number), found in sections.items():
        found.sort(key=lambda match: (-match.score, match.start))
        score = round(sum(match.score for match in found[:BEST_BLOCKS]), 9)
        documents.setdefault(document, []).append(RankedSection(document, number, score, tuple(found)))
    ranked = [_ranked_document(document, found) for document, found in documents.items()]
    return sorted(ranked, key=lambda one: (-one.score, paths[one.document]))


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

    @classmethod
    def of(cls, text: str, language: str, documents: int, counts: Mapping[str, int]) -> "QueryWeights":
        """Inverse document frequency in BM25's form."""
        weights = {
            stem: math.log(1 + (max(documents - counts[stem], 0) + 0.5) / (counts[stem] + 0.5))
            for stem in question_stems(text, language)
        }
        keys = (word_keys(word, language) for word in words(text))
        parts = {whole: frozenset(rest) for whole, *rest in keys if rest and whole in weights}
        return cls(weights, parts)

    def coverage(self, body: frozenset[str], context: frozenset[str]) -> float:
        """Share of the question's weight that a passage covers (0 to 1); words of its headings count half."""
        total = sum(self.weights.values())
        if not total:
            return 0.0
        covered = 0.0
        for stem, weight in self.weights.items():
            parts = self.parts.get(stem)
            if stem in body or (parts and parts <= body):
                covered += weight
            elif stem in context or (parts and parts <= context):
                covered += HEADING_CREDIT * weight
        return covered / total
