"""Passages of whole texts that speak of a question or a claim, found by words and figures alone.

Every text is cut into spans of 50 to 500 characters at the ends of its sentences; offsets are those of the stored text.
A span scores by the share of the question's words that it has, rare ones more, and by a figure that both have.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from providers.text import question_stems, sentence_spans, stems
from providers.verification.quantities import find_quantities

SHORTEST: Final = 50
LONGEST: Final = 500
"""Characters of a span."""
THRESHOLD: Final = 0.3
"""Score, from 0 to 1, from which on a span is worth reading."""
SAME_FIGURE: Final = 0.2
"""Score that a shared figure adds."""
TOO_SIMILAR: Final = 0.8
"""Share of common words from which on a second span adds nothing."""
BLOCK: Final = re.compile(r"(?:[^\n\r]|\r?\n(?![ \t]*\r?\n)|\r(?!\n))+")
"""A run of lines without an empty one between them."""


@dataclass(frozen=True)
class Span:
    """A passage `text[start:end]` of the text with that number."""

    text: int
    start: int
    end: int
    relevance: float
    numeric: bool
    """True if it has a figure of the question."""


@dataclass(frozen=True)
class _Candidate:
    text: int
    start: int
    end: int
    stems: frozenset[str]


def select_passages(
    questions: Sequence[str], texts: Sequence[str], language: str = "en", *, most: int = 8, most_of_a_text: int = 3
) -> list[list[Span]]:
    """Return the best spans for each question, best first; none repeats another one of the same question."""
    candidates = [
        _Candidate(number, start, end, frozenset(stems(text[start:end], language)))
        for number, text in enumerate(texts)
        for start, end in spans_of(text)
    ]
    having: dict[str, list[int]] = {}
    for place, candidate in enumerate(candidates):
        for one in candidate.stems:
            having.setdefault(one, []).append(place)
    chosen = []
    for question in questions:
        scores: Counter[int] = Counter()
        weights = {
            one: math.log(1 + len(candidates) / (1 + len(having.get(one, ()))))
            for one in question_stems(question, language)
        }
        for one, weight in weights.items():
            for place in having.get(one, ()):
                scores[place] += weight / (sum(weights.values()) or 1.0)  # type: ignore[assignment]
        spans = _rated(question, scores, candidates, texts, language)
        chosen.append(_distinct(spans, candidates, most, most_of_a_text))
    return chosen


def spans_of(text: str) -> Iterator[tuple[int, int]]:
    """Yield ranges of the text in order: sentences, short ones together with the next ones of their paragraph."""
    for block in BLOCK.finditer(text):
        first, last = None, block.start()
        for start, end in _pieces(block[0], block.start()):
            if first is not None and (end - first > LONGEST or last - first >= SHORTEST):
                yield from _trimmed(text, first, last)
                first = None
            first = start if first is None else first
            last = end
        if first is not None:
            yield from _trimmed(text, first, last)


def _pieces(block: str, offset: int) -> Iterator[tuple[int, int]]:
    """Yield sentences; one that is too long is cut between words."""
    for start, end in sentence_spans(block):
        place = start
        while end - place > LONGEST:
            cut = block.rfind(" ", place + SHORTEST, place + LONGEST)
            cut = cut if cut > 0 else place + LONGEST
            yield offset + place, offset + cut
            place = cut
        yield offset + place, offset + end


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    start, end = start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
    if end - start >= SHORTEST:
        yield start, end


def _rated(
    question: str, scores: Counter[int], candidates: Sequence[_Candidate], texts: Sequence[str], language: str
) -> list[tuple[float, int, bool]]:
    """Return (score, place, whether a figure is shared) of the spans above the threshold, best first."""
    figures, found = find_quantities(question, language), []
    for place, score in scores.items():
        if score + SAME_FIGURE * bool(figures) < THRESHOLD:
            continue
        span = candidates[place]
        own = find_quantities(texts[span.text][span.start : span.end], language) if figures else []
        numeric = any(mine.values == other.values and mine.forms == other.forms for mine in own for other in figures)
        if score + SAME_FIGURE * numeric >= THRESHOLD:
            found.append((min(1.0, score + SAME_FIGURE * numeric), place, numeric))
    return sorted(found, key=lambda item: (-item[0], item[1]))


def _distinct(
    found: Sequence[tuple[float, int, bool]], candidates: Sequence[_Candidate], most: int, most_of_a_text: int
) -> list[Span]:
    """Return the best spans, at most so many of a text, none with the words of a better one."""
    taken: list[tuple[Span, frozenset[str]]] = []
    of_text: Counter[int] = Counter()
    for relevance, place, numeric in found:
        one = candidates[place]
        similar = any(len(one.stems & other) >= TOO_SIMILAR * max(1, len(one.stems | other)) for _, other in taken)
        if len(taken) < most and of_text[one.text] < most_of_a_text and not similar:
            taken.append((Span(one.text, one.start, one.end, round(relevance, 3), numeric), one.stems))
            of_text[one.text] += 1
    return [span for span, _ in taken]
