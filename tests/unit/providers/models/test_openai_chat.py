"""The `openai` SDK against loopback servers of chat completions, each with a quirk that servers have in the wild."""

import json
import logging
from typing import Any

import pytest

from contracts.roles import RoleAnswer
from contracts.vocabulary import Tier
from providers.errors import InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from providers.models.anthropic_chat import AnthropicChat
from providers.models.chat import Chat, ChatApi, ChatMode, ChatReply, ChatRequest, Parameter, UndeterminedChat
from providers.models.endpoints import EndpointCapabilities, ModelDirectory, ModelEndpoint, PriceTable
from providers.models.language_model import LanguageModelEngine
from providers.models.openai_chat import CompletionBuilder, OpenAIChat
from providers.models.servers import ModelServer, ModelWindow, completions_address
from tests.fakes.completions_api import QUIRKS, REFUSED_PARAMETERS, CompletionsApi
from tests.fakes.messages_api import MessagesApi
from tests.fakes.model_engine import OpenLimiter, engine_for
from tests.unit.providers.models.test_engine import TASKS, task_of

CANARY = "the user's own words"
KEY = "sk-very-secret"
TOOL = {"name": "search", "description": "Searches.", "input_schema": {"type": "object", "properties": {}}}
SCHEMA = {"type": "object", "properties": {"action": {"type": "string"}, "note": {"type": "string", "default": ""}}}


def request_of(**changes: Any) -> ChatRequest:
    known: dict[str, Any] = {"model": "m", "system": "role: supervisor", "prompt": CANARY, "max_tokens": 500}
    return ChatRequest(**(known | {"timeout_seconds": 20.0, "json_schema": SCHEMA, "mode": ChatMode.NATIVE} | changes))


async def ask(api: MessagesApi, **changes: Any) -> ChatReply:
    chat = OpenAIChat(api_key=KEY, base_url=api.base_url)
    try:
        return await chat.complete(request_of(**changes))
    finally:
        await chat.close()


# --- quirks ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", [ChatMode.NATIVE, ChatMode.TOOL])
@pytest.mark.parametrize("quirk", ["", *sorted(QUIRKS)])
@pytest.mark.one_in(4)
async def test_every_role_answers_the_same_with_each_quirk(quirk: str, mode: ChatMode) -> None:
    """A parameter that a server refuses is left out from then on, and what it sends in its own way is understood."""
    own = {"default": EndpointCapabilities(mode=mode, reasoning_tokens=100)}
    quirks = [quirk] if quirk else []
    async with MessagesApi() as usual, CompletionsApi(quirks=quirks) as api:
        async with engine_for({"default": usual}, own=own) as engine:
            expected = [(await engine.answer(task_of(name))).content for name in TASKS]
        async with engine_for({"default": api}, own=own) as engine:
            answers = [await engine.answer(task_of(name)) for name in TASKS]
            refused = len(api.sent) - len(api.calls)
            again = [await engine.answer(task_of(name)) for name in TASKS]
            assert len(api.sent) - len(api.calls) == refused, "what was refused once was sent again"
    assert [answer.content for answer in answers] == expected
    assert [answer.content for answer in again] == expected
    assert all(isinstance(answer.content, RoleAnswer) for answer in answers)
    assert all(answer.usage.input_tokens > 0 for answer in again), "no usage arrived"
    if quirk in REFUSED_PARAMETERS and mode is ChatMode.NATIVE and quirk == "refuses_format":
        assert api.calls[-1].mode == "tool" or api.calls[-1].role == "synthesizer"


