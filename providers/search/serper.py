"""Serper: the results of Google's search engine, as a service that reads its pages."""

import re
from functools import partial
from typing import Any, Final

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.search.filters import Filters
from providers.search.hits import hit_limit, list_at, shorten_query
from providers.search.plain_services import read_result, time_range
from providers.search.web_api import WebSearch

MAX_RESULTS: Final = 20
"""Ten are one credit, more are two."""
OPERATOR: Final = re.compile(
    r"(?<!\S)-(?=\S)|\b(?:allin)?(?:site|url|title|text|anchor|inurl|intitle|intext|inanchor|filetype|ext|related"
    r"|cache|before|after|define|source)(?=:)|[\"“”|]",
    re.IGNORECASE,
)
"""Syntax of the search engine: excluded words, conditions, phrases, alternatives."""
RANGES: Final = {"day": "qdr:d", "week": "qdr:w", "month": "qdr:m", "year": "qdr:y"}


class SerperSearch(WebSearch):
    """Serper: a POST with the key in a header.

    A single domain becomes `site:` in the query; several are filtered afterwards. Days become a range back from today.
    """

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make one search request."""
        domains = filters.domains
        is_news = request.source_type is SourceType.NEWS
        site = f" site:{domains.allow[0]}" if len(domains.allow) == 1 else ""
        site += "".join(f" -site:{host}" for host in domains.deny[:10])
        body: dict[str, Any] = {
            "q": shorten_query(OPERATOR.sub(_without_sign, request.text), 1_500 - len(site)) + site,
            "num": MAX_RESULTS if len(domains.allow) > 1 else max(1, min(hit_limit(request), MAX_RESULTS)),
        }
        if (name := time_range(filters.days)) is not None:
            body["tbs"] = RANGES[name]
        path, place = ("news", "news") if is_news else ("search", "organic")
        answer = await self.fetch("POST", f"{self.address}/{path}", json=body)
        if "searchParameters" in answer:
            answer.setdefault(place, [])  # missing if nothing was found
        kind = "news" if is_news else "web"
        read = partial(_read, kind=kind)
        warning = "keeps to dates of publication only roughly: hits without a date may lie outside"
        return self.respond(request, list_at(answer, place), read, [warning] if filters.days.given else [])


def _without_sign(match: re.Match[str]) -> str:
    """Return the name of a condition with a space before its colon, and a space in place of any other sign."""
    return f"{match[0]} " if match[0][-1:].isalpha() else " "


def _read(result: dict[str, Any], *, kind: str) -> Any:
    return read_result(result | {"url": result.get("link")}, snippet="snippet", published="date", source_type=kind)
