"""Tavily: search of the web and of news for programs."""

from typing import Any

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.search.filters import Filters
from providers.search.hits import RawResult, hit_limit, list_at, read_result, shorten_query
from providers.search.web_api import WebSearch


class TavilySearch(WebSearch):
    """A POST with a bearer token; an offset is reached by requesting more results."""

    most_results = 20  # the interface has no pages

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make the search of one request."""
        kind = "news" if request.source_type is SourceType.NEWS else "web"
        lists = {"include_domains": filters.domains.allow, "exclude_domains": filters.domains.deny}
        # The service takes no domain of one label, such as `gov`: the hits are filtered afterwards.
        taken = {name: list(hosts) for name, hosts in lists.items() if hosts and all("." in host for host in hosts)}
        partly = len(taken) < sum(map(bool, lists.values()))
        ends = {"start_date": filters.days.first, "end_date": filters.days.last}
        body = {
            "query": shorten_query(request.text, 400),
            "max_results": self.most_results if partly else min(request.offset + hit_limit(request), self.most_results),
            "search_depth": "basic",
            "topic": "news" if kind == "news" else "general",
            "include_answer": False,
            "include_raw_content": False,
            "include_images": False,
            **taken,
            **{name: day.isoformat() for name, day in ends.items() if day is not None},
        }
        found = list_at(await self.post("/search", body), "results")

        def read(one: dict[str, Any]) -> RawResult:
            return read_result(one, snippet="content", published="published_date", source_type=kind)

        return self.respond(request, found and found[request.offset :], read)
