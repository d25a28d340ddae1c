"""The real SDK against a loopback endpoint: what it sends, and what each failure becomes."""

import asyncio
import logging

import pytest

from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from providers.models.anthropic_chat import AnthropicChat
from providers.models.chat import ChatMode, ChatReply, ChatRequest, TokenCounts
from providers.models.model_errors import EndpointPlaces
from tests.fakes.messages_api import MessagesApi

SCHEMA = {"type": "object", "properties": {"action": {"type": "string", "maxLength": 9}}, "required": ["action"]}
CANARY = "the user's own words"
KEY = "sk-very-secret"


async def ask(api: MessagesApi, *, mode: ChatMode = ChatMode.NATIVE, seconds: float = 20.0) -> ChatReply:
    """One exchange with the fake."""
    chat = AnthropicChat(api_key=KEY, base_url=api.base_url)
    try:
        forced = mode is ChatMode.TOOL
        request = ChatRequest(
            "claude-haiku-4-5", "role: supervisor", CANARY, 500, seconds, SCHEMA, mode, must_call=forced
        )
        return await chat.complete(request)
    finally:
        await chat.close()


async def failure(scenario: str, *, seconds: float = 20.0) -> ProviderError:
    """The error of one exchange, having made sure that it took one request and tells no secrets."""
    async with MessagesApi(scenario) as api:
        with pytest.raises(ProviderError) as caught:
            await ask(api, seconds=seconds)
        assert len(api.calls) == 1
    message = str(caught.value)
    assert KEY not in message
    assert CANARY not in message
    assert len(message) < 200
    return caught.value


async def test_sends_the_schema_as_output_format() -> None:
    """In native mode the schema goes into `output_config`, in the strict form that the API wants."""
    async with MessagesApi() as api:
        reply = await ask(api)
    body = api.requests[0].body
    assert body["output_config"]["format"]["schema"]["additionalProperties"] is False
    assert "tools" not in body
    assert body["max_tokens"] == 500
    assert reply.stop_reason == "end_turn"
    assert reply.text.startswith('{"action"')
    assert reply.tokens.known


@pytest.mark.parametrize("key", ["sk-two\nlines", "sk\r\nx-other: 1", "sk two", "sk-\u00fcber", "\x00"])
def test_a_key_that_no_header_can_hold_is_refused_at_once(key: str) -> None:
    """It is told by the name of its variable and never repeated, and it is no outage that waiting could end."""
    places = EndpointPlaces("RESEARCH_ENDPOINT_OWN_KEY", "models.endpoints.own.base_url")
    with pytest.raises(NotConfigured, match=r"^RESEARCH_ENDPOINT_OWN_KEY holds characters that no key has$"):
        AnthropicChat(api_key=key, base_url="http://127.0.0.1:9", places=places)


@pytest.mark.parametrize("address", ["http://127.0.0.1:abc", "http://[::1", "http://256.1.1.1"])
def test_an_address_that_is_none_is_refused_at_once(address: str) -> None:
    """By the name of its variable, for callers that did not look at it themselves."""
    with pytest.raises(NotConfigured, match=r"^ANTHROPIC_BASE_URL is no usable address$"):
        AnthropicChat(api_key=KEY, base_url=address)


@pytest.mark.parametrize(
    ("scenario", "wait"),
    [
        ("status:429:7", 7.0),
        ("status:429", None),
        ("status:429:99999999999", 300.0),
        ("status:429:1e9", None),
        ("status:529:3", 3.0),
    ],
)
async def test_the_wait_of_a_refusal_arrives_clamped(scenario: str, wait: float | None) -> None:
    """429 is a rate limit and 529 an outage; neither is slept here."""
    error = await failure(scenario)
    assert isinstance(error, RateLimited if "429" in scenario else Unavailable)
    assert error.retry_after == wait


