"""Passages of whole texts that speak of a question or a claim, found by words alone.

Every text is cut into spans of 50 to 500 characters at the ends of its sentences; offsets are those of the stored text.
A span scores by the share of the question's words that it has, rare ones more.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from providers.text import question_stems, sentence_spans, stems

SHORTEST: Final = 50
LONGEST: Final = 500
"""Characters of a span."""
THRESHOLD: Final = 0.3
"""Score, from 0 to 1, from which on a span is worth reading."""
TOO_SIMILAR: Final = 0.8
"""Share of common words from which on a second span adds nothing."""
PARAGRAPH: Final = re.compile(r"(?:[^\n\r]|\r?\n(?![ \t]*\r?\n)|\r(?!\n))+")
"""A run of lines without an empty one between them."""


@dataclass(frozen=True)
class Span:
    """A passage `text[start:end]` of the text with that number."""

    text: int
    start: int
    end: int


def select_passages(
    questions: Sequence[str], texts: Sequence[str], language: str = "en", *, most: int, most_of_a_text: int
) -> list[list[Span]]:
    """Return the best spans for each question, best first; none repeats another one of the same question."""
    spans = [
        (Span(number, start, end), frozenset(stems(text[start:end], language)))
        for number, text in enumerate(texts)
        for start, end in spans_of(text)
    ]
    having = Counter(stem for _, own in spans for stem in own)
    chosen = []
    for question in questions:
        weights = {
            stem: math.log(1 + len(spans) / (1 + having[stem])) for stem in set(question_stems(question, language))
        }
        total = sum(weights.values()) or 1.0
        scored = [(sum(weights[stem] for stem in weights.keys() & own) / total, span, own) for span, own in spans]
        found = sorted((each for each in scored if each[0] >= THRESHOLD), key=lambda each: -each[0])
        chosen.append(_distinct([(span, own) for _, span, own in found], most, most_of_a_text))
    return chosen


def _distinct(found: Sequence[tuple[Span, frozenset[str]]], most: int, most_of_a_text: int) -> list[Span]:
    """Return the first spans, at most so many of a text, none with the words of an earlier one."""
    taken: list[tuple[Span, frozenset[str]]] = []
    of_text: Counter[int] = Counter()
    for span, own in found:
        similar = any(len(own & other) >= TOO_SIMILAR * max(1, len(own | other)) for _, other in taken)
        if len(taken) < most and of_text[span.text] < most_of_a_text and not similar:
            taken.append((span, own))
            of_text[span.text] += 1
    return [span for span, _ in taken]


def spans_of(text: str) -> Iterator[tuple[int, int]]:
    """Yield ranges of the text in order: sentences, short ones together with the next ones of their paragraph."""
    for paragraph in PARAGRAPH.finditer(text):
        first, last = None, paragraph.start()
        for start, end in _pieces(paragraph[0], paragraph.start()):
            if first is not None and (end - first > LONGEST or last - first >= SHORTEST):
                yield from _trimmed(text, first, last)
                first = None
            first = start if first is None else first
            last = end
        if first is not None:
            yield from _trimmed(text, first, last)


def _pieces(paragraph: str, offset: int) -> Iterator[tuple[int, int]]:
    """Yield sentences; one that is too long is cut between words."""
    for start, end in sentence_spans(paragraph):
        place = start
        while end - place > LONGEST:
            cut = paragraph.rfind(" ", place + SHORTEST, place + LONGEST)
            cut = cut if cut > 0 else place + LONGEST
            yield offset + place, offset + cut
            place = cut
        yield offset + place, offset + end


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    start, end = start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
    if end - start >= SHORTEST:
        yield start, end
