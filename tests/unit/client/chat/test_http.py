"""The door of chat windows without a server of runs: who may ask, and what is answered without a run."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from starlette.requests import Request
from starlette.responses import Response

from client.assistants.runs import Desk
from client.chat import http
from client.chat.http import MAX_BODY_BYTES, http_server
from client.cli.context import open_context
from client.cli.http_doors import CHAT, listen_for_chats
from client.cli.output import CommandError
from client.client_errors import NoWorker, PreviewRefused, ServerUnreachable
from providers.certificates import trusted_certificates
from providers.errors import ContentMissing
from tests.fakes.chat_windows import LIBRECHAT_TITLE, OPEN_WEBUI, QUESTION
from tests.fakes.corpus import MANUAL
from workers.settings.loading import Flags, load_settings

KEY = "a key of forty characters, or thereabouts"
ASK = {"model": "deep-research/supervisor", "messages": [{"role": "user", "content": "How?"}]}


@pytest.fixture
def configuration(home: Path, tmp_path: Path) -> Path:
    """Two corpora, one of which is on offer; a name for the server."""
    for name in ("manual", "secret"):
        (tmp_path / name).mkdir()
        for file, text in MANUAL.items():
            (tmp_path / name / file).write_text(text, encoding="utf-8")
    file = tmp_path / "research.toml"
    corpora = "".join(f'[corpus.{name}]\npath = "{tmp_path / name}"\n' for name in ("manual", "secret"))
    file.write_text(f'{corpora}[serve.chat]\ncorpora = ["manual"]\nallow_hosts = ["Research.example.org"]\n')
    return file


@asynccontextmanager
async def serving(configuration: Path | None = None) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the door."""
    async with open_context(Flags(config=configuration)) as context:
        listener = listen_for_chats(context.settings, 0)
        listener.setblocking(False)
        server = http_server(Desk(context.settings, context.stores), listener)
        task = asyncio.create_task(server.serve([listener]))
        address = "http://{}:{}".format(*listener.getsockname())
        try:
            async with httpx2.AsyncClient(verify=trusted_certificates(), base_url=address) as client:
                yield client
        finally:
            server.should_exit = True
            await task
            listener.close()


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The header with the key, which is set."""
    monkeypatch.setenv("RESEARCH_CHAT_KEY", KEY)
    return {"authorization": f"Bearer {KEY}"}


def error_of(answer: httpx2.Response, status: int) -> dict[str, Any]:
    """The error of an answer, in the shape of the protocol."""
    assert answer.status_code == status, answer.text
    error = dict(answer.json()["error"])
    assert set(error) == {"message", "type", "param", "code"}
    return error


async def test_only_the_key_of_the_operator_opens(configuration: Path, key: dict[str, str]) -> None:
    """A missing, wrong, shorter or foreign one does not; models, questions and chores are all behind it."""
    async with serving(configuration) as client:
        assert (await client.get("/v1/models", headers=key)).status_code == 200
        for sent in ({}, {"authorization": f"Bearer {KEY[:-1]}"}, {"authorization": "Bearer ü"}, {"api-key": KEY}):
            for path, body in (("/v1/models", None), ("/v1/chat/completions", OPEN_WEBUI["title"][0]), ("/v2", None)):
                method = "GET" if body is None else "POST"
                headers = {name: value.encode() for name, value in sent.items()}
                answer = await client.request(method, path, json=body, headers=headers)
                assert error_of(answer, 401)["code"] == "invalid_api_key"
                assert KEY not in answer.text


async def test_the_sdk_understands_a_refusal(configuration: Path, key: dict[str, str]) -> None:
    """As its own errors: of the key, of a model that does not exist, of a request that makes no sense."""
    async with serving(configuration) as client:
        address = f"{client.base_url}/v1"
        async with openai.AsyncOpenAI(base_url=address, api_key="wrong", max_retries=0) as sdk:
            with pytest.raises(openai.AuthenticationError, match="RESEARCH_CHAT_KEY"):
                await sdk.models.list()
        async with openai.AsyncOpenAI(base_url=address, api_key=KEY, max_retries=0) as sdk:
            with pytest.raises(openai.NotFoundError, match="there are: deep-research/supervisor, "):
                await sdk.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "How?"}])
            with pytest.raises(openai.BadRequestError, match="messages"):
                await sdk.chat.completions.create(model="deep-research/supervisor", messages=[])


async def test_only_what_the_operator_offers_is_listed(configuration: Path) -> None:
    """Each strategy, alone and with each corpus on offer; the other corpus is not found either."""
    async with serving(configuration) as client:
        listed = (await client.get("/v1/models")).json()
        names = [model["id"] for model in listed["data"]]
        assert len(names) == 10
        assert {model["object"] for model in listed["data"]} == {"model"}
        assert "deep-research/living/manual" in names
        assert not [name for name in names if "secret" in name]
        assert (await client.get("/v1/models/deep-research/living/manual")).json()[
            "id"
        ] == "deep-research/living/manual"
        error_of(await client.get("/v1/models/deep-research/living/secret"), 404)
        body = {**ASK, "model": "deep-research/living/secret"}
        assert error_of(await client.post("/v1/chat/completions", json=body), 404)["code"] == "model_not_found"
    ceiling = '\n[limits.ceiling]\nstrategies = ["living"]\n'
    configuration.write_text(configuration.read_text(encoding="utf-8") + ceiling, encoding="utf-8")
    async with serving(configuration) as client:
        names = [model["id"] for model in (await client.get("/v1/models")).json()["data"]]
    assert names == ["deep-research/living", "deep-research/living/manual"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "example.org"}, 421),
        ({"host": "example.org:7237"}, 421),
        ({"host": ""}, 421),
        ({"host": "[::1]:7237"}, 200),
        ({"host": "research.EXAMPLE.org"}, 200),
        ({"host": "localhost:1"}, 200),
        ({"origin": "http://example.org"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "localhost:1", "origin": "http://localhost:2"}, 403),
        ({"host": "localhost:1", "origin": "http://localhost:1"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "none"}, 200),
    ],
)
async def test_no_foreign_name_and_no_foreign_page_is_answered(
    configuration: Path, headers: dict[str, str], status: int
) -> None:
    """Neither under a name that leads here, nor for a page of another origin; no answer allows one to read it."""
    async with serving(configuration) as client:
        answer = await client.get("/v1/models", headers=headers)
        assert answer.status_code == status, answer.text
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_preflight_of_a_browser_allows_nothing(configuration: Path) -> None:
    """It is refused, so that no page sends its question."""
    headers = {"origin": "http://example.org", "access-control-request-method": "POST"}
    async with serving(configuration) as client:
        error_of(await client.options("/v1/chat/completions", headers=headers), 403)


async def test_chores_are_answered_without_a_server_of_runs(configuration: Path) -> None:
    """Whole and as a stream, though no run could be started here."""
    async with serving(configuration) as client:
        whole = (await client.post("/v1/chat/completions", json=OPEN_WEBUI["title"][0])).json()
        assert json.loads(whole["choices"][0]["message"]["content"]) == {"title": QUESTION}
        assert whole["object"] == "chat.completion"
        async with openai.AsyncOpenAI(base_url=f"{client.base_url}/v1", api_key="none", max_retries=0) as sdk:
            stream = await sdk.chat.completions.create(**LIBRECHAT_TITLE)
            assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == QUESTION


async def test_without_a_server_of_runs_a_question_is_refused_with_the_remedy(configuration: Path) -> None:
    """In the words that a command has."""
    async with serving(configuration) as client:
        error = error_of(await client.post("/v1/chat/completions", json=ASK), 400)
        assert "research serve" in error["message"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/v1/models", 405),
        ("POST", "/v1/completions", 404),
        ("GET", "/", 404),
    ],
)
async def test_unknown_paths_are_answered_with_those_that_exist(
    configuration: Path, method: str, path: str, status: int
) -> None:
    """As an error of the protocol."""
    async with serving(configuration) as client:
        assert "/v1/chat/completions" in error_of(await client.request(method, path), status)["message"]


async def test_a_huge_body_is_refused(configuration: Path) -> None:
    """One byte more than the limit; the limit itself is read, though it is no request."""
    async with serving(configuration) as client:
        error_of(await client.post("/v1/chat/completions", content=b" " * MAX_BODY_BYTES), 400)
        error_of(await client.post("/v1/chat/completions", content=b" " * (MAX_BODY_BYTES + 1)), 413)


async def test_a_question_that_is_too_long_is_refused(configuration: Path) -> None:
    """It names the length, and where long texts belong."""
    body = {**ASK, "messages": [{"role": "user", "content": "boat " * 3_000}]}
    async with serving(configuration) as client:
        assert "14,999 characters" in error_of(await client.post("/v1/chat/completions", json=body), 400)["message"]


async def test_a_silent_stream_has_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy cuts a stream without bytes; the comments are none of the data."""
    monkeypatch.setattr(http, "COMMENT_SECONDS", 0.05)
    news = asyncio.Event()

    async def chunks() -> AsyncGenerator[dict[str, Any], None]:
        yield {"n": 1}
        await news.wait()
        yield {"n": 2}

    sent: list[bytes] = []

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))
        if sum(part.startswith(b":") for part in sent) >= 3:
            news.set()

    async def receive() -> Any:
        await asyncio.sleep(30)

    await http._stream(chunks())({"type": "http", "method": "GET", "path": "/", "headers": []}, receive, send)
    assert [part for part in b"".join(sent).split(b"\n\n") if part.startswith(b"data: ")] == [
        b'data: {"n": 1}',
        b'data: {"n": 2}',
        b"data: [DONE]",
    ]


