"""What a file is by its bytes; its name only decides between kinds of text."""

import re
import zipfile
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
    PDF = "application/pdf"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    GZIP = "application/gzip"


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


def sniff(raw: bytes, name: str) -> DocumentKind:
    """The kind of a document.

    Raises `SourceUnreadable`: empty, binary (no text at all), encrypted, wrong_type (a format that is not read).
    """
    if not raw:
        raise SourceUnreadable("empty", "the file is empty")
    if b"%PDF-" in raw[:PDF_WINDOW] and not HTML_OPENING.match(raw[:OPENING_WINDOW]):
        return DocumentKind.PDF
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
        return DocumentKind.HTML
    if suffix in MARKDOWN_NAMES:
        return DocumentKind.MARKDOWN
    if suffix in OTHER_TEXT_NAMES:
        raise SourceUnreadable("wrong_type", f"files named {suffix} are not read as documents")
    return DocumentKind.TEXT


def _looks_binary(raw: bytes) -> bool:
    if byte_order_mark(raw) is not None:
        return False
    window = raw[:OPENING_WINDOW]
    controls = len(window) - len(window.translate(None, CONTROL_BYTES))
    return b"\0" in raw[:65_536] or controls > len(window) // 50
