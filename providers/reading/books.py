"""Books (EPUB) as HTML pages: the chapters in reading order, each read as a page."""

from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from posixpath import dirname, join, normpath
from typing import Any, Final, TypeAlias
from urllib.parse import unquote
from zipfile import ZipFile

from lxml import etree  # type: ignore[import-untyped]

from contracts.sentences import Message
from providers.errors import SourceUnreadable
from providers.reading.canonical_text import DocumentFacts, stated_facts
from providers.reading.character_sets import decode
from providers.reading.html_page import HtmlContent, read_html

Element: TypeAlias = Any  # an element of lxml, which has no type stubs

CONTAINER: Final = "META-INF/container.xml"
ENCRYPTION: Final = "META-INF/encryption.xml"
PAGES: Final = (".xhtml", ".html", ".htm", ".xml")
MAX_CHAPTERS: Final = 10_000


def read_book(raw: bytes, limit: int) -> HtmlContent:
    """Return the chapters as one page, up to about `limit` characters. Raises `SourceUnreadable`, `ValueError`."""
    with ZipFile(BytesIO(raw)) as archive:
        names = set(archive.namelist())
        if ENCRYPTION in names:
            locked = _named(_parsed(archive.read(ENCRYPTION)), "CipherReference")
            if any(each.get("URI", "").lower().endswith(PAGES) for each in locked):
                raise SourceUnreadable("encrypted", Message("skip_protected_book"))
        root = next(_named(_parsed(archive.read(CONTAINER)), "rootfile"), None)
        package_name = ""
        if root is not None:
            package_name = unquote(root.get("full-path", ""))
        package = _parsed(archive.read(package_name))
        pages: list[HtmlContent] = []
        length = 0
        for name in _chapters(package, dirname(package_name)):
            if name in names and length <= limit:
                pages.append(read_html(decode(archive.read(name), charset=None), is_xml=True))
                length += len(pages[-1].html)
    counts = sum((page.left_out for page in pages), Counter[str]())
    return HtmlContent(
        "\n".join(page.html for page in pages), _facts(package), sum(page.visible for page in pages), counts
    )


def _parsed(raw: bytes) -> Element:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    root = etree.fromstring(raw, parser)
    if root is None:
        raise ValueError("a part without elements")
    return root


def _named(root: Element, name: str) -> Iterator[Element]:
    return (
        element for element in root.iter() if isinstance(element.tag, str) and etree.QName(element).localname == name
    )


def _chapters(package: Element, folder: str) -> Iterator[str]:
    """Yield the names of the chapters in reading order; of a book without one, all its pages."""
    items = {item.get("id", ""): item for item in _named(package, "item")}
    order = [
        items[reference.get("idref")] for reference in _named(package, "itemref") if reference.get("idref") in items
    ]
    pages = [item for item in items.values() if "html" in item.get("media-type", "")]
    for item in (order or pages)[:MAX_CHAPTERS]:
        yield normpath(join(folder, unquote(item.get("href", "").partition("#")[0])))


def _facts(package: Element) -> DocumentFacts:
    def texts(name: str) -> list[str]:
        return [" ".join("".join(element.itertext()).split()) for element in _named(package, name)]

    title, date, language = (next(iter(texts(name)), None) for name in ("title", "date", "language"))
    return stated_facts(title, texts("creator"), date, language)
