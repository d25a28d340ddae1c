"""Semantic Scholar: papers by relevance, through its library, which sends over our connections."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus

from semanticscholar.ApiRequester import ApiRequester  # type: ignore[import-untyped]
from semanticscholar.AsyncSemanticScholar import AsyncSemanticScholar  # type: ignore[import-untyped]

from contracts.messages import SearchRequest, SearchResponse
from providers.reading.canonical_text import iso_date
from providers.search.filters import Filters
from providers.search.hits import RawResult, hit_limit, list_at, shorten_query, text_at
from providers.search.web_api import WebSearch

LONGEST_PAGE = 100
FIELDS = "title abstract authors year publicationDate venue externalIds url openAccessPdf".split()


class Library(AsyncSemanticScholar):  # type: ignore[misc]
    """The library's client; its own property `debug` would set up the logging of the whole process."""

    debug = False


class OneRequest(ApiRequester):  # type: ignore[misc]
    """Sends the library's request through `WebSearch.fetch`, from an offset.

    The library's own way returns an empty answer for the statuses 401, 408 and 503, and starts at the first result. Its
    papers are ignored: for one unexpected date it drops the whole page.
    """

    def __init__(self, service: WebSearch, offset: int) -> None:
        super().__init__(timeout=None, retry=False)
        self._service = service
        self._offset = offset
        self.papers: list[Any] | None = None

    async def get_data_async(
        self, url: str, parameters: str, headers: Mapping[str, str], payload: object = None
    ) -> dict[str, Any]:
        """The answer without its papers, which are in `papers`. Raises what `fetch` does."""
        del headers, payload
        pairs = dict(parse_qsl(parameters.lstrip("&"))) | {"offset": str(self._offset)}
        answer = await self._service.fetch("GET", url, params=pairs)
        nothing = answer.get("total") == 0 and answer.get("data") is None
        self.papers = [] if nothing else list_at(answer, "data")
        return {"total": 0, "data": []}


class SemanticScholarSearch(WebSearch):
    """A key only raises limits; unknown days count by their year; domains are those of the copy that can be read."""

    most_results = 1_000

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make the search of one request."""
        # The library puts the text into a query string as it is; the service finds nothing for words with a hyphen.
        query = quote_plus(shorten_query(request.text.replace("-", " "), 1_000))
        most = LONGEST_PAGE if filters.domains.given else hit_limit(request)
        ends = [day.isoformat() if day else "" for day in (filters.days.first, filters.days.last)]
        sent = OneRequest(self, request.offset)
        library = Library(api_url=self.address, retry=False)
        library._requester = sent  # noqa: SLF001 - the only place where a timeout and typed errors can come in
        await library.search_paper(
            query,
            fields=FIELDS,
            limit=max(1, min(most, self.most_results - request.offset)),
            publication_date_or_year=":".join(ends) if filters.days.given else None,
        )
        return self.respond(request, sent.papers, _result)


def _result(paper: dict[str, Any]) -> RawResult:
    day, year, doi = text_at(paper, "publicationDate"), paper.get("year"), text_at(paper, "externalIds", "DOI")
    return RawResult(
        url=_address(paper, doi),
        title=text_at(paper, "title"),
        snippet=text_at(paper, "abstract"),
        published=iso_date(day) or (str(year) if isinstance(year, int) else None),
        authors=[text_at(author, "name") for author in list_at(paper, "authors") or ()],
        venue=text_at(paper, "venue"),
        doi=doi,
        source_type="academic",
    )


def _address(paper: dict[str, Any], doi: str | None) -> str | None:
    """Its open copy, else its preprint, else its publisher's page, else its entry."""
    preprint = text_at(paper, "externalIds", "ArXiv")
    if copy := text_at(paper, "openAccessPdf", "url"):
        return copy
    if preprint:
        return f"https://arxiv.org/abs/{quote(preprint, errors='replace')}"
    return f"https://doi.org/{quote(doi, safe='/:;()._-', errors='replace')}" if doi else text_at(paper, "url")
