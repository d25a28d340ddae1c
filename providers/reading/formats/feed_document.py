"""Feeds (RSS, Atom): each entry is a heading with its summary. Other XML is refused.

The parser resolves no entities, loads nothing and takes no document type: there is nothing for a bomb to grow from.
"""

import re
from typing import Final

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import BlockKind, Extraction, TextBuilder
from providers.reading.cleaning import clean, escape_markup, one_line
from providers.reading.formats.archives import local_name, parse_xml
from providers.reading.html.page import extract_html
from providers.reading.html.pregate import TAG_LIMIT
from providers.reading.html.rules import Element
from providers.reading.page_dates import iso_date

ENTRIES: Final = 500
LONGEST_SUMMARY: Final = 20_000
DOCTYPE: Final = re.compile(r"<!(?:DOCTYPE|ENTITY|ELEMENT|ATTLIST)", re.IGNORECASE)
ROOTS: Final = {"rss": "application/rss+xml", "RDF": "application/rss+xml", "feed": "application/atom+xml"}
SUMMARIES: Final = ("encoded", "content", "description", "summary")
DATES: Final = ("pubDate", "published", "updated", "date", "lastBuildDate")


def extract_feed(text: str) -> Extraction:
    """The canonical text of a feed. Raises `SourceUnreadable` wrong_type, malformed, too_large, no_text."""
    root = _parse(text)
    if local_name(root) not in ROOTS:
        raise SourceUnreadable("wrong_type", "XML that is no feed is not read as a document")
    channel = next((child for child in root if local_name(child) == "channel"), root)
    entries = [element for element in root.iter() if local_name(element) in {"item", "entry"}]
    builder = TextBuilder()
    title = _child_text(channel, ("title",))
    for kind, words in ((BlockKind.HEADING, title), (BlockKind.PARAGRAPH, _summary(channel))):
        _add(builder, kind, words, level=1)
    for entry in entries[:ENTRIES]:
        _add(builder, BlockKind.HEADING, _child_text(entry, ("title",)), level=2)
        _add(builder, BlockKind.PARAGRAPH, _date(entry) or "")
        _add(builder, BlockKind.PARAGRAPH, _summary(entry))
    if not builder.blocks:
        raise SourceUnreadable("no_text", "the feed holds no text")
    builder.cut = builder.cut or len(entries) > ENTRIES
    return builder.finish(
        ROOTS[local_name(root)],
        title=title[:300],
        language=_child_text(channel, ("language",)) or root.get("{http://www.w3.org/XML/1998/namespace}lang"),
        published_at=_date(channel),
    )


def _parse(text: str) -> Element:
    if DOCTYPE.search(text):
        raise SourceUnreadable("malformed", "the document declares a type or entities of its own")
    if text.count("<") > 2 * TAG_LIMIT:
        raise SourceUnreadable("too_large", f"the document has more than {TAG_LIMIT} elements")
    return parse_xml(clean(text).strip().encode("utf-8"), "utf-8")


def _add(builder: TextBuilder, kind: BlockKind, words: str, level: int = 0) -> None:
    if not words:
        return
    if kind is BlockKind.HEADING:
        builder.add(kind, words, before="#" * level + " ", level=level)
    else:
        builder.add(kind, escape_markup(words))


def _child_text(element: Element, names: tuple[str, ...]) -> str:
    for name in names:
        for child in element:
            if local_name(child) == name and (words := one_line("".join(child.itertext()))):
                return words
    return ""


def _date(element: Element) -> str | None:
    return iso_date(_child_text(element, DATES))


def _summary(element: Element) -> str:
    """The words of a summary, which is HTML more often than not."""
    raw = _child_text(element, SUMMARIES)[:LONGEST_SUMMARY]
    if "<" not in raw and "&" not in raw:
        return raw
    try:
        return one_line(extract_html(f"<body>{raw}</body>").text.replace("\n", " "))
    except SourceUnreadable:
        return ""
