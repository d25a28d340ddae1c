"""Chat completions over HTTP: who may ask, the models, and answers as one document or as a stream."""

import asyncio
import hmac
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import structlog
from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from client.assistants.runs import Desk
from client.chat.conversation import Speaker
from client.chat.protocol import (
    Completion,
    CompletionRequest,
    CompletionWriter,
    ProtocolError,
    answer_chore,
    find_model,
    read_request,
)
from client.chat.turns import Attachment, Conversation, offered_models, watch
from client.cli.output import CommandError, explain
from client.client_errors import NoWorker, PreviewRefused, ServerUnreachable
from client.http_server import CLOSE, Foreign, OwnNames, QuietServer, WholeRequests, make_server

MAX_BODY_BYTES: Final = 4_000_000
"""Of a request: a conversation with a hundred reports."""
COMMENT_SECONDS: Final = 10
"""Between comments in a stream; proxies cut silent streams after 30 to 100 s."""
LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
NO_RETRY: Final = {"x-should-retry": "false"}
"""Tells clients of the protocol that the same request will end in the same way."""

Endpoint = Callable[[Request], Awaitable[Response]]

logger = structlog.get_logger(__name__)


def http_server(desk: Desk, listener: socket.socket) -> QuietServer:  # noqa: ARG001  as every way into `serve`
    """Make the server."""
    return make_server(WholeRequests(Guard(application(desk), desk), MAX_BODY_BYTES, _refuse))


