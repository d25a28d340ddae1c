"""Answers come as a stream of events: what they add up to, and an endpoint that sends nothing."""

import json
from typing import Any

import pytest

from providers.errors import ProviderError, RateLimited, Unavailable
from providers.models.anthropic_chat import AnthropicChat
from providers.models.chat import ChatRequest
from providers.models.event_stream import message_of
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_scenarios import JSON_TYPE, Reply, streamed

BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "Hm. \u2028 Well.", "signature": "c2ln"},
    {"type": "text", "text": "Vacuum removes dead rows.\n\n“Really.”"},
    {"type": "tool_use", "id": "t-1", "name": "search", "input": {"query": "vacuum", "pages": [1, 2]}},
]
MESSAGE = {
    "model": "m",
    "content": BLOCKS,
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 7, "cache_read_input_tokens": 5, "output_tokens": 11},
}
REQUEST = ChatRequest("m", "role: planner", "p", 10, 20.0)


def stream_of(*events: dict[str, Any]) -> bytes:
    """The events as they go over the wire."""
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
        b"data: 7\n\n",
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
        chat = AnthropicChat(api_key=None, base_url=api.base_url)
        with pytest.raises(expected) as caught:
            await chat.complete(REQUEST)
        await chat.close()
    assert "planted" not in str(caught.value)


async def test_an_endpoint_that_sends_nothing_is_given_up_early_and_less_early_the_next_time() -> None:
    """A call that hangs costs its silence, not the whole time; a slow endpoint gets more of it after each such call."""
    async with MessagesApi("slow") as api:
        chat = AnthropicChat(api_key=None, base_url=api.base_url, silence_seconds=0.2)
        for _ in range(3):
            with pytest.raises(Unavailable, match="sent nothing for"):
                await chat.complete(REQUEST)
        assert chat._patience == pytest.approx(0.2 * 1.5**3)
        api.plan = type(api.plan)("good")
        assert (await chat.complete(REQUEST)).stop_reason == "end_turn"
        assert chat._patience == pytest.approx(0.2 * 1.5**2)
        await chat.close()


async def test_an_endpoint_that_does_not_stream_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its silence is the time that the answer takes: after its first answer only the limit of the call counts."""
    monkeypatch.setattr("tests.fakes.messages_api.streamed", lambda reply: reply)
    async with MessagesApi() as api:
        chat = AnthropicChat(api_key=None, base_url=api.base_url, silence_seconds=0.5)
        assert (await chat.complete(REQUEST)).stop_reason == "end_turn"
        api.latency = 1.0
        assert (await chat.complete(REQUEST)).stop_reason == "end_turn"
        await chat.close()
