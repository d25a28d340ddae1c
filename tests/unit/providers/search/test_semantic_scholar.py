"""Semantic Scholar's library over our connections."""

import asyncio
import logging
from typing import Any

import pytest

from providers.errors import Unavailable
from tests.fakes.search_apis import SearchApis
from tests.fakes.search_clients import asking, open_provider, search


async def test_a_key_is_not_needed() -> None:
    """Without a key the search works, and no key is sent (S0-171)."""
    async with SearchApis() as server:
        answer = await search("semantic_scholar", server, api_key=None)
    assert len(answer.hits) == 10
    assert "x-api-key" not in server.asked[0].headers


async def test_papers_come_with_what_a_citation_needs() -> None:
    """Authors, venue, DOI and date are kept; where the day is unknown, the year."""
    async with SearchApis() as server:
        first, second = (await search("semantic_scholar", server, max_results=2)).hits
    assert first.authors == ["Ada Lovelace", "Alan Turing"]
    assert (first.venue, first.doi) == ("Journal of Examples", "10.1234/example.0")
    assert (first.published_at, second.published_at) == ("2021-03-04", "2021")


@pytest.mark.parametrize(
    ("paper", "url"),
    [
        ({"openAccessPdf": {"url": "https://a.example/p.pdf"}}, "https://a.example/p.pdf"),
        (
            {"openAccessPdf": {"url": ""}, "externalIds": {"ArXiv": "1706.03762", "DOI": "10.1/x"}},
            "https://arxiv.org/abs/1706.03762",
        ),
        ({"openAccessPdf": None, "externalIds": {"DOI": "10.1234/x"}}, "https://doi.org/10.1234/x"),
        ({"externalIds": None}, "https://www.semanticscholar.org/paper/1"),
    ],
)
async def test_the_address_is_where_the_paper_can_be_read(paper: dict[str, Any], url: str) -> None:
    """The open copy, else the preprint, else the publisher, else the entry."""
    row = {"title": "T", "url": "https://www.semanticscholar.org/paper/1", **paper}
    async with SearchApis(answer={"total": 1, "data": [row]}) as server:
        assert (await search("semantic_scholar", server)).hits[0].url == url


@pytest.mark.parametrize(
    "answer",
    [
        {"error": "backend timeout"},
        {"total": 5},
        {"total": 1, "data": ["text"]},
        {"total": 1, "data": [{"title": 7}]},
        {"total": 1, "data": [{"publicationDate": "soon"}]},
        {"total": 1, "data": [{"authors": [None]}]},
        {"total": 1, "data": {"a": 1}},
    ],
)
async def test_what_the_library_takes_for_nothing_is_a_failure(answer: Any) -> None:
    """Malformed answers, and errors with status 200, are never zero hits."""
    async with SearchApis(answer=answer) as server:
        with pytest.raises(Unavailable, match="documented form"):
            await search("semantic_scholar", server)


async def test_the_last_of_its_thousand_results_can_be_reached() -> None:
    """It refuses windows that reach beyond 1,000: the window is cut to fit."""
    async with SearchApis(results=2_000) as server:
        answer = await search("semantic_scholar", server, offset=995)
    assert [hit.rank for hit in answer.hits] == [996, 997, 998, 999, 1000]


async def test_searches_at_once_keep_their_own_offsets() -> None:
    """One client serves many searches: each gets the answer to its own question."""
    name = "semantic_scholar"
    async with SearchApis(results=100) as server, open_provider(name, server.url(name)) as provider:
        answers = await asyncio.gather(*(provider.search(asking(name, offset=n * 10)) for n in range(8)))
    assert [answer.hits[0].rank for answer in answers] == [n * 10 + 1 for n in range(8)]


async def test_the_library_does_not_set_up_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making its client would add a handler to the root of all logs; ours leaves them alone."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    async with SearchApis() as server:
        await search("semantic_scholar", server)
    assert logging.getLogger().handlers == []
