"""Wikipedia, or another MediaWiki: the search of its Action API, which needs no key."""

from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from contracts.messages import SearchRequest, SearchResponse
from providers.errors import InvalidCall, RateLimited
from providers.search.filters import Filters
from providers.search.hits import RawResult, hit_limit, list_at, shorten_query, text_at
from providers.search.web_api import MALFORMED, WebSearch

PLACE = "{language}"
"""Part of an address in place of the language; an address without it is that of one wiki."""
LANGUAGES = frozenset(
    """af an ar ast az be bg bn br bs ca ceb ckb cs cy da de el en eo es et eu fa fi fr fy ga gl he hi hr hu hy id is it
    ja ka kk ko ku ky la lb lt lv mk ml mn mr ms my ne nl nn no oc pa pl ps pt ro ru sh si sk sl sq sr sv sw ta te tg th
    tl tr tt uk ur uz vi vo war zh zu""".split()
)
"""Languages with a Wikipedia of more than 10,000 articles whose host begins with the code."""
TEMPORARY = ("internal_api_error", "maxlag", "readonly", "search-error", "cirrussearch-")
"""Beginnings of the codes of errors that may be gone at the next attempt."""


class WikipediaSearch(WebSearch):
    """Articles of the Wikipedia in the requested language, English by default, or of the one wiki at an address."""

    most_results = 10_000

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make the search of one request."""
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
            "sroffset": request.offset,
            "srprop": "snippet|timestamp",
            "meta": "siteinfo",
            "siprop": "general",
        }
        answer = await self.fetch("GET", f"{address}/w/api.php", params=parameters)
        if "error" in answer:  # with status 200
            code = text_at(answer, "error", "code") or ""
            if code == "ratelimited":
                raise RateLimited("Wikipedia asks to wait")
            if code.startswith(TEMPORARY):
                raise self.unavailable("its search does not work at the moment")
            raise InvalidCall("Wikipedia refuses the search")
        server, path = (text_at(answer, "query", "general", name) for name in ("server", "articlepath"))
        if server is None or path is None:
            raise self.unavailable(MALFORMED)
        place = urljoin(urljoin(address, server), path)

        def read(article: dict[str, Any]) -> RawResult:
            title = text_at(article, "title")
            name = None if title is None else quote(title.replace(" ", "_"), safe="/:(),'!*;@", errors="replace")
            url = None if name is None else place.replace("$1", name)
            return RawResult(url, title, text_at(article, "snippet"), text_at(article, "timestamp"))

        found = list_at(answer, "query", "search")
        return self.respond(request, found, read, warnings=warnings, dates_of_publication=False)
