"""From the bytes of a file to canonical text, whatever the kind: run in a child process."""

import dataclasses
import importlib
import zlib
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, Final

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import Extraction
from providers.reading.charsets import decode
from providers.reading.sniffing import ARCHIVES, DocumentKind, sniff

PAGE_BYTES: Final = 3_000_000
LARGEST_FILE: Final = 20_000_000
"""Bytes; a file is not even opened above that."""
EXTRACTORS: Final = {
    DocumentKind.PDF: ("formats.pdf_document", "extract_pdf"),
    DocumentKind.DOCX: ("formats.docx_document", "extract_docx"),
    DocumentKind.XLSX: ("formats.xlsx_document", "extract_xlsx"),
    DocumentKind.PPTX: ("formats.pptx_document", "extract_pptx"),
    DocumentKind.ODT: ("formats.odt_document", "extract_odt"),
    DocumentKind.EPUB: ("formats.epub_document", "extract_epub"),
    DocumentKind.MAIL: ("formats.mail_document", "extract_mail"),
    DocumentKind.HTML: ("html.page", "extract_html"),
    DocumentKind.XML: ("formats.feed_document", "extract_feed"),
    DocumentKind.JSON: ("formats.json_document", "extract_json"),
    DocumentKind.NOTEBOOK: ("formats.notebook_document", "extract_notebook"),
    DocumentKind.MARKDOWN: ("formats.markdown_document", "extract_markdown"),
    DocumentKind.CSV: ("formats.csv_document", "extract_csv"),
    DocumentKind.LOG: ("formats.plain_text", "extract_log"),
    DocumentKind.TEXT: ("formats.plain_text", "extract_plain_text"),
}
FROM_BYTES: Final = ARCHIVES | {DocumentKind.PDF, DocumentKind.MAIL}
GZIP_WINDOW: Final = 31
"""zlib's way to say: gzip header, largest window."""


def extract(raw: bytes, name: str) -> Extraction:
    """The canonical text of a document; `name` decides between kinds of text where the bytes do not.

    Raises `SourceUnreadable` with one of its kinds.
    """
    kind = outer = sniff(raw, name)
    if kind is DocumentKind.GZIP:
        raw, name = unpack(raw), PurePosixPath(name).stem
        kind = sniff(raw, name)
        if kind in FROM_BYTES or kind is DocumentKind.GZIP:
            raise SourceUnreadable("wrong_type", "a compressed file that holds no text")
    if kind in {DocumentKind.HTML, DocumentKind.MARKDOWN} and len(raw) > PAGE_BYTES:
        raise SourceUnreadable("too_large", f"larger than {PAGE_BYTES} bytes")
    found = _extract_kind(raw, kind)
    if outer is DocumentKind.GZIP:
        found = dataclasses.replace(found, media_type=str(DocumentKind.GZIP))
    return found if found.title else dataclasses.replace(found, title=PurePosixPath(name).stem)


def unpack(raw: bytes) -> bytes:
    """The content of a gzip file, up to the limit. Raises `SourceUnreadable` too_large, malformed."""
    unpacker = zlib.decompressobj(GZIP_WINDOW)
    try:
        content = unpacker.decompress(raw, LARGEST_FILE + 1)
    except zlib.error as error:
        raise SourceUnreadable("malformed", "a damaged compressed file") from error
    if len(content) > LARGEST_FILE:
        raise SourceUnreadable("too_large", f"unpacks to more than {LARGEST_FILE} bytes")
    if not unpacker.eof:
        raise SourceUnreadable("malformed", "a compressed file that breaks off")
    return content


def extractor_of(kind: DocumentKind) -> Callable[[Any], Extraction]:
    """What reads a kind: those of `FROM_BYTES` from bytes, all others from decoded text.

    Its module is imported when it is needed: a child that only meets HTML need not load PDFium.
    """
    module, name = EXTRACTORS[kind]
    found: Callable[[Any], Extraction] = getattr(importlib.import_module(f"providers.reading.{module}"), name)
    return found


def _extract_kind(raw: bytes, kind: DocumentKind) -> Extraction:
    readable = raw if kind in FROM_BYTES else decode(raw, markup=kind is DocumentKind.HTML)
    return extractor_of(kind)(readable)
