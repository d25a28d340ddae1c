"""What kind of document a web server sends: what it declares, checked against how the bytes begin."""

import codecs
import re
from dataclasses import dataclass
from typing import Final

from providers.errors import SourceUnreadable
from providers.reading.sniffing import BINARY_MAGICS, HTML_OPENING, OLE_MAGIC

HTML, TEXT, MARKDOWN, PDF = "text/html", "text/plain", "text/markdown", "application/pdf"
JSON, XML = "application/json", "application/xml"
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
OPENING_BYTES: Final = 1_024
NO_TEXT: Final = (*BINARY_MAGICS, OLE_MAGIC, b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b")
MEDIA_TYPE: Final = re.compile(r"\s*([a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+)\s*(?:;.*)?", re.IGNORECASE | re.DOTALL)
CHARSET: Final = re.compile(r";\s*charset\s*=\s*\"?([a-z0-9_.:-]{1,40})\"?\s*(?:;|$)", re.IGNORECASE)
TEXT_CODECS: Final = re.compile(
    r"cp(125[0-8]|437|85[0-9]|866|874|932|949|950)|iso8859-[0-9]+|koi8-[ru]|mac-[a-z]+|big5(hkscs)?|gb2312|gbk|gb18030"
    r"|hz|euc_(jp|kr|jis_2004|jisx0213)|shift_jis(_2004|x0213)?|iso2022_(jp|kr)(_[0-9a-z]+)?|tis-620"
)
"""Codecs that stand for a character set; Python knows others that are no text, or slow on purpose-made input."""
AS_BROWSERS_DO: Final = {"iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}


@dataclass(frozen=True)
class Declared:
    """A `Content-Type`: null where there is none."""

    media_type: str | None = None
    charset: str | None = None


def declared_type(header: str | None) -> Declared:
    """Read a `Content-Type`. Raises `SourceUnreadable` wrong_type if there is one that cannot be understood."""
    if header is None or not header.strip():
        return Declared()
    found = MEDIA_TYPE.fullmatch(header)
    if found is None:
        raise SourceUnreadable("wrong_type", "the server states no clear type")
    charset = CHARSET.search(header)
    return Declared(found[1].lower(), None if charset is None else charset[1].lower())


def check_type(declared: str | None) -> None:
    """Refuse a declared type that is not read. Raises `SourceUnreadable` wrong_type."""
    if declared is not None and declared not in ACCEPTED:
        raise SourceUnreadable("wrong_type", "a type that is not read")


def judge(declared: str | None, opening: bytes) -> str:
    """The kind as which a body is read, by its type and its first KiB. Raises `SourceUnreadable` wrong_type."""
    check_type(declared)
    kind = None if declared is None else ACCEPTED[declared]
    is_html = HTML_OPENING.match(opening) is not None
    is_pdf = b"%PDF-" in opening and not is_html
    if kind is None:
        kind = PDF if is_pdf else HTML if is_html else TEXT
    if kind == XML and is_html:
        kind = HTML
    if (kind == PDF) != is_pdf or (kind != PDF and opening.startswith(NO_TEXT)):
        raise SourceUnreadable("wrong_type", "the content is not of the type that the server states")
    return kind


def as_utf8(body: bytes, charset: str | None) -> bytes:
    """A text in UTF-8, where the server names another character set; a mark in the body itself is stronger.

    Without a usable name the bytes stay as they are: extraction then looks at what the document says of itself.
    """
    if charset is None or body.startswith((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body
    try:
        name = codecs.lookup(charset).name
    except LookupError:
        return body
    if name in {"utf-16", "utf-16-le", "utf-16-be"}:
        return body.decode("utf-16-be" if name == "utf-16-be" else "utf-16-le", "replace").encode("utf-8", "replace")
    if not TEXT_CODECS.fullmatch(name):
        return body
    return body.decode(AS_BROWSERS_DO.get(name, name), "replace").encode("utf-8", "replace")
