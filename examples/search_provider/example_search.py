"""A search provider in a package of its own: `GET /find?words=…&most=…` with a key in a header."""

from typing import Any

from durable_research.contracts.messages import SearchRequest, SearchResponse
from durable_research.contracts.request import SourceType
from durable_research.providers.search.declarations import SearchDeclaration
from durable_research.providers.search.filters import Filters
from durable_research.providers.search.hits import RawResult, hit_limit, list_at, shorten_query, text_at
from durable_research.providers.search.web_api import WebSearch

EXAMPLE = SearchDeclaration(
    "example",  # in `search.providers`, and in the package's entry point
    "Example Search",  # in messages to people
    "example_search:ExampleSearch",
    (SourceType.WEB,),
    "https://api.search.example",
    "EXAMPLE_BASE_URL",
    "EXAMPLE_API_KEY",
    key_header="x-api-key",
    filters=frozenset({"language"}),  # other filters are applied to the hits, or the response warns
)


class ExampleSearch(WebSearch):
    """Time-outs, limits of size, statuses and malformed answers are the base class's work."""

    async def find(self, request: SearchRequest, filters: Filters) -> SearchResponse:
        """Make the search of one request; no hits is an answer, a failure is raised."""
        parameters: dict[str, str | int] = {"words": shorten_query(request.text, 400), "most": hit_limit(request)}
        if filters.language:
            parameters["language"] = filters.language
        return self.respond(request, list_at(await self.get("/find", parameters), "found"), _result)


def _result(one: dict[str, Any]) -> RawResult:
    """One result of the service, in any state: without its address it is none."""
    return RawResult(
        url=text_at(one, "link"),
        title=text_at(one, "title"),
        snippet=text_at(one, "text"),
        published=text_at(one, "day"),
    )
