"""SearXNG: a search engine over others that the operator runs."""

import re
from datetime import date
from typing import Any

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.errors import Unavailable
from providers.search.filters import Days, filters_of, today
from providers.search.hits import RawResult, shorten_query
from providers.search.web_api import Record, WebSearch, Wire

SOURCE_TYPES = {"news": "news", "science": "academic", "scientific publications": "academic"}
"""Category of a result → type of the source; anything else is the web."""
CATEGORIES = {SourceType.WEB: "general", SourceType.NEWS: "news", SourceType.ACADEMIC: "science"}
COMMAND = re.compile(r"(?<!\S)(?:[!:?]+|<(?=[0-9]))(?=\S)")
"""Syntax of an instance at the beginning of a word: engines, redirects, languages, time limits."""


class SearxngResult(Record):
    """One result; only those of scientific engines have authors, journal and DOI."""

    url: str
    title: str | None = None
    content: str | None = None
    publishedDate: str | None = None  # noqa: N815 - the service's own spelling
    category: str | None = None
    authors: list[str] = []
    journal: str | None = None
    doi: str | None = None


class SearxngAnswer(Wire):
    """Answer of `/search?format=json`."""

    results: list[Any]
    unresponsive_engines: list[Any] = []


class SearxngSearch(WebSearch):
    """A GET without a key. The length of a page depends on the instance, so an offset reaches as far as the first one.

    Types of sources are its categories. Days are a range back from today, which skips engines that know no dates.
    """

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises what `fetch` does."""
        filters = filters_of(request)
        allowed, academic = filters.domains.allow, request.source_type is SourceType.ACADEMIC
        site = f" site:{allowed[0]}" if len(allowed) == 1 and not academic else ""
        back = time_range(filters.days, today())
        parameters: dict[str, str | int] = {
            "q": shorten_query(COMMAND.sub("", request.text), 1_000 - len(site)) + site,
            "format": "json",
            "pageno": 1,
            "categories": CATEGORIES[request.source_type],
            **({"language": filters.language} if filters.language else {}),
            **({"time_range": back} if back else {}),
        }
        answer = await self.get(SearxngAnswer, "/search", parameters)
        if not answer.results and answer.unresponsive_engines:
            raise Unavailable("SearXNG: some of its engines gave no answer, the others found nothing")
        rough = "keeps to dates of publication only roughly: hits that state none were kept"
        rest, warnings = answer.results[max(0, request.offset) :], [rough] if filters.days.given else []
        return self.respond(request, rest, SearxngResult, _result, warnings=warnings)


def time_range(days: Days, now: date) -> str | None:
    """The shortest range that reaches back to the first day; None where none does."""
    if days.first is None:
        return None
    back = (now - days.first).days
    return next((name for name, most in (("day", 1), ("week", 7), ("month", 31), ("year", 366)) if back <= most), None)


def _result(result: SearxngResult) -> RawResult:
    return RawResult(
        url=result.url,
        title=result.title,
        snippet=result.content,
        published=result.publishedDate,
        authors=result.authors,
        venue=result.journal,
        doi=result.doi,
        source_type=SOURCE_TYPES.get((result.category or "").lower(), "web"),
    )
