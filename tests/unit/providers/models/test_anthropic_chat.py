"""The real SDK against a loopback endpoint: what it sends, and what each failure becomes."""

import asyncio
import logging

import pytest

from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from providers.models.anthropic_chat import AnthropicChat
from providers.models.chat import ChatMode, ChatReply, ChatRequest
from providers.models.model_errors import EndpointPlaces
from tests.fakes.messages_api import MessagesApi

SCHEMA = {"type": "object", "properties": {"action": {"type": "string", "maxLength": 9}}, "required": ["action"]}
CANARY = "the user's own words"
KEY = "sk-very-secret"


async def ask(api: MessagesApi, *, seconds: float = 20.0, key: str | None = KEY) -> ChatReply:
    """One exchange with the fake."""
    chat = AnthropicChat(api_key=key, base_url=api.base_url)
    request = ChatRequest("claude-haiku-4-5", "role: supervisor", CANARY, 500, seconds, SCHEMA, ChatMode.NATIVE)
    try:
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


async def test_sends_the_schema_as_output_format_and_logs_no_words(caplog: pytest.LogCaptureFixture) -> None:
    """In native mode the schema goes into `output_config`, in the strict form of the API; no log has prompt or key."""
    caplog.set_level(logging.DEBUG)
    async with MessagesApi() as api:
        reply = await ask(api)
    body = api.requests[0].body
    assert body["output_config"]["format"]["schema"]["additionalProperties"] is False
    assert "tools" not in body
    assert body["max_tokens"] == 500
    assert reply.text.startswith('{"action"')
    assert CANARY not in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize("key", ["sk-two\nlines", "sk two", "sk-\u00fcber", "\x00"])
def test_a_key_that_no_header_can_hold_is_refused_at_once(key: str) -> None:
    """The error names its variable and never repeats it, and is no outage that waiting could end."""
    places = EndpointPlaces("RESEARCH_ENDPOINT_OWN_KEY", "models.endpoints.own.base_url")
    with pytest.raises(NotConfigured, match=r"^RESEARCH_ENDPOINT_OWN_KEY holds characters that no key has$"):
        AnthropicChat(api_key=key, base_url="http://127.0.0.1:9", places=places)


@pytest.mark.parametrize(
    ("scenario", "kind", "wait"),
    [
        ("status:429:7", RateLimited, 7.0),
        ("status:429:99999999999", RateLimited, 300.0),
        ("status:529:3", Unavailable, 3.0),
        *((name, Unavailable, None) for name in ("status:408", "status:409", "status:500", "html_502", "huge_body")),
        *((name, Unavailable, None) for name in ("reset", "reset_after_headers", "truncated")),
        *((name, Unavailable, None) for name in ("html_200", "error_200", "garbage_200", "empty_200")),
    ],
)
async def test_what_may_pass_can_be_tried_again(scenario: str, kind: type[Unavailable], wait: float | None) -> None:
    """Refusals for speed, server errors, broken connections and bodies that are no message; no wait is slept here."""
    error = await failure(scenario)
    assert isinstance(error, kind)
    assert error.retry_after == wait


@pytest.mark.parametrize("scenario", ["slow", "trickle"])
async def test_the_whole_exchange_has_a_time_limit(scenario: str) -> None:
    """Neither silence nor a body that trickles holds a call beyond its limit."""
    assert isinstance(await failure(scenario, seconds=0.3), Unavailable)


@pytest.mark.parametrize(
    ("scenario", "named"),
    [("status:401", "ANTHROPIC_API_KEY"), ("no_credit", "ANTHROPIC_API_KEY"), ("moved", "ANTHROPIC_BASE_URL")],
)
async def test_wrong_configuration_names_the_variable(scenario: str, named: str) -> None:
    """What only the operator can mend says what to set."""
    error = await failure(scenario)
    assert isinstance(error, NotConfigured)
    assert named in str(error)


@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
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
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, "from-environment")
    for name in ("ANTHROPIC_BASE_URL", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-leak: from-environment")
    async with MessagesApi() as api:
        await ask(api)
    sent = str(api.headers[0])
    assert KEY in sent
    assert "from-environment" not in sent


async def test_an_endpoint_of_ones_own_needs_no_key() -> None:
    """Without a key any address but the public API's is asked; that one refuses to be built."""
    async with MessagesApi() as api:
        assert (await ask(api, key=None)).stop_reason == "end_turn"
    with pytest.raises(NotConfigured, match="ANTHROPIC_API_KEY"):
        AnthropicChat(api_key=None)