async def test_work_for_a_client_that_has_left_ends() -> None:
    """The run goes on, but nothing asks for its state any longer; a client that waits has the answer."""
    ended = asyncio.Event()
    messages = [{"type": "http.request"}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        return messages.pop(0) if messages else await asyncio.sleep(30)

    async def answer(seconds: float) -> Response:
        try:
            await asyncio.sleep(seconds)
            return Response("answer")
        finally:
            ended.set()

    request = Request({"type": "http", "headers": []}, receive)
    left = await asyncio.wait_for(http._while_awaited(request, answer(30)), 5)
    assert (left.body, ended.is_set()) == (b"", True)
    assert (await http._while_awaited(request, answer(0))).body == b"answer"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (PreviewRefused("no provider: set one", "no_providers"), 422, "no_providers"),
        (NoWorker("no worker: start one"), 503, None),
        (ServerUnreachable("no server: start it"), 503, None),
        (CommandError("invalid request:\nquery: too long"), 400, None),
        (ContentMissing("gone"), 500, None),
        (RuntimeError("secret"), 500, None),
    ],
)
def test_failures_have_their_status_and_their_words(error: Exception, status: int, code: str | None) -> None:
    """What may pass by itself can be tried again; an unforeseen failure names only its type."""
    found = http._as_protocol_error(error)
    assert (found.status, found.code) == (status, code)
    assert "secret" not in str(found)
    assert "\n" not in str(found)
    retried = http._answer_error(found).headers.get("x-should-retry")
    assert retried == ("false" if status == 500 else None)


