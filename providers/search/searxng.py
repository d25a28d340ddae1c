"""SearXNG: a search engine over others that one runs oneself."""

from typing import Any, Final

import httpx2

from contracts.activities import SearchRequest, SearchResponse
from providers.errors import Unavailable
from providers.search.web_api import ANSWER_SECONDS, Detail, Details, WebApi, Wire
from providers.search.web_errors import Service
from providers.search.web_hits import Found, hits_of, shortened

SERVICE: Final = Service(
    "SearXNG", "SEARXNG_URL", refused_hint="its settings must allow json under search.formats, and this client"
)
LONGEST_QUERY: Final = 1_000
SOURCE_TYPES: Final = {"news": "news", "science": "academic", "scientific publications": "academic"}
"""Category of a result → type of the source; anything else is the web."""


class SearxngResult(Wire):
    """One result; only those of scientific engines have authors, journal and DOI."""

    url: str | None = None
    title: str | None = None
    content: str | None = None
    publishedDate: Detail = None  # noqa: N815 - the service's own spelling
    category: Detail = None
    authors: Details = []
    journal: Detail = None
    doi: Detail = None


class SearxngAnswer(Wire):
    """What `/search?format=json` answers."""

    results: list[SearxngResult]
    unresponsive_engines: list[Any] = []


class SearxngSearch:
    """How long a page is depends on the instance, so an offset reaches as far as the first one does."""

    name = "searxng"

    def __init__(self, client: httpx2.AsyncClient, *, base_url: str, timeout_seconds: float = ANSWER_SECONDS) -> None:
        """Raises `NotConfigured`."""
        self._api = WebApi(client, SERVICE, base_url, timeout_seconds=timeout_seconds)

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`."""
        parameters: dict[str, str | int] = {"q": shortened(request.text, LONGEST_QUERY), "format": "json", "pageno": 1}
        answer = await self._api.get(SearxngAnswer, "/search", parameters)
        if not answer.results and answer.unresponsive_engines:
            raise Unavailable("SearXNG: engines that it asked gave no answer, the others found nothing")
        found = (_found(result) for result in answer.results[max(0, request.offset) :])
        return SearchResponse(provider=self.name, hits=hits_of(request, self.name, found))


def _found(result: SearxngResult) -> Found:
    return Found(
        url=result.url,
        title=result.title,
        snippet=result.content,
        published=result.publishedDate,
        authors=result.authors,
        venue=result.journal,
        doi=result.doi,
        source_type=SOURCE_TYPES.get((result.category or "").lower(), "web"),
    )
