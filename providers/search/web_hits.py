"""From what a service found to hits: only addresses that can be read, only text that can be shown."""

import html
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import urlsplit

from contracts.addresses import canonical_url
from contracts.evidence import SearchHit
from contracts.messages import SearchRequest, SearchResponse
from providers.reading.canonical_text import UNSEEN, clean, one_line
from providers.reading.page_dates import iso_date
from providers.search.availability import TRAITS
from providers.search.narrowing import narrowing_of, unmet

MOST_RESULTS: Final = 50
LONGEST_URL: Final = 2_000
LONGEST_TITLE: Final = 300
LONGEST_SNIPPET: Final = 1_000
LONGEST_NAME: Final = 120
MOST_AUTHORS: Final = 20
MARKUP_SHARE: Final = 8
"""A text is looked at up to so many times its limit, to leave room for the markup that is taken out."""

TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>|<!--[^<>]*-->|<![A-Za-z][^<>]*>")
LONG_REFERENCE: Final = re.compile(r"&#[0-9]{100,};?")
"""Names no sign, and Python refuses to read numbers of thousands of digits."""
DOI: Final = re.compile(r"(?<![0-9.])10\.[0-9]{4,9}/[^\s\"]{1,200}(?!\S)")
"""Whole or not at all: what is cut off at a sign or a length may be the beginning of many identifiers."""


@dataclass(frozen=True)
class RawResult:
    """One result as the service gave it: nothing in it is trusted. One without an address only keeps its place."""

    url: str | None
    title: str | None = None
    snippet: str | None = None
    published: str | None = None
    authors: Sequence[str | None] = ()
    venue: str | None = None
    doi: str | None = None
    source_type: str = "web"


Record = TypeVar("Record")


def hit_limit(request: SearchRequest) -> int:
    """The requested number of hits, within bounds."""
    return max(0, min(request.max_results, MOST_RESULTS))


def respond(
    request: SearchRequest,
    provider: str,
    records: Iterable[Record | None],
    read: Callable[[Record], RawResult],
    *,
    warnings: Sequence[str] = (),
    dates_tell: bool = True,
) -> SearchResponse:
    """The response: hits, what of the request the provider cannot do, and a cost that is unknown where plans decide.

    `records` are the service's, None for one that is not of the documented form; `warnings` are those that only the
    provider knows; `dates_tell` is false where a date is not that of publication.
    """
    traits = TRAITS[provider]
    found = (read(record) if record is not None else RawResult(url=None) for record in records)
    return SearchResponse(
        provider=provider,
        hits=hits_of(request, provider, found, dates_tell=dates_tell),
        cost_usd=None if traits.paid else 0.0,
        warnings=[*unmet(request, traits), *warnings],
    )


def hits_of(
    request: SearchRequest, provider: str, found: Iterable[RawResult], *, dates_tell: bool = True
) -> list[SearchHit]:
    """Hits in rank order, the first of `found` being the one at the request's offset.

    A rank is the place in the service's own list, so that it is the same whatever else was left out: results without
    a usable address, repetitions of one, and what lies outside the domains and the days of publication asked for,
    whatever the service made of these.
    """
    narrowing = narrowing_of(request)
    hits: list[SearchHit] = []
    seen: set[str] = set()
    for rank, result in enumerate(found, start=max(0, request.offset) + 1):
        if len(hits) >= hit_limit(request):
            break
        url = usable_url(result.url)
        if url is None or canonical_url(url) in seen or not narrowing.domains.admit(url):
            continue
        if dates_tell and narrowing.days.exclude(iso_date(result.published)):
            continue
        seen.add(canonical_url(url))
        hits.append(_hit(result, url, rank, provider))
    return hits


def _hit(result: RawResult, url: str, rank: int, provider: str) -> SearchHit:
    authors = (plain(name, LONGEST_NAME) for name in result.authors[:MOST_AUTHORS])
    return SearchHit(
        url=url,
        title=plain(result.title, LONGEST_TITLE) or urlsplit(url).netloc,
        snippet=plain(result.snippet, LONGEST_SNIPPET),
        rank=rank,
        provider=provider,
        source_type=result.source_type,
        published_at=iso_date(result.published),
        authors=[name for name in dict.fromkeys(authors) if name],
        venue=plain(result.venue, LONGEST_TITLE) or None,
        doi=usable_doi(result.doi),
    )


def usable_url(text: str | None) -> str | None:
    """An absolute http(s) address without a fragment; None for anything else, or for one that hides where it leads."""
    url = (text or "").strip().replace(" ", "%20")
    if len(url) > LONGEST_URL or UNSEEN.search(url) or re.search(r"[\s\\]", url):
        return None
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme.lower() not in {"http", "https"} or not host or "@" in parts.netloc:
        return None
    return parts._replace(fragment="").geturl()


def usable_doi(text: str | None) -> str | None:
    """The bare identifier, as long as it may be, or None: old ones hold `<` and `>`."""
    found = DOI.search(text or "")
    return found.group().rstrip(".,;") if found else None


def plain(text: str | None, longest: int) -> str:
    """One line without markup, control, bidirectional or invisible characters, at most `longest` characters."""
    given = TAG.sub("", (text or "")[: longest * MARKUP_SHARE])
    line = one_line(clean(html.unescape(LONG_REFERENCE.sub("", given))))
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def shorten_query(text: str, characters: int, words: int | None = None) -> str:
    """A query cut at a word to what a service accepts."""
    kept = one_line(clean(text)).split(" ")[:words]
    query = " ".join(kept)
    if len(query) <= characters:
        return query
    whole, _, _ = query[: characters + 1].rpartition(" ")
    return whole or query[:characters]
