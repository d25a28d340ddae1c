"""Passages of whole texts that speak of a question or a claim, found by words and figures alone.

Every text is cut into spans of 50 to 500 characters at the ends of its sentences; offsets are those of the text as it
is stored, line ends, accents and emoji included. A span counts by the share of the question's words that it has, rare
ones more, and by a figure that both have.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from providers.sentences import sentence_spans
from providers.text import question_stems, stems
from providers.verification.quantities import Quantity, find_quantities

SHORTEST: Final = 50
LONGEST: Final = 500
"""Characters of a span."""
THRESHOLD: Final = 0.3
SAME_FIGURE: Final = 0.2
ANY_FIGURE: Final = 0.1
"""What a figure adds where the question asks for one."""
TOO_SIMILAR: Final = 0.8
"""Share of common words from which on a second span tells nothing new."""
BLOCK: Final = re.compile(r"(?:[^\n\r]|\r?\n(?![ \t]*\r?\n)|\r(?!\n))+")
"""A run of lines without an empty one between them."""
ASKS_AMOUNT: Final = re.compile(
    r"\b(?:how (?:many|much|often|long|large|old|fast|high|deep|big)|when|what (?:year|date|percentage|share|number)"
    r"|wie ?viele?|wann|combien|quand|cuánt[oa]s?|cuándo|quant[oiae]|quando|hoeveel|wanneer)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Span:
    """A passage `text[start:end]` of the text with that number."""

    text: int
    start: int
    end: int
    relevance: float
    numeric: bool


@dataclass(frozen=True)
class _Candidate:
    text: int
    start: int
    end: int
    stems: frozenset[str]


def select_passages(
    questions: Sequence[str], texts: Sequence[str], language: str = "en", *, most: int = 8, most_of_a_text: int = 3
) -> list[list[Span]]:
    """The best spans for each question, the best first; none overlaps another one of the same question."""
    candidates = [
        _Candidate(number, start, end, frozenset(stems(text[start:end], language)))
        for number, text in enumerate(texts)
        for start, end in spans_of(text)
    ]
    having: dict[str, list[int]] = {}
    for place, candidate in enumerate(candidates):
        for one in candidate.stems:
            having.setdefault(one, []).append(place)
    return [
        _for_question(question, candidates, having, texts, language, most, most_of_a_text) for question in questions
    ]


def spans_of(text: str) -> Iterator[tuple[int, int]]:
    """Ranges of the text in order: sentences, short ones together with the next ones of their paragraph."""
    for block in BLOCK.finditer(text):
        first: int | None = None
        last = block.start()
        for start, end in _pieces(block[0], block.start()):
            if first is not None and (end - first > LONGEST or last - first >= SHORTEST):
                yield from _trimmed(text, first, last)
                first = None
            first = start if first is None else first
            last = end
        if first is not None:
            yield from _trimmed(text, first, last)


def _pieces(block: str, offset: int) -> Iterator[tuple[int, int]]:
    """Sentences; one that is too long falls into parts between words."""
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


def _for_question(
    question: str,
    candidates: Sequence[_Candidate],
    having: Mapping[str, Sequence[int]],
    texts: Sequence[str],
    language: str,
    most: int,
    most_of_a_text: int,
) -> list[Span]:
    wanted = question_stems(question, language)
    weights = {one: math.log(1 + len(candidates) / (1 + len(having.get(one, ())))) for one in wanted}
    total = sum(weights.values())
    if not total:
        return []
    scores: Counter[int] = Counter()
    for one, weight in weights.items():
        for place in having.get(one, ()):
            scores[place] += weight / total  # type: ignore[assignment]
    figures = find_quantities(question, language)
    asks = bool(ASKS_AMOUNT.search(question))
    found = []
    for place, score in scores.items():
        if score + SAME_FIGURE < THRESHOLD:
            continue
        span = candidates[place]
        numeric = _shares_figure(texts[span.text][span.start : span.end], figures, language, asks=asks)
        added = (SAME_FIGURE if figures else ANY_FIGURE) if numeric else 0.0
        if score + added >= THRESHOLD:
            found.append((min(1.0, score + added), place, numeric))
    found.sort(key=lambda item: (-item[0], item[1]))
    return _distinct(found, candidates, most, most_of_a_text)


def _shares_figure(span: str, figures: Sequence[Quantity], language: str, *, asks: bool) -> bool:
    if not figures and not asks:
        return False
    own = find_quantities(span, language)
    if not figures:
        return bool(own)
    return any(mine.values == theirs.values and mine.forms == theirs.forms for mine in own for theirs in figures)


def _distinct(
    found: Sequence[tuple[float, int, bool]], candidates: Sequence[_Candidate], most: int, most_of_a_text: int
) -> list[Span]:
    """The best ones: so many of a text at most, none that says what a better one says; neighbours become one."""
    taken: list[Span] = []
    known: list[frozenset[str]] = []
    of_text: Counter[int] = Counter()
    for relevance, place, numeric in found:
        if len(taken) >= most:
            break
        one = candidates[place]
        if any(_alike(one.stems, other) for other in known):
            continue
        near = next((at for at, span in enumerate(taken) if _joinable(span, one)), None)
        if near is not None:
            span = taken[near]
            start, end = min(span.start, one.start), max(span.end, one.end)
            taken[near] = Span(span.text, start, end, span.relevance, span.numeric or numeric)
            known[near] |= one.stems
        elif of_text[one.text] < most_of_a_text:
            taken.append(Span(one.text, one.start, one.end, round(relevance, 3), numeric))
            known.append(one.stems)
            of_text[one.text] += 1
    return taken


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= TOO_SIMILAR * max(1, len(one | other))


def _joinable(span: Span, one: _Candidate) -> bool:
    """Whether both touch, white space apart, and are no longer than a span may be together."""
    if span.text != one.text or max(span.end, one.end) - min(span.start, one.start) > LONGEST:
        return False
    return (
        0 <= one.start - span.end <= 2
        or 0 <= span.start - one.end <= 2
        or (one.start < span.end and span.start < one.end)
    )