def test_other_machines_need_a_key(configuration: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interface that they reach is not opened without one."""
    configuration.write_text('[serve.chat]\nhost = "0.0.0.0"\n')
    with pytest.raises(CommandError, match="set RESEARCH_CHAT_KEY"):
        listen_for_chats(load_settings(Flags(config=configuration)), 0)
    monkeypatch.setenv("RESEARCH_CHAT_KEY", KEY)
    with listen_for_chats(load_settings(Flags(config=configuration)), 0) as listener:
        assert listener.getsockname()[0] == "0.0.0.0"


def test_the_key_is_a_secret(configuration: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is kept out of logs, and no setting of a file; what is offered does not change the runs."""
    plain = load_settings(Flags(config=configuration))
    monkeypatch.setenv("RESEARCH_CHAT_KEY", KEY)
    settings = load_settings(Flags(config=configuration))
    assert KEY in settings.secrets()
    assert KEY not in f"{settings.describe()} {settings!r}"
    configuration.write_text(configuration.read_text() + 'default_corpus = "manual"\n')
    assert plain.digest() == load_settings(Flags(config=configuration)).digest()


def test_the_usual_port_is_another_one_than_that_of_the_tools() -> None:
    """Both doors can be open at once."""
    assert CHAT.port == 7237


async def test_a_silent_stream_has_comments_for_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two chunks comes a comment after each pause, every ten seconds at the latest; then the end."""
    assert http.COMMENT_SECONDS <= 10
    monkeypatch.setattr(http, "COMMENT_SECONDS", 0.05)
    sent: list[bytes] = []

    async def chunks() -> AsyncGenerator[dict[str, Any], None]:
        await asyncio.sleep(0.2)
        yield {"id": "chat-1"}

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    await http._stream(chunks())(scope, receive, send)
    lines = b"".join(sent).decode().split("\n\n")
    assert lines[0].startswith(": ")
    assert lines[-3:] == ['data: {"id": "chat-1"}', "data: [DONE]", ""]
