"""From a service's results to hits: only addresses that can be read, only text that can be shown."""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

from contracts.addresses import canonical_url
from contracts.evidence import SearchHit
from contracts.messages import SearchRequest
from providers.reading.canonical_text import UNSEEN, clean, iso_date, one_line
from providers.search.filters import filters_of
from providers.text import meaning_words, words

MAX_RESULTS: Final = 50
MAX_URL_LENGTH: Final = 2_000
MAX_TITLE_LENGTH: Final = 300
MAX_SNIPPET_LENGTH: Final = 1_000
MAX_ABSTRACT_LENGTH: Final = 6_000
"""Characters of an abstract: the longest structured ones of medicine have about 4,000."""
MAX_NAME_LENGTH: Final = 120
MAX_AUTHORS: Final = 20
TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>|<!--[^<>]*-->|<![A-Za-z][^<>]*>|&#[0-9]{100,};?")
"""Markup, and numeric character references too long for Python to read."""
OPERATORS: Final = frozenset({"and", "or", "not", "andnot"})
"""Words that some services take for operators, in any case."""
DOI: Final = re.compile(r"(?<![0-9.])10\.[0-9]{4,9}/[^\s\"]{1,200}(?!\S)")
"""Matched whole or not at all: a part may be the beginning of many identifiers."""


@dataclass(frozen=True)
class RawResult:
    """One result as the service sent it, untrusted."""

    url: str | None
    title: str | None = None
    snippet: str | None = None
    published: str | None = None
    authors: Sequence[str | None] = ()
    venue: str | None = None
    doi: str | None = None
    source_type: str = "web"
    abstract: str | None = None
    """Abstract of a paper, without markup; its line breaks are those between paragraphs."""
    is_open: bool = True
    """False for a paper whose text nobody may read at the URL: its abstract is read, if there is one."""
    expects_pdf: bool = False
    """True if the URL is that of a PDF."""


def text_at(value: Any, *path: str) -> str | None:
    """Return the text at a path of a service's answer; None if it is missing or not text."""
    text = _value_at(value, path)
    return text if isinstance(text, str) else None


def list_at(value: Any, *path: str) -> list[Any] | None:
    """Return the list at a path of a service's answer; None if it is missing or no list."""
    items = _value_at(value, path)
    if not isinstance(items, list):
        return None
    return items


def _value_at(value: Any, path: Iterable[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def hit_limit(request: SearchRequest) -> int:
    """Return the requested number of hits, within bounds."""
    return min(request.max_results, MAX_RESULTS)


def hits_of(request: SearchRequest, provider: str, results: Iterable[RawResult | None]) -> list[SearchHit]:
    """Return the hits of a request; the rank of a hit is its position in the service's own list.

    Drops results without a usable address, duplicates, and results outside the domains and days of the request, even if
    the service was given these.
    """
    filters = filters_of(request)
    hits: list[SearchHit] = []
    seen: set[str] = set()
    for rank, result in enumerate(results, start=1):
        if len(hits) >= hit_limit(request):
            break
        url = usable_url(result.url) if result else None
        if result is None or url is None or canonical_url(url) in seen or not filters.domains.admit(url):
            continue
        published = iso_date(result.published)
        if published is not None and filters.days.exclude(published):
            continue
        seen.add(canonical_url(url))
        authors = (plain(name, MAX_NAME_LENGTH) for name in result.authors[:MAX_AUTHORS])
        doi = DOI.search(result.doi or "")
        abstract = paragraphs(result.abstract, MAX_ABSTRACT_LENGTH)
        hit = SearchHit(
            url=url,
            title=plain(result.title, MAX_TITLE_LENGTH) or urlsplit(url).netloc,
            snippet=plain(result.snippet, MAX_SNIPPET_LENGTH),
            rank=rank,
            provider=provider,
            source_type=result.source_type,
            published_at=published,
            authors=[name for name in dict.fromkeys(authors) if name],
            venue=plain(result.venue, MAX_TITLE_LENGTH) or None,
            doi=doi.group().rstrip(".,;") if doi else None,
            abstract=abstract,
            abstract_only=bool(abstract) and not result.is_open,
            expects_pdf=result.expects_pdf,
        )
        hits.append(hit)
    return hits


def usable_url(text: str | None) -> str | None:
    """Return an absolute http(s) address without a fragment; None for anything else, or for a misleading address."""
    url = (text or "").strip().replace(" ", "%20")
    if len(url) > MAX_URL_LENGTH or UNSEEN.search(url) or re.search(r"[\s\\]", url):
        return None
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port  # raises ValueError for one that is none
    except ValueError:
        return None
    if parts.scheme.lower() not in {"http", "https"} or not host or "@" in parts.netloc:
        return None
    return parts._replace(fragment="").geturl()


def plain(text: str | None, limit: int) -> str:
    """Return one line without markup, control, bidirectional or invisible characters, of limited length."""
    # Markup is removed from up to eight times the length, so that enough text remains.
    line = one_line(clean(html.unescape(TAG.sub("", (text or "")[: limit * 8]))))
    if len(line) <= limit:
        return line
    return line[: limit - 1].rstrip() + "…"


def paragraphs(text: str | None, limit: int) -> str:
    """Return paragraphs of clean text with a blank line between them, at most `limit` characters in all."""
    lines = map(one_line, clean((text or "")[: limit * 8]).split("\n"))
    written = "\n\n".join(filter(None, lines))
    if len(written) <= limit:
        return written
    whole, _, _ = written[:limit].rpartition(" ")
    return f"{whole.rstrip()} …"


def doi_url(doi: str) -> str:
    """Return the address of a paper by its digital object identifier."""
    return f"https://doi.org/{quote(doi, safe='/:;()._-', errors='replace')}"


def content_words(request: SearchRequest, characters: int) -> list[str]:
    """Return the distinct words of a query that name its subject, in order and lower case; if none does, all of them.

    For services whose query language has operators: a word has letters and digits, perhaps joined by a sign such as
    `-`, and is no operator.
    """
    query = shorten_query(request.text, characters)
    named = meaning_words(query, request.language or "en") or words(query)
    return [word for word in dict.fromkeys(map(str.lower, named)) if word not in OPERATORS]


def shorten_query(text: str, characters: int, words: int | None = None) -> str:
    """Cut a query at a word boundary to the limits of a service."""
    query = " ".join(one_line(clean(text)).split(" ")[:words])
    if len(query) <= characters:
        return query
    whole, _, _ = query[: characters + 1].rpartition(" ")
    return whole or query[:characters]
