"""From bytes to characters: byte order mark, declaration, UTF-8, then a guess."""

import codecs
import re
from typing import Final

from charset_normalizer import from_bytes

BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
DECLARED: Final = re.compile(
    rb"""<(?:meta|\?xml)[^>]{0,300}?(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.IGNORECASE
)
DECLARATION_WINDOW: Final = 2_048
GUESS_WINDOW: Final = 65_536
TEXT_ENCODINGS: Final = {"latin-1": "cp1252", "iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030"}
"""What browsers make of these names."""


def byte_order_mark(raw: bytes) -> tuple[bytes, str] | None:
    """The mark at the start and the encoding that it stands for."""
    return next((mark for mark in BYTE_ORDER_MARKS if raw.startswith(mark[0])), None)


def declared_encoding(raw: bytes) -> str | None:
    """The encoding that an HTML page states in its first bytes, if Python knows it."""
    found = DECLARED.search(raw[:DECLARATION_WINDOW])
    if found is None:
        return None
    try:
        name = codecs.lookup(found.group(1).decode("ascii")).name
        b"".decode(name)
    except LookupError:
        return None
    else:
        # The declaration was readable as ASCII, so it cannot be of the 16-bit kind that it names.
        return "utf-8" if name.startswith(("utf-16", "utf-32")) else TEXT_ENCODINGS.get(name, name)


def decode(raw: bytes, *, markup: bool = False) -> str:
    """The characters of a text; what cannot be decoded becomes U+FFFD."""
    mark = byte_order_mark(raw)
    if mark is not None:
        return raw[len(mark[0]) :].decode(mark[1], "replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    declared = declared_encoding(raw) if markup else None
    if declared is not None:
        return raw.decode(declared, "replace")
    guess = from_bytes(raw[:GUESS_WINDOW]).best()
    return raw.decode(guess.encoding if guess is not None else "cp1252", "replace")
