"""Kinds of documents, recognised by their bytes, their name and the declared type."""

import re
import zipfile
import zlib
from enum import StrEnum
from io import BytesIO
from pathlib import PurePosixPath
from typing import Final

from contracts.sentences import Message
from providers.errors import SourceUnreadable
from providers.reading.character_sets import BYTE_ORDER_MARKS, wide_set


class DocumentKind(StrEnum):
    """Kinds that can be read; the values are media types."""

    HTML = "text/html"
    MARKDOWN = "text/markdown"
    TEXT = "text/plain"
    JSON = "application/json"
    PDF = "application/pdf"
    CSV = "text/csv"
    LOG = "text/x-log"
    NOTEBOOK = "application/x-ipynb+json"
    MAIL = "message/rfc822"
    EPUB = "application/epub+zip"
    ODT = "application/vnd.oasis.opendocument.text"
    ODS = "application/vnd.oasis.opendocument.spreadsheet"
    ODP = "application/vnd.oasis.opendocument.presentation"
    DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    RTF = "application/rtf"


HTML: Final = DocumentKind.HTML
TEXT: Final = DocumentKind.TEXT
JSON: Final = DocumentKind.JSON
PDF: Final = DocumentKind.PDF
OPEN_DOCUMENTS: Final = frozenset((DocumentKind.ODT, DocumentKind.ODS, DocumentKind.ODP))
ARCHIVES: Final = OPEN_DOCUMENTS | {DocumentKind.EPUB, DocumentKind.DOCX, DocumentKind.XLSX, DocumentKind.PPTX}

SUFFIXES: Final = {
    **dict.fromkeys((".html", ".htm", ".xhtml", ".xht", ".shtml"), HTML),
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd", ".mdx"), DocumentKind.MARKDOWN),
    **dict.fromkeys((".csv", ".tsv"), DocumentKind.CSV),
    ".log": DocumentKind.LOG,
}
"""Kinds of text that look alike, so the name decides."""
NO_DOCUMENTS: Final = frozenset(
    """.css .js .mjs .ts .tsx .jsx .json .jsonl .xml .xsl .xsd .svg .yaml .yml .toml .ini .cfg .sql .py .pyi
    .c .h .cc .cpp .hpp .cs .java .go .rs .rb .pl .pm .sh .bat .ps1 .lua .r .m .swift .kt .php .map .lock .ics .vcf
    .mbox .bib .tex .ps .po .pot .diff .patch .pikchr .dtd .sgml .proto .graphql .zip .jar .tar .bz2 .xz .7z""".split()
)
"""Suffixes of text files and archives that are not documents."""
DOCUMENTS: Final = frozenset(
    """.html .htm .xhtml .md .markdown .txt .text .rst .adoc .pdf .doc .docx .odt .rtf .xls .xlsx .xlsb .ods .csv .tsv
    .ppt .pptx .odp .epub .eml .msg .ipynb .log""".split()
)
"""Suffixes of files that are documents even if their bytes are not text."""
REMEDIES: Final = {
    ".doc": ".docx", ".xls": ".xlsx", ".xlsb": ".xlsx", ".ppt": ".pptx", ".msg": ".eml",
}  # fmt: skip
"""Suffix of an unsupported format → the one to save it as."""
DECLARED: Final = {
    **{str(kind): kind for kind in DocumentKind if kind is not DocumentKind.LOG},
    "application/xhtml+xml": HTML, "text/x-markdown": DocumentKind.MARKDOWN, "application/ld+json": JSON,
    "application/x-pdf": PDF, "text/tab-separated-values": DocumentKind.CSV,
    "text/rtf": DocumentKind.RTF, "text/richtext": DocumentKind.RTF,
}  # fmt: skip
"""Declared media type → kind."""

