"""What kind of document bytes are: of a file by its bytes and its name, of the web by what the server declares too."""

import re
import zipfile
import zlib
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
    CSV = "text/csv"
    LOG = "text/x-log"
    NOTEBOOK = "application/x-ipynb+json"
    MAIL = "message/rfc822"
    EPUB = "application/epub+zip"
    ODT = "application/vnd.oasis.opendocument.text"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    GZIP = "application/gzip"


HTML, TEXT, MARKDOWN = DocumentKind.HTML, DocumentKind.TEXT, DocumentKind.MARKDOWN
PDF, JSON, XML = DocumentKind.PDF, DocumentKind.JSON, DocumentKind.XML
CSV, LOG, NOTEBOOK, MAIL = DocumentKind.CSV, DocumentKind.LOG, DocumentKind.NOTEBOOK, DocumentKind.MAIL
DOCX, XLSX, PPTX = DocumentKind.DOCX, DocumentKind.XLSX, DocumentKind.PPTX
ARCHIVES: Final = frozenset((DocumentKind.EPUB, DocumentKind.ODT, DOCX, XLSX, PPTX))
"""Kinds that are archives: which one it is, the archive tells, whatever a server or a name says."""
PERHAPS_PDF: Final = "perhaps application/pdf"
HTML_NAMES: Final = {".html", ".htm", ".xhtml", ".xht", ".shtml"}
MARKDOWN_NAMES: Final = {".md", ".markdown", ".mdown", ".mkd", ".mdx"}
NAMED: Final = {".csv": CSV, ".tsv": CSV, ".log": LOG}
"""Kinds of text that look like others: here the name decides."""
OTHER_TEXT_NAMES: Final = frozenset(
    """.css .js .mjs .ts .tsx .jsx .json .jsonl .xml .xsl .xsd .svg .yaml .yml .toml .ini .cfg .sql .py .pyi .ipynb
    .c .h .cc .cpp .hpp .cs .java .go .rs .rb .pl .pm .sh .bat .ps1 .lua .r .m .swift .kt .php .map .lock .ics .vcf
    .mbox .bib .tex .ps .po .pot .diff .patch .pikchr .dtd .sgml .proto .graphql""".split()
)
"""Text that is no document."""
DOCUMENT_NAMES: Final = frozenset(
    """.html .htm .xhtml .md .markdown .txt .text .rst .adoc .pdf .doc .docx .odt .rtf .xls .xlsx .xlsb .ods .csv .tsv
    .ppt .pptx .odp .epub .eml .msg .log .gz""".split()
)
"""A file of such a name is meant as a document, whatever is in it."""
OTHER_NAMES: Final = OTHER_TEXT_NAMES | frozenset(
    """.png .jpg .jpeg .gif .webp .ico .bmp .tif .tiff .mp3 .mp4 .wav .ogg .webm .mov .woff .woff2 .ttf .otf .eot .zip
    .tar .bz2 .xz .7z .so .o .a .dll .exe .pyc .class .jar .db .sqlite .bin .inv .idx""".split()
)
"""Files of such names were never meant as documents."""
NOT_READ: Final = {
    ".rtf": "a text in RTF is not read: save it as .docx",
    "application/vnd.oasis.opendocument.spreadsheet": "an OpenDocument sheet is not read: save it as .xlsx",
    "application/vnd.oasis.opendocument.presentation": "an OpenDocument presentation is not read: save it as .pptx",
    "xl/workbook.bin": "a binary workbook (.xlsb) is not read: save it as .xlsx",
    "WordDocument": "an old Word document (.doc) is not read: save it as .docx",
    "Workbook": "an old workbook (.xls) is not read: save it as .xlsx",
    "Book": "an old workbook (.xls) is not read: save it as .xlsx",
    "PowerPoint Document": "an old presentation (.ppt) is not read: save it as .pptx",
    "__properties_version1.0": "a message of Outlook (.msg) is not read: save it as .eml",
}
"""The mark of a format → what to do about it: a suffix, a media type, a part of an archive, a stream of a file."""
OPENING_OF_ARCHIVE: Final = b"PK\x03\x04"
HEADER: Final = re.compile(
    rb"(?:from|to|cc|subject|date|received|return-path|reply-to|delivered-to|message-id|mime-version|content-type"
    rb"|dkim-signature|authentication-results|x-[a-z-]{1,40})[ \t]*:[ \t]",
    re.IGNORECASE,
)
"""How a mail begins."""
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
    **{str(kind): kind for kind in DocumentKind if kind not in {LOG, DocumentKind.GZIP}},
    "application/xhtml+xml": HTML, "text/x-markdown": MARKDOWN, "application/ld+json": JSON, "text/xml": XML,
    "application/rss+xml": XML, "application/atom+xml": XML, "application/rdf+xml": XML, "application/x-pdf": PDF,
    "text/tab-separated-values": CSV,
}  # fmt: skip
"""Declared type → the kind as which it is read."""
MISMATCH: Final = "the content is not of the type that the server states"
OPENING_BYTES: Final = 1_024
NO_TEXT: Final = (*BINARY_MAGICS, OLE_MAGIC, OPENING_OF_ARCHIVE, b"PK\x05\x06", b"\x1f\x8b")
MEDIA_TYPE: Final = re.compile(
    r"([a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+)\s*(?:;.*|\scharset\s*=.*)?", re.IGNORECASE | re.DOTALL
)
"""Some servers forget the semicolon before the character set."""
LISTED: Final = re.compile(r'(?:[^,"]++|"[^"]*+"?)++')
CHARSET: Final = re.compile(r"[;\s]charset\s*=\s*\"?([a-z0-9_.:-]{1,40})\"?\s*(?:;|$)", re.IGNORECASE)


