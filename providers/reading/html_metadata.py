"""What a page says about itself in its head."""

import re
from dataclasses import dataclass, field
from typing import Final

from providers.reading.cleaning import one_line
from providers.reading.html_rules import Element

AUTHORS: Final = ("author", "citation_author", "dc.creator", "dcterms.creator")
DATES: Final = (
    "article:published_time", "citation_publication_date", "citation_date", "dc.date", "dcterms.created",
    "dcterms.date", "date", "pubdate", "article:modified_time",
)  # fmt: skip
PUBLISHERS: Final = ("og:site_name", "citation_publisher", "dc.publisher", "publisher")
DATE: Final = re.compile(r"^(\d{4})(?:[-/](\d{1,2})(?:[-/](\d{1,2}))?)?")
LANGUAGE: Final = re.compile(r"^[A-Za-z]{2,3}(?=$|[-_])")
LONGEST_VALUE: Final = 300


@dataclass(frozen=True)
class PageMetadata:
    """Statements of the page; empty where it makes none."""

    title: str = ""
    language: str | None = None
    authors: list[str] = field(default_factory=list)
    publisher: str | None = None
    published_at: str | None = None


def metadata_of(root: Element) -> PageMetadata:
    """Read title, language, authors, publisher and date of publication."""
    named: dict[str, list[str]] = {}
    for meta in root.iter("meta"):
        key = (meta.get("name") or meta.get("property") or "").lower()
        value = one_line(meta.get("content") or "")[:LONGEST_VALUE]
        if key and value:
            named.setdefault(key, []).append(value)
    title = root.find(".//title")
    words = one_line("".join(title.itertext())) if title is not None else ""
    authors = next((named[key] for key in AUTHORS if key in named), [])
    dates = (iso_date(named[key][0]) for key in DATES if key in named)
    return PageMetadata(
        title=(words or named.get("og:title", [""])[0])[:LONGEST_VALUE],
        language=_language(root),
        authors=list(dict.fromkeys(authors)),
        publisher=next((named[key][0] for key in PUBLISHERS if key in named), None),
        published_at=next((date for date in dates if date), None),
    )


def iso_date(value: str) -> str | None:
    """The date at the start of a value as far as it goes (`2024`, `2024-05`, `2024-05-17`), or null."""
    found = DATE.match(value.strip())
    if found is None:
        return None
    return "-".join(part if len(part) == 4 else part.zfill(2) for part in found.groups() if part)


def _language(root: Element) -> str | None:
    value = root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or root.get("xml:lang") or ""
    found = LANGUAGE.match(value.strip())
    return found.group().lower() if found else None
