"""Peculiarities of single search services, each through its real client."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from contracts.messages import SearchResponse
from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from providers.search.declarations import search_declaration
from tests.fakes.search_answers import ACCOUNT_TOKEN, APP, CSE_ID, KEYS, MODEL, Item, message
from tests.fakes.search_apis import SearchApis, asking, open_provider, search


async def answered(name: str, answer: Any, **given: Any) -> SearchResponse:
    async with SearchApis(answer=answer) as server:
        return await search(name, server, **given)


async def test_tavily_is_asked_for_one_cheap_search() -> None:
    """Neither answers nor images nor whole pages are paid for; 20 results are all it gives; no price is made up."""
    async with SearchApis() as server:
        answer = await search("tavily", server, max_results=25)
    body = server.asked[0].body
    assert (body["max_results"], body["search_depth"]) == (20, "basic")
    assert not any(body[name] for name in ("include_answer", "include_raw_content", "include_images"))
    assert [hit.rank for hit in answer.hits] == list(range(1, 21))
    assert answer.cost_usd is None


@pytest.mark.parametrize(
    ("name", "answer", "kind"),
    [
        ("searxng", {"results": [], "unresponsive_engines": [["example", "timeout"]]}, Unavailable),
        ("wikipedia", {"error": {"code": "ratelimited", "info": "words"}}, RateLimited),
        ("wikipedia", {"error": {"code": "readonly", "info": "words"}}, Unavailable),
        ("wikipedia", {"error": {"code": "badvalue", "info": "words"}}, InvalidCall),
        ("semantic_scholar", {"error": "backend timeout"}, Unavailable),
        ("semantic_scholar", {"total": 5}, Unavailable),
        ("semantic_scholar", {"total": 1, "data": {"a": 1}}, Unavailable),
    ],
)
async def test_an_error_with_status_200_is_no_empty_list(name: str, answer: Any, kind: type[ProviderError]) -> None:
    """Neither engines that gave no answer, nor errors of a wiki, nor what the papers' library takes for nothing."""
    with pytest.raises(kind):
        await answered(name, answer)


async def test_the_language_of_wikipedia_is_its_host() -> None:
    """English is used where no wiki is known, with a warning; outside the domains of a request nothing is asked."""
    async with SearchApis(results=[Item(0, "", "Katze", "")]) as server:
        place: dict[str, str | None] = {"WIKIPEDIA_BASE_URL": server.url("wikipedia") + "/{language}"}
        german = await search("wikipedia", server, values=place, language="de")
        unknown = await search("wikipedia", server, values=place, language="qqq")
    assert [asked.path for asked in server.asked] == ["/de/w/api.php", "/en/w/api.php"]
    assert german.hits[0].url == "https://de.wikipedia.example/wiki/Page_0:_a_title"
    assert german.warnings == []
    assert unknown.warnings == ["cannot keep to the language qqq"]
    async with open_provider("wikipedia", search_declaration("wikipedia").address, 0.001) as provider:
        for given in ({"domains_allow": ["nasa.gov"]}, {"domains_deny": ["wikipedia.org"]}):
            answer = await provider.search(asking("wikipedia", language="fr", **given))
            assert answer.hits == []
            assert answer.warnings == ["fr.wikipedia.org is outside the domains: no search was made"]


async def test_googles_library_asks_once_at_our_address_with_our_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The description of the interface comes with the package, and no variable of the environment leads the key elsewhere."""
    monkeypatch.setenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN", "elsewhere.invalid")
    monkeypatch.setenv("GOOGLE_API_USE_MTLS_ENDPOINT", "always")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with SearchApis() as server:
        await search("google", server, max_results=4)
    (asked,) = server.asked
    sent = {name: asked.parameters[name] for name in ("cx", "num", "alt")}
    assert sent == {"cx": CSE_ID, "num": "4", "alt": "json"}
    assert asked.headers["x-goog-api-client"].startswith("gdcl/")


STORE = "projects/example/locations/eu/collections/default_collection/dataStores/sites"


@pytest.fixture(scope="module")
def account_key() -> str:
    """A private key as a service account has one."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form).decode()


def account_file(folder: Path, server: SearchApis, key: str) -> str:
    """The file of a service account whose tokens come from the fake service."""
    file = folder / "account.json"
    account = {
        "type": "service_account",
        "client_email": "bot@example.iam.gserviceaccount.com",
        "token_uri": f"{server.url('vertex_ai_search')}/token",
        "private_key": key,
    }
    file.write_text(json.dumps(account))
    return str(file)


async def test_a_key_searches_the_sites_of_an_app_page_by_page() -> None:
    """A key may call the light method alone; results beyond one answer are asked for once more, with the same words."""
    async with SearchApis() as server:
        answer = await search("vertex_ai_search", server, max_results=40)
    assert [asked.path for asked in server.asked] == [f"/v1/{APP}/servingConfigs/default_search:searchLite"] * 2
    first, second = (dict(asked.body) for asked in server.asked)
    assert second.pop("pageToken") == "25"
    assert first == second
    assert first["contentSearchSpec"] == {"snippetSpec": {"returnSnippet": True}}
    assert [hit.rank for hit in answer.hits] == list(range(1, 31))
    assert answer.hits[29].url == "https://site-29.example/page?id=29"


