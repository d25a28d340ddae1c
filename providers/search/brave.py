"""Brave Search: an index of its own, by GET with a subscription token."""

from typing import Final

import httpx2

from contracts.activities import SearchRequest, SearchResponse
from providers.search.web_api import ANSWER_SECONDS, Detail, WebApi, Wire
from providers.search.web_errors import Service
from providers.search.web_hits import Found, hits_of, shortened, wanted

DEFAULT_BASE_URL: Final = "https://api.search.brave.com"
SERVICE: Final = Service("Brave Search", "BRAVE_BASE_URL", "BRAVE_API_KEY")
LONGEST_PAGE: Final = 20
LAST_PAGE: Final = 9
LONGEST_QUERY: Final = 400
MOST_WORDS: Final = 50


class BraveResult(Wire):
    """One result; `page_age` is the date of the page, `age` the same for people."""

    url: str | None = None
    title: str | None = None
    description: str | None = None
    page_age: Detail = None


class BraveWeb(Wire):
    """The results of the web."""

    results: list[BraveResult]


class BraveAnswer(Wire):
    """What `/res/v1/web/search` answers; without results of the web the part is missing."""

    type: str
    web: BraveWeb | None = None


class BraveSearch:
    """Its offset counts pages, ours results: a page is chosen that holds what is asked for."""

    name = "brave"

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        api_key: str,
        base_url: str = DEFAULT_BASE_URL,
        timeout_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Raises `NotConfigured`."""
        headers = {"x-subscription-token": api_key}
        self._api = WebApi(client, SERVICE, base_url, headers=headers, timeout_seconds=timeout_seconds)

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`."""
        offset = max(0, request.offset)
        length, page = page_for(offset, max(1, wanted(request)))
        if page > LAST_PAGE:
            return SearchResponse(provider=self.name)
        parameters: dict[str, str | int] = {
            "q": shortened(request.text, LONGEST_QUERY, MOST_WORDS),
            "count": length,
            "offset": page,
            "result_filter": "web",
            "text_decorations": "false",
        }
        answer = await self._api.get(BraveAnswer, "/res/v1/web/search", parameters)
        results = answer.web.results if answer.web else []
        found = (_found(result) for result in results[offset - length * page :])
        return SearchResponse(provider=self.name, hits=hits_of(request, self.name, found))


def page_for(offset: int, count: int) -> tuple[int, int]:
    """Length and number, from 0, of the page that holds `count` results from `offset` on, or as many as possible."""
    count = min(count, LONGEST_PAGE)
    for length in range(count, LONGEST_PAGE + 1):
        page = offset // length
        if page <= LAST_PAGE and (offset + count - 1) // length == page:
            return length, page
    return LONGEST_PAGE, offset // LONGEST_PAGE


def _found(result: BraveResult) -> Found:
    return Found(url=result.url, title=result.title, snippet=result.description, published=result.page_age)
