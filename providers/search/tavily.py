"""Tavily: search of the web and of news for programs."""

from typing import Any

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.search.filters import filters_of
from providers.search.hits import RawResult, hit_limit, shorten_query
from providers.search.web_api import Record, WebSearch, Wire

MOST_RESULTS = 20
"""Of one query; the interface has no pages."""


class TavilyResult(Record):
    """One result."""

    url: str
    title: str | None = None
    content: str | None = None
    published_date: str | None = None


class TavilyAnswer(Wire):
    """Answer of `/search`."""

    results: list[Any]


class TavilySearch(WebSearch):
    """A POST with a bearer token; an offset is reached by requesting more results."""

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises what `fetch` does."""
        offset = max(0, request.offset)
        if offset >= MOST_RESULTS:
            return SearchResponse(provider=self.name)
        filters, kind = filters_of(request), "news" if request.source_type is SourceType.NEWS else "web"
        lists = {"include_domains": filters.domains.allow, "exclude_domains": filters.domains.deny}
        # A domain of one label, such as `gov`, is none that the service takes: the hits are filtered afterwards.
        taken = {name: list(hosts) for name, hosts in lists.items() if hosts and all("." in host for host in hosts)}
        partly = len(taken) < sum(map(bool, lists.values()))
        ends = {"start_date": filters.days.first, "end_date": filters.days.last}
        body = {
            "query": shorten_query(request.text, 400),
            "max_results": MOST_RESULTS if partly else min(offset + hit_limit(request), MOST_RESULTS),
            "search_depth": "basic",
            "topic": "news" if kind == "news" else "general",
            "include_answer": False,
            "include_raw_content": False,
            "include_images": False,
            **taken,
            **{name: day.isoformat() for name, day in ends.items() if day is not None},
        }
        results = (await self.post(TavilyAnswer, "/search", body)).results[offset:]

        def read(one: TavilyResult) -> RawResult:
            return RawResult(one.url, one.title, one.content, one.published_date, source_type=kind)

        return self.respond(request, results, TavilyResult, read)
