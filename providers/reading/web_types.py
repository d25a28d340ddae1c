"""What kind of document a web server sends: what it declares, checked against how the bytes begin."""

import re
from dataclasses import dataclass
from typing import Final

from providers.errors import SourceUnreadable
from providers.reading.sniffing import BINARY_MAGICS, HTML_OPENING, OLE_MAGIC

HTML, TEXT, MARKDOWN, PDF = "text/html", "text/plain", "text/markdown", "application/pdf"
JSON, XML = "application/json", "application/xml"
PERHAPS_PDF: Final = "perhaps application/pdf"
ACCEPTED: Final = {
    HTML: HTML,
    "application/xhtml+xml": HTML,
    TEXT: TEXT,
    MARKDOWN: MARKDOWN,
    "text/x-markdown": MARKDOWN,
    JSON: JSON,
    "application/ld+json": JSON,
    XML: XML,
    "text/xml": XML,
    "application/rss+xml": XML,
    "application/atom+xml": XML,
    "application/rdf+xml": XML,
    PDF: PDF,
    "application/x-pdf": PDF,
}
"""Declared type → the kind as which it is read."""
MISMATCH: Final = "the content is not of the type that the server states"
OPENING_BYTES: Final = 1_024
NO_TEXT: Final = (*BINARY_MAGICS, OLE_MAGIC, b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b")
MEDIA_TYPE: Final = re.compile(
    r"([a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+)\s*(?:;.*|\scharset\s*=.*)?", re.IGNORECASE | re.DOTALL
)
"""Some servers forget the semicolon before the character set."""
LISTED: Final = re.compile(r'(?:[^,"]++|"[^"]*+"?)++')
CHARSET: Final = re.compile(r"[;\s]charset\s*=\s*\"?([a-z0-9_.:-]{1,40})\"?\s*(?:;|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Declared:
    """A `Content-Type`: null where there is none."""

    media_type: str | None = None
    charset: str | None = None


def declared_type(header: str | None) -> Declared:
    """Read a `Content-Type`; some servers send the same type twice, and a character set with one of them.

    Raises `SourceUnreadable` wrong_type if there is one that cannot be understood, or several.
    """
    stated = [part.strip() for part in LISTED.findall(header or "") if part.strip()]
    if not stated:
        return Declared()
    found = [MEDIA_TYPE.fullmatch(part) for part in stated]
    types = {one[1].lower() for one in found if one is not None}
    if found[0] is None or len(types) != 1:
        raise SourceUnreadable("wrong_type", "the server states no clear type")
    charsets = (charset[1].lower() for charset in map(CHARSET.search, stated) if charset is not None)
    return Declared(types.pop(), next(charsets, None))


def check_type(declared: str | None) -> None:
    """Refuse a declared type that is not read. Raises `SourceUnreadable` wrong_type."""
    if declared is not None and declared not in ACCEPTED:
        raise SourceUnreadable("wrong_type", "a type that is not read")


def provisional_kind(declared: str | None, opening: bytes) -> str:
    """The kind that the server states, empty or `PERHAPS_PDF` if it states none. Raises `SourceUnreadable` wrong_type.

    This runs where pages are fetched, so nothing is looked for in the words of a page but one mark.
    """
    check_type(declared)
    kind = "" if declared is None else ACCEPTED[declared]
    may_be_pdf = b"%PDF-" in opening
    if (kind == PDF and not may_be_pdf) or (kind != PDF and opening.startswith(NO_TEXT)):
        raise SourceUnreadable("wrong_type", MISMATCH)
    return PERHAPS_PDF if may_be_pdf and not kind else kind


def judged(stated: str, opening: bytes) -> str:
    """The kind as which a body is read, by its provisional kind and its first KiB: for a child process.

    Raises `SourceUnreadable` wrong_type.
    """
    kind = "" if stated == PERHAPS_PDF else stated
    is_html = HTML_OPENING.match(opening) is not None
    is_pdf = b"%PDF-" in opening and not is_html
    if not kind:
        kind = PDF if is_pdf else HTML if is_html else TEXT
    if kind == XML and is_html:
        kind = HTML
    if (kind == PDF) != is_pdf or (kind != PDF and opening.startswith(NO_TEXT)):
        raise SourceUnreadable("wrong_type", MISMATCH)
    return kind
