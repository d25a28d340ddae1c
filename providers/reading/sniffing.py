"""What kind of document bytes are: of a file by its bytes and its name, of the web by what the server declares too."""

import re
import zipfile
from dataclasses import dataclass
from enum import StrEnum
from io import BytesIO
from pathlib import PurePosixPath
from typing import Final

from providers.errors import SourceUnreadable
from providers.reading.charsets import byte_order_mark


class DocumentKind(StrEnum):
    """The kinds that can be read; the values are media types."""

    HTML = "text/html"
    MARKDOWN = "text/markdown"
    TEXT = "text/plain"
    JSON = "application/json"
    XML = "application/xml"
    PDF = "application/pdf"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    GZIP = "application/gzip"


HTML, TEXT, MARKDOWN = DocumentKind.HTML, DocumentKind.TEXT, DocumentKind.MARKDOWN
PDF, JSON, XML = DocumentKind.PDF, DocumentKind.JSON, DocumentKind.XML
PERHAPS_PDF: Final = "perhaps application/pdf"
HTML_NAMES: Final = {".html", ".htm", ".xhtml", ".xht", ".shtml"}
MARKDOWN_NAMES: Final = {".md", ".markdown", ".mdown", ".mkd", ".mdx"}
OTHER_TEXT_NAMES: Final = frozenset(
    """.css .js .mjs .ts .tsx .jsx .json .jsonl .xml .xsl .xsd .svg .yaml .yml .toml .ini .cfg .csv .tsv .sql .py .pyi
    .c .h .cc .cpp .hpp .cs .java .go .rs .rb .pl .pm .sh .bat .ps1 .lua .r .m .swift .kt .php .map .lock .ics .vcf
    .eml .mbox .bib .tex .rtf .ps .po .pot .log .diff .patch .pikchr .dtd .sgml .ipynb .proto .graphql""".split()
)
"""Text that is no document."""
BINARY_MAGICS: Final = (
    b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"\0\0\x01\0", b"RIFF", b"\x7fELF", b"MZ", b"Rar!",
    b"7z\xbc\xaf", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"SQLite format 3\0", b"OggS", b"ID3", b"fLaC",
    b"\xca\xfe\xba\xbe", b"\xcf\xfa\xed\xfe", b"\0asm", b"wOFF", b"wOF2", b"\0\x01\0\0\0", b"OTTO",
)  # fmt: skip
OLE_MAGIC: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
HTML_OPENING: Final = re.compile(
    rb"(?:\s++|\xef\xbb\xbf|<\?xml[^>]{0,200}+>|<!--.{0,500}?-->)*+(?:<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>])",
    re.IGNORECASE | re.DOTALL,
)
OPENING_WINDOW: Final = 4_096
PDF_WINDOW: Final = 1_024
PRINTABLE_CONTROLS: Final = bytes([7, 8, 9, 10, 12, 13, 27])
CONTROL_BYTES: Final = bytes(set(range(32)) - set(PRINTABLE_CONTROLS))
ACCEPTED: Final[dict[str, DocumentKind]] = {
    **{str(kind): kind for kind in (HTML, TEXT, MARKDOWN, PDF, JSON, XML)},
    "application/xhtml+xml": HTML, "text/x-markdown": MARKDOWN, "application/ld+json": JSON, "text/xml": XML,
    "application/rss+xml": XML, "application/atom+xml": XML, "application/rdf+xml": XML, "application/x-pdf": PDF,
}  # fmt: skip
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


def sniff(raw: bytes, name: str) -> DocumentKind:
    """The kind of a document.

    Raises `SourceUnreadable`: empty, binary (no text at all), encrypted, wrong_type (a format that is not read).
    """
    if not raw:
        raise SourceUnreadable("empty", "the file is empty")
    if b"%PDF-" in raw[:PDF_WINDOW] and not HTML_OPENING.match(raw[:OPENING_WINDOW]):
        return PDF
    if raw.startswith(b"\x1f\x8b"):
        return DocumentKind.GZIP
    if raw.startswith(b"PK\x03\x04"):
        return _sniff_zip(raw)
    if raw.startswith(OLE_MAGIC):
        if "EncryptedPackage".encode("utf-16-le") in raw:
            raise SourceUnreadable("encrypted", "the document is protected by a password")
        raise SourceUnreadable("wrong_type", "an old Office format that is not read")
    if raw.startswith(BINARY_MAGICS) or _looks_binary(raw):
        raise SourceUnreadable("binary", "the file holds no text")
    return _sniff_text(raw, name)


def _sniff_zip(raw: bytes) -> DocumentKind:
    try:
        names = set(zipfile.ZipFile(BytesIO(raw)).namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise SourceUnreadable("malformed", "a damaged archive") from error
    if "word/document.xml" in names:
        return DocumentKind.DOCX
    raise SourceUnreadable("wrong_type", "an archive, or an Office format that is not read")


def _sniff_text(raw: bytes, name: str) -> DocumentKind:
    suffix = PurePosixPath(name.lower()).suffix
    if suffix in HTML_NAMES or HTML_OPENING.match(raw[:OPENING_WINDOW]):
        return HTML
    if suffix in MARKDOWN_NAMES:
        return MARKDOWN
    if suffix in OTHER_TEXT_NAMES:
        raise SourceUnreadable("wrong_type", f"files named {suffix} are not read as documents")
    return TEXT


def _looks_binary(raw: bytes) -> bool:
    if byte_order_mark(raw) is not None:
        return False
    window = raw[:OPENING_WINDOW]
    controls = len(window) - len(window.translate(None, CONTROL_BYTES))
    return b"\0" in raw[:65_536] or controls > len(window) // 50


@dataclass(frozen=True)
class Declared:
    """A `Content-Type`: None where there is none."""

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


def kind_of_body(stated: str, opening: bytes) -> DocumentKind:
    """The kind as which a body is read, by its provisional kind and its first KiB: for a child process.

    Raises `SourceUnreadable` wrong_type.
    """
    is_html = HTML_OPENING.match(opening) is not None
    is_pdf = b"%PDF-" in opening and not is_html
    if stated in {"", PERHAPS_PDF}:
        kind = PDF if is_pdf else HTML if is_html else TEXT
    else:
        kind = HTML if stated == XML and is_html else DocumentKind(stated)
    if (kind == PDF) != is_pdf or (kind != PDF and opening.startswith(NO_TEXT)):
        raise SourceUnreadable("wrong_type", MISMATCH)
    return kind