MAIN_PARTS: Final = {
    DocumentKind.DOCX: "word/document.xml",
    DocumentKind.XLSX: "xl/workbook.xml",
    DocumentKind.PPTX: "ppt/presentation.xml",
    DocumentKind.EPUB: "META-INF/container.xml",
}
"""Usual name of the main part."""
MAIN_TYPE: Final = re.compile(rb"(wordprocessingml|presentationml|spreadsheetml)\.[\w.]{1,40}\.main\+xml")
KINDS_OF_OFFICE: Final = {
    b"wordprocessingml": DocumentKind.DOCX, b"presentationml": DocumentKind.PPTX, b"spreadsheetml": DocumentKind.XLSX,
}  # fmt: skip
"""Kind by the name in the type of a main part with another name."""
MAX_TYPES_BYTES: Final = 1_000_000
RTF_MAGIC: Final = b"{\\rtf"
ZIP_MAGIC: Final = b"PK\x03\x04"
OLE_MAGIC: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
BINARY_MAGICS: Final = (
    b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"RIFF", b"\x7fELF", b"MZ", b"Rar!", b"7z\xbc\xaf", b"BZh", b"\x1f\x8b",
)  # fmt: skip
"""Magic numbers of files that may contain few control characters."""
HTML_OPENING: Final = re.compile(
    rb"(?:\s++|\xef\xbb\xbf|<\?xml[^>]{0,200}+>|<!--.{0,500}?-->)*+(?:<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>])",
    re.IGNORECASE | re.DOTALL,
)
MAIL_OPENING: Final = re.compile(rb"(?:From [^\n]{1,500}\n)?[!-9;-~]{1,100}:[ \t\r\n]")
"""The first header of a mail, perhaps below the line by which mail folders part mails."""
MEDIA_TYPE: Final = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+", re.IGNORECASE)
CHARSET: Final = re.compile(r"[;\s]charset\s*=\s*\"?([a-z0-9_.:-]{1,40})", re.IGNORECASE)
MAX_FILE_BYTES: Final = 20_000_000  # no larger file is opened
OPENING_BYTES: Final = 1_024  # bytes of a body that are compared with the declared type
OF_TEXT: Final = b"\a\b\t\n\f\r\x0e\x0f\x1b" + bytes(range(32, 256))  # bytes that a text may have
WINDOW_BYTES: Final = 4_096
MAX_UNPACKED_BYTES: Final = 200_000_000
"""Bytes of all parts of an archive together, as it states them; reading a part ends there."""
TYPES: Final = "[Content_Types].xml"
STATEMENTS: Final = frozenset((TYPES, "_rels/.rels"))
VARIANT: Final = re.compile(
    rb"application/vnd\.(ms-word|ms-powerpoint|openxmlformats-officedocument\.(?:word|presentation)\w{1,20})"
    rb"\.(?:template|slideshow|document\.macroEnabled|presentation\.macroEnabled|template\.macroEnabledTemplate"
    rb"|template\.macroEnabled|slideshow\.macroEnabled)\.main\+xml"
)
STRICT_NAME: Final = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")
TRANSITIONAL_NAME: Final = rb"http://schemas.openxmlformats.org/\1/2006/"
MISMATCH: Final = Message("skip_mismatch")


def sniff(raw: bytes, name: str) -> DocumentKind:
    """Recognise a file. Raises `SourceUnreadable` empty, binary (no text at all), encrypted, malformed, wrong_type."""
    if not raw:
        raise SourceUnreadable("empty", Message("skip_empty"))
    suffix = PurePosixPath(name.lower()).suffix
    packed = _packed_kind(raw, suffix)
    if packed is not None:
        return packed
    if suffix == ".eml" and MAIL_OPENING.match(raw):  # some have a byte of zero, or a file without an encoding
        return DocumentKind.MAIL
    if _is_binary(raw) or (b"\0" in raw[:65_536] and not _is_wide(raw)):
        raise SourceUnreadable("binary", Message("skip_no_text"))
    if HTML_OPENING.match(raw[:WINDOW_BYTES]):
        return HTML
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    if suffix == ".ipynb" or _is_notebook(raw):
        return DocumentKind.NOTEBOOK
    if suffix == ".eml":
        return DocumentKind.MAIL
    if suffix in REMEDIES:
        raise _not_read(suffix)
    if suffix in NO_DOCUMENTS:
        raise SourceUnreadable("wrong_type", Message("skip_type", suffix=suffix))
    return TEXT


def kind_of_page(body: bytes, declared: str | None, name: str) -> DocumentKind:
    """Recognise the body of a web response, as declared unless its bytes contradict that. Raises as `sniff` does."""
    declared_kind = None if declared is None else DECLARED[declared]
    packed = _packed_kind(body, "")
    if packed is None:
        agrees = declared_kind not in {PDF, DocumentKind.RTF, *ARCHIVES} and not _is_binary(body)
    else:
        agrees = declared_kind in {None, packed} or {declared_kind, packed} <= ARCHIVES
    if not agrees:
        raise SourceUnreadable("wrong_type", MISMATCH)
    if packed is not None:
        return packed
    if declared_kind is None and HTML_OPENING.match(body[:OPENING_BYTES]):
        return HTML
    if declared_kind in {None, TEXT, JSON} and _is_notebook(body):
        return DocumentKind.NOTEBOOK
    named_kind = SUFFIXES.get(PurePosixPath(name.lower()).suffix, TEXT)
    if declared_kind in {None, TEXT} and named_kind != HTML:
        return named_kind
    return declared_kind or TEXT


def parse_content_type(header: str | None) -> tuple[str | None, str | None]:
    """Return media type and charset of a `Content-Type`. Raises `SourceUnreadable` wrong_type if unsupported."""
    match = MEDIA_TYPE.match(header.strip()) if header else None
    if header and (match is None or match[0].lower() not in DECLARED):
        raise SourceUnreadable("wrong_type", Message("skip_media_type", kind=header[:80]))
    media_type = match and match[0].lower()
    charset = CHARSET.search(header or "")
    return media_type, charset[1].lower() if charset else None


