"""Wikipedia, or another MediaWiki: the search of its Action API, which needs no key."""

from typing import Final
from urllib.parse import quote, urljoin, urlsplit

import httpx2

from contracts.messages import SearchRequest, SearchResponse
from providers.errors import InvalidCall, ProviderError, RateLimited, Unavailable
from providers.search.narrowing import Narrowing, narrowing_of, wikipedia_language
from providers.search.service import Service, without_user
from providers.search.web_api import ANSWER_SECONDS, Detail, Records, WebApi, Wire
from providers.search.web_hits import RawResult, hit_limit, respond, shorten_query

DEFAULT_BASE_URL: Final = "https://{language}.wikipedia.org"
PLACE: Final = "{language}"
"""Stands in an address for the language; an address without it is that of one wiki."""
DEFAULT_LANGUAGE: Final = "en"
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
    snippet: Detail = None
    timestamp: Detail = None


class WikipediaSite(Wire):
    """Where articles stand: `https://host` or `//host`, and a path with `$1` for the title."""

    server: str
    articlepath: str


class WikipediaQuery(Wire):
    """The two lists that were asked for."""

    search: Records[WikipediaResult]
    general: WikipediaSite


class WikipediaError(Wire):
    """An error, which comes with status 200."""

    code: str


class WikipediaAnswer(Wire):
    """What `action=query` answers."""

    query: WikipediaQuery | None = None
    error: WikipediaError | None = None


class WikipediaSearch:
    """Articles of the Wikipedia in the language asked for, English by default, or of the one wiki at `base_url`.

    The dates that it gives are those of the last edit, which say nothing of publication.
    """

    name = "wikipedia"

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        base_url: str = DEFAULT_BASE_URL,
        timeout_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Raises `NotConfigured`."""
        self._base_url = base_url
        self._client = client
        self._timeout_seconds = timeout_seconds
        self.address = self._at(DEFAULT_LANGUAGE).base_url
        self.instance = without_user(base_url)

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`."""
        offset = max(0, request.offset)
        if offset > LAST_OFFSET:
            return SearchResponse(provider=self.name)
        narrowing = narrowing_of(request)
        api, warnings = self._wiki(narrowing)
        if self._base_url == DEFAULT_BASE_URL and not narrowing.domains.admit(api.base_url):
            outside = f"{urlsplit(api.base_url).hostname} lies outside the domains and was not asked"
            return SearchResponse(provider=self.name, warnings=[outside])
        parameters: dict[str, str | int] = {
            "action": "query",
            "format": "json",
            "formatversion": 2,
            "list": "search",
            "srsearch": shorten_query(request.text, LONGEST_QUERY),
            "srlimit": max(1, hit_limit(request)),
            "sroffset": offset,
            "srprop": "snippet|timestamp",
            "meta": "siteinfo",
            "siprop": "general",
        }
        answer = await api.get(WikipediaAnswer, "/w/api.php", parameters)
        if answer.error is not None:
            raise _error(answer.error.code)
        if answer.query is None:
            raise api.unexpected()
        site = answer.query.general
        return respond(
            request,
            self.name,
            answer.query.search,
            lambda result: _result(result, site, api.base_url),
            warnings=warnings,
            dates_tell=False,
        )

    def _wiki(self, narrowing: Narrowing) -> tuple[WebApi, list[str]]:
        """Where to ask, and what that leaves of the language asked for."""
        language = narrowing.language
        if PLACE not in self._base_url:
            return self._at(""), ["is one wiki: it cannot keep to a language"] if language else []
        known = wikipedia_language(language or DEFAULT_LANGUAGE)
        if known is None:
            return self._at(DEFAULT_LANGUAGE), [
                f"has no articles in the language {language}: the English ones were asked"
            ]
        return self._at(known), []

    def _at(self, language: str) -> WebApi:
        address = self._base_url.replace(PLACE, language)
        return WebApi(self._client, SERVICE, address, timeout_seconds=self._timeout_seconds)


def _result(result: WikipediaResult, site: WikipediaSite, base_url: str) -> RawResult:
    path = site.articlepath.replace("$1", quote(result.title.replace(" ", "_"), safe="/:(),'!*;@"))
    url = urljoin(urljoin(base_url, site.server), path)
    return RawResult(url=url, title=result.title, snippet=result.snippet, published=result.timestamp)


def _error(code: str) -> ProviderError:
    if code == "ratelimited":
        return RateLimited("Wikipedia asks to wait")
    if code.startswith(PASSING):
        return Unavailable("Wikipedia is not available at the moment")
    return InvalidCall("Wikipedia refuses the search")
