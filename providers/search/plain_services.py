"""Search services with one plain request each: Tavily, Brave Search, SearXNG, and Wikipedia or another MediaWiki."""

import re
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urljoin, urlsplit

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.errors import InvalidCall, RateLimited
from providers.search.filters import Days, Filters
from providers.search.hits import RawResult, hit_limit, list_at, shorten_query, text_at
from providers.search.web_api import WebSearch

MAX_PAGE_SIZE: Final = 20  # results per request, of Tavily and of Brave
SEARXNG_TYPES: Final = {"news": "news", "science": "academic", "scientific publications": "academic"}
"""Category of a result → source type; anything else is the web."""
SEARXNG_CATEGORIES: Final = {SourceType.WEB: "general", SourceType.NEWS: "news", SourceType.ACADEMIC: "science"}
SEARXNG_COMMAND: Final = re.compile(r"(?<!\S)(?:[!:?]+|<(?=[0-9]))(?=\S)")
"""Syntax of an instance at the beginning of a word: engines, redirects, languages, time limits."""
LANGUAGE_PLACE: Final = "{language}"
"""Placeholder of the language in an address; an address without it is that of one wiki."""
TRANSIENT_CODES: Final = ("internal_api_error", "maxlag", "readonly", "search-error", "cirrussearch-")
"""Prefixes of error codes that may be gone at the next attempt."""


def read_result(result: dict[str, Any], *, snippet: str, published: str, source_type: str) -> RawResult:
    """Read a result whose snippet and date have the given names."""
    url, title, text, day = (text_at(result, name) for name in ("url", "title", snippet, published))
    return RawResult(url, title, text, day, source_type=source_type)


class TavilySearch(WebSearch):
    """Tavily: a POST with a bearer token."""

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make one search request."""
        kind = "news" if request.source_type is SourceType.NEWS else "web"
        lists = {"include_domains": filters.domains.allow, "exclude_domains": filters.domains.deny}
        # The service takes no domain with a single label, such as `gov`: the hits are filtered afterwards.
        usable = {name: list(hosts) for name, hosts in lists.items() if hosts and all("." in host for host in hosts)}
        is_partial = len(usable) < sum(map(bool, lists.values()))
        days = {"start_date": filters.days.first, "end_date": filters.days.last}
        body = {
            "query": shorten_query(request.text, 400),
            "max_results": MAX_PAGE_SIZE if is_partial else min(hit_limit(request), MAX_PAGE_SIZE),
            "search_depth": "basic",
            "topic": "news" if kind == "news" else "general",
            "include_answer": False,
            "include_raw_content": False,
            "include_images": False,
            **usable,
            **{name: day for name, day in days.items() if day is not None},
        }
        answer = await self.fetch("POST", f"{self.address}/search", json=body)
        read = partial(read_result, snippet="content", published="published_date", source_type=kind)
        return self.respond(request, list_at(answer, "results"), read)


class BraveSearch(WebSearch):
    """Brave Search: a GET with a subscription token.

    Days filter by the day on which Brave found a page. A single domain becomes `site:` in the query; several are
    filtered afterwards.
    """

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make one search request."""
        domains = filters.domains
        days = filters.days
        site = f" site:{domains.allow[0]}" if len(domains.allow) == 1 else ""
        language = self.declaration.language_code(filters.language)
        kind = "news" if request.source_type is SourceType.NEWS else "web"
        parameters: dict[str, str | int] = {
            "q": shorten_query(request.text, 400 - len(site), 49) + site,
            "count": MAX_PAGE_SIZE,
        }
        if kind == "web":
            parameters |= {"result_filter": "web", "text_decorations": "false"}
        if language:
            parameters["search_lang"] = language
        if days.given:
            parameters["freshness"] = "to".join(days.both())
        answer = await self.get(f"/res/v1/{kind}/search", parameters)
        if kind == "web" and "type" in answer:
            answer = answer.get("web", {"results": []})  # missing if nothing was found
        read = partial(read_result, snippet="description", published="page_age", source_type=kind)
        return self.respond(request, list_at(answer, "results"), read)


