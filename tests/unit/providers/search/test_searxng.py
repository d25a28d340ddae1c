"""SearXNG: what an instance of one's own may say."""

import pytest

from providers.errors import NotConfigured, Unavailable
from tests.fakes.search_apis import SearchApis
from tests.fakes.search_clients import search


async def test_an_instance_that_refuses_json_says_what_to_allow() -> None:
    """403 is how an instance answers whose settings do not allow the format."""
    async with SearchApis("403") as server:
        with pytest.raises(NotConfigured, match=r"json under search\.formats"):
            await search("searxng", server)


async def test_silent_engines_are_a_failure_where_nothing_was_found() -> None:
    """Nothing found because nobody answered is not nothing found."""
    silent = {"results": [], "unresponsive_engines": [["example", "timeout"]]}
    async with SearchApis(answer=silent) as server:
        with pytest.raises(Unavailable, match="gave no answer"):
            await search("searxng", server)


async def test_scientific_results_are_academic_sources() -> None:
    """Category, authors, DOI and date are kept where an engine gives them."""
    async with SearchApis() as server:
        hits = (await search("searxng", server, max_results=2)).hits
    assert [hit.source_type for hit in hits] == ["web", "academic"]
    assert (hits[1].authors, hits[1].doi, hits[1].published_at) == (["Ada Lovelace"], "10.1234/example", "2024-05-17")


async def test_odd_details_of_one_engine_do_not_cost_the_answer() -> None:
    """A date, authors or a DOI of another type than documented are left out, the hits stay."""
    row = {
        "url": "https://a.example/",
        "title": "T",
        "publishedDate": 5,
        "authors": "Ada",
        "doi": ["x"],
        "category": None,
    }
    async with SearchApis(answer={"results": [row]}) as server:
        hit = (await search("searxng", server)).hits[0]
    assert (hit.title, hit.published_at, hit.authors, hit.doi) == ("T", None, [], None)
