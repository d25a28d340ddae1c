"""Wikipedia, or another MediaWiki: the search of its Action API, which needs no key."""

from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from contracts.messages import SearchRequest, SearchResponse
from providers.errors import InvalidCall, ProviderError, RateLimited, Unavailable
from providers.search.filters import filters_of
from providers.search.hits import RawResult, hit_limit, shorten_query
from providers.search.web_api import Record, WebSearch, Wire

PLACE = "{language}"
"""Part of an address in place of the language; an address without it is that of one wiki."""
LAST_OFFSET = 9_999
LANGUAGES = frozenset(
    """af an ar ast az be bg bn br bs ca ceb ckb cs cy da de el en eo es et eu fa fi fr fy ga gl he hi hr hu hy id is it
    ja ka kk ko ku ky la lb lt lv mk ml mn mr ms my ne nl nn no oc pa pl ps pt ro ru sh si sk sl sq sr sv sw ta te tg th
    tl tr tt uk ur uz vi vo war zh zu""".split()
)
"""Languages with a Wikipedia of more than 10,000 articles whose host begins with the code."""
PASSING = ("internal_api_error", "maxlag", "readonly", "search-error", "cirrussearch-")
"""Beginnings of the codes of errors that may be gone at the next attempt."""


class WikipediaResult(Record):
    """One article; `timestamp` is the time of its last edit."""

    title: str
    snippet: str | None = None
    timestamp: str | None = None


class WikipediaSite(Wire):
    """Addresses of articles: `https://host` or `//host`, and a path with `$1` for the title."""

    server: str
    articlepath: str


class WikipediaQuery(Wire):
    """The two lists of one request."""

    search: list[Any]
    general: WikipediaSite


class WikipediaAnswer(Wire):
    """Answer of `action=query`; an error comes with status 200."""

    query: WikipediaQuery | None = None
    error: dict[str, Any] = {}


class WikipediaSearch(WebSearch):
    """Articles of the Wikipedia in the requested language, English by default, or of the one wiki at an address."""

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises what `fetch` does."""
        offset, filters = max(0, request.offset), filters_of(request)
        if offset > LAST_OFFSET:
            return SearchResponse(provider=self.name)
        language = "no" if filters.language == "nb" else filters.language or "en"
        warnings: list[str] = []
        if PLACE in self.address and language not in LANGUAGES:
            warnings, language = [f"has no articles in the language {language}: the English ones were asked"], "en"
        if PLACE not in self.address and filters.language:
            warnings = ["is one wiki: it cannot keep to a language"]
        address = self.address.replace(PLACE, language)
        # All articles have one host: outside the domains there is nothing to find.
        if self.address == self.declaration.address and not filters.domains.admit(address):
            outside = f"{urlsplit(address).hostname} lies outside the domains and was not asked"
            return SearchResponse(provider=self.name, warnings=[outside])
        parameters: dict[str, str | int] = {
            "action": "query",
            "format": "json",
            "formatversion": 2,
            "list": "search",
            "srsearch": shorten_query(request.text, 300),
            "srlimit": max(1, hit_limit(request)),
            "sroffset": offset,
            "srprop": "snippet|timestamp",
            "meta": "siteinfo",
            "siprop": "general",
        }
        answer = self.parse(WikipediaAnswer, await self.fetch("GET", f"{address}/w/api.php", params=parameters))
        if answer.error:
            raise _error(str(answer.error.get("code")))
        if answer.query is None:
            raise self.unexpected()
        wiki = answer.query.general
        place = urljoin(urljoin(address, wiki.server), wiki.articlepath)

        def read(article: WikipediaResult) -> RawResult:
            url = place.replace("$1", quote(article.title.replace(" ", "_"), safe="/:(),'!*;@"))
            return RawResult(url, article.title, article.snippet, article.timestamp)

        return self.respond(
            request, answer.query.search, WikipediaResult, read, warnings=warnings, dates_of_publication=False
        )


def _error(code: str) -> ProviderError:
    if code == "ratelimited":
        return RateLimited("Wikipedia asks to wait")
    if code.startswith(PASSING):
        return Unavailable("Wikipedia is not available at the moment")
    return InvalidCall("Wikipedia refuses the search")
