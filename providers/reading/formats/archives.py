"""Documents that are archives of XML: opened within limits, and parsed without entities or anything from elsewhere."""

import zipfile
import zlib
from dataclasses import dataclass, field
from io import BytesIO
from typing import Final

from lxml import etree  # type: ignore[import-untyped]

from providers.errors import SourceUnreadable
from providers.reading.cleaning import clean, is_name, one_line
from providers.reading.html.rules import Element
from providers.reading.html.styles import Color, color_of
from providers.reading.page_dates import iso_date

UNPACKED_BYTES: Final = 100_000_000
MOST_ENTRIES: Final = 10_000
PACKED: Final = frozenset((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
"""Ways of packing that documents use; the others of zip unpack without a limit."""
LOCKED: Final = 1
"""The flag of an entry that asks for a password."""
DUBLIN_CORE: Final = "{http://purl.org/dc/elements/1.1/}"
TERMS: Final = "{http://purl.org/dc/terms/}"


def open_archive(raw: bytes) -> zipfile.ZipFile:
    """The archive, if all of it is small enough. Raises `SourceUnreadable` malformed, too_large, encrypted."""
    try:
        archive = zipfile.ZipFile(BytesIO(raw))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise SourceUnreadable("malformed", "a damaged archive") from error
    entries = archive.infolist()
    if len(entries) > MOST_ENTRIES or sum(entry.file_size for entry in entries) > UNPACKED_BYTES:
        raise SourceUnreadable("too_large", f"the document unpacks to more than {UNPACKED_BYTES} bytes")
    if any(entry.flag_bits & LOCKED for entry in entries):
        raise SourceUnreadable("encrypted", "the document is protected by a password")
    if any(entry.compress_type not in PACKED for entry in entries):
        raise SourceUnreadable("malformed", "an archive that is packed as no document is")
    return archive


def read_entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """The bytes of an entry. Raises `SourceUnreadable` malformed if it is damaged or missing."""
    try:
        return archive.read(name)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, RuntimeError) as error:
        raise SourceUnreadable("malformed", "a part of the document is damaged or missing") from error


def parse_xml(data: bytes, encoding: str | None = None) -> Element:
    """The tree of a part; nothing is loaded, entities stay closed. Raises `SourceUnreadable` malformed.

    `encoding` goes before the one that the part states.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, attribute_defaults=False,
        huge_tree=False, remove_comments=True, remove_pis=True, encoding=encoding,
    )  # fmt: skip
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise SourceUnreadable("malformed", "a part of the document is no XML") from error


def local_name(element: Element) -> str:
    """The name of an element without its namespace; empty for what is no element."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


@dataclass(frozen=True)
class StatedFacts:
    """What a document says about itself in Dublin Core."""

    title: str = ""
    authors: list[str] = field(default_factory=list)
    publisher: str | None = None
    language: str | None = None
    published_at: str | None = None


def stated_facts(root: Element) -> StatedFacts:
    """Read the Dublin Core of a part: of a book, a text document, or the properties of an Office file."""
    names = [name for name in _all(root, "creator") if is_name(name)]
    dates = [*_all(root, "date"), *(one_line(found.text or "") for found in root.iter(f"{TERMS}created"))]
    return StatedFacts(
        title=next(iter(_all(root, "title")), "")[:300],
        authors=list(dict.fromkeys(names)),
        publisher=next((name for name in _all(root, "publisher") if is_name(name)), None),
        language=next(iter(_all(root, "language")), None),
        published_at=next(filter(None, map(iso_date, dates)), None),
    )


def office_facts(archive: zipfile.ZipFile) -> StatedFacts:
    """The properties of an Office file; none where it states none."""
    name = "docProps/core.xml"
    return stated_facts(parse_xml(read_entry(archive, name))) if name in archive.namelist() else StatedFacts()


def theme_colors(part: bytes) -> dict[str, Color]:
    """The colours of the theme of an Office document by their names."""
    found = {}
    for scheme in (element for element in parse_xml(part).iter() if local_name(element) == "clrScheme"):
        for entry in scheme:
            value = next((color.get("lastClr") or color.get("val") for color in entry), None)
            color = color_of(f"#{value.lower()}") if value else None
            if color is not None:
                found[local_name(entry)] = color
    return found


def _all(root: Element, name: str) -> list[str]:
    found = (one_line(clean("".join(element.itertext()))) for element in root.iter(f"{DUBLIN_CORE}{name}"))
    return [words for words in found if words]