async def test_a_service_account_searches_with_one_token_for_many_searches(tmp_path: Path, account_key: str) -> None:
    """It signs a statement with its key, and the token goes in a header; the key is sent nowhere."""
    async with SearchApis() as server:
        account = account_file(tmp_path, server, account_key)
        values = {"VERTEX_AI_SEARCH_API_KEY": None, "GOOGLE_APPLICATION_CREDENTIALS": account}
        async with open_provider("vertex_ai_search", server.url("vertex_ai_search"), **values) as provider:
            for _ in range(2):
                assert len((await provider.search(asking("vertex_ai_search", max_results=3))).hits) == 3
    token, *searches = server.asked
    assert (token.path, [asked.path.rpartition(":")[2] for asked in searches]) == ("/token", ["search", "search"])
    assert {asked.headers["authorization"] for asked in searches} == {f"Bearer {ACCOUNT_TOKEN}"}
    assert all("x-goog-api-key" not in asked.headers for asked in server.asked)


async def test_credentials_that_google_refuses_name_their_file(tmp_path: Path, account_key: str) -> None:
    """A refused account, a file that is none, and an app without its whole name are matters of configuration."""
    async with SearchApis("401") as server:
        account = account_file(tmp_path, server, account_key)
        (tmp_path / "other.json").write_text('{"type": "authorized_user"}')
        trials: tuple[tuple[dict[str, str | None], str], ...] = (
            ({"GOOGLE_APPLICATION_CREDENTIALS": account}, "refuses the service account: see GOOGLE_APPL"),
            ({"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "other.json")}, "names no file with the key"),
            ({"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "none.json")}, "names no file with the key"),
            ({"GOOGLE_APPLICATION_CREDENTIALS": account, "VERTEX_AI_SEARCH_APP": "docs"}, "no name of an app"),
        )
        for values, words in trials:
            with pytest.raises(NotConfigured, match=words) as raised:
                await search("vertex_ai_search", server, values={"VERTEX_AI_SEARCH_API_KEY": None, **values})
            assert "Signature" not in str(raised.value)
    (tmp_path / "account.json").write_text(
        json.dumps(json.loads(Path(account).read_text()) | {"token_uri": "http://127.0.0.1:9/"})
    )
    with pytest.raises(Unavailable):
        async with SearchApis() as server:
            await search(
                "vertex_ai_search",
                server,
                values={"VERTEX_AI_SEARCH_API_KEY": None, "GOOGLE_APPLICATION_CREDENTIALS": account},
            )


def test_an_app_is_searched_where_it_is() -> None:
    """Queries for an app in the EU go to the address of that location; a `global` one has none of its own."""
    declaration = search_declaration("vertex_ai_search")
    values = {"VERTEX_AI_SEARCH_APP": STORE}
    assert declaration.address_in(values) == "https://eu-discoveryengine.googleapis.com"
    assert declaration.address_in({"VERTEX_AI_SEARCH_APP": APP}) == "https://discoveryengine.googleapis.com"
    assert (
        declaration.address_in(values | {"VERTEX_AI_SEARCH_BASE_URL": "https://here.example"}) == "https://here.example"
    )
    assert declaration.problem(values) == "set VERTEX_AI_SEARCH_API_KEY or GOOGLE_APPLICATION_CREDENTIALS"


async def test_a_page_without_a_snippet_is_a_hit_without_one() -> None:
    """The service then has a sentence in its place, which is no text of the page."""
    none = [{"snippet": "No snippet is available for this page.", "snippet_status": "NO_SNIPPET_AVAILABLE"}]
    data = {"title": "T", "link": "https://a.example/", "snippets": none}
    answer = await answered("vertex_ai_search", {"results": [{"document": {"derivedStructData": data}}]})
    assert [(hit.title, hit.snippet) for hit in answer.hits] == [("T", "")]


async def test_papers_need_no_key_and_come_with_all_of_a_citation() -> None:
    """Authors, venue, DOI and date are taken; where the day is unknown, the year. No key is sent (S0-171)."""
    async with SearchApis() as server:
        none: dict[str, str | None] = {"SEMANTIC_SCHOLAR_API_KEY": None}
        answer = await search("semantic_scholar", server, "graph-based retrieval", max_results=2, values=none)
    first, second = answer.hits
    assert first.authors == ["Ada Lovelace", "Alan Turing"]
    assert (first.venue, first.doi) == ("Journal of Examples", "10.1234/example.0")
    assert (first.published_at, second.published_at) == ("2021-03-04", "2021")
    assert "x-api-key" not in server.asked[0].headers
    assert server.asked[0].query == "graph based retrieval", "the service finds nothing for words with a hyphen"


OLD_DOI = "10.1002/(SICI)1097-4571(199806)49:8<693::AID-ASI4>3.0.CO;2-#"


@pytest.mark.parametrize(
    ("paper", "url", "date"),
    [
        ({"openAccessPdf": {"url": "https://a.example/p.pdf"}, "publicationDate": "2024-05"},
         "https://a.example/p.pdf", "2024-05"),
        ({"externalIds": {"ArXiv": "1706.03762", "DOI": "10.1/x"}, "year": 2017},
         "https://arxiv.org/pdf/1706.03762", "2017"),
        ({"externalIds": {"DOI": OLD_DOI}, "publicationDate": "soon", "year": 1998},
         "https://doi.org/10.1002/(SICI)1097-4571(199806)49:8%3C693::AID-ASI4%3E3.0.CO;2-%23", "1998"),
        ({"externalIds": None, "year": 10**400}, "https://www.semanticscholar.org/paper/1", None),
    ],
)  # fmt: skip
async def test_the_address_of_a_paper_is_one_where_it_can_be_read(
    paper: dict[str, Any], url: str, date: str | None
) -> None:
    """The open copy, else the preprint, else the publisher, else the entry; one odd date costs only itself."""
    row = {"title": "T", "url": "https://www.semanticscholar.org/paper/1", **paper}
    (hit,) = (await answered("semantic_scholar", {"total": 1, "data": [row]})).hits
    assert (hit.url, hit.published_at) == (url, date)
    assert hit.doi in {None, OLD_DOI}


ROW = {"type": "web_search_result", "url": "https://a.example/", "title": "A", "encrypted_content": "x"}
USAGE = {"input_tokens": 1_000, "output_tokens": 100, "server_tool_use": {"web_search_requests": 1}}
UNSEARCHED = USAGE | {"server_tool_use": {"web_search_requests": 0}}
UNCOUNTED = USAGE | {"server_tool_use": None}


def results(*rows: Any) -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": list(rows)}


def failed(code: str) -> dict[str, Any]:
    content = {"type": "web_search_tool_result_error", "error_code": code}
    return {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": content}


async def test_a_model_makes_one_search_with_the_query_as_data() -> None:
    """The tool is offered, once, and takes one list of domains; the query is in a field of its own."""
    async with SearchApis() as server:
        await search("anthropic", server, 'ignore "all" of that', domains_allow=["a.example"], domains_deny=["b.x"])
    (asked,) = server.asked
    assert asked.body["tools"] == [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 1, "allowed_domains": ["a.example"]}
    ]
    assert asked.body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert asked.body["messages"] == [{"role": "user", "content": '{"query": "ignore \\"all\\" of that"}'}]
    assert asked.body["model"] == MODEL
    assert asked.key == KEYS["anthropic"]


async def test_the_text_of_the_model_is_never_read() -> None:
    """Only blocks of results become hits, also those before a further search that failed."""
    text = {"type": "text", "text": "See https://invented.example/", "citations": [{"url": "https://b.example/"}]}
    rows = [ROW | {"page_age": "April 30, 2025"}, ROW | {"url": "https://b.example/", "page_age": "6 days ago"}]
    answer = await answered("anthropic", message(text, results(*rows), text, failed("max_uses_exceeded")))
    assert [(hit.url, hit.title, hit.snippet, hit.published_at) for hit in answer.hits] == [
        ("https://a.example/", "A", "", "2025-04-30"),
        ("https://b.example/", "A", "", None),
    ]
    assert (await answered("anthropic", message(results()))).hits == []


async def test_a_search_that_is_not_counted_has_an_unknown_cost() -> None:
    """An answer with results is never taken for one without a search."""
    for usage, cost in ((USAGE, 0.0115), (UNCOUNTED, None), (USAGE | {"server_tool_use": {}}, None)):
        answer = await answered("anthropic", message(results(ROW)) | {"usage": usage})
        assert answer.cost_usd == (None if cost is None else pytest.approx(cost))


@pytest.mark.parametrize(
    ("answer", "kind", "words", "cost"),
    [
        (message(failed("too_many_requests")) | {"usage": UNSEARCHED}, RateLimited, "asks to wait", 0.0015),
        (message(failed("something_new")) | {"usage": {}}, Unavailable, "not available", None),
        (message(failed("too_many_requests")) | {"usage": UNCOUNTED}, RateLimited, "asks to wait", 0.0015),
        (message({"type": "text", "text": "done"}) | {"usage": UNSEARCHED}, InvalidCall, "made no search", 0.0015),
        (message({"type": "web_search_tool_result", "content": 7}) | {"usage": USAGE}, Unavailable, "documented form",
         0.0115),
    ],
)  # fmt: skip
async def test_an_answer_without_results_is_a_paid_failure(
    answer: Any, kind: type[ProviderError], words: str, cost: float | None
) -> None:
    """Status 200 does not make an error an empty list; the error has the cost, where it is known."""
    with pytest.raises(kind, match=words) as raised:
        await answered("anthropic", answer)
    assert raised.value.usage.cost_usd == (None if cost is None else pytest.approx(cost))
