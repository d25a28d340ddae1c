"""Every search service of the web by its real client, through everything that a server can do."""

import logging
from typing import Any

import pytest

from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from tests.fakes.search_answers import KEYS, PROVIDERS, Item
from tests.fakes.search_apis import SearchApis
from tests.fakes.search_clients import QUESTION, asking, open_provider, search

every_provider = pytest.mark.parametrize("name", PROVIDERS)


async def failure(name: str, server: SearchApis, **given: Any) -> ProviderError:
    """What the search raises: it says neither the key nor the query, and one request was made for it."""
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
    """A search gives clean hits of this provider, ranked from 1, and costs exactly one request (X-16)."""
    async with SearchApis() as server:
        answer = await search(name, server, max_results=5)
    assert answer.provider == name
    assert [hit.rank for hit in answer.hits] == [1, 2, 3, 4, 5]
    assert {hit.provider for hit in answer.hits} == {name}
    assert all(hit.url.startswith("https://") for hit in answer.hits)
    assert answer.hits[3].title in {"Result number 3", "Page 3: a title"}
    assert answer.hits[3].snippet in {'About "it" 3.', "About it 3"} or name == "anthropic"
    assert answer.hits[0].source_type == ("academic" if name == "semantic_scholar" else "web")
    assert len(server.asked) == 1
    assert server.asked[0].query == QUESTION


@every_provider
async def test_nothing_found_is_an_empty_list(name: str) -> None:
    """No hits is an answer, not an error."""
    async with SearchApis("empty") as server:
        assert (await search(name, server)).hits == []


@every_provider
@pytest.mark.parametrize("scenario", ["401", "403"])
async def test_refused_credentials_name_what_to_set(name: str, scenario: str) -> None:
    """A refusal is not tried again and names the variable."""
    async with SearchApis(scenario) as server:
        error = await failure(name, server)
    assert isinstance(error, NotConfigured)
    variables = {"google": "GOOGLE_API_KEY", "searxng": "search.formats", "wikipedia": "WIKIPEDIA_BASE_URL"}
    assert variables.get(name, f"{name.upper()}_API_KEY") in str(error)


@pytest.mark.parametrize("name", KEYS)
async def test_a_wrong_key_is_recognized_in_each_services_own_words(name: str) -> None:
    """A key that the service does not take (401, 400, 403, 422) is a matter of configuration, not of the query."""
    async with SearchApis() as server:
        error = await failure(name, server, api_key="not-the-right-key")
    assert isinstance(error, NotConfigured)
    assert f"{name.upper()}_API_KEY" in str(error)


@every_provider
@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ([("retry-after", "7")], 7.0),
        ([("retry-after", "0")], 0.0),
        ([("retry-after", "99999999999")], 300.0),
        ([("retry-after", "Wed, 21 Oct 2099 07:28:00 GMT")], 300.0),
        ([("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")], 0.0),
        ([("retry-after", "-1")], None),
        ([("retry-after", "1.5")], None),
        ([("retry-after", "5"), ("retry-after", "9")], None),
        ([], None),
    ],
)
async def test_told_to_wait(name: str, headers: list[tuple[str, str]], wait: float | None) -> None:
    """429 carries the wait that the service states, read strictly and clamped, also through the libraries."""
    async with SearchApis("429", headers=headers) as server:
        error = await failure(name, server)
    assert isinstance(error, RateLimited)
    assert error.retry_after == wait


@every_provider
async def test_a_used_up_quota_is_a_wait(name: str) -> None:
    """403 for a quota is told from 403 for a key."""
    async with SearchApis("403_quota", headers=[("retry-after", "60")]) as server:
        error = await failure(name, server)
    assert isinstance(error, RateLimited)
    assert error.retry_after == 60.0


