"""Brave Search: an index of its own of the web and of news."""

from typing import Any

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.search.filters import filters_of
from providers.search.hits import RawResult, hit_limit, shorten_query
from providers.search.web_api import Record, WebSearch, Wire

LONGEST_PAGE = 20
LAST_PAGE = 9
LANGUAGES = frozenset(
    """ar eu bn bg ca hr cs da nl en et fi fr gl de gu he hi hu is it kn ko lv lt ms ml mr nb pl pa ro ru sr sk sl es
    sv ta te th tr uk vi""".split()
)
"""Values of `search_lang` that are written as ISO 639 does."""
OWN_LANGUAGES = {"ja": "jp", "no": "nb", "nn": "nb", "pt": "pt-br", "zh": "zh-hans"}


class BraveResult(Record):
    """One result; `page_age` is the date of the page."""

    url: str
    title: str | None = None
    description: str | None = None
    page_age: str | None = None


class BraveResults(Wire):
    """Answer of `/res/v1/news/search`, and part of the one below."""

    type: str
    results: list[Any]


class BraveAnswer(Wire):
    """Answer of `/res/v1/web/search`; `web` is missing without results."""

    type: str
    web: BraveResults | None = None


class BraveSearch(WebSearch):
    """A GET with a subscription token. The service counts pages where a request counts results.

    Days restrict by `freshness`, which goes by the day on which Brave found a page. A single domain becomes `site:` in
    the query; several are filtered afterwards, from as long a page as there is.
    """

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises what `fetch` does."""
        offset, filters = max(0, request.offset), filters_of(request)
        domains, days, language = filters.domains, filters.days, filters.language
        length, page = page_for(offset, LONGEST_PAGE if domains.given else max(1, hit_limit(request)))
        if page > LAST_PAGE:
            return SearchResponse(provider=self.name)
        site = f" site:{domains.allow[0]}" if len(domains.allow) == 1 else ""
        known = OWN_LANGUAGES.get(language or "") or (language if language in LANGUAGES else None)
        parameters: dict[str, str | int] = {
            "q": shorten_query(request.text, 400 - len(site), 49) + site,
            "count": length,
            "offset": page,
            **({"search_lang": known} if known else {}),
            **({"freshness": "to".join(day.isoformat() for day in days.both())} if days.given else {}),
        }
        if request.source_type is SourceType.NEWS:
            kind, results = "news", (await self.get(BraveResults, "/res/v1/news/search", parameters)).results
        else:
            only_text = {"result_filter": "web", "text_decorations": "false"}
            answer = await self.get(BraveAnswer, "/res/v1/web/search", {**parameters, **only_text})
            kind, results = "web", answer.web.results if answer.web else []

        def read(one: BraveResult) -> RawResult:
            return RawResult(one.url, one.title, one.description, one.page_age, source_type=kind)

        warnings = [f"cannot keep to the language {language}"] if language and not known else []
        return self.respond(request, results[offset - length * page :], BraveResult, read, warnings=warnings)


def page_for(offset: int, count: int) -> tuple[int, int]:
    """Length and number, from 0, of the page with `count` results from `offset` on, or with as many as possible."""
    count = min(count, LONGEST_PAGE)
    for length in range(count, LONGEST_PAGE + 1):
        page = offset // length
        if page <= LAST_PAGE and (offset + count - 1) // length == page:
            return length, page
    return LONGEST_PAGE, offset // LONGEST_PAGE
