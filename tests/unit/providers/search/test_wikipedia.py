"""Wikipedia: addresses of articles, and errors that come with status 200."""

from typing import Any

import pytest

from providers.errors import InvalidCall, ProviderError, RateLimited, Unavailable
from providers.search.wikipedia import DEFAULT_BASE_URL
from tests.fakes.search_answers import Item
from tests.fakes.search_apis import SearchApis
from tests.fakes.search_clients import asking, open_provider, search


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


async def test_the_language_is_the_host() -> None:
    """Each language has a wiki of its own; English is asked where none is named, or none exists, which is told."""
    async with SearchApis(
        results=[Item(0, "", "Katze", "", language="de"), Item(1, "", "Cat", "", language="en")]
    ) as server:
        address = server.url("wikipedia") + "/{language}"
        german = await search("wikipedia", server, base_url=address, language="de")
        default = await search("wikipedia", server, base_url=address)
        unknown = await search("wikipedia", server, base_url=address, language="qqq")
    assert [asked.path for asked in server.asked] == ["/de/w/api.php", "/en/w/api.php", "/en/w/api.php"]
    assert german.hits[0].url == "https://de.wikipedia.example/wiki/Page_0:_a_title"
    assert german.warnings == default.warnings == []
    assert unknown.warnings == ["has no articles in the language qqq: the English ones were asked"]


async def test_one_wiki_says_that_it_knows_no_other_language() -> None:
    """A configured address without a place for the language is one wiki."""
    async with SearchApis() as server:
        answer = await search("wikipedia", server, language="de")
    assert answer.warnings == ["is one wiki: it cannot keep to a language"]
    assert len(answer.hits) == 10


@pytest.mark.parametrize("given", [{"domains_allow": ["nasa.gov"]}, {"domains_deny": ["wikipedia.org"]}])
async def test_nobody_is_asked_where_no_article_can_be_meant(given: dict[str, list[str]]) -> None:
    """All its articles have one host: outside the domains, there is nothing to ask for."""
    async with open_provider("wikipedia", DEFAULT_BASE_URL, 0.001) as provider:
        answer = await provider.search(asking("wikipedia", language="fr", **given))
    assert answer.hits == []
    assert answer.warnings == ["fr.wikipedia.org lies outside the domains and was not asked"]


async def test_the_date_of_an_edit_is_none_of_publication() -> None:
    """An article is not left out for having been edited since, and that dates were not kept to is told."""
    async with SearchApis() as server:
        answer = await search("wikipedia", server, published_to="2020")
    assert len(answer.hits) == 10
    assert answer.warnings == ["cannot keep to dates of publication: some hits may lie outside"]
