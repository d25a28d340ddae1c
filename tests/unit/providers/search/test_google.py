"""Google's library over our connections."""

import asyncio

import pytest

from providers.errors import NotConfigured
from providers.search.google import GoogleSearch, LoopHttp
from tests.fakes.search_answers import CSE_ID
from tests.fakes.search_apis import SearchApis
from tests.fakes.search_clients import asking, open_provider, search


async def test_the_library_asks_at_our_address_with_our_engine() -> None:
    """The description of the interface comes with the package: the search is the only request there is."""
    async with SearchApis() as server:
        await search("google", server, max_results=4, offset=6)
    asked = server.asked[0]
    assert {name: asked.parameters[name] for name in ("cx", "num", "start", "alt")} == {
        "cx": CSE_ID,
        "num": "4",
        "start": "7",
        "alt": "json",
    }
    assert asked.headers["user-agent"] == "durable-research/test"
    assert asked.headers["x-goog-api-client"].startswith("gdcl/")


async def test_what_a_page_says_of_itself_is_kept() -> None:
    """Date and author come from the page's head."""
    async with SearchApis() as server:
        hit = (await search("google", server)).hits[0]
    assert (hit.published_at, hit.authors) == ("2024-05-17", ["Ada Lovelace"])


async def test_the_last_of_its_hundred_results_can_be_reached() -> None:
    """It refuses windows that reach beyond 100: the window is cut to fit."""
    async with SearchApis(results=200) as server:
        answer = await search("google", server, offset=95)
    assert [hit.rank for hit in answer.hits] == [96, 97, 98, 99, 100]


async def test_a_very_long_query_is_still_one_request() -> None:
    """What is too long for a URL the library sends as a form, on its own account."""
    async with SearchApis() as server:
        answer = await search("google", server, "ü" * 1_000)
    assert len(answer.hits) == 10
    assert server.asked[0].headers["x-http-method-override"] == "GET"


async def test_an_unknown_engine_says_what_to_check() -> None:
    """A refused call names the variable that is most likely wrong."""
    async with SearchApis() as server:
        with pytest.raises(Exception, match="check GOOGLE_CSE_ID"):
            await search("google", server, cse_id="another")


async def test_giving_up_ends_the_request() -> None:
    """A cancelled search leaves neither a thread that waits nor an open connection."""
    async with SearchApis("never") as server, open_provider("google", server.url("google"), 60.0) as provider:
        assert isinstance(provider, GoogleSearch)
        task = asyncio.create_task(provider.search(asking("google")))
        await server.waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(provider._threads.shutdown)


class Waiting:
    """An interface that never answers, and opens nothing."""

    async def fetch(self, *_: object, **__: object) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets the event")


async def test_giving_up_is_never_too_early() -> None:
    """A thread that only then gets to its request gives that up, too."""
    http = LoopHttp(Waiting(), asyncio.get_running_loop())
    http.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.to_thread(http.request, "http://127.0.0.1:1/")


async def test_searches_at_once_do_not_disturb_each_other() -> None:
    """One client serves many searches: each gets the answer to its own question."""
    async with SearchApis(results=100) as server, open_provider("google", server.url("google")) as provider:
        answers = await asyncio.gather(*(provider.search(asking("google", offset=n * 10)) for n in range(8)))
    assert [answer.hits[0].rank for answer in answers] == [n * 10 + 1 for n in range(8)]
    assert len(server.asked) == 8


async def test_the_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that Google's libraries or HTTP clients would obey do not lead the key elsewhere."""
    monkeypatch.setenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN", "elsewhere.invalid")
    monkeypatch.setenv("GOOGLE_API_USE_MTLS_ENDPOINT", "always")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with SearchApis() as server:
        assert len((await search("google", server)).hits) == 10


async def test_missing_key_is_refused_before_any_request() -> None:
    """Google's key is required (S0-171)."""
    with pytest.raises(NotConfigured):
        async with open_provider("google", "http://127.0.0.1:1", api_key=""):
            pass
