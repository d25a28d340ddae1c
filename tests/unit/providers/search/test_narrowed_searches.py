"""Every client asks its service to narrow down as that documents, and the hits keep to what was asked."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contracts.messages import SearchResponse
from contracts.request import SourceType
from providers.errors import InvalidCall
from providers.search.availability import TRAITS
from tests.fakes.search_answers import PROVIDERS, Item
from tests.fakes.search_apis import SearchApis
from tests.fakes.search_clients import search

every_provider = pytest.mark.parametrize("name", PROVIDERS)
OTHERS = [name for name in PROVIDERS if name != "wikipedia"]


def things(*given: dict[str, str]) -> list[Item]:
    """Things to find, each with what is said of it."""
    return [
        Item(**{"number": n, "url": f"https://site-{n}.example/", "title": f"T{n}", "snippet": ""} | said)
        for n, said in enumerate(given)
    ]


def titles(answer: SearchResponse) -> list[str]:
    """Titles of the hits, in their order."""
    return [hit.title for hit in answer.hits]


PLACES = things(
    {"url": "https://other.example/"},
    {"url": "https://nature.example/a"},
    {"url": "https://notnature.example/"},
    {"url": "https://www.nature.example/b"},
    {"url": "https://old.nature.example/c"},
    {"url": "https://nature.example.evil.example/"},
    {"url": "https://science.example/d"},
)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    ("allow", "deny", "expected"),
    [
        (["nature.example"], [], ["T1", "T3", "T4"]),
        (["nature.example", "science.example"], [], ["T1", "T3", "T4", "T6"]),
        ([], ["nature.example"], ["T0", "T2", "T5", "T6"]),
        ([], ["nature.example", "science.example"], ["T0", "T2", "T5"]),
        (["nature.example"], ["old.nature.example"], ["T1", "T3"]),
        ([f"d{n}.example" for n in range(40)] + ["science.example"], [], ["T6"]),
        (["example"], ["nature.example"], ["T0", "T2", "T5", "T6"]),
    ],
)
async def test_hits_keep_to_the_domains(name: str, allow: list[str], deny: list[str], expected: list[str]) -> None:
    """Whether the service does it or not, one domain, several, many, or a whole zone; by one request (X-16)."""
    async with SearchApis(results=PLACES) as server:
        answer = await search(name, server, domains_allow=allow, domains_deny=deny)
    assert titles(answer) == expected
    assert len(server.asked) == 1
    alone = "cannot search the allowed domains alone: hits elsewhere were left out"
    assert (alone in answer.warnings) is (bool(allow) and not TRAITS[name].filters_domains_allow)


@pytest.mark.parametrize("name", OTHERS)
async def test_what_is_filtered_here_is_looked_for_further_down(name: str) -> None:
    """A hit behind others elsewhere is found although few were asked for."""
    first = {"anthropic": 9}.get(name, 19 if name not in {"google", "searxng"} else 9)
    rows = [{"url": f"https://other-{n}.example/"} for n in range(first)] + [{"url": "https://wanted.gov/"}]
    deny = ["other-0.example", "second.example", *(f"other-{n}.example" for n in range(1, first))]
    async with SearchApis(results=things(*rows)) as server:
        answer = await search(name, server, max_results=1, domains_deny=deny)
    assert [hit.url for hit in answer.hits] == ["https://wanted.gov/"]


@pytest.mark.parametrize("name", [name for name in OTHERS if TRAITS[name].filters_language])
async def test_the_language_is_asked_for(name: str) -> None:
    """Services that know languages are asked for one, in their own spelling."""
    rows = things({"language": "de"}, {"language": "en"}, {"language": "ja"}, {})
    async with SearchApis(results=rows) as server:
        german = await search(name, server, language="de")
        japanese = await search(name, server, language="ja")
    assert (titles(german), titles(japanese)) == (["T0", "T3"], ["T2", "T3"])
    assert german.warnings == japanese.warnings == []


@pytest.mark.parametrize("name", ["google", "brave"])
async def test_an_unknown_language_is_told_and_not_sent(name: str) -> None:
    """A value that the service would refuse costs neither the search nor the truth."""
    async with SearchApis() as server:
        answer = await search(name, server, language="eo")
    assert len(answer.hits) == 10
    assert answer.warnings == ["cannot keep to the language eo"]


@pytest.mark.parametrize("name", [name for name in PROVIDERS if not TRAITS[name].filters_language])
async def test_who_knows_no_language_says_so(name: str) -> None:
    """What was asked for and not done is a line of the response (X-16)."""
    async with SearchApis() as server:
        answer = await search(name, server, language="de")
    assert answer.warnings == ["cannot keep to a language"]
    assert len(answer.hits) == 10


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("2024-03-01", "2024-03-31", ["T1", "T2"]),
        ("2024-03", None, ["T1", "T2", "T3"]),
        (None, "2024", ["T0", "T1", "T2"]),
    ],
)
async def test_hits_keep_to_the_days(name: str, first: str | None, last: str | None, expected: list[str]) -> None:
    """Services that know days are asked for them, open ends included; stated dates are checked in any case."""
    days = ["2023-12-31", "2024-03-01", "2024-03-31", "2025-01-01"]
    rows = things(*({"published": day, "kind": "academic" if name == "semantic_scholar" else ""} for day in days))
    async with SearchApis(results=rows) as server:
        answer = await search(name, server, published_from=first, published_to=last)
    assert titles(answer) == expected
    told = any("dates of publication" in line for line in answer.warnings)
    assert told is (name in {"searxng", "anthropic"})


SENT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "tavily": (
        {"start_date": "2024-03-01", "end_date": "2024-03-31"},
        {"include_domains": ["a.example", "b.example"], "exclude_domains": ["c.example"]},
    ),
    "google": (
        {"sort": "date:r:20240301:20240331"},
        {"q": "how are backups made? (site:a.example OR site:b.example) -site:c.example"},
    ),
    "semantic_scholar": ({"publicationDateOrYear": "2024-03-01:2024-03-31"}, {"limit": "100"}),
    "brave": ({"freshness": "2024-03-01to2024-03-31"}, {"count": "20", "q": "how are backups made?"}),
    "searxng": ({"q": "how are backups made?"}, {"q": "how are backups made?"}),
}


@pytest.mark.parametrize("name", SENT)
async def test_what_a_service_can_narrow_down_is_left_to_it(name: str) -> None:
    """Days and domains are in the request itself, in the service's own form, where it knows them (X-16)."""
    domains = {"domains_allow": ["a.example", "b.example"], "domains_deny": ["c.example"]}
    async with SearchApis() as server:
        await search(name, server, published_from="2024-03", published_to="2024-03")
        await search(name, server, **domains)
    for asked, expected in zip(server.asked, SENT[name], strict=True):
        given = {**asked.parameters, **asked.body}
        assert {key: given[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("name", "allow", "deny", "expected"),
    [
        ("google", ["a.example"], [], {"siteSearch": "a.example", "siteSearchFilter": "i"}),
        ("google", [], ["a.example"], {"siteSearch": "a.example", "siteSearchFilter": "e"}),
        ("brave", ["a.example"], [], {"q": "how are backups made? site:a.example"}),
        ("searxng", ["a.example"], [], {"q": "how are backups made? site:a.example"}),
    ],
)
async def test_one_domain_is_left_to_more_services(
    name: str, allow: list[str], deny: list[str], expected: dict[str, str]
) -> None:
    """What is known to work for one domain is used for one."""
    async with SearchApis() as server:
        await search(name, server, domains_allow=allow, domains_deny=deny)
    given = server.asked[0].parameters
    assert {key: given[key] for key in expected} == expected


@pytest.mark.parametrize(("days", "word"), [(1, "day"), (6, "week"), (30, "month"), (300, "year")])
async def test_searxng_is_given_the_shortest_range(days: int, word: str) -> None:
    """It knows four ranges that reach back from today."""
    first = datetime.now(UTC).date() - timedelta(days=days)
    async with SearchApis() as server:
        await search("searxng", server, published_from=first.isoformat())
    assert server.asked[0].parameters["time_range"] == word


@pytest.mark.parametrize("name", [name for name in PROVIDERS if SourceType.NEWS in TRAITS[name].source_types])
async def test_news_are_asked_for_where_there_are_any(name: str) -> None:
    """News come from the service's own index of them, as sources of that type, with their dates (X-16)."""
    rows = things({"kind": "web"}, {"kind": "news", "published": "2024-05-17"}, {"kind": "academic"})
    async with SearchApis(results=rows) as server:
        news = await search(name, server, source_type=SourceType.NEWS)
        web = await search(name, server, source_type=SourceType.WEB)
    assert (titles(news), titles(web)) == (["T1"], ["T0"])
    expected = "academic" if name == "searxng" else "news"  # the second result of the fake is a paper
    assert (news.hits[0].source_type, news.hits[0].published_at) == (expected, "2024-05-17")
    assert news.warnings == []


async def test_searxng_asks_for_papers_by_its_category() -> None:
    """Scientific engines are a category of an instance (X-16)."""
    rows = things({"kind": "web"}, {"kind": "academic"})
    async with SearchApis(results=rows) as server:
        answer = await search("searxng", server, source_type=SourceType.ACADEMIC, domains_allow=["site-1.example"])
    assert titles(answer) == ["T1"]
    assert server.asked[0].parameters["categories"] == "science"
    assert "site:" not in server.asked[0].query


@pytest.mark.parametrize("name", [name for name in PROVIDERS if SourceType.NEWS not in TRAITS[name].source_types])
async def test_who_has_no_news_says_so(name: str) -> None:
    """Another type than was asked for is never passed off as it."""
    async with SearchApis() as server:
        answer = await search(name, server, source_type=SourceType.NEWS)
    assert answer.warnings == ["has no news search of its own"]
    assert {hit.source_type for hit in answer.hits} <= {"web", "academic"}


@every_provider
@pytest.mark.parametrize(
    "given", [{"language": "DE"}, {"published_from": "yesterday"}, {"domains_allow": ["https://a.example/x"]}]
)
async def test_what_cannot_be_understood_is_refused_before_anybody_is_asked(name: str, given: dict[str, Any]) -> None:
    """No query leaves with a filter that means nothing."""
    async with SearchApis() as server:
        with pytest.raises(InvalidCall):
            await search(name, server, **given)
    assert server.asked == []


@pytest.mark.parametrize("name", PROVIDERS)
async def test_what_a_search_costs_is_known_or_said_to_be_unknown(name: str) -> None:
    """Free ones cost nothing; where a plan decides, no figure is made up; a model's search has its price."""
    async with SearchApis() as server:
        cost = (await search(name, server)).cost_usd
    if name == "anthropic":
        assert cost == pytest.approx(0.0125)  # 2,000 and 100 tokens of claude-haiku-4-5, and a hundredth for the search
    else:
        assert cost == (None if TRAITS[name].paid else 0.0)


async def test_words_with_a_hyphen_are_two_for_semantic_scholar() -> None:
    """The service finds nothing for them."""
    async with SearchApis() as server:
        assert (await search("semantic_scholar", server, "graph-based retrieval")).hits
    assert server.asked[0].query == "graph based retrieval"


async def test_words_that_lead_elsewhere_are_only_words_for_searxng() -> None:
    """Its syntax for engines, redirects, languages and time limits does not come from a question."""
    async with SearchApis() as server:
        await search("searxng", server, "!!g what !images is :de <3 1 < 2 and why?")
    assert server.asked[0].query == "g what images is de 3 1 < 2 and why?"