@pytest.mark.parametrize("quirk", ["", "calls_at_index_0", "arguments_as_object", "finish_is_stop", "whole"])
async def test_calls_of_tools_arrive_whole(quirk: str) -> None:
    """Several calls in one turn keep their ids, names and arguments, however a server sends them."""
    made = {
        "content": [
            {"type": "tool_use", "id": "a", "name": "search", "input": {"query": "one"}},
            {"type": "tool_use", "id": "b", "name": "search", "input": {"query": "two"}},
        ],
        "model": "m",
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    async with CompletionsApi(quirks=[quirk] if quirk else []) as api:
        original = api.answer_for
        api.answer_for = lambda request, reply: original(request, reply_with(reply, made))  # type: ignore[method-assign]
        reply = await ask(api, json_schema=None, mode=ChatMode.TEXT, tools=[TOOL], must_call=True)
    assert reply.blocks == made["content"]
    assert reply.stop_reason in {"tool_use", "end_turn"}
    assert api.sent[0]["tool_choice"] == "required"


def reply_with(reply: Any, message: dict[str, Any]) -> Any:
    return type(reply)(reply.status, reply.headers, json.dumps(message).encode(), reply.delivery)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_thoughts_go_back_in_the_field_that_they_came_in(field: str) -> None:
    """On the next turn of the same model its thoughts, calls and the results of tools are messages of the protocol."""
    builder = CompletionBuilder("m")
    call = {"index": 0, "id": "c1", "function": {"name": "search", "arguments": '{"query": "x"}'}}
    builder.add({"choices": [{"delta": {field: "Hm. "}}]})
    builder.add({"choices": [{"delta": {field: "Well.", "tool_calls": [call]}}]})
    blocks = builder.message()["content"]
    assert blocks[0] == {"type": "thinking", "thinking": "Hm. Well.", "field": field}
    results = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "Nothing found."},
        {"type": "text", "text": "Go on."},
    ]
    conversation = [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
    async with CompletionsApi() as api:
        await ask(api, json_schema=None, mode=ChatMode.TEXT, tools=[TOOL], messages=conversation)
    system, opening, turn, result, text = api.sent[0]["messages"]
    assert (system["role"], opening) == ("system", {"role": "user", "content": CANARY})
    assert turn[field] == "Hm. Well."
    function = {"name": "search", "arguments": '{"query": "x"}'}
    assert turn["tool_calls"] == [{"id": "c1", "type": "function", "function": function}]
    assert result == {"role": "tool", "tool_call_id": "c1", "content": "Nothing found."}
    assert text == {"role": "user", "content": "Go on."}


async def test_in_native_mode_the_schema_is_strict_and_no_log_has_words(caplog: pytest.LogCaptureFixture) -> None:
    """Strict mode wants every property required and no other ones; no log has prompt or key."""
    caplog.set_level(logging.DEBUG)
    async with CompletionsApi() as api:
        await ask(api)
    answer_format = api.sent[0]["response_format"]["json_schema"]
    assert answer_format["strict"] is True
    assert answer_format["schema"]["additionalProperties"] is False
    assert answer_format["schema"]["required"] == ["action", "note"]
    assert "tools" not in api.sent[0]
    assert CANARY not in caplog.text
    assert KEY not in caplog.text


async def test_parameters_known_as_refused_are_never_sent() -> None:
    """The table of endpoints saves the refused call."""
    refuses = (Parameter.SYSTEM, Parameter.STREAM_OPTIONS, Parameter.MAX_TOKENS)
    async with CompletionsApi(quirks=["no_system", "refuses_stream_options", "refuses_max_tokens"]) as api:
        await ask(api, refuses=refuses)
    assert api.sent[0]["max_completion_tokens"] == 500
    assert {"stream_options", "max_tokens"}.isdisjoint(api.sent[0])
    assert api.sent[0]["messages"][0]["content"] == f"role: supervisor\n\n{CANARY}"


@pytest.mark.parametrize(
    "chunks",
    [
        [],
        [{"choices": []}],
        [{"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}],
    ],
)
def test_a_stream_without_an_answer_is_an_outage(chunks: list[dict[str, Any]]) -> None:
    """Nothing that was answered can be lost with it, so it is tried again."""
    builder = CompletionBuilder("m")
    for chunk in chunks:
        builder.add(chunk)
    with pytest.raises(Unavailable):
        builder.message()


# --- failures --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("code", "expected"),
    [("rate_limit_exceeded", RateLimited), ("context_length_exceeded", InvalidCall), ("odd", Unavailable)],
)
async def test_an_error_in_a_stream_is_that_of_its_status(code: str, expected: type[ProviderError]) -> None:
    """It means the same as the response with the status of its code, and its words are not repeated."""
    said = {"message": "planted: maximum context length is 4096 tokens", "code": code}
    body = f"data: {json.dumps({'error': said})}\n\n".encode()
    async with CompletionsApi() as api:
        api.answer_for = lambda _, reply: type(reply)(200, {"content-type": "text/event-stream"}, body)  # type: ignore[method-assign]
        with pytest.raises(expected) as caught:
            await ask(api)
    assert "planted" not in str(caught.value)


async def test_the_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Key, address, organization, headers and proxies of the environment are not used."""
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "from-environment")
    for name in ("OPENAI_BASE_URL", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-leak: from-environment")
    async with CompletionsApi() as api:
        await ask(api)
    sent = str(api.headers[0])
    assert KEY in sent
    assert "from-environment" not in sent


def test_the_public_endpoint_needs_a_key() -> None:
    """The error names the variable of this protocol."""
    with pytest.raises(NotConfigured, match="OPENAI_API_KEY"):
        OpenAIChat(api_key=None)


# --- which protocol, which address ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
        ("http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/v1"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1"),
        ("https://generativelanguage.example/v1beta/openai/", "https://generativelanguage.example/v1beta/openai"),
        ("https://gateway.example/models", "https://gateway.example/models/v1"),
    ],
)
def test_an_address_with_or_without_its_version_is_understood(written: str, address: str) -> None:
    """People copy both forms from the documentation of their servers."""
    assert completions_address(written) == address


@pytest.mark.parametrize("suffix", ["", "/v1"])
@pytest.mark.parametrize("kind", [MessagesApi, CompletionsApi])
async def test_the_first_call_finds_the_protocol(kind: type[MessagesApi], suffix: str) -> None:
    """A server of either protocol answers at an address in either form, and is not asked for the other one again."""
    async with kind() as api:
        address = api.base_url + suffix
        messages: Chat = AnthropicChat(api_key=None, base_url=address)
        chat = UndeterminedChat(messages, lambda: OpenAIChat(api_key=None, base_url=address), "models.base_url")
        for _ in range(2):
            assert (await chat.complete(request_of())).stop_reason == "end_turn"
        await chat.close()
    assert len(api.calls) == 2


async def test_an_address_with_neither_protocol_is_named() -> None:
    """The error has the setting to look at."""
    async with CompletionsApi() as api:
        address = f"{api.base_url}/elsewhere"
        messages: Chat = AnthropicChat(api_key=None, base_url=address)
        chat = UndeterminedChat(messages, lambda: OpenAIChat(api_key=None, base_url=address), "models.base_url")
        with pytest.raises(InvalidCall, match=r"neither the Messages API nor chat completions .* models\.base_url"):
            await chat.complete(request_of())
        await chat.close()


async def test_a_server_says_which_protocols_it_speaks() -> None:
    """By an empty request, which nothing answers with money; one that is down speaks none."""
    async with MessagesApi() as messages, CompletionsApi() as completions:
        assert await ModelServer(messages.base_url).protocols() == [ChatApi.MESSAGES]
        assert await ModelServer(f"{completions.base_url}/v1").protocols() == [ChatApi.CHAT]
        down = completions.base_url
    assert await ModelServer(down).protocols() == []


# --- windows ---------------------------------------------------------------------------------------------------------
LLAMA = [{"id": "gemma", "meta": {"n_ctx": 4_096, "n_ctx_train": 32_768}}]
SHOWN = {"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960}, "parameters": 'stop "x"'}


@pytest.mark.parametrize(
    ("server", "window"),
    [
        ({"models": LLAMA}, ModelWindow(4_096, 32_768)),
        ({"models": [{"id": "other"}, {"id": "m", "max_model_len": 8_192}]}, ModelWindow(8_192)),
        ({"models": [{"id": "other", "max_model_len": 1}, {"id": "another"}]}, None),
        ({"models": [{"id": "m", "context_length": "many"}]}, None),
        (
            {
                "models": [{"id": "m:latest"}],
                "ollama": {
                    "/api/show": SHOWN,
                    "/api/ps": {"models": [{"name": "m:latest", "context_length": 4_096}]},
                },
            },
            ModelWindow(4_096, 40_960),
        ),
        (
            {"ollama": {"/api/show": SHOWN | {"parameters": "num_ctx 16384"}, "/api/ps": {"models": []}}},
            ModelWindow(16_384, 40_960),
        ),
        ({"ollama": {"/api/show": [1], "/api/ps": "x"}}, None),
        ({}, None),
    ],
)
async def test_the_real_window_is_what_the_server_says(server: dict[str, Any], window: ModelWindow | None) -> None:
    """Of llama.cpp, vLLM and Ollama, loaded or not; a server that says nothing leaves the known window."""
    async with CompletionsApi(**server) as api:
        assert await ModelServer(f"{api.base_url}/v1").window("m") == window


async def test_a_smaller_window_is_used_from_the_first_call() -> None:
    """A prompt that the server would cut without a word is shortened, or refused with need and room."""
    async with CompletionsApi(models=LLAMA) as api:
        chat = OpenAIChat(api_key=None, base_url=api.base_url)
        known = EndpointCapabilities(window=32_000, reasoning_tokens=0)
        endpoint = ModelEndpoint("default", chat, lambda _: known, server=ModelServer(api.base_url))
        directory = ModelDirectory({"default": endpoint}, {tier: ["gemma"] for tier in Tier})
        engine = LanguageModelEngine(directory, PriceTable(), OpenLimiter())  # type: ignore[arg-type]
        task = task_of("planner")
        long = type(task.whole)(task.whole.prompt + " much more" * 4_000)
        with pytest.raises(InvalidCall, match="window 4096"):
            await engine.answer(type(task)(task.role, task.input, {}, task.system, long, "1"))
        await engine.close()
    assert api.sent == []
