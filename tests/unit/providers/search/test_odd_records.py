"""Results with odd fields: pages and services write them, and one may cost itself and never the page."""

from typing import Any

import pytest

from providers.errors import Unavailable
from tests.fakes.search_answers import MODEL_RESULTS, PROVIDERS, found, items
from tests.fakes.search_apis import SearchApis
from tests.fakes.search_clients import search

every_provider = pytest.mark.parametrize("name", PROVIDERS)

ODD: tuple[Any, ...] = (
    None, 7, 10**400, -1.5, True, "", "x", "0000", "2024-05", "Mon, 01 Jan 99999999999999999999 00:00:00 GMT", [], {},
    [None], [7, {"name": None}, {"metatags": 3}], {"url": 7, "DOI": 5, "ArXiv": []}, {"metatags": [{"date": "0000"}]},
)  # fmt: skip
"""Values in the place of any other."""


def rows_of(name: str, answer: Any) -> list[Any]:
    """The list of results in a service's answer."""
    if name == "anthropic":
        (rows,) = [block["content"] for block in answer["content"] if block["type"] == "web_search_tool_result"]
    else:
        place = {"google": "items", "semantic_scholar": "data", "wikipedia": "search"}.get(name, "results")
        rows = answer.get({"brave": "web", "wikipedia": "query"}.get(name, ""), answer)[place]
    assert isinstance(rows, list)
    return rows


async def good_answer(name: str) -> Any:
    """An answer with two results."""
    async with SearchApis(results=2) as server:
        await search(name, server)
        return found(server.asked[0], items(2))


@every_provider
async def test_an_odd_result_costs_at_most_itself(name: str) -> None:
    """Whatever stands in one field of one result, the results around it are found, in their own places (X-16)."""
    answer = await good_answer(name)
    rows = rows_of(name, answer)
    first, last = rows[0], rows[-1]
    async with SearchApis(answer=answer) as server:
        whole = (await search(name, server)).hits
        for field in first:
            rows[:] = [first, *({**first, field: value} for value in ODD), last]
            hits = (await search(name, server, max_results=50)).hits
            assert hits[0] == whole[0]
            assert hits[-1].model_copy(update={"rank": whole[-1].rank}) == whole[-1]
            assert hits[-1].rank == len(rows)


@every_provider
async def test_a_result_that_is_none_keeps_its_place(name: str) -> None:
    """What is no result at all is left out, and does not move the ranks of the others."""
    answer = await good_answer(name)
    rows = rows_of(name, answer)
    rows[:] = [None, *rows[:1], "text", 7, [], *rows[1:]]
    async with SearchApis(answer=answer) as server:
        hits = (await search(name, server)).hits
    assert [hit.rank for hit in hits] == [2, 6]
    assert len(hits) <= MODEL_RESULTS


@every_provider
@pytest.mark.parametrize("rows", [[None], [{}, {}], ["text", 7]])
async def test_an_answer_without_one_usable_result_is_a_failure(name: str, rows: list[Any]) -> None:
    """A service that has changed its form is never taken for one that found nothing."""
    answer = await good_answer(name)
    rows_of(name, answer)[:] = rows
    async with SearchApis(answer=answer) as server:
        with pytest.raises(Unavailable, match="documented form"):
            await search(name, server)


@pytest.mark.parametrize(
    ("paper", "date"),
    [
        ({"publicationDate": "2024-05", "year": 2024}, "2024-05"),
        ({"publicationDate": "soon", "year": 2024}, "2024"),
        ({"publicationDate": None, "year": 10**400}, None),
        ({"publicationDate": 7, "year": "2024"}, None),
    ],
)
async def test_a_paper_has_what_is_known_of_its_date(paper: dict[str, Any], date: str | None) -> None:
    """The library expects a whole day and gives up the page otherwise: papers are read without it."""
    async with SearchApis(
        answer={"total": 1, "data": [{"title": "T", "url": "https://a.example/", **paper}]}
    ) as server:
        (hit,) = (await search("semantic_scholar", server)).hits
    assert hit.published_at == date


async def test_an_old_identifier_is_a_whole_address() -> None:
    """Signs of an identifier that mean something else in addresses are escaped."""
    doi = "10.1002/(SICI)1097-4571(199806)49:8<693::AID-ASI4>3.0.CO;2-#"
    async with SearchApis(answer={"total": 1, "data": [{"externalIds": {"DOI": doi}}]}) as server:
        (hit,) = (await search("semantic_scholar", server)).hits
    assert hit.url == "https://doi.org/10.1002/(SICI)1097-4571(199806)49:8%3C693::AID-ASI4%3E3.0.CO;2-%23"
    assert hit.doi == doi
