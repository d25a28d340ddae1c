"""Brave Search: an index of its own of the web and of news, by GET with a subscription token."""

from collections.abc import Mapping
from typing import Final

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.search.narrowing import Narrowing, brave_language, narrowing_of, spell_language
from providers.search.service import Service
from providers.search.web_api import Detail, Records, WebSearch, Wire
from providers.search.web_hits import RawResult, hit_limit, respond, shorten_query

SERVICE: Final = Service(
    "Brave Search",
    "BRAVE_BASE_URL",
    "BRAVE_API_KEY",
    address="https://api.search.brave.com",
    key_header="x-subscription-token",
)
LONGEST_PAGE: Final = 20
LAST_PAGE: Final = 9
LONGEST_QUERY: Final = 400
MOST_WORDS: Final = 50


class BraveResult(Wire):
    """One result; `page_age` is the date of the page, `age` the same for people."""

    url: str
    title: Detail = None
    description: Detail = None
    page_age: Detail = None


class BraveWeb(Wire):
    """The results of the web."""

    results: Records[BraveResult]


class BraveAnswer(Wire):
    """What `/res/v1/web/search` answers; without results of the web the part is missing."""

    type: str
    web: BraveWeb | None = None


class BraveNews(Wire):
    """What `/res/v1/news/search` answers."""

    type: str
    results: Records[BraveResult]


class BraveSearch(WebSearch):
    """Its offset counts pages, ours results: a page is chosen that holds what is asked for.

    Days restrict by `freshness`, which goes by when Brave found a page. One domain to keep to is put into the query
    as `site:`; the filter on the hits does the rest, over as long a page as there is.
    """

    name = "brave"
    service = SERVICE

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`."""
        offset = max(0, request.offset)
        narrowing = narrowing_of(request)
        domains = narrowing.domains
        length, page = page_for(offset, LONGEST_PAGE if domains.given else max(1, hit_limit(request)))
        if page > LAST_PAGE:
            return SearchResponse(provider=self.name)
        site = f" site:{domains.allow[0]}" if len(domains.allow) == 1 else ""
        filters, warnings = _filters(narrowing)
        parameters: dict[str, str | int] = {
            "q": shorten_query(request.text, LONGEST_QUERY - len(site), MOST_WORDS - 1) + site,
            "count": length,
            "offset": page,
            **filters,
        }
        news = request.source_type is SourceType.NEWS
        results = await (self._news if news else self._web)(parameters)
        kind = "news" if news else "web"
        rest = results[offset - length * page :]
        return respond(request, self.name, rest, lambda result: _result(result, kind), warnings=warnings)

    async def _web(self, parameters: Mapping[str, str | int]) -> list[BraveResult | None]:
        only_text = {"result_filter": "web", "text_decorations": "false"}
        answer = await self._api.get(BraveAnswer, "/res/v1/web/search", {**parameters, **only_text})
        return answer.web.results if answer.web else []

    async def _news(self, parameters: Mapping[str, str | int]) -> list[BraveResult | None]:
        return (await self._api.get(BraveNews, "/res/v1/news/search", parameters)).results


def page_for(offset: int, count: int) -> tuple[int, int]:
    """Length and number, from 0, of the page that holds `count` results from `offset` on, or as many as possible."""
    count = min(count, LONGEST_PAGE)
    for length in range(count, LONGEST_PAGE + 1):
        page = offset // length
        if page <= LAST_PAGE and (offset + count - 1) // length == page:
            return length, page
    return LONGEST_PAGE, offset // LONGEST_PAGE


def _filters(narrowing: Narrowing) -> tuple[dict[str, str], list[str]]:
    """Language and days as parameters, and what of them Brave does not know."""
    known, warnings = spell_language(narrowing.language, brave_language)
    parameters = {"search_lang": known} if known else {}
    if narrowing.days.given:
        first, last = narrowing.days.between()
        parameters["freshness"] = f"{first.isoformat()}to{last.isoformat()}"
    return parameters, warnings


def _result(result: BraveResult, kind: str) -> RawResult:
    return RawResult(
        url=result.url, title=result.title, snippet=result.description, published=result.page_age, source_type=kind
    )
