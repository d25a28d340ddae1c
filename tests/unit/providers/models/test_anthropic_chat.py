"""The real SDK against a loopback endpoint: what it sends, and how it reads a stream."""

import json
import logging
from typing import Any

import pytest

from providers.errors import NotConfigured, ProviderError, RateLimited, Unavailable
from providers.models.anthropic_chat import AnthropicChat, message_of
from providers.models.chat import ChatMode, ChatReply, ChatRequest, SettingNames
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_scenarios import JSON_TYPE, Reply, streamed

SCHEMA = {"type": "object", "properties": {"action": {"type": "string", "maxLength": 9}}, "required": ["action"]}
CANARY = "the user's own words"
KEY = "sk-very-secret"
REQUEST = ChatRequest("m", "role: planner", "p", 10, 20.0)


async def ask(api: MessagesApi) -> ChatReply:
    chat = AnthropicChat(api_key=KEY, base_url=api.base_url)
    request = ChatRequest("claude-haiku-4-5", "role: supervisor", CANARY, 500, 20.0, SCHEMA, ChatMode.NATIVE)
    try:
        return await chat.complete(request)
    finally:
        await chat.close()


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
    names = SettingNames("RESEARCH_ENDPOINT_OWN_KEY", "models.endpoints.own.base_url")
    with pytest.raises(NotConfigured, match=r"^RESEARCH_ENDPOINT_OWN_KEY holds characters that no key has$"):
        AnthropicChat(api_key=key, base_url="http://127.0.0.1:9", names=names)


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


# --- streams ---------------------------------------------------------------------------------------------------------
MESSAGE = {
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "Hm. \u2028 Well.", "signature": "c2ln"},
        {"type": "text", "text": "Vacuum removes dead rows.\n\n“Really.”"},
        {"type": "tool_use", "id": "t-1", "name": "search", "input": {"query": "vacuum", "pages": [1, 2]}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 7, "cache_read_input_tokens": 5, "output_tokens": 11},
}


def stream_of(*events: dict[str, Any]) -> bytes:
    return "".join(f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def test_a_stream_adds_up_to_the_message() -> None:
    """Blocks, inputs of tools, thoughts, counts and the reason to stop are those of the message without a stream."""
    stream = streamed(Reply(200, JSON_TYPE, json.dumps(MESSAGE).encode())).body
    assert stream.count(b"event: content_block_delta") == 3
    assert json.loads(message_of(stream)) == MESSAGE


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        stream_of({"type": "message_start", "message": {}}),
        b"data: {broken\n\n",
        stream_of({"type": "content_block_delta", "index": 5, "delta": {"type": "text_delta", "text": "x"}}),
        stream_of({"type": "message_start"}),
    ],
)
def test_a_stream_without_its_end_is_no_answer(stream: bytes) -> None:
    """What breaks off or cannot be read may succeed when it is tried again."""
    with pytest.raises(Unavailable):
        message_of(stream)


@pytest.mark.parametrize(
    ("kind", "expected"), [("overloaded_error", Unavailable), ("rate_limit_error", RateLimited), ("odd", Unavailable)]
)
async def test_an_error_in_a_stream_is_that_of_its_status(
    kind: str, expected: type[ProviderError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It means the same as the response with the status of its type, and its words are not repeated."""
    body = stream_of({"type": "error", "error": {"type": kind, "message": "planted"}})
    broken = Reply(200, {"content-type": "text/event-stream"}, body)
    monkeypatch.setattr("tests.fakes.messages_api.streamed", lambda _: broken)
    async with MessagesApi() as api:
        with pytest.raises(expected) as caught:
            await ask(api)
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize("streams", [True, False])
async def test_an_answer_may_take_longer_than_a_silence(streams: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """While something of a stream arrives, and wherever the first answer came as one message without a stream."""
    if not streams:
        monkeypatch.setattr("tests.fakes.messages_api.streamed", lambda reply: reply)
    async with MessagesApi(plan=["trickle" if streams else "good"]) as api:
        chat = AnthropicChat(api_key=None, base_url=api.base_url, silence_seconds=0.6)
        assert (await chat.complete(REQUEST)).stop_reason == "end_turn"
        api.latency = 0.0 if streams else 0.8
        assert (await chat.complete(REQUEST)).stop_reason == "end_turn"
        await chat.close()
