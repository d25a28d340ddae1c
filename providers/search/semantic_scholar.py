"""Semantic Scholar through its library, which asks over our connections."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Self
from urllib.parse import parse_qsl, quote, quote_plus

from pydantic import BeforeValidator, model_validator
from pydantic_core import from_json
from semanticscholar.ApiRequester import ApiRequester  # type: ignore[import-untyped]
from semanticscholar.AsyncSemanticScholar import AsyncSemanticScholar  # type: ignore[import-untyped]

from contracts.messages import SearchRequest, SearchResponse
from providers.reading.page_dates import iso_date
from providers.search.narrowing import Days, narrowing_of
from providers.search.service import Service
from providers.search.web_api import Detail, Details, Facts, Records, WebApi, WebSearch, Wire
from providers.search.web_hits import RawResult, hit_limit, respond, shorten_query

SERVICE: Final = Service(
    "Semantic Scholar",
    "SEMANTIC_SCHOLAR_BASE_URL",
    "SEMANTIC_SCHOLAR_API_KEY",
    address="https://api.semanticscholar.org",
    key_header="x-api-key",
)
MOST_RESULTS: Final = 1_000
"""Results by relevance that the interface gives of one query."""
LONGEST_PAGE: Final = 100
LONGEST_QUERY: Final = 1_000
IN_A_DOI: Final = "/:;()._-"
"""Characters of identifiers that stand for themselves in an address."""
FIELDS: Final = [
    "title",
    "abstract",
    "authors",
    "year",
    "publicationDate",
    "venue",
    "externalIds",
    "url",
    "openAccessPdf",
]


def _names(value: object) -> list[object]:
    return [author.get("name") for author in value if isinstance(author, dict)] if isinstance(value, list) else []


def _year(value: object) -> str | None:
    return str(value) if isinstance(value, int) and 0 < value < 10_000 else None


class PaperFields(Wire):
    """A paper, as the service gives it; it must be readable somewhere."""

    title: Detail = None
    abstract: Detail = None
    authors: Annotated[Details, BeforeValidator(_names)] = []
    """Their names."""
    year: Annotated[str | None, BeforeValidator(_year)] = None
    publicationDate: Detail = None  # noqa: N815 - the service's spelling, as below
    venue: Detail = None
    externalIds: Facts = {}  # noqa: N815
    url: Detail = None
    openAccessPdf: Facts = {}  # noqa: N815

    def identifier(self, kind: str) -> str | None:
        """What another register calls it."""
        named = self.externalIds.get(kind)
        return named if isinstance(named, str) and named else None

    @property
    def address(self) -> str | None:
        """Where the paper can be read: its open copy, else its preprint, else its publisher's page, else its entry."""
        copy, preprint, doi = self.openAccessPdf.get("url"), self.identifier("ArXiv"), self.identifier("DOI")
        if isinstance(copy, str) and copy:
            return copy
        if preprint:
            return f"https://arxiv.org/abs/{quote(preprint)}"
        return f"https://doi.org/{quote(doi, safe=IN_A_DOI)}" if doi else self.url

    @model_validator(mode="after")
    def _stands_somewhere(self) -> Self:
        if not self.address:
            raise ValueError("a paper without an address")
        return self


class PaperPage(Wire):
    """What the search answers; without papers the list may be missing."""

    data: Records[PaperFields] = []


class OneRequest(ApiRequester):  # type: ignore[misc]
    """What the library sends through: one request over our connections, every status with its meaning.

    The library's own takes 401, 408 and 503 for an empty answer, loses `Retry-After`, and starts at the first result.
    Papers are read here and not by the library, which gives up a whole page for one date that it does not expect.
    """

    def __init__(self, api: WebApi, offset: int) -> None:
        super().__init__(timeout=None, retry=False)
        self._api = api
        self._offset = offset
        self.papers: list[PaperFields | None] = []

    async def get_data_async(
        self, url: str, parameters: str, headers: Mapping[str, str], payload: object = None
    ) -> dict[str, Any]:
        """The answer without its papers, which are kept in `papers`. Raises what `WebApi.fetch` does."""
        del headers, payload  # the credentials are with our connections, and a search by relevance has no body
        pairs = dict(parse_qsl(parameters.lstrip("&"))) | {"offset": str(self._offset)}
        answer = from_json(await self._api.fetch("GET", url, params=pairs))
        if not isinstance(answer, dict) or not _is_page(answer):
            raise self._api.unexpected()
        self.papers = PaperPage.model_validate({"data": answer.get("data") or []}).data
        return {**answer, "data": []}


def _is_page(answer: Mapping[str, Any]) -> bool:
    """Whether it is a list of papers, or says that there are none: the library takes anything else for none."""
    papers = answer.get("data")
    return isinstance(papers, list) if papers is not None else answer.get("total") == 0


class QuietLibrary(AsyncSemanticScholar):  # type: ignore[misc]
    """The library's client with another way of sending."""

    debug = False  # in place of a property that sets up the logging of the whole process

    def __init__(self, api: WebApi, request: OneRequest) -> None:
        super().__init__(api_url=api.base_url, retry=False)
        self._requester = request


class SemanticScholarSearch(WebSearch):
    """Papers by relevance; a key is not needed and raises limits.

    Days are given to it; a paper whose day it does not know counts by its year. Domains are those of the address at
    which a paper can be read, and left to the filter on the hits.
    """

    name = "semantic_scholar"
    service = SERVICE

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`."""
        offset = max(0, request.offset)
        if offset >= MOST_RESULTS:
            return SearchResponse(provider=self.name)
        # The library puts the text into a query string as it is; the service finds nothing for words with a hyphen.
        query = quote_plus(shorten_query(request.text.replace("-", " "), LONGEST_QUERY))
        narrowing = narrowing_of(request)
        most = LONGEST_PAGE if narrowing.domains.given else hit_limit(request)
        limit, days = max(1, min(most, MOST_RESULTS - offset)), _range(narrowing.days)
        try:
            sent = OneRequest(self._api, offset)
            library = QuietLibrary(self._api, sent)
            await library.search_paper(query, fields=FIELDS, limit=limit, publication_date_or_year=days)
            return respond(request, self.name, sent.papers, _result)
        except (ValueError, TypeError, AttributeError, KeyError):
            raise self._api.unexpected() from None


def _range(days: Days) -> str | None:
    """`FIRST:LAST`, an open end left out; None without a bound."""
    ends = [day.isoformat() if day else "" for day in (days.first, days.last)]
    return ":".join(ends) if days.given else None


def _result(paper: PaperFields) -> RawResult:
    return RawResult(
        url=paper.address,
        title=paper.title,
        snippet=paper.abstract,
        published=iso_date(paper.publicationDate) or paper.year,
        authors=paper.authors,
        venue=paper.venue,
        doi=paper.identifier("DOI"),
        source_type="academic",
    )
