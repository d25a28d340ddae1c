"""Wikipedia, or another MediaWiki: the search of its Action API, which needs no key."""

from typing import Final
from urllib.parse import quote, urljoin

import httpx2

from contracts.activities import SearchRequest, SearchResponse
from providers.errors import InvalidCall, ProviderError, RateLimited, Unavailable
from providers.search.web_api import ANSWER_SECONDS, Detail, WebApi, Wire
from providers.search.web_errors import Service
from providers.search.web_hits import Found, hits_of, shortened, wanted

DEFAULT_BASE_URL: Final = "https://en.wikipedia.org"
SERVICE: Final = Service("Wikipedia", "WIKIPEDIA_BASE_URL")
LONGEST_QUERY: Final = 300
LAST_OFFSET: Final = 9_999
PASSING: Final = (
    "internal_api_error",
    "maxlag",
    "readonly",
    "search-error",
    "cirrussearch-backend",
    "cirrussearch-too-busy",
)
"""How codes of errors begin that may be gone at the next attempt."""


class WikipediaResult(Wire):
    """One article; the date is that of its last edit."""

    title: str
    snippet: str | None = None
    timestamp: Detail = None


class WikipediaSite(Wire):
    """Where articles stand: `https://host` or `//host`, and a path with `$1` for the title."""

    server: str
    articlepath: str


class WikipediaQuery(Wire):
    """The two lists that were asked for."""

    search: list[WikipediaResult]
    general: WikipediaSite


class WikipediaError(Wire):
    """An error, which comes with status 200."""

    code: str


class WikipediaAnswer(Wire):
    """What `action=query` answers."""

    query: WikipediaQuery | None = None
    error: WikipediaError | None = None


class WikipediaSearch:
    """Articles of one wiki, by default of the English Wikipedia."""

    name = "wikipedia"

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        base_url: str = DEFAULT_BASE_URL,
        timeout_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Raises `NotConfigured`."""
        self._api = WebApi(client, SERVICE, base_url, timeout_seconds=timeout_seconds)

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`."""
        offset = max(0, request.offset)
        if offset > LAST_OFFSET:
            return SearchResponse(provider=self.name)
        parameters: dict[str, str | int] = {
            "action": "query",
            "format": "json",
            "formatversion": 2,
            "list": "search",
            "srsearch": shortened(request.text, LONGEST_QUERY),
            "srlimit": max(1, wanted(request)),
            "sroffset": offset,
            "srprop": "snippet|timestamp",
            "meta": "siteinfo",
            "siprop": "general",
        }
        answer = await self._api.get(WikipediaAnswer, "/w/api.php", parameters)
        if answer.error is not None:
            raise _error(answer.error.code)
        if answer.query is None:
            raise self._api.unexpected()
        site = answer.query.general
        found = (self._found(result, site) for result in answer.query.search)
        return SearchResponse(provider=self.name, hits=hits_of(request, self.name, found))

    def _found(self, result: WikipediaResult, site: WikipediaSite) -> Found:
        path = site.articlepath.replace("$1", quote(result.title.replace(" ", "_"), safe="/:(),'!*;@"))
        url = urljoin(urljoin(self._api.base_url, site.server), path)
        return Found(url=url, title=result.title, snippet=result.snippet, published=result.timestamp)


def _error(code: str) -> ProviderError:
    if code == "ratelimited":
        return RateLimited("Wikipedia asks to wait")
    if code.startswith(PASSING):
        return Unavailable("Wikipedia is not available at the moment")
    return InvalidCall("Wikipedia refuses the search")
