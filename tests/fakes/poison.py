"""Documents made to hang, crash or fill whoever reads them, and what must become of each (reliability 5.6 and 5.7).

Each is made by code when it is needed: the largest are a few megabytes, and none is kept anywhere.
"""

import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Final

import openpyxl

from providers.reading.document_kinds import DocumentKind
from tests.fakes.office_documents import (
    changed,
    chapter,
    epub,
    odt,
    one_page_pdf,
    pdf_of,
    saved,
)

READ: Final = "read"
"""The outcome of a document that is read in spite of everything."""
TOO_LARGE: Final = frozenset(("too_large",))
READABLE: Final = frozenset((READ,))
MALFORMED: Final = frozenset(("malformed",))
WRONG_TYPE: Final = frozenset(("wrong_type",))
WRONG_TYPE: Final = frozenset(("wrong_type",))
"""XML is not read at all."""
GIVES_UP: Final = frozenset(("timeout", "memory", "too_large", "too_little_text", "malformed"))
"""For what may be refused, or cost a child its life: what matters is that it costs no more."""

HTML, PDF, XML = "text/html", "application/pdf", "application/xml"
SENTENCE: Final = "The worker removes dead rows from its table and leaves their space to others."


@dataclass(frozen=True)
class Poison:
    """One document: how it is served, and the outcomes that are right."""

    make: Callable[[], bytes]
    outcomes: frozenset[str]
    content_type: str = HTML
    keeps: str = ""
    """Words that the text must hold if the document is read."""


def html(body: str) -> bytes:
    """A page with a body."""
    return f"<!doctype html><html><head><title>Poison</title></head><body>{body}".encode()


def flate(data: bytes, level: int = 9) -> bytes:
    """Compressed as in PDF."""
    return zlib.compress(data, level)


def flate_of_zeros(megabytes: int) -> bytes:
    """A small stream that unpacks to so many million zeros, put together from one that unpacks to a million."""
    packer = zlib.compressobj(9)
    first = packer.compress(bytes(1_000_000)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(1_000_000)) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = (megabytes * 1_000_000 % 65_521) << 16 | 1
    return first + again * (megabytes - 1) + packer.flush()[:-4] + checksum.to_bytes(4, "big")


def nested(tag: str, times: int, inner: str = "x") -> bytes:
    """One element in itself."""
    return html(f"<{tag}>" * times + inner + f"</{tag}>" * times)


def half_and_half() -> bytes:
    """Two character sets in one page."""
    return b"<meta charset=utf-8><p>" + "Größe ".encode("cp1252") * 100 + "größer".encode() + b"</p>"


HTML_POISON: Final[Mapping[str, Poison]] = {
    "deep-divs": Poison(lambda: nested("div", 50_000), TOO_LARGE),
    "300-divs": Poison(lambda: nested("div", 300, f"<p>{SENTENCE}</p>"), READABLE, keeps=SENTENCE),
    "surrogates": Poison(
        lambda: html("<p>&#xD800; &#55357; x</p>") + b"<p>\xed\xa0\x80 " + SENTENCE.encode(), READABLE, keeps=SENTENCE
    ),
    "svg-use": Poison(
        lambda: html(
            "<svg>"
            + "".join(f"<g id=g{n}>" + f"<use xlink:href='#g{n - 1}'/>" * 10 + "</g>" for n in range(1, 1_000))
            + f"</svg><p>{SENTENCE}"
        ),
        READABLE,
        keeps=SENTENCE,
    ),
    "mixed-encodings": Poison(half_and_half, READABLE),
    "linked-data": Poison(
        lambda: html(f"<script type='application/ld+json'>{'[' * 190_000}</script><p>{SENTENCE}"),
        READABLE,
        keeps=SENTENCE,
    ),
}

OTHER_POISON: Final[Mapping[str, Poison]] = {
    "billion-laughs": Poison(
        (
            "<!DOCTYPE l [<!ENTITY a0 'lol'>"
            + "".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 10))
            + "]><rss><channel><title>&a9;</title></channel></rss>"
        ).encode,
        WRONG_TYPE,
        XML,
    ),
    "external-entity": Poison(
        lambda: (
            b"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><rss><channel><title>&e;</title></channel></rss>"
        ),
        WRONG_TYPE,
        XML,
    ),
    "json-depth": Poison(lambda: b"[" * 2_000_000, frozenset(("malformed", "too_large")), "application/json"),
    "markdown-brackets": Poison(lambda: b"[" * 200_000, READABLE | GIVES_UP, "text/markdown"),
}


def page_of(content: bytes, filters: bytes = b"", *extra: bytes, font: bytes = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            catalogue: bytes = b"") -> bytes:  # fmt: skip
    """A PDF of one page with a content stream, more objects, a font and entries of the catalogue."""
    return pdf_of([
        b"<</Type/Catalog/Pages 2 0 R" + catalogue + b">>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        (b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>/XObject<</X 6 0 R>>>>>>"),
        b"<<" + filters + b"/Length %d>>stream\n" % len(content) + content + b"\nendstream",
        font,
        *extra,
    ])  # fmt: skip


def stream_of(content: bytes, entries: bytes = b"") -> bytes:
    """A stream object."""
    return b"<<" + entries + b"/Length %d>>stream\n" % len(content) + content + b"\nendstream"


def shown(words: str) -> bytes:
    """A content stream that shows a line."""
    return b"BT /F1 12 Tf 72 700 Td (" + words.encode() + b") Tj ET"


