"""SearXNG: a search engine over others that the operator runs."""

import re
from datetime import date
from typing import Any

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.errors import Unavailable
from providers.search.filters import Days, Filters, today
from providers.search.hits import RawResult, list_at, shorten_query, text_at
from providers.search.web_api import WebSearch

SOURCE_TYPES = {"news": "news", "science": "academic", "scientific publications": "academic"}
"""Category of a result → type of the source; anything else is the web."""
CATEGORIES = {SourceType.WEB: "general", SourceType.NEWS: "news", SourceType.ACADEMIC: "science"}
COMMAND = re.compile(r"(?<!\S)(?:[!:?]+|<(?=[0-9]))(?=\S)")
"""Syntax of an instance at the beginning of a word: engines, redirects, languages, time limits."""


class SearxngSearch(WebSearch):
    """A GET without a key. The length of a page depends on the instance, so an offset reaches as far as the first one.

    Types of sources are its categories. Days are a range back from today, which skips engines that know no dates.
    """

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make the search of one request."""
        allowed, academic = filters.domains.allow, request.source_type is SourceType.ACADEMIC
        site = f" site:{allowed[0]}" if len(allowed) == 1 and not academic else ""
        back = time_range(filters.days, today())
        parameters: dict[str, str | int] = {
            "q": shorten_query(COMMAND.sub("", request.text), 1_000 - len(site)) + site,
            "format": "json",
            "pageno": 1,
            "categories": CATEGORIES[request.source_type],
            **({"language": filters.language} if filters.language else {}),
            **({"time_range": back} if back else {}),
        }
        answer = await self.get("/search", parameters)
        found = list_at(answer, "results")
        if found == [] and answer.get("unresponsive_engines"):
            raise Unavailable("SearXNG: some of its engines gave no answer, the others found nothing")
        rough = "keeps to dates of publication only roughly: hits without a date may lie outside"
        return self.respond(
            request, found and found[request.offset :], _result, warnings=[rough] if filters.days.given else []
        )


def time_range(days: Days, now: date) -> str | None:
    """The shortest range that reaches back to the first day; None where none does."""
    if days.first is None:
        return None
    back = (now - days.first).days
    return next((name for name, most in (("day", 1), ("week", 7), ("month", 31), ("year", 366)) if back <= most), None)


def _result(result: dict[str, Any]) -> RawResult:
    """Only the results of scientific engines have authors, journal and DOI."""
    return RawResult(
        url=text_at(result, "url"),
        title=text_at(result, "title"),
        snippet=text_at(result, "content"),
        published=text_at(result, "publishedDate"),
        authors=[text_at(name) for name in list_at(result, "authors") or ()],
        venue=text_at(result, "journal"),
        doi=text_at(result, "doi"),
        source_type=SOURCE_TYPES.get((text_at(result, "category") or "").lower(), "web"),
    )