def application(desk: Desk) -> Starlette:
    """Make the application without its guard."""
    endpoints = ChatEndpoints(desk)
    routes = [
        Route("/v1/models", _at_the_edge(endpoints.models)),
        Route("/v1/models/{name:path}", _at_the_edge(endpoints.model)),
        Route("/v1/chat/completions", _at_the_edge(endpoints.completions), methods=["POST"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _http_error})


# --- who may ask -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Guard:
    """Answers only requests that name this server, come from no web page of another origin, and have the key."""

    app: ASGIApp
    desk: Desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, or answer it with 401, 403 or 421."""
        if scope["type"] == "http" and (error := self.objection(Request(scope))) is not None:
            return await _answer_error(error)(scope, receive, send)
        return await self.app(scope, receive, send)

    def objection(self, request: Request) -> ProtocolError | None:
        """Return why a request is refused; None if it may pass."""
        names = OwnNames(LOOPBACK_NAMES.union(self.desk.settings.serve.chat.allow_hosts))
        foreign = names.objection(request.headers)
        if foreign is Foreign.NAME:
            return ProtocolError(
                "this server has another name: call it by its address, or add the name to serve.chat.allow_hosts", 421
            )
        if foreign is Foreign.PAGE:
            return ProtocolError("web pages of other origins are not answered: let their server call this one", 403)
        key = self.desk.settings.chat_key
        sent = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if key is not None and not hmac.compare_digest(sent.encode(), key.get_secret_value().encode()):
            return ProtocolError("wrong or missing API key: send the one of RESEARCH_CHAT_KEY", 401, "invalid_api_key")
        return None


# --- answers ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ChatEndpoints:
    """The three endpoints of the protocol."""

    desk: Desk

    async def models(self, request: Request) -> Response:  # noqa: ARG002
        """List the models on offer."""
        models = await offered_models(self.desk)
        return JSONResponse({"object": "list", "data": [model.document() for model in models.values()]})

    async def model(self, request: Request) -> Response:
        """Describe a model."""
        return JSONResponse(find_model(request.path_params["name"], await offered_models(self.desk)).document())

    async def completions(self, request: Request) -> Response:
        """Answer a conversation: a chore of a chat window at once, a message of a person by its run."""
        chat = read_request(await request.body())
        chore = answer_chore(chat)
        if chore is not None:
            return self._at_once(chat, chore)
        key = self.desk.settings.chat_key
        secret = b"" if key is None else key.get_secret_value().encode()
        speaker = Speaker.of(secret, chat.user, request.headers)
        conversation = await Conversation.of(self.desk, chat, speaker)
        attached = await conversation.attach()
        if chat.stream:
            return _stream(self._chunks(chat, attached))
        return await _while_awaited(request, self._whole(chat, attached))

    async def _whole(self, chat: CompletionRequest, attached: Attachment) -> Response:
        """Answer as one document, when the run has ended or asks."""
        lines = [attached.opening]
        writer = CompletionWriter(attached.run.research_id, chat.model)
        async with aclosing(watch(attached)) as items:
            async for item in items:
                if isinstance(item, Completion):
                    return JSONResponse(writer.whole(item, "\n".join(lines)))
                lines.append(item)
        raise AssertionError  # every run ends or asks

    def _at_once(self, chat: CompletionRequest, completion: Completion) -> Response:
        writer = CompletionWriter("chat-window", chat.model)
        if not chat.stream:
            return JSONResponse(writer.whole(completion))

        async def chunks() -> AsyncGenerator[dict[str, Any], None]:
            for chunk in writer.ending(completion, with_usage=_wants_usage(chat)):
                yield chunk

        return _stream(chunks())

    async def _chunks(self, chat: CompletionRequest, attached: Attachment) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the chunks of an answer; a failure is the last one."""
        writer = CompletionWriter(attached.run.research_id, chat.model)
        yield writer.opening(f"{attached.opening}\n")
        try:
            async with aclosing(watch(attached)) as items:
                async for item in items:
                    if isinstance(item, str):
                        yield writer.progress(item)
                        continue
                    for chunk in writer.ending(item, with_usage=_wants_usage(chat)):
                        yield chunk
        except Exception as error:  # noqa: BLE001  the edge of a stream whose status is sent already
            yield _as_protocol_error(error).document()


async def _while_awaited(request: Request, answering: Coroutine[Any, Any, Response]) -> Response:
    """Return an answer; stop to work on it if the client leaves before, and return an empty one."""

    async def leave() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    answer = asyncio.create_task(answering)
    leaving = asyncio.create_task(leave())
    try:
        await asyncio.wait({answer, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return answer.result() if answer.done() else Response()
    finally:
        answer.cancel()
        leaving.cancel()
        await asyncio.gather(answer, leaving, return_exceptions=True)


def _wants_usage(chat: CompletionRequest) -> bool:
    return bool(chat.stream_options and chat.stream_options.include_usage)


def _stream(chunks: AsyncGenerator[dict[str, Any], None]) -> Response:
    """Send chunks as server-sent events, with a comment every ten seconds; the run continues if the client leaves."""

    async def events() -> AsyncIterator[str]:
        async with aclosing(chunks):
            async for chunk in chunks:
                yield json.dumps(chunk, ensure_ascii=False)
        yield "[DONE]"

    return EventSourceResponse(events(), ping=COMMENT_SECONDS, sep="\n")


# --- failures --------------------------------------------------------------------------------------------------------
def _as_protocol_error(error: Exception) -> ProtocolError:
    """Return a failure as the protocol has it; an unforeseen one is logged, and names only its type."""
    if isinstance(error, ProtocolError):
        return error
    explained = explain(error)
    if explained is None:
        logger.error("chat.failed", exc_info=error)
        return ProtocolError(f"internal error ({type(error).__name__}): see the log of `research serve`", 500)
    message = "; ".join(line.strip() for line in explained[0].splitlines() if line.strip())
    if isinstance(error, PreviewRefused):
        return ProtocolError(message, 422, error.stop_reason)
    if isinstance(error, NoWorker | ServerUnreachable):
        return ProtocolError(message, 503)
    return ProtocolError(message, 400 if isinstance(error, CommandError) else 500)


def _answer_error(error: ProtocolError) -> Response:
    headers = NO_RETRY if error.status >= 500 and error.status != 503 else {}
    if error.status == 401:
        headers |= {"www-authenticate": "Bearer"}
    return JSONResponse(error.document(), error.status, headers)


def _refuse(status: int, reason: str) -> Response:
    """Answer a request that has not arrived whole."""
    return JSONResponse(ProtocolError(reason, status).document(), status, CLOSE)


def _at_the_edge(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that answers every failure as the protocol has it."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as error:  # noqa: BLE001  the edge of a request
            return _answer_error(_as_protocol_error(error))

    return answered


async def _http_error(request: Request, error: Exception) -> Response:  # noqa: ARG001
    """Answer an unknown path or method."""
    assert isinstance(error, HTTPException)
    return _answer_error(
        ProtocolError(f"{error.detail}: there are /v1/models and /v1/chat/completions", error.status_code)
    )
