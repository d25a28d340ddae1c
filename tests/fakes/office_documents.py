"""Sheets, presentations, texts, books, mails and notebooks, made by code when they are needed."""

import json
import zipfile
from email.message import EmailMessage
from io import BytesIO
from typing import Any

import openpyxl
import pptx
from pptx.util import Inches

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
ODT_SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in {"office": "office", "text": "text", "table": "table", "style": "style", "meta": "meta",
                        "fo": "xsl-fo-compatible"}.items()
) + ' xmlns:dc="http://purl.org/dc/elements/1.1/"'  # fmt: skip


def archive_of(parts: dict[str, str | bytes], mimetype: str = "") -> bytes:
    """A zip file of parts, with its media type in front where it has one."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        if mimetype:
            archive.writestr(zipfile.ZipInfo("mimetype"), mimetype)
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def changed(raw: bytes, name: str, content: str | bytes | None) -> bytes:
    """An archive with another part of that name; without it if there is no content."""
    with zipfile.ZipFile(BytesIO(raw)) as archive:
        parts: dict[str, str | bytes] = {entry: archive.read(entry) for entry in archive.namelist() if entry != name}
    return archive_of(parts if content is None else parts | {name: content})


def workbook() -> Any:
    """A workbook with a title and a table."""
    book = openpyxl.Workbook()
    book.properties.title, book.properties.creator = "Figures", "Ada"
    sheet = book.active
    sheet.title = "Backups"
    for row in (["Site", "Share"], ["North", 0.25], ["South", 3.0]):
        sheet.append(row)
    return book


def saved(document: Any) -> bytes:
    """The bytes of a workbook or a presentation."""
    buffer = BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def presentation() -> Any:
    """Three slides: one with a list, a hidden one, and one with a table."""
    show = pptx.Presentation()
    show.core_properties.title, show.core_properties.author = "Plan", "Ada"
    first = show.slides.add_slide(show.slide_layouts[1])
    first.shapes.title.text = "Goals"
    frame = first.placeholders[1].text_frame
    frame.text = "Fewer failures"
    inner = frame.add_paragraph()
    inner.text, inner.level = "Above all at night", 1
    first.notes_slide.notes_text_frame.text = "Speak slowly."
    hidden = show.slides.add_slide(show.slide_layouts[1])
    hidden.shapes.title.text = "Hidden slide"
    hidden._element.set("show", "0")
    last = show.slides.add_slide(show.slide_layouts[5])
    last.shapes.title.text = "Costs"
    table = last.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    for place, words in enumerate(("Year", "Cost", "2024", "12")):
        table.cell(place // 2, place % 2).text = words
    return show


def odt(body: str, meta: str = "") -> bytes:
    content = (
        f"<office:document-content {ODT_SPACES}><office:body><office:text>{body}</office:text></office:body>"
        "</office:document-content>"
    )
    facts = f"<office:document-meta {ODT_SPACES}><office:meta>{meta}</office:meta></office:document-meta>"
    return archive_of({"content.xml": content, "meta.xml": facts}, "application/vnd.oasis.opendocument.text")


def open_document(kind: str, body: str) -> bytes:
    """A spreadsheet or a presentation of OpenDocument."""
    spaces = "xmlns:draw='urn:oasis:names:tc:opendocument:xmlns:drawing:1.0' "
    spaces += "xmlns:presentation='urn:oasis:names:tc:opendocument:xmlns:presentation:1.0' "
    spaces += "xmlns:svg='urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0'"
    content = (
        f"<office:document-content {ODT_SPACES} {spaces}><office:body><office:{kind}>{body}</office:{kind}></office:body>"
        "</office:document-content>"
    )
    return archive_of({"content.xml": content}, f"application/vnd.oasis.opendocument.{kind}")


def epub(chapters: dict[str, str], *, spine: str = "", facts: str = "", items: str = "") -> bytes:
    """A book of chapters by name."""
    listed = "".join(f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in chapters)
    order = spine or "".join(f'<itemref idref="{name}"/>' for name in chapters)
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"{facts}</metadata><manifest>{listed}{items}</manifest><spine>{order}</spine></package>"
    )
    parts: dict[str, str | bytes] = {"META-INF/container.xml": CONTAINER, "OPS/book.opf": package}
    return archive_of(parts | {f"OPS/{name}": words for name, words in chapters.items()}, "application/epub+zip")


def chapter(body: str, head: str = "") -> str:
    return (
        f'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/>{head}</head>'
        f"<body>{body}</body></html>"
    )


def mail(text: str) -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = "Backups", "Ada <ada@site.test>", "team@site.test"
    message["Date"] = "Fri, 17 May 2024 09:30:00 +0200"
    message.set_content(text)
    return message


def notebook(*cells: dict[str, Any]) -> bytes:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)}).encode()


def cell(kind: str, source: str) -> dict[str, Any]:
    made: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}
    return made | ({"outputs": [], "execution_count": 1} if kind == "code" else {})


def pdf_of(objects: list[bytes], trailer: bytes = b"") -> bytes:
    """A PDF file of numbered objects; the first one is the catalogue."""
    body, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    table += b"".join(b"%010d 00000 n \n" % place for place in places)
    size, start = len(objects) + 1, len(body)
    return body + table + b"trailer<</Size %d/Root 1 0 R%b>>\nstartxref\n%d\n%%%%EOF" % (size, trailer, start)


def stream_of(content: bytes, entries: bytes = b"") -> bytes:
    return b"<<" + entries + b"/Length %d>>stream\n" % len(content) + content + b"\nendstream"


def text_at(x: int, y: int, words: str, size: int = 12) -> bytes:
    """The operators that show a line of ASCII at a place."""
    escaped = words.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)").encode("ascii", "replace")
    return b"BT /F1 %d Tf %d %d Td (%b) Tj ET" % (size, x, y, escaped)


def page_pdf(
    content: bytes, filters: bytes = b"", *extra: bytes, catalogue: bytes = b"", trailer: bytes = b""
) -> bytes:
    """A PDF of one page with a content stream and a font; further objects begin at number 6."""
    return pdf_of([
        b"<</Type/Catalog/Pages 2 0 R" + catalogue + b">>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        stream_of(content, filters),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        *extra,
    ], trailer)  # fmt: skip


def one_page_pdf(words: str, stream: bytes | None = None) -> bytes:
    """A PDF of one page with one line of text, or with a content stream of your own."""
    return page_pdf(text_at(72, 700, words) if stream is None else stream)