def is_meant_as_document(name: str, kind: str) -> bool:
    """Whether a file that could not be read, for a reason of this kind, could have been a document at all."""
    suffix = PurePosixPath(name.lower()).suffix
    if kind == "binary":
        return suffix in DOCUMENT_NAMES
    return kind == "secret" or suffix not in OTHER_NAMES


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
    if raw.startswith(OPENING_OF_ARCHIVE):
        return _sniff_archive(raw)
    if raw.startswith(OLE_MAGIC):
        raise _old_format(raw)
    if raw.startswith(BINARY_MAGICS) or _looks_binary(raw):
        raise SourceUnreadable("binary", "the file holds no text")
    return _sniff_text(raw, name)


def _sniff_archive(raw: bytes) -> DocumentKind:
    try:
        archive = zipfile.ZipFile(BytesIO(raw))
        names = frozenset(archive.namelist())
        with archive.open("mimetype") if "mimetype" in names else BytesIO() as stated:
            media_type = stated.read(100).decode("ascii", "replace").strip()
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
        raise SourceUnreadable("malformed", "a damaged archive") from error
    for part, kind in (("word/document.xml", DOCX), ("xl/workbook.xml", XLSX), ("ppt/presentation.xml", PPTX)):
        if part in names:
            return kind
    for kind in (DocumentKind.EPUB, DocumentKind.ODT):
        if media_type == kind:
            return kind
    mark = next((mark for mark in NOT_READ if mark in names or mark == media_type), "")
    raise SourceUnreadable("wrong_type", NOT_READ.get(mark, "an archive, or a format of documents that is not read"))


def _old_format(raw: bytes) -> SourceUnreadable:
    """Why a file of the format that Office once had is not read, and what to do."""
    if "EncryptedPackage".encode("utf-16-le") in raw:
        return SourceUnreadable("encrypted", "the document is protected by a password")
    marks = (mark for mark in NOT_READ if f"{mark}\0".encode("utf-16-le") in raw)
    return SourceUnreadable("wrong_type", NOT_READ.get(next(marks, ""), "an old Office format that is not read"))


def _sniff_text(raw: bytes, name: str) -> DocumentKind:
    suffix = PurePosixPath(name.lower()).suffix
    if suffix in HTML_NAMES or HTML_OPENING.match(raw[:OPENING_WINDOW]):
        return HTML
    if suffix in MARKDOWN_NAMES:
        return MARKDOWN
    if _is_notebook(raw):
        return NOTEBOOK
    if suffix == ".eml":
        return MAIL if HEADER.match(raw) else TEXT
    if suffix in OTHER_TEXT_NAMES or suffix in NOT_READ:
        raise SourceUnreadable("wrong_type", NOT_READ.get(suffix, f"files named {suffix} are not read as documents"))
    return NAMED.get(suffix, TEXT)


def _is_notebook(raw: bytes) -> bool:
    """Whether a text is a notebook of Jupyter, whatever it is called."""
    return raw.lstrip()[:1] == b"{" and b'"nbformat"' in raw


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
    packed = opening.startswith(OPENING_OF_ARCHIVE)
    kind = (str(DOCX) if packed else "") if declared is None else ACCEPTED[declared]
    may_be_pdf = b"%PDF-" in opening
    if (kind == PDF and not may_be_pdf) or (kind in ARCHIVES) != packed or _is_no_text(kind, opening):
        raise SourceUnreadable("wrong_type", MISMATCH)
    return PERHAPS_PDF if may_be_pdf and not kind else kind


def _is_no_text(kind: str, opening: bytes) -> bool:
    return kind != PDF and kind not in ARCHIVES and opening.startswith(NO_TEXT)


def kind_of_body(stated: str, body: bytes, name: str = "") -> DocumentKind:
    """The kind as which a body is read, by its provisional kind and itself: for a child process.

    `name` decides between kinds of text that look alike. Raises `SourceUnreadable` wrong_type, malformed.
    """
    if stated in ARCHIVES:
        return _sniff_archive(body)
    opening = body[:OPENING_BYTES]
    is_html = HTML_OPENING.match(opening) is not None
    is_pdf = b"%PDF-" in opening and not is_html
    if stated in {"", PERHAPS_PDF}:
        kind = PDF if is_pdf else HTML if is_html else TEXT
    else:
        kind = HTML if stated == XML and is_html else DocumentKind(stated)
    if (kind == PDF) != is_pdf or _is_no_text(kind, opening):
        raise SourceUnreadable("wrong_type", MISMATCH)
    if kind in {TEXT, JSON} and _is_notebook(body):
        return NOTEBOOK
    return NAMED.get(PurePosixPath(name.lower()).suffix, kind) if kind == TEXT else kind
