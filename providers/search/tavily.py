"""Tavily: search of the web and of news for programs, by POST with a bearer token."""

from dataclasses import dataclass
from typing import Any, Final

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.search.narrowing import Narrowing, narrowing_of
from providers.search.service import Service
from providers.search.web_api import Detail, Records, WebSearch, Wire
from providers.search.web_hits import RawResult, hit_limit, respond, shorten_query

SERVICE: Final = Service("Tavily", "TAVILY_BASE_URL", "TAVILY_API_KEY", address="https://api.tavily.com")
MOST_RESULTS: Final = 20
LONGEST_QUERY: Final = 400


class TavilyResult(Wire):
    """One result."""

    url: str
    title: Detail = None
    content: Detail = None
    published_date: Detail = None


class TavilyAnswer(Wire):
    """What `/search` answers."""

    results: Records[TavilyResult]


class TavilySearch(WebSearch):
    """Its interface knows no pages: an offset is reached by asking for more, up to the 20 results that it gives.

    It is given domains (300 to keep to and 150 to avoid are its limits, above ours) and days; it knows no language.
    """

    name = "tavily"
    service = SERVICE

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`."""
        offset = max(0, request.offset)
        if offset >= MOST_RESULTS:
            return SearchResponse(provider=self.name)
        news = request.source_type is SourceType.NEWS
        filters = _filters(narrowing_of(request))
        body = {
            "query": shorten_query(request.text, LONGEST_QUERY),
            "max_results": MOST_RESULTS if filters.partly else min(offset + hit_limit(request), MOST_RESULTS),
            "search_depth": "basic",
            "topic": "news" if news else "general",
            "include_answer": False,
            "include_raw_content": False,
            "include_images": False,
            **filters.parameters,
        }
        answer = await self._api.post(TavilyAnswer, "/search", body)
        kind = "news" if news else "web"
        return respond(request, self.name, answer.results[offset:], lambda result: _result(result, kind))


@dataclass(frozen=True)
class TavilyFilters:
    """Parameters for domains and days; `partly` if some domains are left to the filter on the hits."""

    parameters: dict[str, Any]
    partly: bool


def _filters(narrowing: Narrowing) -> TavilyFilters:
    """A domain of one label, such as `gov`, is none that the service takes."""
    domains, days = narrowing.domains, narrowing.days
    lists = {"include_domains": domains.allow, "exclude_domains": domains.deny}
    taken = {name: list(given) for name, given in lists.items() if given and all("." in host for host in given)}
    ends = {"start_date": days.first, "end_date": days.last}
    dates = {name: day.isoformat() for name, day in ends.items() if day is not None}
    return TavilyFilters({**taken, **dates}, partly=len(taken) < sum(bool(given) for given in lists.values()))


def _result(result: TavilyResult, kind: str) -> RawResult:
    return RawResult(
        url=result.url,
        title=result.title,
        snippet=result.content,
        published=result.published_date,
        source_type=kind,
    )
