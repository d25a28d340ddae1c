"""What a page says of itself for machines: schema.org as JSON-LD, within strict limits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from providers.reading.cleaning import clean, is_name, one_line
from providers.reading.html.rules import Element
from providers.reading.page_dates import iso_date
from providers.strict_json import JsonError, parse_json

MOST_SCRIPTS: Final = 10
MOST_CHARACTERS: Final = 200_000
MOST_NODES: Final = 200
DEPTH: Final = 32
LONGEST_VALUE: Final = 300
MOST_AUTHORS: Final = 20
WORKS: Final = ("Article", "Posting", "Report", "Book", "Dataset", "CreativeWork", "WebPage", "Page", "Thesis")
"""Ends of the names of types that a page itself can be; those at the front say more."""


@dataclass(frozen=True)
class LinkedData:
    """Statements of the page; null or empty where it makes none."""

    authors: list[str] = field(default_factory=list)
    publisher: str | None = None
    published_at: str | None = None
    modified_at: str | None = None
    language: str | None = None
    free: bool | None = None
    """Whether it says that everybody may read it all (`isAccessibleForFree`)."""


def linked_data_of(root: Element) -> LinkedData:
    """Merge what the page's JSON-LD says; the most specific work comes first. What is malformed says nothing."""
    works = sorted(_works(root), key=lambda node: _rank(node) or 0)
    statements = [value for work in works if (value := _free(work)) is not None]
    return LinkedData(
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


def _free(work: dict[str, Any]) -> bool | None:
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
