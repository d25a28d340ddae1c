"""Brave Search: its pages."""

import pytest

from providers.search.brave import LAST_PAGE, LONGEST_PAGE, page_for
from tests.fakes.search_apis import SearchApis
from tests.fakes.search_clients import search


@pytest.mark.parametrize("count", [1, 3, 7, 10, 20])
@pytest.mark.parametrize("offset", [0, 1, 5, 10, 13, 20, 57, 90, 139, 199])
def test_the_page_holds_the_first_result_that_is_asked_for(offset: int, count: int) -> None:
    """Whatever the offset, a page that the service takes contains it."""
    length, page = page_for(offset, count)
    assert 1 <= length <= LONGEST_PAGE
    assert 0 <= page <= LAST_PAGE
    assert page * length <= offset < (page + 1) * length


def test_pages_of_equal_length_are_its_own_pages() -> None:
    """Going on by whole pages wastes nothing."""
    assert [page_for(n * 10, 10) for n in range(3)] == [(10, 0), (10, 1), (10, 2)]


async def test_an_odd_offset_gives_the_right_hits() -> None:
    """The hits from the fourteenth on, although no page begins there."""
    async with SearchApis() as server:
        answer = await search("brave", server, max_results=4, offset=13)
    assert [hit.rank for hit in answer.hits] == [14, 15, 16, 17]
    assert [hit.title for hit in answer.hits] == [f"Result number {n}" for n in (13, 14, 15, 16)]
    assert answer.hits[0].published_at == "2024-05-17"


async def test_only_the_web_is_asked_without_markup() -> None:
    """News boxes, videos and bold type are not wanted."""
    async with SearchApis() as server:
        await search("brave", server)
    assert server.asked[0].parameters["result_filter"] == "web"
    assert server.asked[0].parameters["text_decorations"] == "false"
