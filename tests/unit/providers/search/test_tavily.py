"""Tavily: what is asked for, and how its own refusals are understood."""

import pytest

from providers.errors import RateLimited
from providers.search.service import error_for_status
from providers.search.tavily import SERVICE
from tests.fakes.search_apis import SearchApis
from tests.fakes.search_clients import search


async def test_one_cheap_search_is_asked_for() -> None:
    """Neither answers nor images nor whole pages are paid for."""
    async with SearchApis() as server:
        await search("tavily", server, max_results=7)
    body = server.asked[0].body
    assert (body["max_results"], body["search_depth"]) == (7, "basic")
    assert not any(body[name] for name in ("include_answer", "include_raw_content", "include_images"))


async def test_an_offset_is_reached_by_asking_for_more_up_to_its_limit() -> None:
    """The service has no pages: 20 results are all it gives."""
    async with SearchApis() as server:
        answer = await search("tavily", server, max_results=10, offset=15)
    assert server.asked[0].body["max_results"] == 20
    assert [hit.rank for hit in answer.hits] == [16, 17, 18, 19, 20]


async def test_dates_of_news_are_read() -> None:
    """A date in a mail's form becomes an ISO date."""
    row = {"title": "T", "url": "https://a.example/", "content": "", "published_date": "Tue, 05 Mar 2024 10:00:00 GMT"}
    async with SearchApis(answer={"results": [row]}) as server:
        answer = await search("tavily", server)
    assert answer.hits[0].published_at == "2024-03-05"


@pytest.mark.parametrize("status", [432, 433])
def test_a_used_up_plan_is_a_quota(status: int) -> None:
    """The service's own statuses for its plans mean what 429 means elsewhere."""
    assert isinstance(error_for_status(SERVICE, status, []), RateLimited)