@every_provider
@pytest.mark.parametrize("scenario", ["408", "500", "503"])
async def test_trouble_on_the_other_side_may_pass(name: str, scenario: str) -> None:
    """Server errors are never an empty answer and are worth another attempt, after the stated wait."""
    async with SearchApis(scenario, headers=[("retry-after", "3")]) as server:
        error = await failure(name, server)
    assert isinstance(error, Unavailable)
    assert error.retry_after == 3.0
    assert scenario in str(error)


@every_provider
@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("html", "web page"),
        ("cut", "connection failed"),
        ("reset", "connection failed"),
        ("reset_after_headers", "connection failed"),
        ("wrong_shape", "documented form"),
        ("list", "documented form"),
        ("deep", "documented form"),
        ("not_json", "documented form"),
        ("oversized", "exceeds 8 MB"),
        ("bomb", "exceeds 8 MB"),
        ("brotli", "not asked for"),
    ],
)
async def test_a_broken_answer_is_unavailable_in_clear_words(name: str, scenario: str, said: str) -> None:
    """Whatever is no whole answer of the documented form is a failure, never fewer hits."""
    async with SearchApis(scenario) as server:
        error = await failure(name, server)
    assert isinstance(error, Unavailable)
    assert said in str(error)


@every_provider
@pytest.mark.parametrize("scenario", ["trickle", "never"])
async def test_the_whole_answer_has_a_time_limit(name: str, scenario: str) -> None:
    """An answer that comes byte by byte or not at all ends at the limit."""
    async with SearchApis(scenario) as server:
        error = await failure(name, server, seconds=0.2)
    assert isinstance(error, Unavailable)
    assert "no answer in 0.2 s" in str(error)


@every_provider
@pytest.mark.parametrize(("scenario", "kind"), [("401_slow", NotConfigured), ("429_slow", RateLimited)])
async def test_a_status_counts_without_its_explanation(name: str, scenario: str, kind: type[ProviderError]) -> None:
    """A refusal whose body does not come is that refusal, with the wait that its head states."""
    async with SearchApis(scenario, headers=[("retry-after", "7")]) as server:
        error = await failure(name, server, seconds=0.2)
    assert isinstance(error, kind)
    assert not isinstance(error, RateLimited) or error.retry_after == 7.0


@every_provider
async def test_no_server_at_all(name: str) -> None:
    """A refused connection is unavailable."""
    async with SearchApis() as server:
        address = server.url(name)
    async with open_provider(name, address) as provider:
        with pytest.raises(Unavailable, match="connection failed"):
            await provider.search(asking(name))


@every_provider
async def test_redirects_are_not_followed(name: str) -> None:
    """A service that has moved is reported with the variable of its address; nobody else gets the key."""
    async with SearchApis() as elsewhere, SearchApis("redirect", location=elsewhere.url(name)) as server:
        error = await failure(name, server)
    assert isinstance(error, NotConfigured)
    assert "_URL to its new address" in str(error)
    assert elsewhere.asked == []


@every_provider
async def test_a_wrong_address_is_told_from_no_hits(name: str) -> None:
    """404 refuses the call and says where to look."""
    async with SearchApis("404") as server:
        error = await failure(name, server)
    assert isinstance(error, InvalidCall)
    assert error.kind == "unknown_address"


@every_provider
async def test_ten_thousand_results_give_the_first_ten(name: str) -> None:
    """A service that ignores the number asked for is cut, in its order."""
    async with SearchApis("huge") as server:
        answer = await search(name, server)
    assert [hit.rank for hit in answer.hits] == list(range(1, 11))


@every_provider
async def test_packed_answers_and_broken_characters_are_read(name: str) -> None:
    """Gzip is unpacked, and half a character in one snippet does not cost the other hits."""
    async with SearchApis("gzip") as server:
        assert len((await search(name, server)).hits) == 10
    async with SearchApis("surrogate") as server:
        answer = await search(name, server, max_results=2)
    assert answer.hits[1].snippet.startswith("Cut � 😀 \\ud83d") or name == "anthropic"