class SearxngSearch(WebSearch):
    """SearXNG, which the operator runs: a GET without a key.

    Source types are its categories. Days become a range back from today, which skips engines without dates.
    """

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make one search request."""
        allowed = filters.domains.allow
        academic = request.source_type is SourceType.ACADEMIC
        site = f" site:{allowed[0]}" if len(allowed) == 1 and not academic else ""
        time_range_name = time_range(filters.days)
        parameters: dict[str, str | int] = {
            "q": shorten_query(SEARXNG_COMMAND.sub("", request.text), 1_000 - len(site)) + site,
            "format": "json",
            "pageno": 1,
            "categories": SEARXNG_CATEGORIES[request.source_type],
        }
        if filters.language:
            parameters["language"] = filters.language
        if time_range_name:
            parameters["time_range"] = time_range_name
        answer = await self.get("/search", parameters)
        results = list_at(answer, "results")
        if results == [] and answer.get("unresponsive_engines"):
            raise self.unavailable("some of its engines gave no answer, the others found nothing")
        warning = "keeps to dates of publication only roughly: hits without a date may lie outside"
        warnings = [warning] if filters.days.given else []
        return self.respond(request, results, _searxng_result, warnings)


def time_range(days: Days) -> str | None:
    """Return the shortest range that reaches back to the first day; None if none does."""
    if days.first is None:
        return None
    age = (datetime.now(UTC).date() - date.fromisoformat(days.first)).days
    return next((name for name, limit in (("day", 1), ("week", 7), ("month", 31), ("year", 366)) if age <= limit), None)


def _searxng_result(result: dict[str, Any]) -> RawResult:
    kind = SEARXNG_TYPES.get((text_at(result, "category") or "").lower(), "web")
    return read_result(result, snippet="content", published="publishedDate", source_type=kind)


class WikipediaSearch(WebSearch):
    """Articles of the Wikipedia in the requested language, English by default, or of the one wiki at an address."""

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make one search request."""
        address = self.address.replace(LANGUAGE_PLACE, self.declaration.language_code(filters.language) or "en")
        one_wiki = filters.language and LANGUAGE_PLACE not in self.address
        # All articles have one host: nothing can be found outside the domains.
        if self.address == self.declaration.address and not filters.domains.admit(address):
            warning = f"{urlsplit(address).hostname} is outside the domains: no search was made"
            return SearchResponse(provider=self.name, warnings=[warning])
        parameters: dict[str, str | int] = {
            "action": "query",
            "format": "json",
            "formatversion": 2,
            "list": "search",
            "srsearch": shorten_query(request.text, 300),
            "srlimit": max(1, hit_limit(request)),
            "srprop": "snippet",
            "meta": "siteinfo",
            "siprop": "general",
        }
        answer = await self.fetch("GET", f"{address}/w/api.php", params=parameters)
        if "error" in answer:  # with status 200
            code = text_at(answer, "error", "code") or ""
            if code == "ratelimited":
                raise RateLimited("Wikipedia asks to wait")
            if code.startswith(TRANSIENT_CODES):
                raise self.unavailable("its search does not work at the moment")
            raise InvalidCall("Wikipedia refuses the search")
        server, path = (text_at(answer, "query", "general", name) for name in ("server", "articlepath"))
        if server is None or path is None:
            raise self.malformed()
        article_pattern = urljoin(urljoin(address, server), path)

        def read(article: dict[str, Any]) -> RawResult:
            title = text_at(article, "title")
            name = None
            if title is not None:
                name = quote(title.replace(" ", "_"), safe="/:(),'!*;@", errors="replace")
            url = None
            if name is not None:
                url = article_pattern.replace("$1", name)
            return RawResult(url, title, text_at(article, "snippet"))

        warnings = ["is one wiki: it cannot keep to a language"] if one_wiki else []
        return self.respond(request, list_at(answer, "query", "search"), read, warnings)
