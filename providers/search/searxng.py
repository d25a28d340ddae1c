"""SearXNG: a search engine over others that one runs oneself."""

import re
from datetime import date
from typing import Any, Final

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.errors import Unavailable
from providers.search.narrowing import Days, narrowing_of, today
from providers.search.service import Service
from providers.search.web_api import Detail, Details, Records, WebSearch, Wire
from providers.search.web_hits import RawResult, respond, shorten_query

SERVICE: Final = Service(
    "SearXNG", "SEARXNG_URL", refused_hint="its settings must allow json under search.formats, and this client"
)
LONGEST_QUERY: Final = 1_000
SOURCE_TYPES: Final = {"news": "news", "science": "academic", "scientific publications": "academic"}
"""Category of a result → type of the source; anything else is the web."""
CATEGORIES: Final = {SourceType.WEB: "general", SourceType.NEWS: "news", SourceType.ACADEMIC: "science"}
TIME_RANGES: Final = {"day": 1, "week": 7, "month": 31, "year": 366}
"""Days that each range reaches back."""
INEXACT: Final = "keeps to dates of publication only roughly: hits that state none were kept"
COMMAND: Final = re.compile(r"(?<!\S)(?:[!:?]+|<(?=[0-9]))(?=\S)")
"""What an instance takes for its own syntax at the beginning of a word: engines, redirects, languages, time limits."""


class SearxngResult(Wire):
    """One result; only those of scientific engines have authors, journal and DOI."""

    url: str
    title: Detail = None
    content: Detail = None
    publishedDate: Detail = None  # noqa: N815 - the service's own spelling
    category: Detail = None
    authors: Details = []
    journal: Detail = None
    doi: Detail = None


class SearxngAnswer(Wire):
    """What `/search?format=json` answers."""

    results: Records[SearxngResult]
    unresponsive_engines: list[Any] = []


class SearxngSearch(WebSearch):
    """How long a page is depends on the instance, so an offset reaches as far as the first one does.

    Types of sources are its categories: an instance without one of them searches its default ones. Days are given as
    a range that reaches back from today, which skips engines that know none.
    """

    name = "searxng"
    service = SERVICE

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`."""
        narrowing = narrowing_of(request)
        domains, days, language = narrowing.domains, narrowing.days, narrowing.language
        one_site = len(domains.allow) == 1 and request.source_type is not SourceType.ACADEMIC
        site = f" site:{domains.allow[0]}" if one_site else ""
        back = time_range(days, today())
        parameters: dict[str, str | int] = {
            "q": shorten_query(COMMAND.sub("", request.text), LONGEST_QUERY - len(site)) + site,
            "format": "json",
            "pageno": 1,
            "categories": CATEGORIES[request.source_type],
            **({"language": language} if language else {}),
            **({"time_range": back} if back else {}),
        }
        answer = await self._api.get(SearxngAnswer, "/search", parameters)
        if not answer.results and answer.unresponsive_engines:
            raise Unavailable("SearXNG: engines that it asked gave no answer, the others found nothing")
        rest = answer.results[max(0, request.offset) :]
        return respond(request, self.name, rest, _result, warnings=[INEXACT] if days.given else [])


def time_range(days: Days, now: date) -> str | None:
    """The shortest range that reaches back to the first day; None where none does."""
    if days.first is None:
        return None
    back = (now - days.first).days
    return next((name for name, length in TIME_RANGES.items() if back <= length), None)


def _result(result: SearxngResult) -> RawResult:
    return RawResult(
        url=result.url,
        title=result.title,
        snippet=result.content,
        published=result.publishedDate,
        authors=result.authors,
        venue=result.journal,
        doi=result.doi,
        source_type=SOURCE_TYPES.get((result.category or "").lower(), "web"),
    )
