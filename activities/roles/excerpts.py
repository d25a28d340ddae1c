"""Excerpts: the blocks of a document that have the question's words, instead of its first characters."""

import re
from dataclasses import dataclass
from typing import Final

from contracts.evidence import SectionHint
from providers.text import question_stems

BLOCK_BREAK: Final = re.compile(r"\n[ \t]*\r?\n\s*|\n\[…\]\n")
BREAKS: Final = ("\n", ". ", "。", " ")
LEFT_OUT: Final = "\n[…]\n"
SMALLEST_PIECE: Final = 80
"""Characters; smaller pieces of a block are useless."""
UNHINTED_CHARACTERS: Final = 60_000
"""Characters of a document without hints that are searched: all of a book would take too long."""
LEAST_CHARACTERS: Final = 200
"""Fewer of a source are of little use: rather one source less."""


@dataclass(frozen=True)
class _Block:
    start: int
    end: int
    section_score: float


def excerpt(text: str, sections: list[SectionHint], question: str, budget: int) -> str:
    """Select about `budget` characters of a text, in document order, with `[…]` between blocks.

    Blocks of the hinted sections are ranked by the number of the question's stems in them, then by the section's score.
    """
    if len(text) <= budget:
        return text.strip()
    stems = question_stems(question)
    blocks = [piece for block in _blocks(text, sections) for piece in _pieces(text, block, budget)]
    ranked = sorted(blocks, key=lambda block: (-_stem_count(text, block, stems), -block.section_score, block.start))
    return _join(text, _fitting(text, ranked, budget))


def _blocks(text: str, sections: list[SectionHint]) -> list[_Block]:
    hints = [hint for hint in sections if hint.start < min(hint.end, len(text))]
    if not hints:
        hints = [SectionHint(start=0, end=min(len(text), UNHINTED_CHARACTERS))]
    blocks: dict[tuple[int, int], _Block] = {}
    for hint in sorted(hints, key=lambda hint: -hint.score):
        start, limit = hint.start, min(hint.end, len(text))
        for gap in [*BLOCK_BREAK.finditer(text, start, limit), None]:
            end = gap.start() if gap else limit
            if text[start:end].strip():
                blocks.setdefault((start, end), _Block(start, end, hint.score))
            start = gap.end() if gap else limit
    return list(blocks.values())


def _pieces(text: str, block: _Block, budget: int) -> list[_Block]:
    """Cut a block longer than the budget into pieces that end with a line, a sentence or a word, in this order."""
    pieces, start, longest = [], block.start, max(SMALLEST_PIECE, budget // 2)
    while block.end - start > budget:
        half, limit = start + longest // 2, start + longest
        cuts = (text.rfind(sign, half, limit) + len(sign) for sign in BREAKS if text.find(sign, half, limit) >= 0)
        end = next(cuts, limit)
        pieces.append(_Block(start, end, block.section_score))
        start = end
    return [*pieces, _Block(start, block.end, block.section_score)]


def _stem_count(text: str, block: _Block, stems: list[str]) -> int:
    folded = text[block.start : block.end].casefold()
    return sum(stem in folded for stem in stems)


def _fitting(text: str, ranked: list[_Block], budget: int) -> list[tuple[int, int]]:
    taken: list[tuple[int, int]] = []
    for block in ranked:
        if any(block.start < end and start < block.end for start, end in taken):
            continue
        end = block.end
        if end - block.start > budget:
            end = text.rfind(" ", block.start, block.start + budget)
        if end - block.start >= min(SMALLEST_PIECE, block.end - block.start):
            taken.append((block.start, end))
            budget -= end - block.start
        if budget < SMALLEST_PIECE:
            break
    return sorted(taken)


def _join(text: str, ranges: list[tuple[int, int]]) -> str:
    shown = ""
    for position, (start, end) in enumerate(ranges):
        between = text[ranges[position - 1][1] : start] if position else ""
        shown += (between if not between.strip() else LEFT_OUT) + text[start:end]
    return shown.strip()


def allot(count: int, most: int, share: float) -> list[int]:
    """Characters for each of so many texts, at most `most`; fewer texts where they would get too few."""
    level = int(most * min(share, 1.0))
    if level >= LEAST_CHARACTERS:
        return [level] * count
    return [LEAST_CHARACTERS] * min(count, max(1, count * level // LEAST_CHARACTERS))


def part_of(limit: int, share: float, least: int = 0) -> int:
    """A limit in characters for that share; `least` where too few would be left."""
    if share >= 1:
        return limit
    part = int(limit * max(share, 0.0))
    return part if part >= LEAST_CHARACTERS else min(limit, least)
