"""Filters of a request, which services get as they document them and the hits keep to."""

from typing import Any

import pytest

from contracts.messages import SearchResponse
from contracts.request import SourceType
from providers.search.declarations import search_declaration
from tests.fakes.search_answers import IN_XML, JAPANESE, PAPERS, PROVIDERS, Item
from tests.fakes.search_apis import SearchApis, search

every_provider = pytest.mark.parametrize("name", PROVIDERS)
OTHERS = [name for name in PROVIDERS if name != "wikipedia"]


def applies(name: str, filtered: str) -> bool:
    return filtered in search_declaration(name).filters


def things(*given: dict[str, str]) -> list[Item]:
    return [
        Item(**{"number": n, "url": f"https://site-{n}.example/", "title": f"T{n}", "snippet": ""} | details)  # type: ignore[arg-type]
        for n, details in enumerate(given)
    ]


def titles(answer: SearchResponse) -> list[str]:
    return [hit.title for hit in answer.hits]


PLACES = things(
    {"url": "https://other.example/"},
    {"url": "https://nature.example/a"},
    {"url": "https://notnature.example/"},
    {"url": "https://www.nature.example/b"},
    {"url": "https://old.nature.example/c"},
    {"url": "https://nature.example.evil.example/"},
    {"url": "https://science.example/d"},
    {"url": "https://xn--bcher-kva.example/"},
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [name for name in OTHERS if name not in IN_XML])
@pytest.mark.parametrize(
    ("allow", "deny", "expected"),
    [
        (["Nature.example", "science.example"], [], ["T1", "T3", "T4", "T6"]),
        ([], ["nature.example", "science.example", "b\u00fccher.example"], ["T0", "T2", "T5"]),
        (["nature.example"], ["old.nature.example"], ["T1", "T3"]),
        (["example"], ["nature.example"], ["T0", "T2", "T5", "T6", "T7"]),
    ],
)
async def test_hits_keep_to_the_domains(name: str, allow: list[str], deny: list[str], expected: list[str]) -> None:
    """One domain in any spelling, several or a whole zone, by the service or afterwards; by one request (X-16)."""
    async with SearchApis(results=PLACES) as server:
        answer = await search(name, server, domains_allow=allow, domains_deny=deny)
    assert titles(answer) == expected
    assert len(server.asked) == 1
    alone = "cannot search the allowed domains alone: hits elsewhere were left out"
    assert (alone in answer.warnings) is (bool(allow) and not applies(name, "domains_allow"))


@every_provider
async def test_a_language_is_applied_or_the_response_warns(name: str) -> None:
    """Each service gets a language that it knows in its own spelling and no other; where it cannot, it warns (X-16)."""
    async with SearchApis() as server:
        japanese = await search(name, server, language="ja")
        esperanto = await search(name, server, language="eo")
    if name == "wikipedia":
        assert japanese.warnings == ["is one wiki: it cannot keep to a language"]
    elif applies(name, "language"):
        key, value = JAPANESE[name]
        assert (server.asked[0].parameters[key], japanese.warnings) == (value, [])
    else:
        assert japanese.warnings == ["cannot keep to a language"]
    assert len(esperanto.hits) == 10
    if name in {"google", "brave"}:
        assert esperanto.warnings == ["cannot keep to the language eo"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [name for name in OTHERS if name not in {"tavily", "google"}])
@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("2024-03-01", "2024-03-31", ["T1", "T2"]),
        ("2024-03-01", None, ["T1", "T2", "T3"]),
        (None, "2024-12-31", ["T0", "T1", "T2"]),
    ],
)
async def test_hits_keep_to_the_days(name: str, first: str | None, last: str | None, expected: list[str]) -> None:
    """Services that know days get them, open ends included; stated dates are checked in any case."""
    days = ["2023-12-31", "2024-03-01", "2024-03-31", "2025-01-01"]
    rows = things(*({"published": day, "kind": "academic" if name in PAPERS else ""} for day in days))
    async with SearchApis(results=rows) as server:
        answer = await search(name, server, published_from=first, published_to=last)
    assert titles(answer) == expected
    warned = any("dates of publication" in line for line in answer.warnings)
    assert warned is (name in {"searxng", "serper"} or not applies(name, "dates"))


