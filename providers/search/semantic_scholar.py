"""Semantic Scholar: papers by relevance, through its library, which sends over our connections."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Self
from urllib.parse import parse_qsl, quote, quote_plus

from pydantic import Field, model_validator
from semanticscholar.ApiRequester import ApiRequester  # type: ignore[import-untyped]
from semanticscholar.AsyncSemanticScholar import AsyncSemanticScholar  # type: ignore[import-untyped]

from contracts.messages import SearchRequest, SearchResponse
from providers.reading.page_dates import iso_date
from providers.search.filters import filters_of
from providers.search.hits import RawResult, hit_limit, shorten_query
from providers.search.web_api import Record, WebSearch, Wire

MOST_RESULTS = 1_000
"""Results by relevance that the interface gives of one query."""
LONGEST_PAGE = 100
FIELDS = "title abstract authors year publicationDate venue externalIds url openAccessPdf".split()


class Paper(Record):
    """A paper that can be read somewhere."""

    title: str | None = None
    abstract: str | None = None
    authors: list[dict[str, Any]] = []
    year: Annotated[int, Field(gt=0, lt=10_000)] | None = None
    publicationDate: str | None = None  # noqa: N815 - the service's spelling, as below
    venue: str | None = None
    externalIds: dict[str, Any] = {}  # noqa: N815
    url: str | None = None
    openAccessPdf: dict[str, Any] = {}  # noqa: N815

    @property
    def address(self) -> str | None:
        """Its open copy, else its preprint, else its publisher's page, else its entry."""
        copy, preprint, doi = self.openAccessPdf.get("url"), self.externalIds.get("ArXiv"), self.doi
        if isinstance(copy, str) and copy:
            return copy
        if isinstance(preprint, str) and preprint:
            return f"https://arxiv.org/abs/{quote(preprint)}"
        return f"https://doi.org/{quote(doi, safe='/:;()._-')}" if doi else self.url

    @property
    def doi(self) -> str | None:
        """Its identifier at its publisher."""
        named = self.externalIds.get("DOI")
        return named if isinstance(named, str) else None

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if not self.address:
            raise ValueError("a paper without an address")
        return self


class PaperPage(Wire):
    """Answer of the search."""

    data: list[Any]


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
        self.papers: list[Any] = []

    async def get_data_async(
        self, url: str, parameters: str, headers: Mapping[str, str], payload: object = None
    ) -> dict[str, Any]:
        """The answer without its papers, which are in `papers`. Raises what `fetch` does."""
        del headers, payload
        pairs = dict(parse_qsl(parameters.lstrip("&"))) | {"offset": str(self._offset)}
        body = await self._service.fetch("GET", url, params=pairs)
        answer = json.loads(body)
        # Where nothing was found the list may be missing; an error may come with status 200.
        if not (isinstance(answer, dict) and answer.get("data") is None and answer.get("total") == 0):
            self.papers = self._service.parse(PaperPage, body).data
        return {**answer, "data": []}


class SemanticScholarSearch(WebSearch):
    """A key is not needed and raises limits. A paper of an unknown day counts by its year.

    Domains are those of the address at which a paper can be read, and are filtered afterwards.
    """

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises what `fetch` does."""
        offset, filters = max(0, request.offset), filters_of(request)
        if offset >= MOST_RESULTS:
            return SearchResponse(provider=self.name)
        # The library puts the text into a query string as it is; the service finds nothing for words with a hyphen.
        query = quote_plus(shorten_query(request.text.replace("-", " "), 1_000))
        most = LONGEST_PAGE if filters.domains.given else hit_limit(request)
        ends = [day.isoformat() if day else "" for day in (filters.days.first, filters.days.last)]
        sent = OneRequest(self, offset)
        library = Library(api_url=self.address, retry=False)
        library._requester = sent  # noqa: SLF001 - the only place where a timeout and typed errors can come in
        try:
            await library.search_paper(
                query,
                fields=FIELDS,
                limit=max(1, min(most, MOST_RESULTS - offset)),
                publication_date_or_year=":".join(ends) if filters.days.given else None,
            )
        except (ValueError, TypeError, RecursionError):
            raise self.unexpected() from None
        return self.respond(request, sent.papers, Paper, _result)


def _result(paper: Paper) -> RawResult:
    return RawResult(
        url=paper.address,
        title=paper.title,
        snippet=paper.abstract,
        published=iso_date(paper.publicationDate) or (str(paper.year) if paper.year else None),
        authors=[name for author in paper.authors if isinstance(name := author.get("name"), str)],
        venue=paper.venue,
        doi=paper.doi,
        source_type="academic",
    )