def _packed_kind(raw: bytes, suffix: str) -> DocumentKind | None:
    """Return the kind of a PDF, a rich text or an archive; None for anything else. Raises `SourceUnreadable`."""
    if b"%PDF-" in raw[:OPENING_BYTES] and not HTML_OPENING.match(raw[:WINDOW_BYTES]):
        return PDF
    if raw.startswith(OLE_MAGIC):
        if "EncryptedPackage".encode("utf-16-le") in raw:
            raise SourceUnreadable("encrypted", Message("skip_password"))
        raise _not_read(suffix)
    if raw[:OPENING_BYTES].lstrip().startswith(RTF_MAGIC):
        return DocumentKind.RTF
    if not raw.startswith(ZIP_MAGIC):
        return None
    try:
        with zipfile.ZipFile(BytesIO(raw)) as archive:
            stated = next((part for part in archive.infolist() if part.filename == "mimetype"), None)
            media_type = ""
            if stated and _is_short(stated):
                media_type = archive.read(stated).decode("ascii", "replace").strip()
            media_type = media_type.removesuffix("-template")
            if media_type not in ARCHIVES:
                media_type = _kind_by_parts(archive)
    except (zipfile.BadZipFile, NotImplementedError, OSError, RuntimeError, zlib.error) as error:
        raise SourceUnreadable("malformed", Message("skip_archive")) from error
    if media_type not in ARCHIVES:
        raise _not_read(suffix)
    return DocumentKind(media_type)


def _kind_by_parts(archive: zipfile.ZipFile) -> str:
    """Return the media type of an archive by its parts, or the empty text."""
    names = set(archive.namelist())
    for kind, part in MAIN_PARTS.items():
        if part in names:
            return kind
    types = b""
    if TYPES in names and archive.getinfo(TYPES).file_size <= MAX_TYPES_BYTES:
        types = archive.read(TYPES)
    main = MAIN_TYPE.search(types)
    return KINDS_OF_OFFICE[main[1]] if main else ""


def _is_short(part: zipfile.ZipInfo) -> bool:
    return part.file_size <= OPENING_BYTES


def _not_read(suffix: str) -> SourceUnreadable:
    if suffix in REMEDIES:
        return SourceUnreadable("wrong_type", Message("skip_format_remedy", kind=REMEDIES[suffix]))
    return SourceUnreadable("wrong_type", Message("skip_format"))


def _is_notebook(raw: bytes) -> bool:
    return raw.lstrip()[:1] == b"{" and b'"nbformat"' in raw


def _is_binary(raw: bytes) -> bool:
    """Return true for a binary signature, or if over 2 % of the first bytes are control characters."""
    window = raw[:WINDOW_BYTES]
    controls = len(window.translate(None, OF_TEXT))
    return raw.startswith(BINARY_MAGICS) or (controls > len(window) // 50 and not _is_wide(raw))


def _is_wide(raw: bytes) -> bool:
    """Return whether a text may have zero bytes."""
    return raw.startswith(BYTE_ORDER_MARKS) or wide_set(raw) is not None


# --- archives --------------------------------------------------------------------------------------------------------
def checked_archive(raw: bytes) -> bytes:
    """Return an archive that the libraries can read. Raises `SourceUnreadable` too_large, `BadZipFile`.

    They do not know the names of elements in the strict variant of Office Open XML, and the types of templates, of
    shows, and of documents with macros; both become the usual ones.
    """
    with zipfile.ZipFile(BytesIO(raw)) as archive:
        parts = archive.infolist()
        if sum(part.file_size for part in parts) > MAX_UNPACKED_BYTES:
            raise SourceUnreadable("too_large", Message("skip_unpacks", size=MAX_UNPACKED_BYTES))
        statements = b"".join(archive.read(part) for part in parts if part.filename in STATEMENTS)
        if STRICT_NAME.search(statements) is None and VARIANT.search(statements) is None:
            return raw
        buffer = BytesIO()
        with zipfile.ZipFile(buffer, "w") as changed:
            for part in parts:
                content = archive.read(part)
                if part.filename == TYPES:
                    content = VARIANT.sub(_usual_type, content)
                if part.filename.endswith((".xml", ".rels")):
                    content = STRICT_NAME.sub(TRANSITIONAL_NAME, content)
                changed.writestr(part.filename, content)
        return buffer.getvalue()


def _usual_type(variant: re.Match[bytes]) -> bytes:
    is_text = b"word" in variant[1]
    return b"application/vnd.openxmlformats-officedocument." + (
        b"wordprocessingml.document.main+xml" if is_text else b"presentationml.presentation.main+xml"
    )
