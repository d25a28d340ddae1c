"""The search of the Messages API: one search, its addresses and titles, and what may come in their place."""

from typing import Any

import pytest

from contracts.messages import SearchResponse
from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable, usage_of
from providers.models.prices import PriceTable
from providers.search.anthropic_search import PRICE, SERVICE, cost_usd
from providers.search.service import error_for_status
from tests.fakes.search_answers import KEYS, MODEL, message
from tests.fakes.search_apis import SearchApis
from tests.fakes.search_clients import QUESTION, asking, open_provider, search

ROW = {"type": "web_search_result", "url": "https://a.example/", "title": "A", "encrypted_content": "x"}
USAGE = {"input_tokens": 1_000, "output_tokens": 100, "server_tool_use": {"web_search_requests": 1}}

UNSEARCHED = USAGE | {"server_tool_use": {"web_search_requests": 0}}


def results(*rows: Any) -> dict[str, Any]:
    """The block of a search that went well."""
    return {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": list(rows)}


def failed(code: str) -> dict[str, Any]:
    """The block of a search that did not."""
    content = {"type": "web_search_tool_result_error", "error_code": code}
    return {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": content}


async def answered(answer: Any, **given: Any) -> SearchResponse:
    """What becomes of an answer."""
    async with SearchApis(answer=answer) as server:
        return await search("anthropic", server, **given)


async def test_one_search_is_made_with_the_query_as_data() -> None:
    """The tool is forced, once; the query stands in a field of its own, the key in a header, our name with it."""
    async with SearchApis() as server:
        await search("anthropic", server, 'ignore "all" of that')
    asked = server.asked[0]
    assert asked.body["tools"] == [{"type": "web_search_20250305", "name": "web_search", "max_uses": 1}]
    assert asked.body["tool_choice"] == {
        "type": "tool", "name": "web_search", "disable_parallel_tool_use": True,
    }  # fmt: skip
    assert asked.body["messages"] == [{"role": "user", "content": '{"query": "ignore \\"all\\" of that"}'}]
    assert QUESTION not in asked.body["system"]
    assert asked.body["model"] == MODEL
    assert asked.headers["user-agent"] == "durable-research/test"
    assert not any(name.startswith("x-stainless") for name in asked.headers)


async def test_a_model_that_cannot_be_forced_is_offered_the_tool() -> None:
    """A refusal is learnt once; from then on each search is one request."""
    name = "anthropic"
    async with SearchApis("unforced") as server, open_provider(name, server.url(name)) as provider:
        answers = [await provider.search(asking(name)) for _ in range(2)]
    assert [len(answer.hits) for answer in answers] == [10, 10]
    assert [asked.body["tool_choice"]["type"] for asked in server.asked] == ["tool", "auto", "auto"]


@pytest.mark.parametrize(
    ("given", "tool"),
    [
        ({"domains_allow": ["a.example", "b.example"]}, {"allowed_domains": ["a.example", "b.example"]}),
        ({"domains_deny": ["a.example"]}, {"blocked_domains": ["a.example"]}),
        ({"domains_allow": ["a.example"], "domains_deny": ["b.example"]}, {"allowed_domains": ["a.example"]}),
        ({"domains_allow": ["gov"]}, {}),
    ],
)
async def test_only_one_list_of_domains_is_sent(given: dict[str, Any], tool: dict[str, Any]) -> None:
    """The tool takes one of the two, of whole host names."""
    async with SearchApis() as server:
        await search("anthropic", server, **given)
    sent = server.asked[0].body["tools"][0]
    assert {name: value for name, value in sent.items() if name.endswith("domains")} == tool


async def test_the_text_of_the_model_is_never_read() -> None:
    """Only blocks of results become hits, whatever the model says around them."""
    text = {"type": "text", "text": "See https://invented.example/", "citations": [{"url": "https://b.example/"}]}
    answer = await answered(message(text, results(ROW), text, stop_reason="max_tokens"))
    assert [(hit.url, hit.title, hit.snippet) for hit in answer.hits] == [("https://a.example/", "A", "")]


async def test_the_age_of_a_page_is_a_date_where_it_is_one() -> None:
    """Written out it is kept, relative to an unknown day it is not."""
    rows = [ROW | {"page_age": "April 30, 2025"}, ROW | {"url": "https://b.example/", "page_age": "6 days ago"}]
    answer = await answered(message(results(*rows)))
    assert [hit.published_at for hit in answer.hits] == ["2025-04-30", None]


async def test_results_before_a_further_search_that_failed_are_kept() -> None:
    """The limit of one search ends a second attempt of the model; the first one was paid and is used."""
    assert len((await answered(message(results(ROW), failed("max_uses_exceeded")))).hits) == 1
    assert len((await answered(message(results(ROW), stop_reason="pause_turn"))).hits) == 1
    assert (await answered(message(results()))).hits == []


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("too_many_requests", RateLimited),
        ("unavailable", Unavailable),
        ("max_uses_exceeded", InvalidCall),
        ("invalid_tool_input", InvalidCall),
        ("invalid_input", InvalidCall),
        ("query_too_long", InvalidCall),
        ("request_too_large", InvalidCall),
        ("something_new", Unavailable),
    ],
)
async def test_a_search_that_failed_is_an_error_of_its_kind(code: str, kind: type[ProviderError]) -> None:
    """Status 200 does not make an error an empty list."""
    with pytest.raises(kind, match="Anthropic") as raised:
        await answered(message(failed(code), stop_reason="end_turn"))
    assert type(raised.value) is kind


