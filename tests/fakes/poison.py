"""Documents made to hang, crash or fill whoever reads them, and what must become of each (reliability 5.6 and 5.7).

Each is made by code when it is needed: the largest are a few megabytes, and none is kept anywhere.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.fakes.documents import one_page_pdf, pdf_of

READ: Final = "read"
"""The outcome of a document that is read in spite of everything."""
TOO_LARGE: Final = frozenset(("too_large",))
READABLE: Final = frozenset((READ,))
MALFORMED: Final = frozenset(("malformed",))
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


def adoption_agency() -> bytes:
    """Wrongly nested formatting, whose repair takes the square of its size."""
    return html("".join(f"<b {n}>" for n in range(4_000)) + "".join(f"<i {n}>" for n in range(4_000)) + "x</b>" * 4_000)


def nested(tag: str, times: int, inner: str = "x") -> bytes:
    """One element in itself."""
    return html(f"<{tag}>" * times + inner + f"</{tag}>" * times)


def half_and_half() -> bytes:
    """Two character sets in one page."""
    return b"<meta charset=utf-8><p>" + "Größe ".encode("cp1252") * 100 + "größer".encode() + b"</p>"


HTML_POISON: Final[Mapping[str, Poison]] = {
    "adoption-agency": Poison(adoption_agency, TOO_LARGE),
    "deep-divs": Poison(lambda: nested("div", 50_000), TOO_LARGE),
    "300-divs": Poison(lambda: nested("div", 300, f"<p>{SENTENCE}</p>"), READABLE, keeps=SENTENCE),
    "definition-lists": Poison(lambda: html("<dl><dd>" * 20_000 + "x"), TOO_LARGE),
    "attributes": Poison(lambda: html("<p " + " ".join(f"a{n}" for n in range(200_000)) + ">x"), TOO_LARGE),
    "entities": Poison(lambda: html(f"<p>{SENTENCE}</p>" + "&amp;" * 200_000), READABLE, keeps=SENTENCE),
    "paragraphs": Poison(lambda: html(f"<p>{SENTENCE}" * 10_000), READABLE, keeps=SENTENCE),
    "links": Poison(lambda: html("<a href=/page>some link words</a> " * 20_000), READABLE, keeps="some link words"),
    "attribute-3MB": Poison(lambda: html(f"<p title='{'x' * 2_900_000}'>{SENTENCE}"), READABLE, keeps=SENTENCE),
    "script-21MB": Poison(lambda: html(f"<script>{'x();' * 5_250_000}</script>"), TOO_LARGE),
    "nested-tables": Poison(lambda: html("<table><tr><td>" * 3_000 + "x"), TOO_LARGE),
    "nul": Poison(lambda: html(f"<p>{SENTENCE}</p>").replace(b"dead", b"d\0ead"), READABLE),
    "surrogates": Poison(
        lambda: html("<p>&#xD800; &#55357; x</p>") + b"<p>\xed\xa0\x80 " + SENTENCE.encode(), READABLE, keeps=SENTENCE
    ),
    "plaintext": Poison(
        lambda: html(f"<p>{SENTENCE}<plaintext>" + "</plaintext><b>" * 50_000), READABLE, keeps=SENTENCE
    ),
    "cells-1M": Poison(lambda: html("<table><tr>" + "<td>" * 700_000), TOO_LARGE),
    "cells": Poison(lambda: html("<table><tr>" + "<td>x" * 15_000), READABLE | GIVES_UP),
    "svg-use": Poison(
        lambda: html(
            "<svg>"
            + "".join(f"<g id=g{n}>" + f"<use xlink:href='#g{n - 1}'/>" * 10 + "</g>" for n in range(1, 1_000))
            + f"</svg><p>{SENTENCE}"
        ),
        READABLE,
        keeps=SENTENCE,
    ),
    "one-line": Poison(lambda: html("<p>" + "word " * 200_000), READABLE, keeps="word word"),
    "frameset": Poison(
        lambda: b"<html><frameset cols='1,1'><frame src='http://127.0.0.1/'></frameset></html>", GIVES_UP
    ),
    "mixed-encodings": Poison(half_and_half, READABLE),
    "no-such-character": Poison(lambda: html(f"<p>&#x110000; &#xFFFFFFFFFF; {SENTENCE}"), READABLE, keeps=SENTENCE),
    "styles": Poison(lambda: html("<p style='" + "left:-" * 250_000 + f"'>{SENTENCE}"), READABLE),
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
        MALFORMED,
        XML,
    ),
    "external-entity": Poison(
        lambda: (
            b"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><rss><channel><title>&e;</title></channel></rss>"
        ),
        MALFORMED,
        XML,
    ),
    "xinclude": Poison(
        lambda: (
            b"<rss><channel><title>T</title><x:include xmlns:x='http://www.w3.org/2001/XInclude' "
            b"href='file:///etc/passwd'/></channel></rss>"
        ),
        READABLE,
        XML,
        keeps="# T",
    ),
    "feed-of-titles": Poison(
        lambda: b"<rss><channel>" + b"<item><title>x</title></item>" * 20_000 + b"</channel></rss>", READABLE, XML
    ),
    "xml-depth": Poison(lambda: b"<rss>" * 100_000, MALFORMED, XML),
    "json-depth": Poison(lambda: b"[" * 2_000_000, frozenset(("malformed", "too_large")), "application/json"),
    "json-digits": Poison(lambda: b"9" * 900_000, MALFORMED, "application/json"),
    "json-keys": Poison(
        lambda: json.dumps({str(n): n for n in range(10_000)}).encode(), READABLE, "application/json", keeps="1: 1"
    ),
    "markdown-brackets": Poison(lambda: b"[" * 200_000, READABLE | GIVES_UP, "text/markdown"),
    "markdown-backticks": Poison(
        lambda: b" ".join(b"`" * n for n in range(1, 500)), READABLE | GIVES_UP, "text/markdown"
    ),
    "text-bullets": Poison(lambda: b"- \n" * 100_000, READABLE | GIVES_UP, "text/plain"),
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


def many_pages(count: int) -> bytes:
    """One page object, so many times."""
    return pdf_of([
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[" + b"3 0 R " * count + b"]/Count %d>>" % count,
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
    ])  # fmt: skip


def huge_cmap() -> bytes:
    """A font whose table of characters spans four thousand million codes."""
    table = b"1 beginbfrange\n<00000000> <FFFFFFFF> <00000000>\nendbfrange\n" * 1_000
    font = b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/ToUnicode 6 0 R/DescendantFonts[7 0 R]>>"
    descendant = (
        b"<</Type/Font/Subtype/CIDFontType2/BaseFont/X/CIDSystemInfo<</Registry(A)/Ordering(I)/Supplement 0>>>>"
    )
    return page_of(b"BT /F1 12 Tf 72 700 Td <00410042> Tj ET", b"", stream_of(table), descendant, font=font)


def previous_in_a_circle() -> bytes:
    """A table of objects that names itself as the one before it."""
    made = one_page_pdf(SENTENCE)
    start = made.rindex(b"xref\n0")
    return made.replace(b"trailer<<", b"trailer<</Prev %d" % start)


def locked() -> bytes:
    """A document that asks for a password, with keys that are none."""
    lock = b"<</Filter/Standard/V 2/R 3/Length 128/P -4/O<" + b"41" * 32 + b">/U<" + b"42" * 32 + b">>>"
    made = pdf_of([b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[]/Count 0>>", lock])
    return made.replace(b"trailer<<", b"trailer<</Encrypt 3 0 R/ID[<41><41>]")


def picture_bomb() -> bytes:
    """A picture of four thousand million pixels in a few bytes."""
    picture = b"/Type/XObject/Subtype/Image/Width 65535/Height 65535/BitsPerComponent 1/ColorSpace/DeviceGray/Filter/JBIG2Decode"
    return page_of(shown(SENTENCE) + b" /X Do", b"", stream_of(b"\0" * 40, picture))


def entity_metadata() -> bytes:
    """Metadata in XML whose entities grow a thousand million fold."""
    entities = b"".join(b"<!ENTITY a%d '%s'>" % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10))
    xml = b"<!DOCTYPE x [<!ENTITY a0 'lol'>" + entities + b"]><x>&a9;</x>"
    metadata = stream_of(xml, b"/Type/Metadata/Subtype/XML")
    return page_of(shown(SENTENCE), b"", metadata, catalogue=b"/Metadata 6 0 R")


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
    "double-flate": Poison(
        lambda: page_of(flate(flate_of_zeros(500)), b"/Filter[/FlateDecode/FlateDecode]"), GIVES_UP, PDF
    ),
    "operators": Poison(
        lambda: page_of(flate(b"BT /F1 1 Tf " + b"(x) Tj " * 2_000_000 + b"ET"), FLATE), READABLE | GIVES_UP, PDF
    ),
    "kids-in-a-circle": Poison(kids_in_a_circle, GIVES_UP, PDF),
    "count": Poison(
        lambda: one_page_pdf(SENTENCE).replace(b"/Count 1", b"/Count 1000000000"), READABLE | GIVES_UP, PDF
    ),
    "truncated": Poison(lambda: one_page_pdf(SENTENCE)[:300], READABLE | GIVES_UP, PDF),
    "html": Poison(lambda: html(SENTENCE), frozenset(("wrong_type",)), PDF),
    "locked": Poison(locked, frozenset(("encrypted", "malformed", "no_text")), PDF),
    "previous-in-a-circle": Poison(previous_in_a_circle, READABLE | GIVES_UP, PDF),
    "character-table": Poison(huge_cmap, READABLE | GIVES_UP, PDF),
    "run-length": Poison(
        lambda: page_of(flate(b"\x81A" * 4_000_000), b"/Filter[/FlateDecode/RunLengthDecode]"), READABLE | GIVES_UP, PDF
    ),
    "entities": Poison(entity_metadata, READABLE, PDF, keeps=SENTENCE),
    "picture": Poison(picture_bomb, READABLE | GIVES_UP, PDF),
    "pages": Poison(lambda: many_pages(100_000), TOO_LARGE, PDF),
    "actions": Poison(actions, READABLE, PDF, keeps=SENTENCE),
    "invisible-layer": Poison(lambda: page_of(b"3 Tr " + shown(SENTENCE)), frozenset({"too_little_text"}), PDF),
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
