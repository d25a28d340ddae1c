"""A search provider in a package of its own: `GET /find?words=…&most=…` with a key in a header."""

from typing import Any

from contracts.messages import SearchRequest, SearchResponse
from contracts.request import SourceType
from providers.search.declarations import SearchDeclaration
from providers.search.filters import filters_of
from providers.search.hits import RawResult, hit_limit, shorten_query
from providers.search.web_api import Record, WebSearch, Wire

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


class ExampleResult(Record):
    """One result; without its address it is none, without anything else it is."""

    link: str
    title: str | None = None
    text: str | None = None
    day: str | None = None


class ExampleAnswer(Wire):
    """Answer of `/find`."""

    found: list[Any]


class ExampleSearch(WebSearch):
    """Time-outs, limits of size, statuses and malformed answers are the base class's work."""

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Hits in rank order; no hits is an answer, a failure is raised."""
        language = filters_of(request).language
        parameters: dict[str, str | int] = {
            "words": shorten_query(request.text, 400),
            "most": request.offset + hit_limit(request),
            **({"language": language} if language else {}),
        }
        answer = await self.get(ExampleAnswer, "/find", parameters)

        def read(one: ExampleResult) -> RawResult:
            return RawResult(one.link, one.title, one.text, one.day)

        return self.respond(request, answer.found[request.offset :], ExampleResult, read)
