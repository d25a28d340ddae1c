"""Blocks: a stored text of light Markdown cut into quotable blocks, each with its heading path. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

LINE: Final = re.compile(
    r"[ \t]*(?:(?P<fence>```|~~~)|(?P<level>#{1,6})[ \t]+(?P<title>.*)|(?P<row>\|)|(?P<item>[-*+•]|\d{1,3}[.)])[ \t]+)"
)
"""A line classified by its beginning; any other line is prose."""
MAX_LABEL_LENGTH: Final = 90
"""Up to this length and without a full stop, a line of its own is a term, a caption or a bold heading."""
MIN_WRAPPED_LENGTH: Final = 60
"""A first line of at least this length, or one continued in lower case, was wrapped by a program."""
MAX_MERGED_LENGTH: Final = 700
"""Up to this length, a list is quoted with its introduction and a table with its header."""
MIN_INDEX_LINES: Final = 5  # a paragraph of this many lines, mostly without sentences, is an index or a list of links


class Kind(StrEnum):
    """Kinds of blocks."""

    PROSE = "prose"
    ITEM = "item"
    ROW = "row"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class PassageBlock:
    """A paragraph, a list item, a table row or a listing: `text[start:end]`."""

    kind: Kind
    start: int
    end: int
    path: tuple[str, ...]
    """Headings above it, outermost first, ending with a term or caption directly above it."""
    lead: tuple[int, int] | None = None  # the introduction of its list, or the header of its table


@lru_cache(maxsize=16)
def blocks_of(text: str) -> tuple[PassageBlock, ...]:
    """Cut a text. Headings become paths of the blocks below them; tables of contents and indexes are skipped."""
    blocks = _Cutter(text).cut()
    titles = {title.casefold() for block in blocks for title in block.path}
    return tuple(block for block in blocks if not _lists_links(text, block, titles))


@lru_cache(maxsize=16)
def candidates_of(text: str) -> tuple[PassageBlock, ...]:
    """Return the candidates for passages: every block but listings, and short neighbours merged."""
    blocks = blocks_of(text)
    return (*(block for block in blocks if block.kind is not Kind.CODE), *_merged_blocks(blocks))


@dataclass
class _Cutter:
    """Cuts a text in one pass over its lines; `run` is the block being read."""

    text: str
    blocks: list[PassageBlock] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    label: str = ""
    lead: tuple[int, int] | None = None
    header: tuple[int, int] | None = None
    run: list[tuple[int, str]] = field(default_factory=list)
    kind: Kind = Kind.PROSE

    def cut(self) -> list[PassageBlock]:
        fence, offset = -1, 0
        for line in self.text.splitlines(keepends=True):
            start, plain = offset, line.rstrip()
            offset += len(line)
            match = LINE.match(plain)
            if fence >= 0:
                if match and match["fence"]:
                    self._add(Kind.CODE, fence, start + len(plain))
                    fence = -1
            elif match and match["fence"]:
                self._close()
                fence = start
            elif not plain:
                self._close()
                self.header = None
            elif match and match["level"]:
                self._close()
                self._head(len(match["level"]), match["title"].strip("# \t"))
            elif match and match["row"]:
                self._close()
                self._row(start, plain)
            elif match and match["item"]:
                self._close()
                self.kind, self.run = Kind.ITEM, [(start, plain)]
            else:
                self.run.append((start, plain))
        self._close()
        return self.blocks

    def _add(self, kind: Kind, start: int, end: int, lead: tuple[int, int] | None = None) -> None:
        path = tuple(title for _, title in self.headings)
        self.blocks.append(PassageBlock(kind, start, end, (*path, self.label) if self.label else path, lead))

    def _head(self, level: int, title: str) -> None:
        self.headings = [*(heading for heading in self.headings if heading[0] < level), (level, title)]
        self.label, self.lead = "", None

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
        """End the block being read: a paragraph, an item, or a line that labels what follows."""
        lines, kind = self.run, self.kind
        self.run, self.kind = [], Kind.PROSE
        if not lines:
            return
        start, end = lines[0][0], lines[-1][0] + len(lines[-1][1])
        if kind is Kind.ITEM:
            self._add(kind, start, end, self.lead)
            return
        if len(lines) == 1 and _is_label(lines[0][1]):
            self.label, self.lead = lines[0][1].strip(), None
            return
        if kind is Kind.PROSE and self._item_is_heading():
            self.label = self.text[self.blocks[-1].start : self.blocks.pop().end].strip()
        first = lines[0][1]
        is_wrapped = len(lines) > 1 and (len(first) >= MIN_WRAPPED_LENGTH or lines[1][1].lstrip()[:1].islower())
        if _is_label(first) and not is_wrapped:
            self.label = lines[0][1].strip()
        self._add(kind, start, end)
        self.lead = (start, end) if lines[-1][1].endswith(":") else None


def _is_label(line: str) -> bool:
    return len(line) <= MAX_LABEL_LENGTH and line[-1] not in ".!?:;," and not line.lstrip().startswith(("-", "<", "$"))


def _lists_links(text: str, block: PassageBlock, titles: set[str]) -> bool:
    """Return true for lines of an index or of a table of contents."""
    content = text[block.start : block.end]
    if "....." in content or ". . . ." in content:
        return True
    if block.kind is Kind.ITEM:
        return content.lstrip("-*+•.) \t0123456789").casefold() in titles
    lines = content.split("\n")
    if block.kind is not Kind.PROSE or len(lines) < MIN_INDEX_LINES:
        return False
    return 3 * sum(_is_label(line.rstrip()) for line in lines if line.strip()) > 2 * len(lines)


def _merged_blocks(blocks: tuple[PassageBlock, ...]) -> Iterator[PassageBlock]:
    """Yield short neighbouring blocks of a section merged into one, so that a list comes with its introduction."""
    for index, first in enumerate(blocks):
        start = first.lead[0] if first.lead else first.start
        last = index
        while (
            last + 1 < len(blocks)
            and blocks[last + 1].path[: len(first.path)] == first.path
            and blocks[last + 1].end - start <= MAX_MERGED_LENGTH
        ):
            last += 1
        if first.end - start <= MAX_MERGED_LENGTH and (last > index or start < first.start):
            yield replace(first, start=start, end=blocks[last].end, lead=None)