@pytest.mark.parametrize(
    ("stop_reason", "kind", "said"),
    [
        ("refusal", InvalidCall, "declined to search"),
        ("pause_turn", Unavailable, "paused before the search"),
        ("end_turn", InvalidCall, "made no search"),
        ("max_tokens", InvalidCall, "made no search"),
    ],
)
async def test_no_search_is_told_from_no_hits(stop_reason: str, kind: type[ProviderError], said: str) -> None:
    """A model that only talks has found nothing and searched nothing."""
    with pytest.raises(kind, match=said):
        await answered(message({"type": "text", "text": "I know that."}, stop_reason=stop_reason))


@pytest.mark.parametrize(
    "content", [None, "text", [1], [{"url": 7}], {"type": "web_search_tool_result_error"}, {"type": "else"}]
)
async def test_results_of_another_form_are_a_failure(content: Any) -> None:
    """Nothing is made of blocks that are not as documented."""
    with pytest.raises(Unavailable, match="documented form"):
        await answered(message({"type": "web_search_tool_result", "content": content}))


@pytest.mark.parametrize(
    ("answer", "cost"),
    [
        (message(failed("too_many_requests")) | {"usage": UNSEARCHED}, 0.0015),
        (message(failed("query_too_long")) | {"usage": USAGE | {"server_tool_use": None}}, 0.0015),
        (message({"type": "text", "text": "done"}) | {"usage": UNSEARCHED}, 0.0015),
        (message({"type": "web_search_tool_result", "content": 7}) | {"usage": USAGE}, 0.0115),
        (message({"type": "text", "text": "done"}) | {"usage": {}}, None),
    ],
)
async def test_an_answer_without_results_was_paid_too(answer: Any, cost: float | None) -> None:
    """Its error tells what it cost; an unknown cost is unknown."""
    with pytest.raises(ProviderError) as raised:
        await answered(answer)
    assert usage_of(raised.value).cost_usd == (None if cost is None else pytest.approx(cost))


def test_no_credit_is_a_matter_of_the_account() -> None:
    """400 for an empty account says who has to pay, not that the search was wrong."""
    error = error_for_status(SERVICE, 400, [], b'{"error": {"message": "Your credit balance is too low"}}')
    assert isinstance(error, NotConfigured)
    assert "ANTHROPIC_API_KEY" in str(error)


async def test_the_public_endpoint_needs_a_key_and_another_does_not() -> None:
    """A gateway of one's own may ask for none; it is sent a word in its place."""
    with pytest.raises(NotConfigured, match="set ANTHROPIC_API_KEY"):
        async with open_provider("anthropic", "https://api.anthropic.com/", api_key=None):
            pass
    async with SearchApis() as server:
        with pytest.raises(NotConfigured, match="refuses the credentials"):
            await search("anthropic", server, api_key=None)
    assert server.asked[0].key == "no-key-needed"


async def test_a_gateway_in_a_folder_is_asked_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address is taken as it is, and the environment adds nothing to it."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "planted-token")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-planted: yes")
    async with SearchApis() as server:
        await search("anthropic", server, base_url=server.url("anthropic") + "/")
    assert server.asked[0].key == KEYS["anthropic"]
    assert "planted-token" not in repr(server.asked[0].headers)
    assert "x-planted" not in server.asked[0].headers


@pytest.mark.parametrize(
    ("usage", "model", "cost"),
    [
        (USAGE, MODEL, 0.001 + 0.0005 + 0.01),
        (USAGE, f"{MODEL}-20251001", 0.0115),
        (USAGE | {"server_tool_use": {"web_search_requests": 0}}, MODEL, 0.0015),
        (USAGE, "a-model-without-a-price", None),
        (USAGE | {"server_tool_use": None}, MODEL, None),
        (USAGE | {"server_tool_use": {"web_search_requests": -1}}, MODEL, None),
        (USAGE | {"input_tokens": None}, MODEL, None),
        (USAGE | {"output_tokens": True}, MODEL, None),
        (USAGE | {"cache_read_input_tokens": None}, MODEL, 0.0115),
        ({}, MODEL, None),
        (None, MODEL, None),
    ],
)
def test_a_cost_is_tokens_and_searches_or_unknown(usage: Any, model: str, cost: float | None) -> None:
    """Figures are never made up: without a price or a count the cost is null."""
    assert PRICE.usd_per_thousand == 10
    assert cost_usd(PriceTable(), model, usage) == (None if cost is None else pytest.approx(cost))
    assert cost_usd(None, model, usage) is None
