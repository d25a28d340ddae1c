"""Every search service by its real client, through everything that a server can do."""

import logging
from typing import Any

import pytest

from providers.errors import NotConfigured, ProviderError, RateLimited, Unavailable
from tests.fakes.search_answers import (
    BY_WORDS,
    IN_XML,
    KEY_PARAMETERS,
    KEYS,
    MODEL_RESULTS,
    PAPERS,
    PROVIDERS,
    ROWS,
    Item,
    found,
    items,
)
from tests.fakes.search_apis import QUESTION, SearchApis, search

every_provider = pytest.mark.parametrize("name", PROVIDERS)
OURS = [name for name in PROVIDERS if name not in {"google", "vertex_ai_search"}]
"""Those that send through our own connections, with limits of size and one request alone."""
WITH_ADDRESSES = [name for name in PROVIDERS if name not in ("wikipedia", *IN_XML)]
"""Those whose answers have addresses: the others have names or numbers, from which ours are made."""


async def failure(name: str, server: SearchApis, **given: Any) -> ProviderError:
    """The error of a search: it has neither the key nor the query, and one request was made for it."""
    with pytest.raises(ProviderError) as raised:
        await search(name, server, **given)
    error = raised.value
    assert not any(key in f"{error!r} {error.__cause__!r}" for key in KEYS.values())
    assert QUESTION not in str(error)
    assert error.__suppress_context__ or error.__context__ is None
    assert len(server.asked) == 1
    return error


@every_provider
async def test_hits_come_typed_in_rank_order_by_one_request(name: str) -> None:
    """A search gives clean hits of this provider, ranked from 1, by one request with our name, or two where papers and
    their identifiers are apart (X-16).
    """
    async with SearchApis() as server:
        answer = await search(name, server, max_results=5)
    assert answer.provider == name
    assert [hit.rank for hit in answer.hits] == [1, 2, 3, 4, 5]
    assert {hit.provider for hit in answer.hits} == {name}
    assert all(hit.url.startswith("https://") for hit in answer.hits)
    assert answer.hits[3].title in {"Result number 3", "Page 3: a title"}
    assert answer.hits[3].snippet in {'About "it" 3.', "About it 3"} or name == "anthropic"
    assert answer.hits[0].source_type == ("academic" if name in PAPERS else "web")
    asked = server.asked[0]
    assert len(server.asked) == (2 if name == "pubmed" else 1)
    assert asked.query == ("backups made" if name in BY_WORDS else QUESTION)
    assert asked.headers["user-agent"].startswith("durable-research/test")


@every_provider
async def test_nothing_found_is_an_empty_list(name: str) -> None:
    """No hits is an answer, not an error."""
    async with SearchApis("empty") as server:
        assert (await search(name, server)).hits == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "scenario"),
    [*((name, status) for name in PROVIDERS for status in ("401", "403")), *((name, "wrong key") for name in KEYS)],
)
async def test_refused_credentials_name_what_to_set(name: str, scenario: str) -> None:
    """A refusal, also one in the service's own words and status, is not tried again and names the variable."""
    key: dict[str, str | None] = {f"{name.upper()}_API_KEY": "not-the-right-key"} if scenario == "wrong key" else {}
    async with SearchApis("good" if key else scenario) as server:
        error = await failure(name, server, values=key)
    assert isinstance(error, NotConfigured)
    variables = {"searxng": "search.formats", "wikipedia": "WIKIPEDIA_BASE_URL"}
    variables |= {"crossref": "RESEARCH_CONTACT", "arxiv": "ARXIV_BASE_URL"}
    assert variables.get(name, f"{name.upper()}_API_KEY") in str(error)