@pytest.mark.parametrize(
    "scenario",
    [
        *("status:408", "status:409", "status:500", "status:502", "status:503", "status:529", "html_502"),
        *("reset", "reset_after_headers", "truncated"),
        *("html_200", "error_200", "garbage_200", "empty_200", "huge_body"),
    ],
)
async def test_no_proper_answer_becomes_unavailable(scenario: str) -> None:
    """Server errors, broken connections and bodies that are no message may be tried again."""
    assert isinstance(await failure(scenario), Unavailable)


@pytest.mark.parametrize("scenario", ["slow", "trickle"])
async def test_the_whole_exchange_has_a_time_limit(scenario: str) -> None:
    """Neither silence nor a body that trickles holds a call beyond its limit."""
    error = await failure(scenario, seconds=0.3)
    assert isinstance(error, Unavailable)


@pytest.mark.parametrize(
    ("scenario", "named"),
    [
        ("status:401", "ANTHROPIC_API_KEY"),
        ("status:403", "ANTHROPIC_API_KEY"),
        ("no_credit", "ANTHROPIC_API_KEY"),
        ("moved", "ANTHROPIC_BASE_URL"),
    ],
)
async def test_wrong_configuration_names_the_variable(scenario: str, named: str) -> None:
    """What only the operator can mend says what to set."""
    error = await failure(scenario)
    assert isinstance(error, NotConfigured)
    assert named in str(error)


@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
        ("status:400", "refused"),
        ("echo_400", "refused"),
        ("too_long", "context_too_long"),
        ("status:413", "context_too_long"),
        ("unknown_model", "unknown_model"),
        ("status:404", "unknown_address"),
        ("status:422", "refused"),
        ("lacks_native", "unsupported_parameter"),
    ],
)
async def test_refused_calls_are_classified(scenario: str, kind: str) -> None:
    """A call that is refused for good says why, in our words."""
    error = await failure(scenario)
    assert isinstance(error, InvalidCall)
    assert error.kind == kind


@pytest.mark.parametrize(
    ("scenario", "tokens", "warned"),
    [
        ("no_usage", TokenCounts(known=False), True),
        ("negative_usage", TokenCounts(output=7, known=False), True),
        ("cached_usage", TokenCounts(input=10, output=20, cache_read=300, cache_write=40), False),
    ],
)
async def test_token_counts_are_read_with_care(scenario: str, tokens: TokenCounts, warned: bool) -> None:
    """Counts that are missing or negative are 0, marked as not known, and warned of."""
    async with MessagesApi(scenario) as api:
        reply = await ask(api)
    assert reply.tokens == tokens
    assert bool(reply.warnings) is warned


async def test_a_time_limit_of_the_caller_is_not_swallowed() -> None:
    """Cancellation from outside stays cancellation and is not taken for a slow endpoint."""
    async with MessagesApi("slow") as api:
        asking = asyncio.create_task(ask(api))
        await api.waiting.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_the_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Key, address, headers and proxies of the environment are not used."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-environment")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "from-environment")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-leak: from-environment")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with MessagesApi() as api:
        await ask(api)
    sent = str(api.headers[0])
    assert KEY in sent
    assert "from-environment" not in sent


async def test_an_endpoint_of_ones_own_needs_no_key() -> None:
    """Without a key a placeholder is sent to any address but the public API's, which refuses to be built."""
    async with MessagesApi() as api:
        chat = AnthropicChat(api_key=None, base_url=api.base_url)
        await chat.complete(ChatRequest("m", "role: planner", "p", 10, 20.0))
        await chat.close()
    with pytest.raises(NotConfigured, match="ANTHROPIC_API_KEY"):
        AnthropicChat(api_key=None)
    with pytest.raises(NotConfigured, match="ANTHROPIC_BASE_URL"):
        AnthropicChat(api_key=None, base_url="localhost:8080")


async def test_no_prompt_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Even with everything logged, neither the prompt nor the key appears."""
    caplog.set_level(logging.DEBUG)
    async with MessagesApi() as api:
        await ask(api)
    assert CANARY not in caplog.text
    assert KEY not in caplog.text
