"""Stems of passages, and text, as an index keeps them: packed some kilobytes together, so that a few are read at a time."""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

PACK_CHARACTERS: Final = 4_000
"""Of stems in one pack. Four times as many take a tenth less room, and three times as long to unpack."""
PIECE_CHARACTERS: Final = 16_000
"""Of text in one piece. Whole documents take a little less room; to show a line of one all of it would be unpacked."""


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


def pack_text(text: str) -> list[bytes]:
    """A text in pieces of the same number of characters, the last one shorter."""
    starts = range(0, len(text), PIECE_CHARACTERS)
    return [zlib.compress(text[start : start + PIECE_CHARACTERS].encode("utf-8"), 6) for start in starts]


def unpack_text(pieces: Iterable[bytes]) -> str:
    """The text of neighbouring pieces."""
    return "".join(zlib.decompress(piece).decode("utf-8") for piece in pieces)


def pack_lines(lines: Sequence[str]) -> bytes:
    """Lines of stems as bytes."""
    return zlib.compress("\n".join(lines).encode("utf-8"), 6)


def unpack_lines(packed: bytes) -> list[str]:
    """The lines that were packed; of none it is one empty line."""
    return zlib.decompress(packed).decode("utf-8").split("\n")