@every_provider
@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("scenario", "headers", "wait"),
    [
        ("429", [("retry-after", "7")], 7.0),
        ("429", [], None),
        ("403_quota", [("retry-after", "60")], 60.0),
    ],
)
async def test_a_request_to_wait(name: str, scenario: str, headers: list[tuple[str, str]], wait: float | None) -> None:
    """429, or 403 for a quota, carries the wait that the service states, also through the libraries."""
    async with SearchApis(scenario, headers=headers) as server:
        error = await failure(name, server)
    assert isinstance(error, RateLimited)
    assert error.retry_after == wait


TROUBLE = {"408": "408", "503": "503", "reset_after_headers": "connection failed", "never": "no answer in 0.2 s"}
TROUBLE |= dict.fromkeys(("html", "wrong_shape", "list", "deep", "not_json"), "documented form")
LIMITS = dict.fromkeys(("cut", "reset"), "connection failed") | dict.fromkeys(("oversized", "bomb"), "exceeds 8 MB")
LIMITS |= {"trickle": "no answer in 0.2 s"}


@pytest.mark.parametrize(
    ("name", "scenario"),
    [*((name, each) for name in PROVIDERS for each in TROUBLE), *((name, each) for name in OURS for each in LIMITS)],
)
@pytest.mark.one_in(3)
async def test_trouble_on_the_other_side_is_never_an_empty_answer(name: str, scenario: str) -> None:
    """Server errors, silence, answers of another form, cut ones and those without end are worth another attempt (X-16)."""
    async with SearchApis(scenario, headers=[("retry-after", "3")]) as server:
        error = await failure(name, server, seconds=0.2 if scenario in {"never", "trickle"} else 10.0)
    assert isinstance(error, Unavailable)
    assert (TROUBLE | LIMITS)[scenario] in str(error)
    assert error.retry_after == (3.0 if scenario.isdecimal() else None)


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("body", ["stalled", "reset_after_headers", "cut", "oversized"])
@pytest.mark.parametrize(("status", "kind"), [(429, RateLimited), (401, NotConfigured)])
@pytest.mark.one_in(3)
async def test_a_refusal_counts_without_its_body(name: str, body: str, status: int, kind: type[ProviderError]) -> None:
    """The status decides, and the wait is honoured, if the explanation stalls, breaks or is too large."""
    async with SearchApis(body, status=status, headers=[("retry-after", "7")]) as server:
        error = await failure(name, server, seconds=0.3 if body == "stalled" else 10.0)
    assert isinstance(error, kind)
    assert getattr(error, "retry_after", 7.0) == 7.0


@every_provider
@pytest.mark.parametrize("scenario", ["redirect", "404"])
async def test_a_service_at_another_address_is_not_followed(name: str, scenario: str) -> None:
    """A service that has moved, or was never there, is a matter of configuration; no other server gets the key."""
    async with SearchApis() as elsewhere, SearchApis(scenario, location=elsewhere.url(name)) as server:
        error = await failure(name, server)
    assert isinstance(error, NotConfigured)
    assert "is not at this address" in str(error)
    assert elsewhere.asked == []


@pytest.mark.parametrize("name", [name for name in PROVIDERS if name not in BY_WORDS])
async def test_queries_are_fitted_to_the_service(name: str) -> None:
    """A long query with signs that mean something in URLs arrives as text, cut at a word, on one line."""
    text = "a&limit=1#x %41 + = ü\n\u202eπ " + "word " * 500
    async with SearchApis() as server:
        answer = await search(name, server, text, max_results=3)
    assert len(answer.hits) == 3
    assert server.asked[0].query.startswith("a&limit=1#x %41 + = ü π word")
    assert server.asked[0].query.endswith("word")


@pytest.mark.parametrize("name", BY_WORDS)
async def test_a_query_has_no_operator_of_the_service(name: str) -> None:
    """Signs, fields and upper-case conjunctions are syntax there: words alone arrive, and a query without one asks nothing."""
    text = 'a AND (tiny) "phrase" ti:cat OR dog[tiab] NOT x* -y && "' + "word " * 500
    async with SearchApis() as server:
        await search(name, server, text, max_results=3)
        assert set(server.asked[0].query.split()) == set("tiny phrase ti cat dog tiab x y word".split())
        count = len(server.asked)
        answer = await search(name, server, '"" () **')
    assert len(server.asked) == count
    assert (answer.hits, answer.warnings) == ([], ["takes words alone: no search was made"])