@every_provider
async def test_an_offset_goes_on_where_the_last_page_ended(name: str) -> None:
    """Two pages of five are the same hits and ranks as one of ten."""
    async with SearchApis() as server:
        whole = (await search(name, server, max_results=10)).hits
        parts = (await search(name, server, max_results=5)).hits
        parts = parts + (await search(name, server, max_results=5, offset=5)).hits
    assert parts == whole


@every_provider
async def test_beyond_the_last_result_there_is_nothing(name: str) -> None:
    """An offset that the service cannot reach gives no hits, by one request at most."""
    async with SearchApis() as server:
        assert (await search(name, server, offset=20_000)).hits == []
    assert len(server.asked) <= 1


@every_provider
async def test_queries_are_fitted_to_what_the_service_takes(name: str) -> None:
    """A long query with signs that mean something in URLs arrives as text, cut at a word, on one line."""
    text = "a&limit=1#x %41 + = ü\n\u202eπ " + "word " * 500
    async with SearchApis() as server:
        answer = await search(name, server, text, max_results=3)
    assert len(answer.hits) == 3
    assert server.asked[0].query.startswith("a&limit=1#x %41 + = ü π word")
    assert server.asked[0].query.endswith("word")


@pytest.mark.parametrize("name", [name for name in PROVIDERS if name != "wikipedia"])
async def test_only_addresses_that_can_be_read_become_hits(name: str) -> None:
    """Other schemes, hidden hosts and repetitions are left out; the ranks of the others stay."""
    bad = ["javascript:alert(1)", "ftp://a.example/", "https://user:word@b.example/", "https://c.example/\u202ex"]
    bad += ["https://[half/", "/relative", "https://good.example/#again", "https://e.example:99999/"]
    urls = ["https://good.example/", *bad, "HTTP://Other.Example/a b#part"]
    things = [Item(n, url, f"T{n}\x00\u202e", "") for n, url in enumerate(urls)]
    async with SearchApis(results=things) as server:
        answer = await search(name, server)
    assert [(hit.url, hit.rank, hit.title) for hit in answer.hits[:1]] == [("https://good.example/", 1, "T0")]
    assert [hit.rank for hit in answer.hits[1:]] == [10]
    assert answer.hits[1].url.lower() == "http://other.example/a%20b"


@every_provider
async def test_neither_keys_nor_queries_enter_the_log(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Libraries that would log URLs, headers and bodies at their lower levels are kept quiet."""
    caplog.set_level(logging.DEBUG)
    for scenario in ("good", "403_quota", "wrong_shape"):
        async with SearchApis(scenario) as server:
            try:
                await search(name, server)
            except ProviderError:
                continue
    assert not any(key in caplog.text for key in KEYS.values())
    assert "backups" not in caplog.text


@pytest.mark.parametrize("name", KEYS)
async def test_a_key_travels_in_a_header_alone(name: str) -> None:
    """No URL holds a key: URLs end in the logs of proxies."""
    async with SearchApis() as server:
        await search(name, server)
    assert server.asked[0].key == KEYS[name]
    assert KEYS[name] not in repr([server.asked[0].parameters, server.asked[0].body])


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("key", ["a key", "a\nkey", "schlüssel"])
async def test_a_key_that_cannot_be_one_is_refused_without_showing_it(name: str, key: str) -> None:
    """A key with a line end or other characters than a header takes never gets as far as a request."""
    with pytest.raises(NotConfigured, match="_API_KEY") as raised:
        async with open_provider(name, "http://127.0.0.1:1", api_key=key):
            pass
    assert key not in str(raised.value)


@every_provider
async def test_addresses_must_be_addresses(name: str) -> None:
    """An address without a scheme is named by its variable."""
    with pytest.raises(NotConfigured, match="must begin with https://"):
        async with open_provider(name, "localhost:8080"):
            pass
