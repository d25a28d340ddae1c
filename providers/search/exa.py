"""Exa: pages by meaning rather than by words, with the passages that fit the query best."""

from typing import Any, Final

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.search.filters import Filters
from providers.search.hits import RawResult, hit_limit, list_at, shorten_query, text_at
from providers.search.web_api import WebSearch

MAX_RESULTS: Final = 25
"""Ten are included in the price of a search, each further one is charged."""
HIGHLIGHT_CHARACTERS: Final = 500
CATEGORIES: Final = {SourceType.NEWS: "news", SourceType.ACADEMIC: "research paper"}


class ExaSearch(WebSearch):
    """Exa: a POST with the key in a header; the answer states what it has cost."""

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make one search request."""
        domains = filters.domains
        body: dict[str, Any] = {
            "query": shorten_query(request.text, 1_000),
            "type": "auto",
            "numResults": max(1, min(hit_limit(request), MAX_RESULTS)),
            "contents": {"highlights": {"maxCharacters": HIGHLIGHT_CHARACTERS}},
        }
        kind = request.source_type
        if kind in CATEGORIES:
            body["category"] = CATEGORIES[kind]
        if domains.allow:
            body["includeDomains"] = list(domains.allow)
        if domains.deny:
            body["excludeDomains"] = list(domains.deny)
        if filters.days.first:
            body["startPublishedDate"] = f"{filters.days.first}T00:00:00.000Z"
        if filters.days.last:
            body["endPublishedDate"] = f"{filters.days.last}T23:59:59.999Z"
        answer = await self.fetch("POST", f"{self.address}/search", json=body)

        def read(result: dict[str, Any]) -> RawResult:
            return RawResult(
                url=text_at(result, "url"),
                title=text_at(result, "title"),
                snippet=" … ".join(one for one in list_at(result, "highlights") or () if isinstance(one, str)),
                published=text_at(result, "publishedDate"),
                authors=[text_at(result, "author")],
                source_type=kind.value,
            )

        return self.respond(request, list_at(answer, "results"), read).with_fields(cost_usd=_cost(answer))


def _cost(answer: dict[str, Any]) -> float | None:
    """Return the price in US dollars that an answer states; None if it states none."""
    costs = answer.get("costDollars")
    total = costs.get("total") if isinstance(costs, dict) else None
    if isinstance(total, bool) or not isinstance(total, int | float) or not 0 <= total < 1_000:
        return None
    return float(total)
