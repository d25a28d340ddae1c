"""OpenAlex: works of all publishers, with the place of their best open copy."""

from typing import Any, Final

from contracts.messages import SearchRequest, SearchResponse
from providers.search.filters import Filters
from providers.search.hits import RawResult, content_words, doi_url, hit_limit, list_at, text_at
from providers.search.web_api import WebSearch

MAX_PAGE_SIZE: Final = 100
FIELDS: Final = (
    "id,doi,display_name,publication_date,publication_year,authorships,primary_location,best_oa_location,"
    "abstract_inverted_index"
)
MAX_POSITION: Final = 5_000
"""Words of an abstract that are read; the longest have about 1,000."""


class OpenAlexSearch(WebSearch):
    """Works that have all of the words in title, abstract or text; if there are none, those that have any of them."""

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make one search request, or a second one after the first found nothing."""
        words = content_words(request, 400)
        if not words:
            return SearchResponse(provider=self.name, warnings=["takes words alone: no search was made"])
        works = await self._works(" ".join(words), request, filters)
        if works == [] and len(words) > 1:
            works = await self._works(" OR ".join(words), request, filters)
        return self.respond(request, works, _result)

    async def _works(self, query: str, request: SearchRequest, filters: Filters) -> list[Any] | None:
        conditions = []
        if filters.days.first:
            conditions.append(f"from_publication_date:{filters.days.first}")
        if filters.days.last:
            conditions.append(f"to_publication_date:{filters.days.last}")
        if filters.language:
            conditions.append(f"language:{filters.language}")
        parameters: dict[str, str | int] = {
            "search": query,
            "per_page": MAX_PAGE_SIZE if filters.domains.given else max(1, hit_limit(request)),
            "select": FIELDS,
        }
        if conditions:
            parameters["filter"] = ",".join(conditions)
        return list_at(await self.get("/works", parameters), "results")


def _result(work: dict[str, Any]) -> RawResult:
    doi = (text_at(work, "doi") or "").removeprefix("https://doi.org/")
    pdf = text_at(work, "best_oa_location", "pdf_url")
    year = work.get("publication_year")
    abstract = _abstract(work.get("abstract_inverted_index"))
    return RawResult(
        url=pdf or (doi_url(doi) if doi else None) or text_at(work, "id"),
        title=text_at(work, "display_name"),
        snippet=abstract,
        published=text_at(work, "publication_date") or (str(year) if isinstance(year, int) else None),
        authors=[text_at(author, "author", "display_name") for author in list_at(work, "authorships") or ()],
        venue=text_at(work, "primary_location", "source", "display_name"),
        doi=doi,
        source_type="academic",
        abstract=abstract,
        is_open=bool(pdf),
        expects_pdf=bool(pdf),
    )


def _abstract(index: Any) -> str:
    """Return the text of an abstract from the positions of each of its words."""
    if not isinstance(index, dict):
        return ""
    words = [
        (position, word)
        for word, positions in index.items()
        if isinstance(positions, list)
        for position in positions[:MAX_POSITION]
        if type(position) is int and 0 <= position < MAX_POSITION
    ]
    return " ".join(word for _, word in sorted(words)[:MAX_POSITION])
