"""From the blocks of a document to what is indexed: sections, and the passages in them that can be evidence."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from providers.reading.canonical_text import Block, BlockKind, Extraction
from providers.text import stem, words

LONGEST_GROUP: Final = 700
"""Characters up to which rows of one table, or items of one list, make one passage."""
LEADERS: Final = re.compile(r"(?<!\.)(?<!\.\s)(?:\.\s?){5,}+\s*+\d++[^\S\n]*+$", re.MULTILINE)
"""Dots that lead to a page number: a printed table of contents."""
PARTS: Final = re.compile(r"[._'’-]")
PATH_SEPARATOR: Final = " › "
SNIPPET_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class IndexedSection:
    """The text from a heading to the next one."""

    start: int
    end: int
    heading: str
    """The heading path, outermost first."""


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """A block, or a group of small ones, that may be ranked and quoted."""

    section: int
    start: int
    end: int
    heading: str
    """The path of its section, and the term that it explains."""


def word_keys(word: str, language: str) -> list[str]:
    """The stem of a word and, for a compound, the stems of its parts."""
    return _joined_keys(word, language).split(" ")


@lru_cache(maxsize=200_000)
def _joined_keys(word: str, language: str) -> str:
    whole = stem(word, language)
    parts = [stem(part, language) for part in PARTS.split(word) if len(part) > 1]
    return whole if not parts or parts == [whole] else " ".join((whole, *parts))


def index_text(text: str, language: str) -> str:
    """A text as the index holds it: stems, separated by spaces."""
    return " ".join([_joined_keys(word, language) for word in words(text)])


def sections_of(document: Extraction) -> list[IndexedSection]:
    """The sections of a document in order; together they cover its text."""
    sections: list[IndexedSection] = []
    path: list[tuple[int, str]] = []
    start, heading = 0, ""
    for block in document.blocks:
        if block.kind is BlockKind.HEADING:
            begin = block.start - block.level - 1
            if begin > start:
                sections.append(IndexedSection(start, begin, heading))
            path = [entry for entry in path if entry[0] < block.level]
            path.append((block.level, document.text[block.start : block.end]))
            start, heading = begin, PATH_SEPARATOR.join(title for _, title in path)
    sections.append(IndexedSection(start, len(document.text), heading))
    return sections


def passages_of(document: Extraction, sections: list[IndexedSection]) -> list[IndexedPassage]:
    """The passages that can be evidence: no code, no links, no printed tables of contents."""
    found: list[IndexedPassage] = []
    first = 0
    for number, section in enumerate(sections):
        last = bisect_left(document.blocks, section.end, key=lambda block: block.start)
        inside, first = document.blocks[first:last], last
        found += _section_passages(document.text, number, section, inside)
    return found


def _section_passages(text: str, number: int, section: IndexedSection, blocks: list[Block]) -> Iterator[IndexedPassage]:
    terms = {block.start: text[block.start : block.end] for block in blocks if block.kind is BlockKind.TERM}
    for group in _groups(text, blocks):
        first = group[0]
        term = terms.get(first.start if first.kind is BlockKind.TERM else first.term or -1)
        heading = f"{section.heading}{PATH_SEPARATOR}{term}" if term else section.heading
        yield IndexedPassage(number, first.start, group[-1].end, heading)


def _groups(text: str, blocks: list[Block]) -> Iterator[list[Block]]:
    """Blocks as they belong together: a term with its text, small rows and items with their neighbours."""
    group: list[Block] = []
    for block in blocks:
        if block.kind in {BlockKind.HEADING, BlockKind.CODE} or _points_elsewhere(text, block):
            if group:
                yield group
            group = []
        elif group and _belongs(group, block):
            group.append(block)
        else:
            if group:
                yield group
            group = [block]
    if group:
        yield group


def _belongs(group: list[Block], block: Block) -> bool:
    last = group[-1]
    if last.kind is BlockKind.TERM:
        return block.start - last.end <= 2
    same = last.kind is block.kind and block.kind in {BlockKind.ITEM, BlockKind.ROW}
    return same and block.end - group[0].start <= LONGEST_GROUP


def _points_elsewhere(text: str, block: Block) -> bool:
    return block.points_elsewhere or (
        block.kind is not BlockKind.TERM and LEADERS.search(text, block.start, block.end) is not None
    )


def snippet_of(passage: str) -> str:
    """The beginning of a passage on one line, at most 200 characters."""
    line = " ".join(passage.split())
    if len(line) <= SNIPPET_LENGTH:
        return line
    cut = line[: SNIPPET_LENGTH - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > SNIPPET_LENGTH // 2 else cut) + "…"
