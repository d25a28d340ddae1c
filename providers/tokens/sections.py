"""The structure of a text: its sections, and in each the units that are shown together. Pure."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from providers.extractive.blocks import LINE, MAX_LABEL_LENGTH, Kind, PassageBlock, blocks_of
from providers.tokens.shortening import cut_pieces

MAX_SECTION_CHARACTERS: Final = 4_000
"""Of a section that is shown whole or not at all, and of a part of a text without headings."""
MAX_UNIT_CHARACTERS: Final = 4_000  # a longer list, table or paragraph is shown in parts
PART_CHARACTERS: Final = 2_000  # of such a part
MIN_SECTION_CHARACTERS: Final = 400  # shorter neighbours below one heading are one section
TITLE_CHARACTERS: Final = 100
NAME_CHARACTERS: Final = 200
"""Of the terms that name a part without a heading: those of a manual's page of settings have six to ten."""
MAX_TERM_LINES: Final = 6  # of one term, in several forms
TERM: Final = re.compile(
    r"(?:`[^`\n]{1,120}`[^\n.`]{0,40}(?:`[^`\n]{1,120}`[^\n.`]{0,40}){0,3}|--?[A-Za-z0-9][^\n]{0,100}(?<![.:!?]))\n(?=\S)"
)
"""The first line of a definition: names in code, perhaps with a type, or an option, and text right below."""
MIN_DEFINITIONS: Final = 5
DEFINED_SHARE: Final = 0.5
"""A section with at least so many terms, the first of them before this share of it, is a list of definitions."""
FENCES: Final = ("```", "~~~")
SENTENCE_END: Final = re.compile(r"(?<=[^\W\d_])[.!?] +[(\w]")
ITEM: Final = re.compile(r"^(?:[-*+]|\d{1,3}[.)]) +(?P<words>\S[^\n]*)", re.MULTILINE)
ITEM_CHARACTERS: Final = 40
"""Of the beginning of a list item in the name of a part, so that there is room for five."""
SENTENCE_ENDS: Final = tuple(".!:,?。！：，？")
HEADING_OR_FENCE: Final = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}+|~{3,}+)|(?P<level>#{1,6})[ \t]++(?P<title>[^\n]*))", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Section:
    """`text[start:end]`: a heading with what follows it up to the next one, or a part of a text without headings."""

    start: int
    end: int
    path: tuple[str, ...]
    """Its heading and those above it, outermost first; for a part without a heading the terms that stand alone in it
    above their text, else its first words.
    """

    @property
    def title(self) -> str:
        """Return its own heading."""
        return self.path[-1] if self.path else ""


@lru_cache(maxsize=64)
def sections_of(text: str) -> tuple[Section, ...]:
    """Cut a text at its headings, outside of code; a text without any, into parts of whole blocks.

    Short neighbours below one heading are one section, and a heading without text begins the section below it.
    """
    sections = list(_merged(text, list(_headed(text))))
    return tuple(_named(text, part) for section in sections for part in _parts(text, section))


def _named(text: str, section: Section) -> Section:
    """Return a section with its first words as its name, if it has no heading."""
    if section.path:
        return section
    return replace(section, path=(_first_words(text, section.start),))


def _headed(text: str) -> Iterator[Section]:
    path: list[tuple[int, str]] = []
    fence = ""
    start = 0
    for match in HEADING_OR_FENCE.finditer(text):
        marks = match["fence"]
        if marks:
            if not fence:
                fence = marks
            elif marks.startswith(fence):
                fence = ""
            continue
        title = " ".join(match["title"].rstrip().rstrip("#").split())[:TITLE_CHARACTERS]
        if fence or not title:
            continue
        if text[start : match.start()].strip():
            yield Section(start, match.start(), tuple(name for _, name in path))
        start = match.start()
        path = [*(one for one in path if one[0] < len(match["level"])), (len(match["level"]), title)]
    if text[start:].strip():
        yield Section(start, len(text), tuple(name for _, name in path))


def _merged(text: str, sections: Sequence[Section]) -> Iterator[Section]:
    """Join a heading without text to what follows, and short sections below one heading to each other."""
    waiting: Section | None = None
    for section in sections:
        if waiting is None:
            waiting = section
            continue
        is_bare = text[waiting.start : waiting.end].count("\n", 0, len(text[waiting.start : waiting.end].rstrip())) == 0
        siblings = waiting.path[:-1] == section.path[:-1]
        if is_bare and section.path[: len(waiting.path)] == waiting.path:
            waiting = replace(section, start=waiting.start)
        elif siblings and section.end - waiting.start <= MIN_SECTION_CHARACTERS:
            title = f"{waiting.title}; {section.title}"[: 2 * TITLE_CHARACTERS]
            waiting = Section(waiting.start, section.end, (*section.path[:-1], title))
        else:
            yield waiting
            waiting = section
    if waiting is not None:
        yield waiting


def _parts(text: str, section: Section) -> Iterator[Section]:
    """Yield a section; one without a heading, or far longer than a section should be, in parts with names.

    So is a list of definitions, of which a question asks for one or two. A part ends before a term rather than within
    the text below one.
    """
    if section.end - section.start <= MAX_SECTION_CHARACTERS:
        yield section
        return
    terms = [offset for offset, _ in _terms(text, section.start, section.end)]
    is_long = not section.path or section.end - section.start > 5 * MAX_SECTION_CHARACTERS
    if not is_long and not _is_list_of_definitions(section, terms):
        yield section
        return
    start = end = section.start
    for unit in units_of(text, section):
        if unit.end - start > MAX_SECTION_CHARACTERS and end > start:
            place = bisect_left(terms, end) - 1
            is_late = place >= 0 and terms[place] - start >= MAX_SECTION_CHARACTERS // 2
            end = terms[place] if is_late else end
            yield _part(text, section, start, end)
            start = end
        end = unit.end
    if end > start:
        yield _part(text, section, start, end)


def _is_list_of_definitions(section: Section, terms: Sequence[int]) -> bool:
    """Return whether a section, with terms at these offsets, defines one after the other."""
    defined = section.start + (1 - DEFINED_SHARE) * (section.end - section.start)
    return len(terms) >= MIN_DEFINITIONS and terms[0] <= defined


def _part(text: str, section: Section, start: int, end: int) -> Section:
    if start == section.start and section.path:
        return Section(start, end, section.path)
    return Section(start, end, (*section.path, _name(text, start, end)))


def _name(text: str, start: int, end: int) -> str:
    """Return the terms of a part, as many as its name has room for, else the beginnings of its items or its own."""
    names = list(dict.fromkeys(term for _, term in _terms(text, start, end)))
    if not names:
        names = [_cut(match["words"], ITEM_CHARACTERS) for match in ITEM.finditer(text, start, end)]
    if not names:
        return _first_words(text, start)
    name = "; ".join(names)
    if len(name) <= NAME_CHARACTERS:
        return name
    return f"{name[:NAME_CHARACTERS].rpartition('; ')[0] or name[:NAME_CHARACTERS]}; …"


def _terms(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield the offsets and first lines of paragraphs that stand alone above a text: settings, options, captions.

    They have a few short lines without the end of a sentence. Headings, lists, tables and listings are none of them.
    """
    fenced = False
    offset = start
    for paragraph in text[start:end].split("\n\n"):
        lines = paragraph.strip("\n").split("\n")
        fences = sum(line.lstrip().startswith(FENCES) for line in lines)
        is_short = all(line.strip() and len(line) <= MAX_LABEL_LENGTH for line in lines)
        is_plain = not any(
            line.rstrip().endswith(SENTENCE_ENDS) or SENTENCE_END.search(line) or LINE.match(line) for line in lines
        )
        is_last = offset + len(paragraph) >= end
        if is_short and is_plain and not (fenced or fences or is_last) and len(lines) <= MAX_TERM_LINES:
            yield offset, " ".join(lines[0].split()).rstrip(";")
        elif TERM.match(paragraph) and not fenced:
            yield offset, " ".join(lines[0].split())
        fenced ^= fences % 2 == 1
        offset += len(paragraph) + len("\n\n")


def _first_words(text: str, start: int) -> str:
    words = text[start : start + 2 * TITLE_CHARACTERS].lstrip("#>*-| \n")
    return f"… {_cut(words, TITLE_CHARACTERS // 2)} …"


def _cut(words: str, characters: int) -> str:
    """Return the first words of a text on one line, as many as fit."""
    line = " ".join(words.split())
    if len(line) <= characters:
        return line
    return line[:characters].rsplit(" ", 1)[0]


@dataclass(frozen=True, slots=True)
class SectionUnit:
    """Blocks that are shown together: a list with its introduction, a table with its head, a listing with its sentence,
    a term with its definition.

    Consecutive units of a section have nothing omitted between them.
    """

    start: int
    end: int
    blocks: tuple[PassageBlock, ...]
    lead: tuple[int, int] | None = None
    """Introduction or table head to show with it, for a part of a long list or table."""


def units_of(text: str, section: Section) -> list[SectionUnit]:
    """Cut a section into units that cover it without holes."""
    groups: list[list[PassageBlock]] = []
    blocks = blocks_between(text, section.start, section.end)
    terms = [block.start for block in blocks if TERM.match(text, block.start, block.end)]
    for block in blocks:
        # What lies between two terms of a list belongs to the first; what follows the last one need not.
        is_defined = bool(terms) and terms[0] < block.start < terms[-1] and block.start not in terms
        if groups and (is_defined or _belongs(text, groups[-1][-1], block)):
            groups[-1].append(block)
        else:
            groups.append([block])
    if not groups:
        return [SectionUnit(section.start, section.end, ())]
    ends = [group[-1].end for group in groups]
    starts = [section.start, *ends[:-1]]
    ends[-1] = section.end
    whole = [
        SectionUnit(start, end, tuple(group), _lead(group, start))
        for start, end, group in zip(starts, ends, groups, strict=True)
    ]
    return [part for unit in whole for part in _unit_parts(text, unit)]


def blocks_between(text: str, start: int, end: int) -> Sequence[PassageBlock]:
    """Return the blocks of a text that begin in a range."""
    blocks = blocks_of(text)
    first, last = (bisect_left(blocks, offset, key=lambda block: block.start) for offset in (start, end))
    return blocks[first:last]


def _belongs(text: str, before: PassageBlock, block: PassageBlock) -> bool:
    """Return true for a block that is not understood without the one before it."""
    if block.kind is Kind.CODE:
        return True
    if block.kind in (Kind.ITEM, Kind.ROW) and before.kind is block.kind:
        return True
    return text[before.start : before.end].rstrip().endswith(":")


def _unit_parts(text: str, unit: SectionUnit) -> Iterator[SectionUnit]:
    """Yield a unit; a very long one in parts: between its blocks, each with the introduction or the table head."""
    if unit.end - unit.start <= MAX_UNIT_CHARACTERS:
        yield unit
        return
    if len(unit.blocks) < 2:
        pieces = cut_pieces(text, unit.start, unit.end, PART_CHARACTERS)
        yield from (SectionUnit(start, end, unit.blocks) for start, end in pieces)
        return
    start = unit.start
    group: list[PassageBlock] = []
    for block in unit.blocks:
        if group and block.end - start > PART_CHARACTERS:
            yield from _unit_parts(text, SectionUnit(start, group[-1].end, tuple(group), _lead(group, start)))
            start = group[-1].end
            group = []
        group.append(block)
    rest = SectionUnit(start, unit.end, tuple(group), _lead(group, start))
    if start > unit.start:
        yield from _unit_parts(text, rest)
        return
    # Short blocks, and behind them lines that are none, such as a table of contents.
    pieces = cut_pieces(text, rest.start, rest.end, PART_CHARACTERS)
    yield from (SectionUnit(first, last, rest.blocks, rest.lead) for first, last in pieces)


def _lead(group: Sequence[PassageBlock], start: int) -> tuple[int, int] | None:
    """Return the introduction or table head of blocks, if it lies before their beginning."""
    lead = group[0].lead
    if lead and lead[0] < start:
        return lead
    return None
