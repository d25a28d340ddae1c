"""Passages of pages already read that share the rarest words with each of several questions. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from providers.extractive.blocks import Kind, blocks_of
from providers.extractive.ranking import CHARACTER_COST, Question
from providers.text import question_stems, word_keys, words

MIN_COVERAGE: Final = 0.4
"""Weighted share of a question's words that a passage must have; words that no page has do not count."""


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """`text[start:end]` of a source, with the headings above it, outermost first."""

    source_id: str
    start: int
    end: int
    path: tuple[str, ...]


def find_passages(
    texts: Mapping[str, str], questions: Sequence[str], language: str, limit: int
) -> list[list[FoundPassage]]:
    """Return at most `limit` passages for each question, best first; `texts` are stored texts by source id.

    Each text is cut and its words are counted once, however many questions there are.
    """
    stems = {stem for question in questions for stem in question_stems(question, language)}
    passages: list[tuple[FoundPassage, frozenset[str], frozenset[str]]] = []
    for source_id, text in texts.items():
        for block in blocks_of(text):
            if block.kind is Kind.CODE:
                continue
            start = block.lead[0] if block.lead and block.lead[0] < block.start else block.start
            keys = _keys(text[block.start : block.end], language) & stems
            lead = text[slice(*block.lead)] if block.lead else ""
            above = _keys(" ".join([*block.path, lead]), language) & stems
            passage = FoundPassage(source_id, block.start if block.kind is Kind.ROW else start, block.end, block.path)
            if keys:
                passages.append((passage, keys, above))
    counts = Counter(key for _, inside, above in passages for key in inside | above)
    return [_best(question, passages, counts, language, limit) for question in questions]


def _best(
    text: str,
    passages: Sequence[tuple[FoundPassage, frozenset[str], frozenset[str]]],
    counts: Mapping[str, int],
    language: str,
    limit: int,
) -> list[FoundPassage]:
    # A word that no page has says nothing about which passage fits best.
    known = " ".join(word for word in words(text) if counts.get(word_keys(word, language)[0]))
    question = Question.of(known, language, counts, len(passages))
    scored = [
        (coverage - CHARACTER_COST * (passage.end - passage.start), passage)
        for passage, inside, above in passages
        if (coverage := question.coverage(inside, above)) >= MIN_COVERAGE
    ]
    scored.sort(key=lambda item: (-round(item[0], 6), item[1].source_id, item[1].start))
    return [passage for _, passage in scored[:limit]]


def _keys(text: str, language: str) -> frozenset[str]:
    return frozenset(key for word in words(text) for key in word_keys(word, language))
