"""Brave Search: an index of its own of the web and of news."""

from typing import Any

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.search.filters import Filters
from providers.search.hits import RawResult, list_at, read_result, shorten_query
from providers.search.web_api import WebSearch

LONGEST_PAGE = 20
LAST_PAGE = 9
LANGUAGES = frozenset(
    """ar eu bn bg ca hr cs da nl en et fi fr gl de gu he hi hu is it kn ko lv lt ms ml mr nb pl pa ro ru sr sk sl es
    sv ta te th tr uk vi""".split()
)
"""Values of `search_lang` that are written as ISO 639 does."""
OWN_LANGUAGES = {"ja": "jp", "no": "nb", "nn": "nb", "pt": "pt-br", "zh": "zh-hans"}


class BraveSearch(WebSearch):
    """A GET with a subscription token. The service counts pages where a request counts results: the longest are taken.

    Days restrict by `freshness`, which goes by the day on which Brave found a page. A single domain becomes `site:` in
    the query; several are filtered afterwards, from as long a page as there is.
    """

    most_results = LONGEST_PAGE * (LAST_PAGE + 1)

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make the search of one request."""
        domains, days, language = filters.domains, filters.days, filters.language
        page = request.offset // LONGEST_PAGE
        site = f" site:{domains.allow[0]}" if len(domains.allow) == 1 else ""
        known = OWN_LANGUAGES.get(language or "") or (language if language in LANGUAGES else None)
        kind = "news" if request.source_type is SourceType.NEWS else "web"
        parameters: dict[str, str | int] = {
            "q": shorten_query(request.text, 400 - len(site), 49) + site,
            "count": LONGEST_PAGE,
            "offset": page,
            **({"result_filter": "web", "text_decorations": "false"} if kind == "web" else {}),
            **({"search_lang": known} if known else {}),
            **({"freshness": "to".join(day.isoformat() for day in days.both())} if days.given else {}),
        }
        answer = await self.get(f"/res/v1/{kind}/search", parameters)
        if kind == "web" and "type" in answer:
            answer = answer.get("web", {"results": []})  # which is missing where nothing was found
        found = list_at(answer, "results")

        def read(one: dict[str, Any]) -> RawResult:
            return read_result(one, snippet="description", published="page_age", source_type=kind)

        warnings = [f"cannot keep to the language {language}"] if language and not known else []
        return self.respond(request, found and found[request.offset - LONGEST_PAGE * page :], read, warnings=warnings)
