"""The stems of passages as an index keeps them: some kilobytes together, packed, as words, headings and title recur."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

PACK_CHARACTERS: Final = 16_000
"""Of stems in one pack: a quarter of their size, and 50 µs to unpack. Half as many fill a page badly: a third more room."""


@dataclass(frozen=True, slots=True)
class PassageStems:
    """The stems of a passage in the order of its words, separated by spaces: just what was put into the index."""

    body: str
    heading: str
    title: str
    """Of its document."""

    def distinct(self) -> set[str]:
        """Each stem once."""
        return {*self.body.split(), *self.heading.split(), *self.title.split()}


def pack(passages: Sequence[PassageStems]) -> Iterator[tuple[int, bytes]]:
    """Packs of neighbouring passages, each after the number of its first one."""
    first, size, lines = 0, 0, list[str]()
    for number, passage in enumerate(passages):
        if size >= PACK_CHARACTERS:
            yield first, pack_lines(lines)
            first, size, lines = number, 0, []
        fields = (passage.body, passage.heading, passage.title)
        lines.extend(fields)
        size += sum(map(len, fields))
    if lines:
        yield first, pack_lines(lines)


def unpack(packed: bytes) -> list[PassageStems]:
    """The passages of a pack."""
    lines = unpack_lines(packed)
    return [PassageStems(*fields) for fields in zip(lines[::3], lines[1::3], lines[2::3], strict=True)]


def pack_lines(lines: Sequence[str]) -> bytes:
    """Lines of stems as bytes."""
    return zlib.compress("\n".join(lines).encode("utf-8"), 6)


def unpack_lines(packed: bytes) -> list[str]:
    """The lines that were packed; of none it is one empty line."""
    return zlib.decompress(packed).decode("utf-8").split("\n")
