"""What a page says about itself: in its head, for machines, and in the marks of its text."""

import re
from dataclasses import dataclass, field
from typing import Final

from lxml import etree  # type: ignore[import-untyped]

from providers.reading.cleaning import is_name, one_line
from providers.reading.html.json_ld import LinkedData, linked_data_of
from providers.reading.html.rules import Element, beginning_of, names_of
from providers.reading.page_dates import iso_date

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


@dataclass(frozen=True)
class PageMetadata:
    """Statements of the page; empty where it makes none."""

    title: str = ""
    language: str | None = None
    authors: list[str] = field(default_factory=list)
    publisher: str | None = None
    published_at: str | None = None
    free: bool | None = None
    """Whether it says that everybody may read all of it."""


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
        published_at=_published(root, named, linked),
        free=_free(named, linked),
    )


def language_code(value: str | None) -> str | None:
    """The language of a tag such as `de-AT`, or null."""
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


def _published(root: Element, named: dict[str, list[str]], linked: LinkedData) -> str | None:
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


def _free(named: dict[str, list[str]], linked: LinkedData) -> bool | None:
    tier = named.get("article:content_tier", [""])[0].lower()
    if tier in LOCKED:
        return False
    stated = named.get("isaccessibleforfree", [""])[0].lower()
    if stated in {"true", "false"}:
        return stated == "true"
    return linked.free if linked.free is not None or not tier else True


def _root_language(root: Element) -> str:
    return root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or root.get("xml:lang") or ""
