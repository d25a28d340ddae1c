"""Tavily: web search for programs, by POST with a bearer token."""

from typing import Final

import httpx2

from contracts.activities import SearchRequest, SearchResponse
from providers.search.web_api import ANSWER_SECONDS, Detail, WebApi, Wire
from providers.search.web_errors import Service
from providers.search.web_hits import Found, hits_of, shortened, wanted

DEFAULT_BASE_URL: Final = "https://api.tavily.com"
SERVICE: Final = Service("Tavily", "TAVILY_BASE_URL", "TAVILY_API_KEY")
MOST_RESULTS: Final = 20
LONGEST_QUERY: Final = 400


class TavilyResult(Wire):
    """One result."""

    url: str | None = None
    title: str | None = None
    content: str | None = None
    published_date: Detail = None


class TavilyAnswer(Wire):
    """What `/search` answers."""

    results: list[TavilyResult]


class TavilySearch:
    """Its interface knows no pages: an offset is reached by asking for more, up to the 20 results that it gives."""

    name = "tavily"

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        api_key: str,
        base_url: str = DEFAULT_BASE_URL,
        timeout_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Raises `NotConfigured`."""
        headers = {"authorization": f"Bearer {api_key}"}
        self._api = WebApi(client, SERVICE, base_url, headers=headers, timeout_seconds=timeout_seconds)

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`."""
        offset = max(0, request.offset)
        if offset >= MOST_RESULTS:
            return SearchResponse(provider=self.name)
        body = {
            "query": shortened(request.text, LONGEST_QUERY),
            "max_results": min(offset + wanted(request), MOST_RESULTS),
            "search_depth": "basic",
            "topic": "general",
            "include_answer": False,
            "include_raw_content": False,
            "include_images": False,
        }
        answer = await self._api.post(TavilyAnswer, "/search", body)
        found = (_found(result) for result in answer.results[offset:])
        return SearchResponse(provider=self.name, hits=hits_of(request, self.name, found))


def _found(result: TavilyResult) -> Found:
    return Found(url=result.url, title=result.title, snippet=result.content, published=result.published_date)
