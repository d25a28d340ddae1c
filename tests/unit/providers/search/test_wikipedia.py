"""Wikipedia: addresses of articles, and errors that come with status 200."""

from typing import Any

import pytest

from providers.errors import InvalidCall, ProviderError, RateLimited, Unavailable
from tests.fakes.search_apis import SearchApis
from tests.fakes.search_clients import search


def articles(*titles: str, server: str = "//de.wiki.example", path: str = "/wiki/$1") -> dict[str, Any]:
    """An answer with these articles."""
    found = [{"title": title, "snippet": "", "timestamp": "2024-05-17T08:00:00Z"} for title in titles]
    return {"query": {"general": {"server": server, "articlepath": path}, "search": found}}


async def test_addresses_follow_the_wikis_own_form() -> None:
    """Host and path come from the wiki; titles are escaped as it does."""
    async with SearchApis(answer=articles("C++", "Größe & 50% (Maß)", "Was? Wo/wie", path="/w/index.php/$1")) as server:
        answer = await search("wikipedia", server)
    assert [hit.url for hit in answer.hits] == [
        "http://de.wiki.example/w/index.php/C%2B%2B",
        "http://de.wiki.example/w/index.php/Gr%C3%B6%C3%9Fe_%26_50%25_(Ma%C3%9F)",
        "http://de.wiki.example/w/index.php/Was%3F_Wo/wie",
    ]


async def test_one_request_finds_articles_and_their_place() -> None:
    """The wiki is asked for both lists at once, and is told who asks."""
    async with SearchApis() as server:
        answer = await search("wikipedia", server, max_results=3, offset=2)
    assert [hit.rank for hit in answer.hits] == [3, 4, 5]
    assert answer.hits[0].url == "https://en.wikipedia.example/wiki/Page_2:_a_title"
    assert server.asked[0].headers["user-agent"] == "durable-research/test"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ratelimited", RateLimited),
        ("readonly", Unavailable),
        ("internal_api_error_X", Unavailable),
        ("badvalue", InvalidCall),
    ],
)
async def test_errors_that_come_as_answers_are_errors(code: str, kind: type[ProviderError]) -> None:
    """Status 200 does not make an error an empty list."""
    async with SearchApis(answer={"error": {"code": code, "info": "words"}}) as server:
        with pytest.raises(kind):
            await search("wikipedia", server)