def kids_in_a_circle() -> bytes:
    """A tree of pages whose branches lead back to its root."""
    return pdf_of([b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>"])


def huge_cmap() -> bytes:
    """A font whose table of characters spans four thousand million codes."""
    table = b"1 beginbfrange\n<00000000> <FFFFFFFF> <00000000>\nendbfrange\n" * 1_000
    font = b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/ToUnicode 6 0 R/DescendantFonts[7 0 R]>>"
    descendant = (
        b"<</Type/Font/Subtype/CIDFontType2/BaseFont/X/CIDSystemInfo<</KnownAddresses(A)/Ordering(I)/Supplement 0>>>>"
    )
    return page_of(b"BT /F1 12 Tf 72 700 Td <00410042> Tj ET", b"", stream_of(table), descendant, font=font)


def locked() -> bytes:
    """A document that asks for a password, with keys that are none."""
    lock = b"<</Filter/Standard/V 2/R 3/Length 128/P -4/O<" + b"41" * 32 + b">/U<" + b"42" * 32 + b">>>"
    made = pdf_of([b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[]/Count 0>>", lock])
    return made.replace(b"trailer<<", b"trailer<</Encrypt 3 0 R/ID[<41><41>]")


def picture_bomb() -> bytes:
    """A picture of four thousand million pixels in a few bytes."""
    picture = b"/Type/XObject/Subtype/Image/Width 65535/Height 65535/BitsPerComponent 1/ColorSpace/DeviceGray/Filter/JBIG2Decode"
    return page_of(shown(SENTENCE) + b" /X Do", b"", stream_of(b"\0" * 40, picture))


def actions() -> bytes:
    """Scripts, programs to launch and files to submit, as soon as it is opened."""
    catalogue = (
        b"/OpenAction<</S/JavaScript/JS(app.launchURL\\('http://127.0.0.1/'\\))>>"
        b"/AA<</WC<</S/Launch/F(/bin/sh)>>/WS<</S/URI/URI(http://127.0.0.1/)>>>>"
    )
    return page_of(shown(SENTENCE), catalogue=catalogue)


FLATE: Final = b"/Filter/FlateDecode"
PDF_POISON: Final[Mapping[str, Poison]] = {
    "flate": Poison(lambda: page_of(flate_of_zeros(500), FLATE), GIVES_UP, PDF),
    "kids-in-a-circle": Poison(kids_in_a_circle, GIVES_UP, PDF),
    "truncated": Poison(lambda: one_page_pdf(SENTENCE)[:300], READABLE | GIVES_UP, PDF),
    "html": Poison(lambda: html(SENTENCE), WRONG_TYPE, PDF),
    "locked": Poison(locked, frozenset(("encrypted", "malformed", "no_text")), PDF),
    "character-table": Poison(huge_cmap, READABLE | GIVES_UP, PDF),
    "picture": Poison(picture_bomb, READABLE | GIVES_UP, PDF),
    "actions": Poison(actions, READABLE, PDF, keeps=SENTENCE),
    "forms-in-forms": Poison(
        lambda: page_of(
            b"/X Do " + shown(SENTENCE),
            b"",
            stream_of(b"/X Do /X Do", b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 6 0 R>>>>"),
        ),
        READABLE | GIVES_UP,
        PDF,
    ),
}

POISON: Final[Mapping[str, Poison]] = {
    **{f"html-{name}": poison for name, poison in HTML_POISON.items()},
    **{f"other-{name}": poison for name, poison in OTHER_POISON.items()},
    **{f"pdf-{name}": poison for name, poison in PDF_POISON.items()},
}


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


def locked_office(raw: bytes) -> bytes:
    """An archive whose entries ask for a password."""
    made = bytearray(raw)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = made.find(mark)
        while place >= 0:
            made[place + offset] |= 1
            place = made.find(mark, place + 4)
    return bytes(made)


def mails_in_mails(depth: int) -> bytes:
    """A mail that was passed on so many times."""
    body = b"Subject: inmost\n\n" + SENTENCE.encode()
    for _ in range(depth):
        body = b"Subject: outer\nMIME-Version: 1.0\nContent-Type: message/rfc822\n\n" + body
    return body


KIND: Final = {kind.name.lower(): str(kind) for kind in DocumentKind}
FORMATS: Final[Mapping[str, Mapping[str, Poison]]] = {
    "xlsx": {
        "zeros": Poison(lambda: changed(simple_workbook(), "xl/media/a.bin", bytes(60_000_000)), READABLE | TOO_LARGE),
        "lying-sizes": Poison(lambda: with_lying_sizes(simple_workbook(), 100), READABLE | GIVES_UP),
        "locked": Poison(lambda: locked_office(simple_workbook()), ENCRYPTED),
        "entities": Poison(
            lambda: sheet(f'<row r="1">{text_cell("A1", "&a9;&e;")}</row>', before=ENTITIES), GIVES_UP
        ),
        "far-cell": Poison(
            lambda: sheet(f'<row r="1">{text_cell("A1")}</row><row r="1048576">{text_cell("XFD1048576")}</row>'),
            READABLE | GIVES_UP, keeps=SENTENCE,
        ),
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
    },
    "epub": {
        "way-out": Poison(
            lambda: epub(
                {"a.xhtml": chapter(f"<p>{SENTENCE}</p>", '<link rel="stylesheet" href="../../../etc/passwd"/>')},
                items='<item id="x" href="../../../../etc/passwd" media-type="application/xhtml+xml"/>',
                spine='<itemref idref="x"/><itemref idref="a.xhtml"/>',
            ),
            READABLE, keeps=SENTENCE,
        ),
    },
    "mail": {
        "many-mails-in-mails": Poison(lambda: mails_in_mails(5_000), READABLE | TOO_LARGE),
    },
    "notebook": {
        "depth": Poison(lambda: b'{"nbformat": 4, "cells": ' + b"[" * 1_000_000, GIVES_UP),
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
