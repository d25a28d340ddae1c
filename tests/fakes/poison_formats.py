"""Sheets, slides, texts, books, mails and notebooks made to hang, crash or fill whoever reads them."""

import struct
import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import Final

import openpyxl

from providers.reading.document_kinds import DocumentKind
from tests.fakes.office_documents import (
    archive_of,
    cell,
    changed,
    chapter,
    epub,
    mail,
    notebook,
    odt,
    part_of,
    presentation,
    saved,
)
from tests.fakes.poison import GIVES_UP, MALFORMED, READABLE, SENTENCE, TOO_LARGE, Poison

ENTITIES: Final = (
    "<!DOCTYPE x [<!ENTITY a0 'lol'>"
    + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 10))
    + "<!ENTITY e SYSTEM 'file:///etc/passwd'>]>"
)
SHEET: Final = "xl/worksheets/sheet1.xml"
SPACE: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
ENCRYPTED: Final = frozenset(("encrypted",))


def simple_workbook() -> bytes:
    """One sheet with a sentence."""
    book = openpyxl.Workbook()
    book.active["A1"] = SENTENCE
    return saved(book)


def sheet(rows: str, after: str = "", before: str = "") -> bytes:
    """A workbook whose sheet has those rows."""
    made = f'{before}<worksheet xmlns="{SPACE}"><sheetData>{rows}</sheetData>{after}</worksheet>'
    return changed(simple_workbook(), SHEET, made)


def text_cell(place: str, words: str = SENTENCE) -> str:
    """A cell that says its words itself."""
    return f'<c r="{place}" t="inlineStr"><is><t>{words}</t></is></c>'


def with_lying_sizes(raw: bytes, size: int) -> bytes:
    """An archive whose entries say that they are small."""
    changed_raw = bytearray(raw)
    with zipfile.ZipFile(BytesIO(raw)) as archive:
        for entry in archive.infolist():
            struct.pack_into("<L", changed_raw, entry.header_offset + 22, size)
    place = changed_raw.find(b"PK\x01\x02")
    while place >= 0:
        struct.pack_into("<L", changed_raw, place + 24, size)
        place = changed_raw.find(b"PK\x01\x02", place + 4)
    return bytes(changed_raw)


def packed_by(method: int) -> bytes:
    """A workbook whose sheet is packed in another way than documents are."""
    raw = simple_workbook()
    buffer = BytesIO()
    with zipfile.ZipFile(BytesIO(raw)) as source, zipfile.ZipFile(buffer, "w", method) as archive:
        for name in source.namelist():
            archive.writestr(name, source.read(name))
    return buffer.getvalue()


def locked(raw: bytes) -> bytes:
    """An archive whose entries ask for a password."""
    made = bytearray(raw)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = made.find(mark)
        while place >= 0:
            made[place + offset] |= 1
            place = made.find(mark, place + 4)
    return bytes(made)


def slides(body: str) -> bytes:
    """A presentation whose first slide has other shapes."""
    raw = saved(presentation())
    name = "ppt/slides/slide1.xml"
    slide = part_of(raw, name)
    start, end = slide.index("<p:sp>"), slide.rindex("</p:sp>") + len("</p:sp>")
    return changed(raw, name, slide[:start] + body + slide[end:])


def shape(words: str) -> str:
    """A box with words."""
    return (
        '<p:sp><p:nvSpPr><p:cNvPr id="9" name="b"/><p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr><p:spPr/>'
        f"<p:txBody><a:bodyPr/><a:p><a:r><a:t>{words}</a:t></a:r></a:p></p:txBody></p:sp>"
    )


def slides_in_a_circle() -> bytes:
    """A presentation that names one slide a hundred thousand times."""
    raw = saved(presentation())
    book = part_of(raw, "ppt/presentation.xml")
    start, end = book.index("<p:sldId "), book.index("</p:sldIdLst>")
    one = book[start : book.index("/>", start) + 2]
    return changed(raw, "ppt/presentation.xml", book[:start] + one * 100_000 + book[end:])


def mails_in_mails(depth: int) -> bytes:
    """A mail that was passed on so many times."""
    body = b"Subject: inmost\n\n" + SENTENCE.encode()
    for _ in range(depth):
        body = b"Subject: outer\nMIME-Version: 1.0\nContent-Type: message/rfc822\n\n" + body
    return body


def parts_in_parts(depth: int) -> bytes:
    """A mail of parts that hold one another."""
    opening = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (number, number) for number in range(depth)
    )
    return b"Subject: parts\nMIME-Version: 1.0\n" + opening + b"Content-Type: text/plain\n\n" + SENTENCE.encode()


