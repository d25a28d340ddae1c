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
from providers.reading.sniffing import DocumentKind, sniff

SIZE_LIMITS: Final = {
    DocumentKind.HTML: 3_000_000,
    DocumentKind.MARKDOWN: 3_000_000,
    DocumentKind.TEXT: 20_000_000,
    DocumentKind.PDF: 20_000_000,
    DocumentKind.DOCX: 20_000_000,
    DocumentKind.GZIP: 20_000_000,
}
"""Bytes; a file is not even opened above the largest of them."""
LARGEST_FILE: Final = max(SIZE_LIMITS.values())
EXTRACTORS: Final = {
    DocumentKind.PDF: ("formats.pdf_document", "extract_pdf"),
    DocumentKind.DOCX: ("formats.docx_document", "extract_docx"),
    DocumentKind.HTML: ("html.page", "extract_html"),
    DocumentKind.XML: ("formats.feed_document", "extract_feed"),
    DocumentKind.JSON: ("formats.json_document", "extract_json"),
    DocumentKind.MARKDOWN: ("formats.markdown_document", "extract_markdown"),
    DocumentKind.TEXT: ("formats.plain_text", "extract_plain_text"),
}
FROM_BYTES: Final = {DocumentKind.PDF, DocumentKind.DOCX}
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
        if kind not in {DocumentKind.HTML, DocumentKind.MARKDOWN, DocumentKind.TEXT}:
            raise SourceUnreadable("wrong_type", "a compressed file that holds no text")
    if len(raw) > SIZE_LIMITS[kind]:
        raise SourceUnreadable("too_large", f"larger than {SIZE_LIMITS[kind]} bytes")
    found = _extract_kind(raw, kind)
    if outer is DocumentKind.GZIP:
        found = dataclasses.replace(found, media_type=str(DocumentKind.GZIP))
    return found if found.title else dataclasses.replace(found, title=PurePosixPath(name).stem)


def unpack(raw: bytes) -> bytes:
    """The content of a gzip file, up to the limit. Raises `SourceUnreadable` too_large, malformed."""
    limit = SIZE_LIMITS[DocumentKind.GZIP]
    unpacker = zlib.decompressobj(GZIP_WINDOW)
    try:
        content = unpacker.decompress(raw, limit + 1)
    except zlib.error as error:
        raise SourceUnreadable("malformed", "a damaged compressed file") from error
    if len(content) > limit:
        raise SourceUnreadable("too_large", f"unpacks to more than {limit} bytes")
    if not unpacker.eof:
        raise SourceUnreadable("malformed", "a compressed file that breaks off")
    return content


def extractor_of(kind: DocumentKind) -> Callable[[Any], Extraction]:
    """What reads a kind: PDF and DOCX from bytes, all others from decoded text.

    Its module is imported when it is needed: a child that only meets HTML need not load PDFium.
    """
    module, name = EXTRACTORS[kind]
    found: Callable[[Any], Extraction] = getattr(importlib.import_module(f"providers.reading.{module}"), name)
    return found


def _extract_kind(raw: bytes, kind: DocumentKind) -> Extraction:
    readable = raw if kind in FROM_BYTES else decode(raw, markup=kind is DocumentKind.HTML)
    return extractor_of(kind)(readable)
