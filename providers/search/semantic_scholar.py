"""Semantic Scholar: papers by relevance, through its library, over our own connections."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus

from semanticscholar.ApiRequester import ApiRequester  # type: ignore[import-untyped]
from semanticscholar.AsyncSemanticScholar import AsyncSemanticScholar  # type: ignore[import-untyped]

from contracts.messages import SearchRequest, SearchResponse
from providers.reading.canonical_text import iso_date
from providers.search.filters import Filters
from providers.search.hits import RawResult, doi_url, hit_limit, list_at, shorten_query, text_at
from providers.search.web_api import WebSearch

MAX_PAGE_SIZE = 100
FIELDS = "title abstract authors year publicationDate venue externalIds url openAccessPdf".split()


class Library(AsyncSemanticScholar):  # type: ignore[misc]
    """The library's client; its own property `debug` would configure the logging of the whole process."""

    debug = False


class OneRequest(ApiRequester):  # type: ignore[misc]
    """Sends the library's request through `WebSearch.fetch`, and stores the answer.

    The library itself returns an empty answer for the statuses 401, 408 and 503, and drops a whole page for one
    unexpected date.
    """

    def __init__(self, service: WebSearch) -> None:
        super().__init__(timeout=None, retry=False)
        self._service = service
        self.answer: dict[str, Any] = {}

    async def get_data_async(
        self, url: str, parameters: str, headers: Mapping[str, str], payload: object = None
    ) -> dict[str, Any]:
        """Return an answer without papers. Raises as `fetch` does."""
        del headers, payload
        self.answer = await self._service.fetch("GET", url, params=dict(parse_qsl(parameters.lstrip("&"))))
        return {"total": 0, "data": []}


class SemanticScholarSearch(WebSearch):
    """A key only raises limits; unknown days count by their year; domains are those of the copy that is readable."""

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make one search request."""
        # The library puts the text into a query string unchanged; the service finds nothing for hyphenated words.
        query = quote_plus(shorten_query(request.text.replace("-", " "), 1_000))
        if filters.domains.given:
            limit = MAX_PAGE_SIZE
        else:
            limit = hit_limit(request)
        requester = OneRequest(self)
        days = f"{filters.days.first or ''}:{filters.days.last or ''}" if filters.days.given else None
        library = Library(api_url=self.address, retry=False)
        library._requester = requester  # noqa: SLF001  semanticscholar 0.12; for a time-out and typed errors
        await library.search_paper(
            query,
            fields=FIELDS,
            limit=max(1, limit),
            publication_date_or_year=days,
        )
        papers = list_at(requester.answer, "data")
        if requester.answer.get("total") == 0 and requester.answer.get("data") is None:
            papers = []
        return self.respond(request, papers, _result)


def _result(paper: dict[str, Any]) -> RawResult:
    day = text_at(paper, "publicationDate")
    year = paper.get("year")
    doi = text_at(paper, "externalIds", "DOI")
    preprint = text_at(paper, "externalIds", "ArXiv")
    copy = text_at(paper, "openAccessPdf", "url")
    if not copy and preprint:
        url = f"https://arxiv.org/pdf/{quote(preprint, errors='replace')}"
    else:
        url = copy or (doi_url(doi) if doi else None) or text_at(paper, "url") or ""
    return RawResult(
        url=url,
        title=text_at(paper, "title"),
        snippet=text_at(paper, "abstract"),
        published=iso_date(day) or (str(year) if isinstance(year, int) else None),
        authors=[text_at(author, "name") for author in list_at(paper, "authors") or ()],
        venue=text_at(paper, "venue"),
        doi=doi,
        source_type="academic",
        abstract=text_at(paper, "abstract"),
        is_open=bool(copy or preprint),
        expects_pdf=not copy and bool(preprint),  # many open copies are pages, whatever the name of their field
    )