KIND: Final = {kind.name.lower(): str(kind) for kind in DocumentKind}
FORMATS: Final[Mapping[str, Mapping[str, Poison]]] = {
    "xlsx": {
        "zeros": Poison(lambda: changed(simple_workbook(), "xl/media/a.bin", bytes(60_000_000)), READABLE | TOO_LARGE),
        "lying-sizes": Poison(lambda: with_lying_sizes(simple_workbook(), 100), READABLE | GIVES_UP),
        "entries": Poison(lambda: archive_of({f"xl/{n}": b"" for n in range(12_000)} | {"xl/workbook.xml": b""}), GIVES_UP),
        "broken": Poison(lambda: simple_workbook()[:3_000], MALFORMED),
        "lzma": Poison(lambda: packed_by(zipfile.ZIP_LZMA), MALFORMED),
        "locked": Poison(lambda: locked(simple_workbook()), ENCRYPTED),
        "entities": Poison(
            lambda: sheet(f'<row r="1">{text_cell("A1", "&a9;&e;")}</row>', before=ENTITIES), GIVES_UP
        ),
        "far-cell": Poison(
            lambda: sheet(f'<row r="1">{text_cell("A1")}</row><row r="1048576">{text_cell("XFD1048576")}</row>'),
            READABLE | GIVES_UP, keeps=SENTENCE,
        ),
        "merged": Poison(
            lambda: sheet(
                f'<row r="1">{text_cell("A1")}</row>',
                "<mergeCells>" + '<mergeCell ref="A1:XFD1048576"/>' * 10_000 + "</mergeCells>",
            ),
            READABLE, keeps=SENTENCE,
        ),
        "formulas": Poison(
            lambda: sheet(
                f'<row r="1">{text_cell("A1")}<c r="B1"><f>[1]Sheet1!A1</f></c>'
                '<c r="C1"><f>cmd|\'/C calc\'!A0</f><v>0</v></c><c r="D1"><f>WEBSERVICE("http://127.0.0.1/")</f></c></row>'
            ),
            READABLE, keeps=SENTENCE,
        ),
    },
    "pptx": {
        "circle": Poison(slides_in_a_circle, READABLE | GIVES_UP),
        "groups": Poison(
            lambda: slides(
                "<p:grpSp><p:nvGrpSpPr><p:cNvPr id='8' name='g'/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>" * 5_000
                + shape(SENTENCE) + "</p:grpSp>" * 5_000
            ),
            READABLE | GIVES_UP,
        ),
        "entities": Poison(
            lambda: changed(slides(shape("x")), "docProps/core.xml", ENTITIES + "<x>&a9;&e;</x>"), READABLE | GIVES_UP
        ),
        "broken": Poison(lambda: changed(saved(presentation()), "ppt/slides/slide1.xml", "<p:sld"), MALFORMED),
    },
    "odt": {
        "repeated": Poison(
            lambda: odt(
                '<table:table><table:table-row table:number-rows-repeated="1000000000"><table:table-cell '
                f'table:number-columns-repeated="1000000000"><text:p>{SENTENCE}</text:p></table:table-cell>'
                "</table:table-row></table:table>"
            ),
            READABLE, keeps=SENTENCE,
        ),
        "blanks": Poison(lambda: odt(f'<text:p>{SENTENCE}<text:s text:c="1000000000"/></text:p>'), READABLE, keeps=SENTENCE),
        "entities": Poison(
            lambda: changed(odt(f"<text:p>{SENTENCE}</text:p>"), "content.xml", ENTITIES + "<x>&a9;&e;</x>"), GIVES_UP
        ),
        "locked": Poison(
            lambda: odt("", manifest="<m><encryption-data/></m>"), ENCRYPTED | GIVES_UP
        ),
    },
    "epub": {
        "circle": Poison(
            lambda: epub({"a.xhtml": chapter(f"<p>{SENTENCE}</p>")}, spine='<itemref idref="a.xhtml"/>' * 10_000),
            READABLE, keeps=SENTENCE,
        ),
        "way-out": Poison(
            lambda: epub(
                {"a.xhtml": chapter(f"<p>{SENTENCE}</p>", '<link rel="stylesheet" href="../../../etc/passwd"/>')},
                items='<item id="x" href="../../../../etc/passwd" media-type="application/xhtml+xml"/>',
                spine='<itemref idref="x"/><itemref idref="a.xhtml"/>',
            ),
            READABLE, keeps=SENTENCE,
        ),
        "entities": Poison(
            lambda: epub({"a.xhtml": ENTITIES + f"<html><body><p>{SENTENCE} &a9;&e;</p></body></html>"}), READABLE, keeps=SENTENCE
        ),
        "script": Poison(
            lambda: epub({"a.xhtml": chapter(f"<script/><p>{SENTENCE}</p><script src='http://127.0.0.1/'>x()</script>")}),
            READABLE | GIVES_UP, keeps=SENTENCE,
        ),
        "locked": Poison(
            lambda: epub(
                {"a.xhtml": "?"},
                extra={"META-INF/encryption.xml": '<e><CipherReference URI="OPS/a.xhtml"/></e>'},
            ),
            READABLE | ENCRYPTED | GIVES_UP,
        ),
    },
    "mail": {
        "many-mails-in-mails": Poison(lambda: mails_in_mails(5_000), READABLE | TOO_LARGE),
        "many-parts": Poison(lambda: parts_in_parts(20_000), READABLE | TOO_LARGE),
        "header": Poison(lambda: b"Subject: " + b"=?utf-8?q?a?= " * 200_000 + b"\n\n" + SENTENCE.encode(), READABLE),
        "script": Poison(
            lambda: bytes(mail(html=f"<p>{SENTENCE}</p><script>x()</script><img src='http://127.0.0.1/'>")), READABLE, keeps=SENTENCE
        ),
    },
    "notebook": {
        "depth": Poison(lambda: b'{"nbformat": 4, "cells": ' + b"[" * 1_000_000, GIVES_UP),
        "output": Poison(
            lambda: notebook(
                cell("markdown", SENTENCE),
                cell("code", "x", {"output_type": "stream", "text": "y" * 2_000_000}),
            ),
            READABLE, keeps=SENTENCE,
        ),
        "odd": Poison(lambda: b'{"nbformat": [], "cells": [1, null, {"source": {}, "cell_type": []}], "metadata": 1}', GIVES_UP),
    },
    "csv": {
        "open-quote": Poison(lambda: b'a,b\n1,2\n"' + b"x" * 2_000_000, READABLE | GIVES_UP),
    },
}  # fmt: skip
FORMAT_POISON: Final[Mapping[str, Poison]] = {
    f"{kind}-{name}": Poison(poison.make, poison.outcomes, KIND[kind], poison.keeps)
    for kind, found in FORMATS.items()
    for name, poison in found.items()
}
"""By kind and name, served as what they are."""