@pytest.mark.parametrize(
    ("name", "given", "sent"),
    [
        ("tavily", {"domains_allow": ["a.x", "b.x"], "domains_deny": ["c.x"]},
         {"include_domains": ["a.x", "b.x"], "exclude_domains": ["c.x"]}),
        ("google", {"domains_allow": ["a.x", "b.x"], "domains_deny": ["c.x"]},
         {"q": "how are backups made? (site:a.x OR site:b.x) -site:c.x"}),
        ("google", {"published_from": "2024-03-01", "published_to": "2024-03-31"}, {"sort": "date:r:20240301:20240331"}),
        ("semantic_scholar", {"published_to": "2024-03-31"}, {"publicationDateOrYear": ":2024-03-31"}),
        ("brave", {"published_from": "2024-03-01", "published_to": "2024-03-31"}, {"freshness": "2024-03-01to2024-03-31"}),
        ("brave", {"domains_allow": ["a.x"]}, {"q": "how are backups made? site:a.x"}),
        ("searxng", {"domains_allow": ["a.x"]}, {"q": "how are backups made? site:a.x"}),
        ("openalex", {"published_from": "2024-03-01", "language": "de"},
         {"filter": "from_publication_date:2024-03-01,language:de"}),
        ("pubmed", {"published_from": "2024-03-01", "published_to": "2024-03-31"},
         {"datetype": "pdat", "mindate": "2024/03/01", "maxdate": "2024/03/31"}),
        ("arxiv", {"published_from": "2024-03-01", "published_to": "2024-03-31"},
         {"search_query": '(all:"backups" OR all:"made") AND submittedDate:[202403010000 TO 202403312359]'}),
        ("exa", {"domains_allow": ["a.x"], "published_from": "2024-03-01", "source_type": SourceType.ACADEMIC},
         {"includeDomains": ["a.x"], "startPublishedDate": "2024-03-01T00:00:00.000Z", "category": "research paper"}),
        ("serper", {"domains_allow": ["a.x"], "domains_deny": ["b.x"]},
         {"q": "how are backups made? site:a.x -site:b.x"}),
        ("searxng", {"source_type": SourceType.ACADEMIC, "domains_allow": ["a.x"]},
         {"q": "how are backups made?", "categories": "science"}),
    ],
)  # fmt: skip
async def test_filters_are_sent_in_the_services_own_form(
    name: str, given: dict[str, Any], sent: dict[str, Any]
) -> None:
    """A filter that a service can apply is in the request itself (X-16)."""
    async with SearchApis() as server:
        await search(name, server, **given)
    asked = server.asked[0]
    arrived = {**asked.parameters, **asked.body}
    assert {key: arrived.get(key) for key in sent} == sent


@every_provider
async def test_news_come_from_an_index_of_news_or_the_response_warns(name: str) -> None:
    """Another type than requested is never passed off as it (X-16)."""
    rows = things({"kind": "web"}, {"kind": "news", "published": "2024-05-17"}, {"kind": "academic"})
    async with SearchApis(results=rows) as server:
        news = await search(name, server, source_type=SourceType.NEWS)
        web = await search(name, server, source_type=SourceType.WEB)
    if SourceType.NEWS in search_declaration(name).source_types:
        assert (titles(news), titles(web)) == (["T1"], ["T0"])
        assert news.hits[0].published_at == "2024-05-17"
        assert news.warnings == []
    else:
        assert news.warnings == ["has no news search of its own"]
        assert {hit.source_type for hit in news.hits} <= {"web", "academic"}
