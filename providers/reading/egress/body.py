"""Reading the body of a response within limits: bytes are counted as they are unpacked, never afterwards."""

import zlib
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import httpx2

from providers.errors import SourceUnreadable

PIECE_BYTES: Final = 65_536
RATIO_LIMIT: Final = 200
RATIO_FROM_BYTES: Final = 1_000_000
"""A compressed body may unpack to 200 times its size once it is larger than this."""
GZIP_OR_ZLIB: Final = 47
"""zlib's way to say: either header, largest window."""
GZIP_MARK: Final = b"\x1f\x8b"
MOST_MEMBERS: Final = 1_000
"""Of one gzip body: files that were packed one by one and put together."""
COMPRESSIONS: Final = frozenset(("gzip", "x-gzip", "deflate"))
NO_CODINGS: Final = frozenset(
    """identity none binary 7bit 8bit text ascii us-ascii utf-8 utf8 utf-16 iso-8859-1 windows-1251
    windows-1252""".split()
)
"""What servers write where no coding is, most often a character set."""


@dataclass(frozen=True)
class BodyLimits:
    """How much of a kind of document is read, and for how long."""

    most_bytes: int
    seconds: float


@dataclass(frozen=True)
class FetchPolicy:
    """What is wanted of a response."""

    accept: str
    check_type: Callable[[str | None], None] | None
    """Raises for a declared media type that is not wanted; None where it does not matter what the server declares."""
    kind_of: Callable[[str | None, bytes], str]
    """From the declared media type and the first bytes to the kind; raises if they do not agree."""
    opening_bytes: int
    limits_of: Callable[[str], BodyLimits]
    seconds: float
    """For everything, until the kind is known."""
    cut: bool = False
    """Whether a body that is too large is cut, rather than refused."""
    statuses: AbstractSet[int] = frozenset({200})
    """With which an answer is the document."""


class _Inflating:
    """Unpacks in small pieces, one gzip member after another, and knows where the packed content ends."""

    def __init__(self) -> None:
        self._unpacker = zlib.decompressobj(GZIP_OR_ZLIB)
        self._members = 1
        self._held = b""
        self.finished = False

    def decode(self, data: bytes) -> Iterator[bytes]:
        data, self._held = self._held + data, b""
        try:
            while data:
                if self._unpacker.eof and not self._begins_member(data):
                    return
                yield self._unpacker.decompress(data, PIECE_BYTES)
                data = self._unpacker.unconsumed_tail or self._unpacker.unused_data
        except zlib.error as error:
            raise SourceUnreadable("malformed", "the compressed content is damaged") from error

    def _begins_member(self, data: bytes) -> bool:
        """Whether another member begins; half a mark is held until the other half comes, all else is the end."""
        if data == GZIP_MARK[:1]:
            self._held = data
            return False
        self.finished = not data.startswith(GZIP_MARK) or self._members >= MOST_MEMBERS
        if not self.finished:
            self._unpacker = zlib.decompressobj(GZIP_OR_ZLIB)
            self._members += 1
        return not self.finished

    def check_end(self) -> None:
        if not self._unpacker.eof:
            raise SourceUnreadable("malformed", "the compressed content breaks off")


def _decoder(headers: httpx2.Headers) -> _Inflating | None:
    """What unpacks a body of one layer at most, None for a plain one. Raises `SourceUnreadable` wrong_type."""
    layers = [layer.strip().lower() for layer in headers.get_list("content-encoding", split_commas=True)]
    match [layer for layer in layers if layer and layer not in NO_CODINGS]:
        case []:
            return None
        case [layer] if layer in COMPRESSIONS:
            return _Inflating()
        case _:
            raise SourceUnreadable("wrong_type", "the content is compressed in a way that was not asked for")


class BodyReader:
    """Reads one body; `kind` is known once its opening has been seen."""

    def __init__(self, policy: FetchPolicy, media_type: str | None, found: Callable[[BodyLimits], None]) -> None:
        self._policy = policy
        self._media_type = media_type
        self._found = found
        self._body = bytearray()
        self._limits: BodyLimits | None = None
        self.kind = ""

    async def read(self, response: httpx2.Response) -> bytes:
        """The unpacked body. Raises `SourceUnreadable` too_large, wrong_type, malformed, empty."""
        decoder, received = _decoder(response.headers), 0
        async for data in response.aiter_raw():
            received += len(data)
            for piece in decoder.decode(data) if decoder else [data]:
                self._body += piece
                if self._full(len(self._body), received):
                    return bytes(self._body[: self._most_bytes()])
            if self._full(received, received):
                return bytes(self._body)
            if decoder and decoder.finished:
                break
        if decoder:
            decoder.check_end()
        if not self._limits:
            self._judge()
        return bytes(self._body)

    def _full(self, size: int, received: int) -> bool:
        """Whether enough has been read. Raises `SourceUnreadable` if it is too much."""
        if not self._limits and len(self._body) >= self._policy.opening_bytes:
            self._judge()
        if size > RATIO_FROM_BYTES and size > RATIO_LIMIT * received:
            raise SourceUnreadable("too_large", f"the content unpacks to more than {RATIO_LIMIT} times its size")
        if size <= self._most_bytes():
            return False
        if not self._policy.cut:
            raise SourceUnreadable("too_large", f"larger than {self._most_bytes()} bytes")
        return True

    def _judge(self) -> None:
        self.kind = self._policy.kind_of(self._media_type, bytes(self._body[: self._policy.opening_bytes]))
        self._limits = self._policy.limits_of(self.kind)
        self._found(self._limits)

    def _most_bytes(self) -> int:
        return self._limits.most_bytes if self._limits else PIECE_BYTES + self._policy.opening_bytes
