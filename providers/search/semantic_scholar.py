"""Semantic Scholar through its library, which asks over our connections."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import parse_qsl, quote_plus

import httpx2
from pydantic_core import from_json
from semanticscholar.ApiRequester import ApiRequester  # type: ignore[import-untyped]
from semanticscholar.AsyncSemanticScholar import AsyncSemanticScholar  # type: ignore[import-untyped]

from contracts.activities import SearchRequest, SearchResponse
from providers.search.narrowing import Days, narrowing_of
from providers.search.web_api import ANSWER_SECONDS, Detail, WebApi, Wire
from providers.search.web_errors import Service
from providers.search.web_hits import Found, answered, shortened, wanted

DEFAULT_BASE_URL: Final = "https://api.semanticscholar.org"
SERVICE: Final = Service("Semantic Scholar", "SEMANTIC_SCHOLAR_BASE_URL", "SEMANTIC_SCHOLAR_API_KEY")
MOST_RESULTS: Final = 1_000
"""Results by relevance that the interface gives of one query."""
LONGEST_PAGE: Final = 100
LONGEST_QUERY: Final = 1_000
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


class PaperAuthor(Wire):
    """One author, as the library gives it."""

    name: str | None = None


class PaperFields(Wire):
    """A paper, as the library gives it."""

    title: str | None = None
    abstract: str | None = None
    authors: list[PaperAuthor] | None = None
    year: int | None = None
    publicationDate: datetime | None = None  # noqa: N815 - the library's spelling, as below
    venue: Detail = None
    externalIds: dict[str, Any] | None = None  # noqa: N815
    url: str | None = None
    openAccessPdf: dict[str, Any] | None = None  # noqa: N815


class OneRequest(ApiRequester):  # type: ignore[misc]
    """What the library sends through: one request over our connections, every status with its meaning.

    The library's own takes 401, 408 and 503 for an empty answer, loses `Retry-After`, and starts at the first result.
    """

    def __init__(self, api: WebApi, offset: int) -> None:
        super().__init__(timeout=None, retry=False)
        self._api = api
        self._offset = offset

    async def get_data_async(
        self, url: str, parameters: str, headers: Mapping[str, str], payload: object = None
    ) -> dict[str, Any]:
        """The answer, which has a list of papers unless there are none. Raises what `WebApi.fetch` does."""
        del headers, payload  # the credentials are with our connections, and a search by relevance has no body
        pairs = dict(parse_qsl(parameters.lstrip("&"))) | {"offset": str(self._offset)}
        answer = from_json(await self._api.fetch("GET", url, params=pairs))
        if not isinstance(answer, dict) or not _is_page(answer):
            raise self._api.unexpected()
        return answer


def _is_page(answer: Mapping[str, Any]) -> bool:
    """Whether it is a list of papers, or says that there are none: the library takes anything else for none."""
    papers = answer.get("data")
    if papers is None:
        return answer.get("total") == 0
    return isinstance(papers, list) and all(isinstance(paper, dict) for paper in papers)


class QuietLibrary(AsyncSemanticScholar):  # type: ignore[misc]
    """The library's client with another way of sending."""

    debug = False  # in place of a property that sets up the logging of the whole process

    def __init__(self, api: WebApi, offset: int) -> None:
        super().__init__(api_url=api.base_url, retry=False)
        self._requester = OneRequest(api, offset)


class SemanticScholarSearch:
    """Papers by relevance; a key is not needed and raises limits (S0-171).

    Days are given to it; a paper whose day it does not know counts by its year. Domains are those of the address at
    which a paper can be read, and left to the filter on the hits.
    """

    name = "semantic_scholar"

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        api_key: str | None = None,
        base_url: str = DEFAULT_BASE_URL,
        timeout_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Raises `NotConfigured`."""
        headers = {"x-api-key": api_key} if api_key else {}
        self._api = WebApi(client, SERVICE, base_url, headers=headers, timeout_seconds=timeout_seconds)
        self.address = self._api.base_url

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order. Raises `RateLimited`, `Unavailable`, `NotConfigured` or `InvalidCall`."""
        offset = max(0, request.offset)
        if offset >= MOST_RESULTS:
            return SearchResponse(provider=self.name)
        # The library puts the text into a query string as it is; the service finds nothing for words with a hyphen.
        query = quote_plus(shortened(request.text.replace("-", " "), LONGEST_QUERY))
        narrowing = narrowing_of(request)
        most = LONGEST_PAGE if narrowing.domains.given else wanted(request)
        limit, days = max(1, min(most, MOST_RESULTS - offset)), _range(narrowing.days)
        try:
            library = QuietLibrary(self._api, offset)
            page = await library.search_paper(query, fields=FIELDS, limit=limit, publication_date_or_year=days)
            found = (_found(PaperFields.model_validate(paper)) for paper in page.items)
            return answered(request, self.name, found)
        except (ValueError, TypeError, AttributeError, KeyError):
            raise self._api.unexpected() from None


def _range(days: Days) -> str | None:
    """`FIRST:LAST`, an open end left out; null without a bound."""
    ends = [day.isoformat() if day else "" for day in (days.first, days.last)]
    return ":".join(ends) if days.given else None


def _found(paper: PaperFields) -> Found:
    identifiers = paper.externalIds or {}
    doi = identifiers.get("DOI")
    published = paper.publicationDate.date().isoformat() if paper.publicationDate else str(paper.year or "")
    return Found(
        url=_address(paper, identifiers),
        title=paper.title,
        snippet=paper.abstract,
        published=published,
        authors=[author.name for author in paper.authors or []],
        venue=paper.venue,
        doi=str(doi) if doi else None,
        source_type="academic",
    )


def _address(paper: PaperFields, identifiers: Mapping[str, Any]) -> str | None:
    """Where the paper can be read: its open copy, else its preprint, else its publisher's page, else its entry."""
    copy = (paper.openAccessPdf or {}).get("url")
    if isinstance(copy, str) and copy:
        return copy
    if identifiers.get("ArXiv"):
        return f"https://arxiv.org/abs/{identifiers['ArXiv']}"
    if identifiers.get("DOI"):
        return f"https://doi.org/{identifiers['DOI']}"
    return paper.url
