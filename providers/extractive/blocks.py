"""Blocks: a stored text of light Markdown cut into quotable blocks, each with its heading path. Pure."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Final

from providers.text import is_wrapped

LINE: Final = re.compile(
    r"[ \t]*(?:(?P<fence>```|~~~)|(?P<level>#{1,6})[ \t]+(?P<title>.*)|(?P<row>\|)|(?P<item>[-*+•]|\d{1,3}[.)])[ \t]+)"
)
"""A line classified by its beginning; any other line is prose."""
MAX_LABEL_LENGTH: Final = 90
"""Up to this length and without a full stop, a line of its own is a term, a caption or a bold heading."""
QUESTION_MARKS: Final = "?？؟"
STOPS: Final = ".!:;,。！：；，、｡" + QUESTION_MARKS  # at the end of a line that is no term and no caption
MAX_MERGED_LENGTH: Final = 700
"""Up to this length, a list is quoted with its introduction and a table with its header."""
MIN_INDEX_LINES: Final = 20  # fewer lines in alphabetical order are a list
SORTED_SHARE: Final = 0.75  # of the lines of an index that do not come before the last; subentries do

REFERENCE: Final = re.compile(r"https?://|\w\.(?:html?|xhtml|php|pdf|md|txt)(?![\w.])")  # to another page
MIN_CONTENT_SHARE: Final = 0.2
"""Least share of a page in blocks that are no links; below it, the page is an index."""


class Kind(StrEnum):
    """Kinds of blocks.

    A line is a paragraph of one line without a full stop. An entry is a line of an index, of a table of contents or of
    a listing, or a heading without text.
    """

    PROSE = "prose"
    LINE = "line"
    ENTRY = "entry"
    ITEM = "item"
    ROW = "row"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class PassageBlock:
    """A paragraph, a line, a list item, a table row or a listing: `text[start:end]`."""

    kind: Kind
    start: int
    end: int
    path: tuple[str, ...]
    """Headings above it, outermost first, ending with a term or caption directly above it."""
    lead: tuple[int, int] | None = None
    """The introduction of its list, the header of its table, or the label or question above its paragraph."""
    label: str = ""
    """The last part of the path, if that is a term or caption and no heading."""

    @property
    def headings(self) -> tuple[str, ...]:
        """Return the headings above it, without a term or caption."""
        if self.label:
            return self.path[:-1]
        return self.path


@lru_cache(maxsize=64)
def blocks_of(text: str) -> tuple[PassageBlock, ...]:
    """Cut a text. Headings become paths of the blocks below them; tables of contents and indexes are skipped."""
    return tuple(block for block in _blocks_and_entries(text) if block.kind is not Kind.ENTRY)


@lru_cache(maxsize=64)
def is_index(text: str) -> bool:
    """Return true for a page that consists of links, titles and page numbers, or of items that name files."""
    whole = sum(block.end - block.start for block in _cut(text))
    blocks = blocks_of(text)
    content = [block for block in blocks if not _is_reference(text, block)]
    if len(blocks) - len(content) < MIN_INDEX_LINES:  # a few are a list of a page
        content = list(blocks)
    return sum(block.end - block.start for block in content) < MIN_CONTENT_SHARE * whole


def _is_reference(text: str, block: PassageBlock) -> bool:
    """Return true for a list item that names a file or an address, and is no sentence."""
    if block.kind is not Kind.ITEM:
        return False
    item = text[block.start : block.end].rstrip()
    return not item.endswith(tuple(STOPS)) and bool(REFERENCE.search(item))


def candidates_of(text: str, places: Sequence[int]) -> Iterator[PassageBlock]:
    """Yield the candidates for passages: lines and paragraphs with one of these places, in order; short ones merged.

    `places` are offsets of words, in order. A merged block that begins without one of those is left to the next
    block below the same headings, which has the same ones and is shorter.
    """
    yield from (block for block in lines_of(text) if _has_place(places, block.start, block.end))
    blocks, ends, limits = _sections(text)
    for index, block in enumerate(blocks):
        start = block.lead[0] if block.lead else block.start
        is_left = index + 1 < limits[index] and blocks[index + 1].path == block.path
        if not is_left or _has_place(places, start, block.end):
            last = min(limits[index], bisect_right(ends, start + MAX_MERGED_LENGTH)) - 1
            is_merged = last > index or (last == index and start < block.start)
            if is_merged and _has_place(places, start, blocks[last].end):
                yield replace(block, start=start, end=blocks[last].end, lead=None)


def _has_place(places: Sequence[int], start: int, end: int) -> bool:
    index = bisect_left(places, start)
    return index < len(places) and places[index] < end


@lru_cache(maxsize=16)
def lines_of(text: str) -> tuple[PassageBlock, ...]:
    """Cut a text into its blocks and entries, and listings into their lines, which are entries as well."""
    return tuple(
        line
        for block in _blocks_and_entries(text)
        for line in (_code_lines(text, block) if block.kind is Kind.CODE else [block])
    )


@lru_cache(maxsize=16)
def _cut(text: str) -> tuple[PassageBlock, ...]:
    return tuple(_Cutter(text).cut())


@lru_cache(maxsize=16)
def _blocks_and_entries(text: str) -> tuple[PassageBlock, ...]:
    blocks = _cut(text)
    titles = {title.casefold() for block in blocks for title in block.path}
    return tuple(_with_entries(text, [block for block in blocks if not _is_of_contents(text, block, titles)]))


def _code_lines(text: str, block: PassageBlock) -> Iterator[PassageBlock]:
    """Yield the lines of a listing that have words; a rule below the head of an output has none."""
    start = block.start
    for line in text[block.start : block.end].splitlines(keepends=True):
        if any(map(str.isalnum, line)) and not line.lstrip().startswith(("```", "~~~")):
            yield replace(block, kind=Kind.ENTRY, start=start, end=start + len(line.rstrip()), lead=None)
        start += len(line)


@dataclass
class _Cutter:
    """Cuts a text in one pass over its lines.

    `run` is the block being read. `waiting` is a line or a heading that labels the next block, or is a block itself if
    none follows.
    """

    text: str
    blocks: list[PassageBlock] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    label: str = ""
    path: tuple[str, ...] = ()
    lead: tuple[int, int] | None = None
    header: tuple[int, int] | None = None
    run: list[tuple[int, str]] = field(default_factory=list)
    kind: Kind = Kind.PROSE
    waiting: PassageBlock | None = None

    def cut(self) -> list[PassageBlock]:
        fence = -1
        offset = 0
        for line in self.text.splitlines(keepends=True):
            start = offset
            plain = line.rstrip()
            offset += len(line)
            match = LINE.match(plain)
            if fence >= 0:
                if match and match["fence"]:
                    self._listing(fence, start + len(plain))
                    fence = -1
            elif match and match["fence"]:
                self._close()
                fence = start
            elif not plain:
                self._close()
                self.header = None
            elif match and match["level"]:
                self._close()
                title = match["title"].strip("# \t")
                self._head(len(match["level"]), title, start + match.start("title"))
            elif match and match["row"]:
                self._close()
                self._row(start, plain)
            elif match and match["item"]:
                self._close()
                self.kind = Kind.ITEM
                self.run = [(start, plain)]
            else:
                self.run.append((start, plain))
        self._close()
        self._release()
        return self.blocks

    def _path(self) -> tuple[str, ...]:
        """Return the headings and the label, one object as long as they are the same."""
        path = (*(title for _, title in self.headings), *filter(None, (self.label,)))
        if path != self.path:
            self.path = path
        return self.path

    def _add(self, kind: Kind, start: int, end: int, lead: tuple[int, int] | None = None) -> None:
        self.waiting = None
        self.blocks.append(PassageBlock(kind, start, end, self._path(), lead, self.label))

    def _release(self) -> None:
        """Add the waiting line as a block, because nothing is below it."""
        if self.waiting is not None:
            self.blocks.append(self.waiting)
            self.waiting = None

    def _release_label(self) -> None:
        """Add the waiting line as a block, unless it is the heading of what is below it."""
        if self.label:
            self._release()
        self.waiting = None

    def _head(self, level: int, title: str, start: int) -> None:
        if self.label or not self.headings or level <= self.headings[-1][0]:
            self._release()
        self.headings = [heading for heading in self.headings if heading[0] < level]
        self.label = ""
        self.lead = None
        is_shown = 0 < len(title) <= MAX_MERGED_LENGTH
        if is_shown:
            self.waiting = PassageBlock(Kind.ENTRY, start, start + len(title), self._path())
        else:
            self.waiting = None
        self.headings.append((level, title))

    def _listing(self, start: int, end: int) -> None:
        """Add a listing; a line that labels it is its introduction."""
        above = self.waiting
        self._add(Kind.CODE, start, end, (above.start, above.end) if above is not None and self.label else None)

    def _row(self, start: int, line: str) -> None:
        end = start + len(line)
        if not line.strip("|-: \t"):
            if self.blocks and self.blocks[-1].kind is Kind.ROW and self.header is None:
                self.header = (self.blocks[-1].start, self.blocks[-1].end)
                self.blocks.pop()
            return
        self._add(Kind.ROW, start, end, self.header)

    def _item_is_heading(self) -> bool:
        """Return true for a single numbered item without a full stop right before a paragraph: `2. Limits`."""
        if not self.blocks or self.blocks[-1].kind is not Kind.ITEM:
            return False
        alone = len(self.blocks) < 2 or self.blocks[-2].kind is not Kind.ITEM
        line = self.text[self.blocks[-1].start : self.blocks[-1].end].strip()
        return alone and line[0].isdigit() and _is_label(line)

    def _close(self) -> None:
        """End the block being read: a paragraph, an item, lines, or a line that labels what follows."""
        run = self.run
        kind = self.kind
        self.run = []
        self.kind = Kind.PROSE
        if not run:
            return
        start = run[0][0]
        end = run[-1][0] + len(run[-1][1])
        lines = [line for _, line in run]
        if kind is Kind.ITEM:
            self._add(kind, start, end, self.lead)
        elif len(run) == 1 and _is_label(lines[0]):
            self._wait(start, lines[0])
        elif len(run) == 1 or is_wrapped(lines) or is_wrapped(lines[1:]) or _defines(lines) or _is_pair(lines):
            self._paragraph(lines, start, end)
        else:
            self._release_label()
            for start, line in run:
                self._add(Kind.LINE, start, start + len(line))
            self.lead = None

    def _wait(self, start: int, line: str) -> None:
        """Take a line of its own as the label of the next block, unless that is such a line as well."""
        self._release_label()
        self.label = ""
        self.lead = None
        self.waiting = PassageBlock(Kind.LINE, start, start + len(line), self._path())
        self.label = line.strip()

    def _paragraph(self, lines: list[str], start: int, end: int) -> None:
        if self._item_is_heading():
            self.label = self.text[self.blocks[-1].start : self.blocks.pop().end].strip()
        if _defines(lines) and _is_label(lines[0]):
            self._release_label()
            self.label = lines[0].strip()
        above = self.waiting
        is_lead = above is not None and (self.label or self.text[above.end - 1] in QUESTION_MARKS)
        self._add(Kind.PROSE, start, end, (above.start, above.end) if above is not None and is_lead else None)
        self.lead = (start, end) if lines[-1].endswith(":") else None


def _is_label(line: str) -> bool:
    return _is_short(line) and not line.lstrip().startswith(("-", "<", "$"))


def _is_short(line: str) -> bool:
    return len(line) <= MAX_LABEL_LENGTH and line[-1] not in STOPS


def _defines(lines: list[str]) -> bool:
    """Return true for terms and the paragraph that defines them, each on its line, or wrapped by a program."""
    terms = next((number for number, line in enumerate(lines) if not _is_short(line)), len(lines))
    return 0 < terms < len(lines) and (terms == len(lines) - 1 or is_wrapped(lines[terms:]))


def _is_pair(lines: list[str]) -> bool:
    """Return true for a long term and the paragraph that defines it."""
    return len(lines) == 2 and len(lines[1]) > MAX_LABEL_LENGTH


def _is_of_contents(text: str, block: PassageBlock, titles: set[str]) -> bool:
    """Return true for an item of a table of contents, which repeats a heading."""
    content = text[block.start : block.end]
    return block.kind is Kind.ITEM and content.lstrip("-*+•.) \t0123456789").casefold() in titles


def _with_entries(text: str, blocks: list[PassageBlock]) -> Iterator[PassageBlock]:
    """Yield the blocks; as entries, lines with leaders and those of long runs in alphabetical order."""
    for kind, group in groupby(blocks, key=lambda block: block.kind):
        run = list(group)
        folded = []
        if kind is Kind.LINE:
            folded = [text[block.start : block.end].casefold() for block in run]
        ordered = sum(one <= other for one, other in pairwise(folded))
        is_index = len(folded) >= MIN_INDEX_LINES and ordered >= SORTED_SHARE * (len(folded) - 1)
        for block in run:
            is_entry = is_index or (kind is not Kind.CODE and _has_leader(text[block.start : block.end]))
            yield replace(block, kind=Kind.ENTRY) if is_entry else block


def _has_leader(content: str) -> bool:
    """Return true for dots that lead to a number, as in a table of contents."""
    return "....." in content or ". . . ." in content


@lru_cache(maxsize=16)
def _sections(text: str) -> tuple[tuple[PassageBlock, ...], list[int], list[int]]:
    """Return the blocks of a text, their ends, and for each the end of its section among the blocks."""
    blocks = blocks_of(text)
    return blocks, [block.end for block in blocks], _section_ends(blocks)


def _section_ends(blocks: tuple[PassageBlock, ...]) -> list[int]:
    """Return for each block the index of the first one after it that is not below the same headings and label."""
    limits = [0] * len(blocks)
    for index in range(len(blocks) - 1, -1, -1):
        path = blocks[index].path
        limit = index + 1
        while limit < len(blocks) and blocks[limit].path[: len(path)] == path:
            limit = limits[limit]
        limits[index] = limit
    return limits
