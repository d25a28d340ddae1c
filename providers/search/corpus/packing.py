"""Stems of passages, and text, as an index keeps them: packed some kilobytes together, so that few are read at once."""

import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

PACK_CHARACTERS: Final = 4_000
"""Of stems in one pack. Four times as many take a tenth less room, and three times as long to unpack."""
PIECE_CHARACTERS: Final = 16_000
"""Of text in one piece. Whole documents take a little less room; to show a line of one all of it would be unpacked."""


class PassageStems(NamedTuple):
    """The stems of a passage in the order of its words, separated by spaces: just what was put into the index."""

    body: str
    heading: str
    title: str
    """Of its document."""

    def distinct(self) -> set[str]:
        """Each stem once."""
        return set(" ".join(self).split())


def pack(passages: Iterable[PassageStems]) -> Iterator[tuple[int, bytes]]:
    """Packs of neighbouring passages, each after the number of its first one."""
    first, size, lines = 0, 0, list[str]()
    for number, passage in enumerate(passages):
        if size >= PACK_CHARACTERS:
            yield first, pack_lines(lines)
            first, size, lines = number, 0, []
        lines.append("\t".join(passage))
        size += len(lines[-1])
    if lines:
        yield first, pack_lines(lines)


def stems_of(line: str) -> PassageStems:
    """The passage of a line of a pack."""
    return PassageStems(*line.split("\t"))


def pack_text(text: str) -> list[bytes]:
    """A text in pieces of the same number of characters, the last one shorter."""
    starts = range(0, len(text), PIECE_CHARACTERS)
    return [zlib.compress(text[start : start + PIECE_CHARACTERS].encode("utf-8"), 6) for start in starts]


def unpack_text(pieces: Iterable[bytes]) -> str:
    """The text of neighbouring pieces."""
    return "".join(zlib.decompress(piece).decode("utf-8") for piece in pieces)


def pack_lines(lines: Iterable[str]) -> bytes:
    """Lines of stems as bytes."""
    return zlib.compress("\n".join(lines).encode("utf-8"), 6)


def unpack_lines(packed: bytes) -> list[str]:
    """The lines that were packed; of none it is one empty line."""
    return zlib.decompress(packed).decode("utf-8").split("\n")
