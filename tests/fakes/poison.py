"""Documents made to hang, crash or fill whoever reads them, and what must become of each (reliability 5.6 and 5.7).

Each is made by code when it is needed: the largest are a few megabytes, and none is stored anywhere.
"""

import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Final

from providers.reading.document_kinds import DocumentKind
from tests.fakes.office_documents import changed, chapter, epub, odt, page_pdf, pdf_of, saved, text_at, workbook

READ: Final = "read"
"""The outcome of a document that is read in spite of everything."""
READABLE: Final = frozenset((READ,))
TOO_LARGE: Final = frozenset(("too_large",))
WRONG_TYPE: Final = frozenset(("wrong_type",))
"""XML is not read at all."""
GIVES_UP: Final = frozenset(("timeout", "memory", "too_large", "too_little_text", "malformed"))
"""For what may be refused, or cost a child its life: what matters is that it costs no more."""
SENTENCE: Final = "The worker removes dead rows from its table and leaves their space to others."
ENTITIES: Final = (
    "<!DOCTYPE x [<!ENTITY a0 'lol'>"
    + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 10))
    + "<!ENTITY e SYSTEM 'file:///etc/passwd'>]>"
)
"""Thousand million laughs, and a file of this machine."""


@dataclass(frozen=True)
class Poison:
    """One document: how it is served, and the outcomes that are right."""

    make: Callable[[], bytes]
    outcomes: frozenset[str]
    content_type: str = "text/html"
    keeps: str = ""
    """Words that the text must hold if the document is read."""


def html(body: str) -> bytes:
    return f"<!doctype html><html><head><title>Poison</title></head><body>{body}".encode()


def uses_of_uses() -> bytes:
    """A drawing in which each of a thousand parts shows the one before ten times."""
    parts = (f"<g id=g{n}>" + f"<use xlink:href='#g{n - 1}'/>" * 10 + "</g>" for n in range(1, 1_000))
    return html(f"<svg>{''.join(parts)}</svg><p>{SENTENCE}")


def flate_of_zeros(megabytes: int) -> bytes:
    """A small stream that unpacks to so many million zeros, put together from one that unpacks to a million."""
    packer = zlib.compressobj(9)
    first = packer.compress(bytes(1_000_000)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(1_000_000)) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = (megabytes * 1_000_000 % 65_521) << 16 | 1
    return first + again * (megabytes - 1) + packer.flush()[:-4] + checksum.to_bytes(4, "big")


SHOWN: Final = text_at(72, 700, SENTENCE)


def kids_in_a_circle() -> bytes:
    return pdf_of([b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>"])


def actions() -> bytes:
    """Scripts, programs to launch and addresses to open, as soon as it is opened."""
    catalogue = (
        b"/OpenAction<</S/JavaScript/JS(app.launchURL\\('http://127.0.0.1/'\\))>>"
        b"/AA<</WC<</S/Launch/F(/bin/sh)>>/WS<</S/URI/URI(http://127.0.0.1/)>>>>"
    )
    return page_pdf(SHOWN, catalogue=catalogue)


def sheet(*cells: tuple[str, str], before: str = "") -> bytes:
    """A workbook whose sheet has these cells."""
    rows = "".join(
        f'<row r="{place.lstrip("XFDA")}"><c r="{place}" t="inlineStr"><is><t>{words}</t></is></c></row>'
        for place, words in cells
    )
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    made = f'{before}<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>'
    return changed(saved(workbook()), "xl/worksheets/sheet1.xml", made)


def with_lying_sizes(raw: bytes, size: int) -> bytes:
    """An archive whose entries say that they are small."""
    made = bytearray(raw)
    with zipfile.ZipFile(BytesIO(raw)) as archive:
        for entry in archive.infolist():
            struct.pack_into("<L", made, entry.header_offset + 22, size)
    place = made.find(b"PK\x01\x02")
    while place >= 0:
        struct.pack_into("<L", made, place + 24, size)
        place = made.find(b"PK\x01\x02", place + 4)
    return bytes(made)


def repeated_cells() -> bytes:
    """A table that says of one cell that it is there a thousand million times, in as many rows."""
    return odt(
        '<table:table><table:table-row table:number-rows-repeated="1000000000"><table:table-cell '
        f'table:number-columns-repeated="1000000000"><text:p>{SENTENCE}</text:p></table:table-cell>'
        "</table:table-row></table:table>"
    )


def book_with_a_way_out() -> bytes:
    """A book whose chapter is a file of this machine."""
    return epub(
        {"a.xhtml": chapter(f"<p>{SENTENCE}</p>", '<link rel="stylesheet" href="../../../etc/passwd"/>')},
        items='<item id="x" href="../../../../etc/passwd" media-type="application/xhtml+xml"/>',
        spine='<itemref idref="x"/><itemref idref="a.xhtml"/>',
    )


def mails_in_mails() -> bytes:
    """A mail that was passed on five thousand times."""
    outer = b"Subject: outer\nMIME-Version: 1.0\nContent-Type: message/rfc822\n\n"
    return outer * 5_000 + b"Subject: inmost\n\n" + SENTENCE.encode()


PDF, XLSX = str(DocumentKind.PDF), str(DocumentKind.XLSX)
FLATE: Final = b"/Filter/FlateDecode"
FAR: Final = (("A1", SENTENCE), ("XFD1048576", SENTENCE))
POISON: Final[Mapping[str, Poison]] = {
    "deep-divs": Poison(lambda: html("<div>" * 50_000 + "x" + "</div>" * 50_000), TOO_LARGE),
    "svg-use": Poison(uses_of_uses, READABLE, keeps=SENTENCE),
    "entities": Poison(f"{ENTITIES}<rss><title>&a9;&e;</title></rss>".encode, WRONG_TYPE, "application/xml"),
    "json-depth": Poison(lambda: b"[" * 2_000_000, TOO_LARGE | {"malformed"}, "application/json"),
    "flate": Poison(lambda: page_pdf(flate_of_zeros(500), FLATE), GIVES_UP, PDF),
    "kids-in-a-circle": Poison(kids_in_a_circle, GIVES_UP, PDF),
    "actions": Poison(actions, READABLE, PDF, keeps=SENTENCE),
    "zeros": Poison(
        lambda: changed(saved(workbook()), "xl/media/a.bin", bytes(60_000_000)), READABLE | TOO_LARGE, XLSX
    ),
    "lying-sizes": Poison(lambda: with_lying_sizes(saved(workbook()), 100), READABLE | GIVES_UP, XLSX),
    "entities-of-a-sheet": Poison(lambda: sheet(("A1", "&a9;&e;"), before=ENTITIES), GIVES_UP, XLSX),
    "far-cell": Poison(lambda: sheet(*FAR), READABLE | GIVES_UP, XLSX, keeps=SENTENCE),
    "repeated": Poison(repeated_cells, READABLE, str(DocumentKind.ODT), keeps=SENTENCE),
    "way-out": Poison(book_with_a_way_out, READABLE, str(DocumentKind.EPUB), keeps=SENTENCE),
    "mails-in-mails": Poison(mails_in_mails, READABLE | TOO_LARGE, str(DocumentKind.MAIL)),
    "notebook-depth": Poison(
        lambda: b'{"nbformat": 4, "cells": ' + b"[" * 1_000_000, GIVES_UP, str(DocumentKind.NOTEBOOK)
    ),
    "open-quote": Poison(lambda: b'a,b\n1,2\n"' + b"x" * 2_000_000, READABLE | GIVES_UP, str(DocumentKind.CSV)),
}
