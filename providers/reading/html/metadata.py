"""What a page says about itself: in its head, for machines (schema.org as JSON-LD), and in the marks of its text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from lxml import etree  # type: ignore[import-untyped]

from providers.reading.cleaning import clean, is_name, one_line
from providers.reading.html.rules import Element, beginning_of, names_of
from providers.reading.page_dates import iso_date
from providers.strict_json import JsonError, parse_json

AUTHORS: Final = ("author", "citation_author", "dc.creator", "dcterms.creator", "parsely-author", "sailthru.author")
DATES: Final = (
    "article:published_time", "citation_publication_date", "citation_date", "dc.date", "dcterms.created",
    "dcterms.date", "date", "pubdate", "parsely-pub-date", "sailthru.date", "datepublished",
)  # fmt: skip
CHANGES: Final = ("article:modified_time", "dcterms.modified", "og:updated_time", "last-modified")
PUBLISHERS: Final = ("og:site_name", "citation_publisher", "dc.publisher", "publisher", "application-name")
LOCKED: Final = frozenset(("locked", "metered", "premium", "paid"))
"""Values of `article:content_tier`, whose other one is `free`."""
LANGUAGE: Final = re.compile(r"^[A-Za-z]{2,3}(?=$|[-_])")
PUBLISHED: Final = re.compile(r"publish|pub-?date|posted|entry-date|date-created", re.IGNORECASE)
BYLINE: Final = re.compile(r"(?:^|\s)(?:byline|by-line|author|author-name|p-author|byline-name)(?=\s|$)", re.IGNORECASE)
BY: Final = re.compile(r"^(?:by|von|par|por|di|door)\s+", re.IGNORECASE)
LONGEST_VALUE: Final = 300
LONGEST_BYLINE: Final = 80
MOST_BYLINES: Final = 5
"""More of them name the authors of other pages."""
PERHAPS_BYLINES: Final = etree.XPath(
    ".//@rel[.='author']/.. | .//@itemprop[.='author']/.. | .//@class[contains(., 'by') or contains(., 'author')]/.."
)


MOST_SCRIPTS: Final = 10
MOST_CHARACTERS: Final = 200_000
MOST_NODES: Final = 200
DEPTH: Final = 32
MOST_AUTHORS: Final = 20
WORKS: Final = ("Article", "Posting", "Report", "Book", "Dataset", "CreativeWork", "WebPage", "Page", "Thesis")
"""Ends of the names of types that a page itself can be; those at the front say more."""


@dataclass(frozen=True)
class PageMetadata:
    """Statements of the page; empty where it makes none."""

    title: str = ""
    language: str | None = None
    authors: list[str] = field(default_factory=list)
    publisher: str | None = None
    published_at: str | None = None
    modified_at: str | None = None
    free: bool | None = None
    """Whether it says that it may be read without paying (`isAccessibleForFree`)."""


def metadata_of(root: Element) -> PageMetadata:
    """Read title, language, authors, publisher and date of publication."""
    named = _named_values(root)
    linked = linked_data_of(root)
    title = root.find(".//title")
    words = one_line("".join(title.itertext())) if title is not None else ""
    return PageMetadata(
        title=(words or named.get("og:title", [""])[0])[:LONGEST_VALUE],
        language=language_code(_root_language(root)) or language_code(linked.language),
        authors=_authors(named) or linked.authors or _byline(root),
        publisher=next(
            (named[key][0] for key in PUBLISHERS if key in named and is_name(named[key][0])), linked.publisher
        ),
        published_at=_find_published(root, named, linked),
        free=_free(named, linked),
    )


def language_code(value: str | None) -> str | None:
    """The language of a tag such as `de-AT`, or None."""
    found = LANGUAGE.match((value or "").strip())
    return found.group().lower() if found else None


def _named_values(root: Element) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for meta in root.iter("meta"):
        key = (meta.get("name") or meta.get("property") or meta.get("itemprop") or "").lower()
        value = one_line(meta.get("content") or "")[:LONGEST_VALUE]
        if key and value:
            named.setdefault(key, []).append(value)
    return named


def _authors(named: dict[str, list[str]]) -> list[str]:
    values = next((named[key] for key in AUTHORS if key in named), [])
    return list(dict.fromkeys(value for value in values if is_name(value)))


def _find_published(root: Element, named: dict[str, list[str]], linked: PageMetadata) -> str | None:
    """The date of publication; that of the last change where no other is stated."""
    stated = _first_date(named, DATES) or linked.published_at or _time_element(root)
    return stated or _first_date(named, CHANGES) or linked.modified_at


def _first_date(named: dict[str, list[str]], keys: tuple[str, ...]) -> str | None:
    return next((date for key in keys if key in named and (date := iso_date(named[key][0]))), None)


def _time_element(root: Element) -> str | None:
    """The `<time>` that is marked as the publication, else the only date that any of them has."""
    dates: dict[str, None] = {}
    for element in root.iter("time"):
        date = iso_date(element.get("datetime") or "")
        if date is None:
            continue
        marks = f"{element.get('itemprop', '')} {names_of(element)}"
        if element.get("pubdate") is not None or PUBLISHED.search(marks):
            return date
        dates[date] = None
    return next(iter(dates)) if len(dates) == 1 else None


def _byline(root: Element) -> list[str]:
    """Names in elements that are marked as naming the author, where they are short enough to be names."""
    found: dict[str, None] = {}
    for element in PERHAPS_BYLINES(root):
        if "author" in {element.get("rel"), element.get("itemprop")} or BYLINE.search(element.get("class") or ""):
            words = BY.sub("", one_line(beginning_of(element, 2 * LONGEST_BYLINE) or ""))
            if 3 <= len(words) <= LONGEST_BYLINE and " " in words and not any(map(str.isdigit, words)):
                found[words] = None
    return list(found) if len(found) <= MOST_BYLINES else []


def _free(named: dict[str, list[str]], linked: PageMetadata) -> bool | None:
    tier = named.get("article:content_tier", [""])[0].lower()
    if tier in LOCKED:
        return False
    stated = named.get("isaccessibleforfree", [""])[0].lower()
    if stated in {"true", "false"}:
        return stated == "true"
    return linked.free if linked.free is not None or not tier else True


def _root_language(root: Element) -> str:
    return root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or root.get("xml:lang") or ""


def linked_data_of(root: Element) -> PageMetadata:
    """Merge what the page's JSON-LD says; the most specific work comes first. What is malformed says nothing."""
    works = sorted(_works(root), key=lambda node: _rank(node) or 0)
    statements = [value for work in works if (value := _is_free(work)) is not None]
    return PageMetadata(
        authors=next((names for work in works if (names := _names(work.get("author")))), []),
        publisher=next((names[0] for work in works if (names := _names(work.get("publisher")))), None),
        published_at=next((found for work in works if (found := _date(work, "datePublished"))), None),
        modified_at=next((found for work in works if (found := _date(work, "dateModified"))), None),
        language=next((found for work in works if (found := _string(work.get("inLanguage")))), None),
        free=all(statements) if statements else None,
    )


