"""Shorter forms of a text, made of its own words: the levels of a text that does not fit. Pure.

Quotes are taken from the text of a prompt, so no word is changed: sentences about the question stay, in order, and gaps
are marked.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from contracts.tokens import RATIOS, Level
from providers.text import question_stems, sentence_spans

SEPARATORS: Final = ("\n", ". ", "。", " ")
GAP: Final = "\n[…]\n"
MAX_PIECE_CHARACTERS: Final = 300  # of a sentence that is included or excluded as a whole
MIN_BEGINNING_CHARACTERS: Final = 80  # shown of a text that is cut to its beginning


# --- levels -----------------------------------------------------------------------------------------------------------
def shortened(text: str, level: Level, question: str) -> str:
    """Return a text at a level: whole, its best sentences in order or line by line, its beginning, or empty.

    The sentences of a lower level are among those of the higher ones; together they make up at least the level's share
    of the text, so a headline is one sentence unless the text is long.
    """
    if level is Level.FULL:
        return text
    if level is Level.DROPPED:
        return ""
    if level is Level.TRUNCATED:
        return _beginning(text)
    remaining = RATIOS[level] * len(text)
    chosen: list[tuple[int, int]] = []
    for start, end in _ranked(text, question):
        if remaining <= 0:
            break
        chosen.append((start, end))
        remaining -= end - start
    if level in (Level.KEY_POINTS, Level.HEADLINE):
        points = (text[start:end].strip() for start, end in sorted(chosen))
        return "\n".join(filter(None, points))
    return _joined(text, chosen)


def _beginning(text: str) -> str:
    limit = max(MIN_BEGINNING_CHARACTERS, int(RATIOS[Level.TRUNCATED] * len(text)))
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()} […]"


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the lines of a text, and the sentences of a long line; a sentence that is too long is cut at a space."""
    for start, end in sentences_between(text, 0, len(text)):
        yield from cut_pieces(text, start, end, MAX_PIECE_CHARACTERS)


def sentences_between(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the lines of a part of a text, and the sentences of a long line, as offsets in the whole text."""
    for line in text[start:end].splitlines(keepends=True):
        if len(line) > MAX_PIECE_CHARACTERS:
            spans = sentence_spans(line)
        else:
            spans = [(0, len(line))]
        yield from ((start + first, start + last) for first, last in spans)
        start += len(line)


@lru_cache(maxsize=128)  # for the levels of the texts of a call
def _ranked(text: str, question: str) -> list[tuple[int, int]]:
    """Return the sentences of a text: first those with words of the question that are rare in it, then by position."""
    pieces = list(_sentences(text))
    stems = question_stems(question)
    terms = {piece: {stem for stem in stems if stem in text[slice(*piece)].casefold()} for piece in pieces}
    rarity = {stem: math.log(1 + len(pieces) / (1 + sum(stem in group for group in terms.values()))) for stem in stems}
    return sorted(pieces, key=lambda piece: (-sum(rarity[stem] for stem in sorted(terms[piece])), piece[0]))


def _joined(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Join parts of a text in order, with a mark where words between them are missing."""
    joined = ""
    last = 0
    for start, end in sorted(spans):
        gap = text[last:start] if joined else ""
        joined += (GAP if gap.strip() else gap) + text[start:end]
        last = end
    return joined


def cut_pieces(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int]]:
    """Yield a part of a text in pieces of at most `limit` characters, cut at a line, a sentence or a space."""
    while end - start > limit:
        low = start + limit // 4
        high = start + limit // 2
        cuts = (text.rfind(mark, low, high) + len(mark) for mark in SEPARATORS if mark in text[low:high])
        cut = next(cuts, high)
        yield start, cut
        start = cut
    yield start, end
