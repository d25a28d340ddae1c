"""What each failure of an exchange becomes, over the SDKs of both protocols and a loopback endpoint of each."""

from typing import Final

import pytest

from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from providers.models.anthropic_chat import AnthropicChat
from providers.models.chat import ChatMode, ChatRequest
from providers.models.openai_chat import OPENAI_SETTING_NAMES, OpenAIChat
from tests.fakes.completions_api import CompletionsApi
from tests.fakes.messages_api import MessagesApi

WORDS: Final = "the user's own words"
KEY: Final = "sk-very-secret"
SCHEMA: Final = {
    "type": "object",
    "properties": {"action": {"type": "string", "maxLength": 9}},
    "required": ["action"],
}
PROTOCOLS: Final = ("messages", "completions")


async def failure(protocol: str, scenario: str, *, seconds: float = 20.0) -> ProviderError:
    """The error of one exchange, having made sure that it took one request and tells no secrets."""
    server: MessagesApi = MessagesApi(scenario) if protocol == "messages" else CompletionsApi(scenario)
    async with server as api:
        chat = (
            AnthropicChat(api_key=KEY, base_url=api.base_url)
            if protocol == "messages"
            else OpenAIChat(api_key=KEY, base_url=api.base_url, names=OPENAI_SETTING_NAMES)
        )
        request = ChatRequest("claude-haiku-4-5", "role: supervisor", WORDS, 500, seconds, SCHEMA, ChatMode.NATIVE)
        with pytest.raises(ProviderError) as caught:
            await chat.complete(request)
        await chat.close()
        assert len(api.calls) == 1
    message = str(caught.value)
    assert KEY not in message
    assert WORDS not in message
    assert len(message) < 200
    return caught.value


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("scenario", "kind", "wait"),
    [
        ("status:429:7", RateLimited, 7.0),
        ("status:429:99999999999", RateLimited, 300.0),
        ("status:529:3", Unavailable, 3.0),
        *((name, Unavailable, None) for name in ("status:408", "status:409", "status:500", "html_502", "huge_body")),
        *((name, Unavailable, None) for name in ("reset", "reset_after_headers", "truncated")),
        *((name, Unavailable, None) for name in ("html_200", "garbage_200", "empty_200")),
    ],
)
async def test_what_may_pass_can_be_tried_again(
    protocol: str, scenario: str, kind: type[Unavailable], wait: float | None
) -> None:
    """Refusals for speed, server errors, broken connections and bodies that are no answer; no wait is slept here."""
    error = await failure(protocol, scenario)
    assert isinstance(error, kind)
    assert error.retry_after == wait


async def test_an_error_with_status_200_can_be_tried_again() -> None:
    """A proxy may put the body of an error under the status of an answer."""
    assert isinstance(await failure("messages", "error_200"), Unavailable)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("scenario", ["slow", "trickle"])
async def test_the_whole_exchange_has_a_time_limit(protocol: str, scenario: str) -> None:
    """Neither silence nor a body that trickles holds a call beyond its limit."""
    assert isinstance(await failure(protocol, scenario, seconds=0.3), Unavailable)


@pytest.mark.parametrize(
    ("protocol", "scenario", "named"),
    [
        ("messages", "no_credit", "ANTHROPIC_API_KEY"),
        ("messages", "moved", "ANTHROPIC_BASE_URL"),
        ("completions", "no_credit", "OPENAI_API_KEY"),
        ("completions", "moved", "OPENAI_BASE_URL"),
    ],
)
async def test_wrong_configuration_names_the_variable(protocol: str, scenario: str, named: str) -> None:
    """What only the operator can mend says what to set."""
    error = await failure(protocol, scenario)
    assert isinstance(error, NotConfigured)
    assert named in str(error)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
        ("echo_400", "refused"),
        ("too_long", "context_too_long"),
        ("status:413", "context_too_long"),
        ("unknown_model", "unknown_model"),
        ("status:404", "unknown_address"),
        ("status:422", "refused"),
    ],
)
async def test_refused_calls_are_classified(protocol: str, scenario: str, kind: str) -> None:
    """A call that is refused for good says why, in our words."""
    error = await failure(protocol, scenario)
    assert isinstance(error, InvalidCall)
    assert error.kind == kind


async def test_an_endpoint_without_schemas_is_recognised() -> None:
    """The engine then asks it in another mode."""
    error = await failure("messages", "lacks_native")
    assert isinstance(error, InvalidCall)
    assert error.kind == "unsupported_parameter"