def _works(root: Element) -> list[dict[str, Any]]:
    texts = [
        script.text or ""
        for script in root.iter("script")
        if (script.get("type") or "").split(";")[0].strip().lower() == "application/ld+json"
    ]
    works = []
    for text in texts[:MOST_SCRIPTS]:
        if len(text) > MOST_CHARACTERS:
            continue
        try:
            value = parse_json(text, max_depth=DEPTH).value
        except JsonError:
            continue
        works += [node for node in _nodes(value) if _rank(node) is not None]
    return works


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """The objects at the top, in lists and in `@graph`, and what a page is mainly about."""
    waiting, count = [value], 0
    while waiting and count < MOST_NODES:
        current = waiting.pop(0)
        if isinstance(current, list):
            waiting += current[:MOST_NODES]
        elif isinstance(current, dict):
            count += 1
            yield current
            waiting += [current[key] for key in ("@graph", "mainEntity") if key in current]


def _rank(node: dict[str, Any]) -> int | None:
    types = node.get("@type")
    names = [name for name in (types if isinstance(types, list) else [types]) if isinstance(name, str)]
    ranks = [rank for name in names for rank, end in enumerate(WORKS) if name.endswith(end)]
    return min(ranks, default=None)


def _is_free(work: dict[str, Any]) -> bool | None:
    parts = work.get("hasPart")
    nodes = [work, *(parts if isinstance(parts, list) else [parts])]
    stated = [node.get("isAccessibleForFree") for node in nodes if isinstance(node, dict)]
    values = [str(value).strip().rpartition("/")[2].lower() for value in stated if value is not None]
    known = [value == "true" for value in values if value in {"true", "false"}]
    return all(known) if known else None


def _names(value: Any) -> list[str]:
    """Names of people or organisations in any of the forms that are in use."""
    found = []
    for item in (value if isinstance(value, list) else [value])[:MOST_AUTHORS]:
        name = item.get("name") if isinstance(item, dict) else item
        names = name if isinstance(name, list) else [name]
        found += [words for entry in names if (words := _string(entry)) and is_name(words)]
    return list(dict.fromkeys(found))


def _date(work: dict[str, Any], key: str) -> str | None:
    value = work.get(key)
    return iso_date(value) if isinstance(value, str) else None


def _string(value: Any) -> str | None:
    return (one_line(clean(value))[:LONGEST_VALUE] or None) if isinstance(value, str) else None