@pytest.mark.parametrize("name", WITH_ADDRESSES)
async def test_only_addresses_that_can_be_read_become_hits(name: str) -> None:
    """Other schemes, hidden hosts and repetitions are dropped; the ranks of the others stay."""
    bad = ["javascript:alert(1)", "https://user:word@b.example/", "https://c.example/\u202ex"]
    bad += ["https://[half/", "/relative", "https://good.example/#again", "https://e.example:99999/"]
    urls = ["https://good.example/", *bad, "HTTP://Other.Example/a b#part"]
    things = [Item(n, url, f"T{n}\x00\u202e", "") for n, url in enumerate(urls)]
    async with SearchApis(results=things) as server:
        answer = await search(name, server)
    assert [(hit.url, hit.rank, hit.title) for hit in answer.hits[:1]] == [("https://good.example/", 1, "T0")]
    assert [hit.rank for hit in answer.hits[1:]] == [9]
    assert answer.hits[1].url.lower() == "http://other.example/a%20b"


@every_provider
async def test_neither_keys_nor_queries_enter_the_log(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """A key travels in a header, or as a parameter where the service documents no other way.

    Libraries that would log URLs, headers and bodies are silenced.
    """
    caplog.set_level(logging.DEBUG)
    for scenario in ("good", "403_quota", "wrong_shape"):
        async with SearchApis(scenario) as server:
            try:
                await search(name, server)
            except ProviderError:
                continue
            assert server.asked[0].key == KEYS.get(name)
            if name not in KEY_PARAMETERS:
                asked = [server.asked[0].parameters, server.asked[0].body]
                assert not any(key in repr(asked) for key in KEYS.values())
    assert not any(key in caplog.text for key in KEYS.values())
    assert "backups" not in caplog.text


ODD: tuple[Any, ...] = (
    None, 7, 10**400, -1.5, True, "", "\ud800x\x00", "0000", "2024-05", "Mon, 01 Jan 99999999999999999999 00:00:00 GMT", [], {},
    [None], [7, {"name": None}, {"metatags": 3}], {"url": 7, "DOI": 5, "ArXiv": []}, {"metatags": [{"date": "0000"}]},
)  # fmt: skip
"""Values in the place of any other."""


def rows_of(name: str, answer: Any) -> list[Any]:
    if name == "anthropic":
        (rows,) = [block["content"] for block in answer["content"] if block["type"] == "web_search_tool_result"]
    else:
        rows = answer
        for key in ROWS[name].split("/"):
            rows = rows[key]
    assert isinstance(rows, list)
    return rows


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [name for name in PROVIDERS if name not in IN_XML])
async def test_an_odd_result_costs_at_most_itself(name: str) -> None:
    """With any value in one field of one result, the results around it are found, at their own ranks, and can be stored.

    A result that is none takes a rank; an answer without one usable result is a failure, never no hits (X-16).
    """
    async with SearchApis(results=2) as server:
        await search(name, server)
        answer: Any = found(server.asked[0], items(2))
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
            assert all(hit.model_dump_json() for hit in hits)
        rows[:] = [None, first, "text", 7, [], last]
        hits = (await search(name, server)).hits
        assert [hit.rank for hit in hits] == [2, 6]
        assert len(hits) <= MODEL_RESULTS
        for useless in ([None], [{}, {}], ["text", 7]):
            rows[:] = useless
            with pytest.raises(Unavailable, match="documented form") as refused:
                await search(name, server)
            if name in OURS:
                assert f"none of its {len(useless)} results has an address" in str(refused.value)
