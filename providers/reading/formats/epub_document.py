"""Books (EPUB): the chapters in the order in which they are read, each as a page of HTML with the book's own styles."""

import posixpath
import re
import zipfile
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import BlockKind, Extraction, TextBuilder
from providers.reading.charsets import decode
from providers.reading.cleaning import clean, one_line
from providers.reading.formats.archives import local_name, open_archive, parse_xml, read_entry, stated_facts
from providers.reading.html.metadata import PageMetadata
from providers.reading.html.page import extraction_of, parse
from providers.reading.html.pregate import check_html
from providers.reading.html.rules import Element

CONTAINER: Final = "META-INF/container.xml"
LOCKS: Final = "META-INF/encryption.xml"
CHAPTERS: Final = frozenset(("application/xhtml+xml", "text/html"))
MOST_CHAPTERS: Final = 2_000
LONGEST_SHEET: Final = 500_000
SELF_CLOSED: Final = re.compile(
    r"<(script|style|title|a|p|div|span|i|b|em|h[1-6]|td|th|li)((?:\s[^<>]*)?)/>", re.IGNORECASE
)
"""Elements that XHTML may close at once, and that HTML would leave open."""
CHAPTERS_LEFT_OUT: Final = "the book is long: only its beginning is kept"


def extract_epub(raw: bytes) -> Extraction:
    """The canonical text of a book. Raises `SourceUnreadable` malformed, too_large, encrypted, no_text."""
    archive = open_archive(raw)
    names = frozenset(archive.namelist())
    package_name = _package_of(parse_xml(read_entry(archive, CONTAINER)))
    package = parse_xml(read_entry(archive, package_name))
    locked = _find_locked(archive, names)
    titles = _titles(archive, names, package, package_name)
    builder = TextBuilder()
    chapters = list(_chapters(package, package_name, names))
    for name in chapters[:MOST_CHAPTERS]:
        if name in locked:
            raise SourceUnreadable("encrypted", "the book is protected against copying")
        _write_chapter(builder, archive, name, titles.get(name, ""))
        if builder.cut:
            break
    builder.cut = builder.cut or len(chapters) > MOST_CHAPTERS
    if not builder.blocks:
        raise SourceUnreadable("no_text", "the book holds no text")
    return builder.finish("application/epub+zip", CHAPTERS_LEFT_OUT, **vars(stated_facts(package)))


def _package_of(container: Element) -> str:
    for element in container.iter():
        if local_name(element) == "rootfile" and (path := element.get("full-path")):
            return str(path)
    raise SourceUnreadable("malformed", "the book does not say where its content is")


def _find_locked(archive: zipfile.ZipFile, names: frozenset[str]) -> set[str]:
    """The entries that only a program with a key can read; fonts are among them in books for everybody."""
    if LOCKS not in names:
        return set()
    root = parse_xml(read_entry(archive, LOCKS))
    return {unquote(element.get("URI", "")) for element in root.iter() if local_name(element) == "CipherReference"}


def _chapters(package: Element, package_name: str, names: frozenset[str]) -> Iterator[str]:
    """The entries of the chapters in reading order, each once; what a reader does not pass through is left out."""
    items = {
        element.get("id"): _resolve(package_name, element.get("href", ""))
        for element in package.iter()
        if local_name(element) == "item" and element.get("media-type") in CHAPTERS
    }
    order = (
        element for element in package.iter() if local_name(element) == "itemref" and element.get("linear") != "no"
    )
    chapters = dict.fromkeys(items.get(element.get("idref"), "") for element in order)
    yield from (name for name in chapters if name in names)


def _titles(archive: zipfile.ZipFile, names: frozenset[str], package: Element, package_name: str) -> dict[str, str]:
    """Entry → title in the table of contents, for chapters that have no heading of their own."""
    found: dict[str, str] = {}
    for item in package.iter():
        if local_name(item) != "item":
            continue
        name = _resolve(package_name, item.get("href", ""))
        if name not in names:
            continue
        if item.get("media-type") == "application/x-dtbncx+xml":
            for point in parse_xml(read_entry(archive, name)).iter():
                if local_name(point) == "navPoint":
                    labels = [child for child in point if local_name(child) == "navLabel"]
                    targets = [child.get("src", "") for child in point if local_name(child) == "content"]
                    _add_title(found, name, labels, targets)
        elif "nav" in (item.get("properties") or "").split():
            for link in parse_xml(read_entry(archive, name)).iter():
                if local_name(link) == "a":
                    _add_title(found, name, [link], [link.get("href", "")])
    return found


def _add_title(found: dict[str, str], name: str, labels: list[Element], targets: list[str]) -> None:
    words = one_line(clean("".join("".join(label.itertext()) for label in labels[:1])))[:300]
    for target in targets[:1]:
        if words:
            found.setdefault(_resolve(name, target), words)


def _resolve(base: str, reference: str) -> str:
    """The entry that a reference leads to; empty for one that leads out of the book."""
    parts = urlsplit(reference)
    if parts.scheme or parts.netloc or not parts.path:
        return ""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(parts.path)))
    return "" if path.startswith(("../", "/")) else path


def _write_chapter(builder: TextBuilder, archive: zipfile.ZipFile, name: str, title: str) -> None:
    markup = SELF_CLOSED.sub(r"<\1\2></\1>", decode(read_entry(archive, name), markup=True))
    check_html(markup)
    try:
        root = parse(markup, lambda href: _sheet(archive, name, href))
    except SourceUnreadable as error:
        if error.kind != "no_text":
            raise
        return
    found = extraction_of(root, PageMetadata())
    if found.blocks and found.blocks[0].kind is not BlockKind.HEADING and title:
        builder.add(BlockKind.HEADING, title, before="# ", level=1)
    builder.extend(found)


def _sheet(archive: zipfile.ZipFile, chapter: str, href: str) -> str:
    """A style sheet of the book; empty if it has none of that name."""
    name = _resolve(chapter, href)
    return decode(read_entry(archive, name))[:LONGEST_SHEET] if name in archive.NameToInfo else ""
