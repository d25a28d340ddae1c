"""The canonical text and its builder: blocks with exact offsets."""

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from contracts.vocabulary import PageAccess
from providers.reading.cleaning import one_line

BACKTICKS: Final = re.compile("`+")
TEXT_LIMIT: Final = 2_000_000
"""Characters of text that are kept of one document; whole blocks beyond it are left out, save the very first."""


class BlockKind(StrEnum):
    """What a block of a document is."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    ITEM = "item"
    TERM = "term"
    ROW = "row"
    CODE = "code"


TIGHT: Final = {BlockKind.ITEM, BlockKind.ROW}
"""Kinds that stand on consecutive lines with their like."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of the text: `text[start:end]` is its words, without the marks around them."""

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    """1 to 6 for headings, else 0."""
    link_share: float = 0.0
    """Share of its characters that are link text."""
    term: int | None = None
    """Start of the term that it explains; None outside definition lists."""


@dataclass(frozen=True)
class Extraction:
    """What a document says, and what it says about itself."""

    title: str
    text: str
    media_type: str
    blocks: list[Block] = field(default_factory=list)
    language: str | None = None
    authors: list[str] = field(default_factory=list)
    publisher: str | None = None
    published_at: str | None = None
    pages: list[int] = field(default_factory=list)
    """Offset at which each page begins; empty where a document has no pages."""
    cut: bool = False
    """Whether text was left out because there was too much."""
    access: PageAccess = PageAccess.OPEN
    warnings: list[str] = field(default_factory=list)
    """What was left out, cut or taken from elsewhere: one short line each."""


class TextBuilder:
    """Puts blocks one after another and keeps their offsets."""

    def __init__(self, limit: int = TEXT_LIMIT) -> None:
        self._parts: list[str] = []
        self._length = 0
        self.limit = limit
        self.blocks: list[Block] = []
        self.term: int | None = None
        """The term that the next blocks explain."""
        self.cut = False

    @property
    def length(self) -> int:
        """Characters so far."""
        return self._length

    def add(
        self,
        kind: BlockKind,
        words: str,
        *,
        before: str = "",
        after: str = "",
        level: int = 0,
        link_share: float = 0.0,
        close: bool = False,
    ) -> None:
        """Append a block with marks around its words; `close` puts it on the very next line."""
        if self._length + len(words) > self.limit:
            self.cut = True
            if self.blocks:
                return
            words = words[: self.limit].rpartition(" ")[0] or words[: self.limit]
        last = self.blocks[-1].kind if self.blocks else None
        if last is not None:
            self._append("\n" if close or (kind in TIGHT and kind is last) else "\n\n")
        self._append(before)
        self.blocks.append(Block(kind, self._length, self._length + len(words), level, link_share, self.term))
        self._append(words)
        self._append(after)

    def extend(self, found: Extraction) -> None:
        """Append the text of another document with its blocks, all or nothing."""
        if not found.blocks:
            return
        if self._length + len(found.text) > self.limit:
            self.cut = True
            return
        self._append("\n\n" if self.blocks else "")
        shift = self._length
        self.blocks += [
            replace(
                block,
                start=block.start + shift,
                end=block.end + shift,
                term=None if block.term is None else block.term + shift,
            )
            for block in found.blocks
        ]
        self._append(found.text)
        self.cut = self.cut or found.cut

    def mark(self, line: str) -> None:
        """Append a line that belongs to no block, such as the rule below a table's header."""
        self._append("\n" + line)

    def text(self) -> str:
        """The text so far."""
        return "".join(self._parts)

    def first(self) -> str:
        """The words of the first block, on one line."""
        return one_line(self.text()[self.blocks[0].start : self.blocks[0].end])

    def finish(self, media_type: str, left_out: str = "", **stated: Any) -> Extraction:
        """What was written, with what the document states; `left_out` is the warning for one that was cut."""
        warnings = [left_out] if self.cut and left_out else []
        known = {"title": "", **stated, "warnings": [*warnings, *stated.get("warnings", ())]}
        return Extraction(text=self.text(), media_type=media_type, blocks=self.blocks, cut=self.cut, **known)

    def _append(self, part: str) -> None:
        if part:
            self._parts.append(part)
            self._length += len(part)


def fence_for(code: str) -> str:
    """A fence that the code does not contain."""
    return "`" * max(3, 1 + max(map(len, BACKTICKS.findall(code)), default=0))


def add_code(builder: TextBuilder, code: str) -> None:
    """Append a fenced block; its indentation is kept."""
    kept = code.strip("\n").rstrip()
    if kept.strip():
        fence = fence_for(kept)
        builder.add(BlockKind.CODE, kept, before=fence + "\n", after="\n" + fence)
