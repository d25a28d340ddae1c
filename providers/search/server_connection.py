"""A connection to a server of the Model Context Protocol, by the protocol's SDK (26 MB: imported where one is used).

Nothing that the server says is believed: its messages are bounded in size and time, its schemas are not run, and it is
answered no question. Its words are neither logged nor repeated in errors.
"""

import asyncio
import contextlib
import logging
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import anyio
import httpx2
import structlog
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import CallToolRequest, CallToolRequestParams, CallToolResult, Implementation, PaginatedRequestParams
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND, REQUEST_TIMEOUT, jsonrpc_message_adapter
from pydantic import ValidationError

from providers.certificates import trusted_certificates
from providers.errors import AnswerMalformed, InvalidCall, NotConfigured, ProviderError, RateLimited, Unavailable
from providers.isolation import guardian
from providers.search.web_api import MALFORMED
from providers.service_calls import StatusKind, classify, retry_after_seconds

MAX_MESSAGE_BYTES: Final = 8_000_000
"""Of one message, as of an answer of any search service."""
MAX_TOOL_PAGES: Final = 20
"""Pages of the list of tools that are read."""
CLOSE_SECONDS: Final = 2.0
"""Time in which a program may end by itself after the end of its input."""
START_SECONDS: Final = 60.0
"""Time in which a server has to be ready; programs that have to be installed first take as long."""
STALLED_SECONDS: Final = 5.0
"""In addition to the time for an answer, for a server that does not even take the request."""
MAX_TIMEOUTS: Final = 2
"""Calls in a row without an answer after which a connection is given up."""
CLIENT: Final = Implementation(name="durable-research", version="1")
LOGGERS: Final = ("mcp.client", "mcp.shared")
"""Loggers of the SDK whose lines have words of servers."""

FORESEEN: Final = (
    OSError,
    httpx2.HTTPError,
    httpx2.StreamError,
    ValidationError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
)
"""Errors with which a connection to a server may end."""

logger = structlog.get_logger(__name__)
_refusal: ContextVar[list[httpx2.Response]] = ContextVar("refusal")
"""Refused responses of the call at hand."""


@dataclass(frozen=True)
class Endpoint:
    """The place of a server: a program with exactly these variables, or an address with these headers."""

    name: str
    """Name of the provider, for messages."""
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    url: str = ""
    headers: Mapping[str, str] | None = None
    user_agent: str = ""
    seconds: float = 30.0
    """Time for an answer."""


class ServerConnection:
    """One connection; it belongs to a task of its own, because the SDK's scopes must end in the task they began in."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._timeouts = 0
        self._failure = ""
        """Why the connection ended, if that is known."""
        self._refusals: list[httpx2.Response] = []
        self.tools: dict[str, list[str]] = {}
        """Names of its tools, each with those of its arguments."""
        self.broken = False
        """True if it must be replaced."""
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._task = asyncio.create_task(self._own())

    async def open(self) -> None:
        """Wait until the server is ready. Raises `NotConfigured`, `Unavailable`, `RateLimited`; it is closed then."""
        try:
            async with asyncio.timeout(START_SECONDS):
                either: list[asyncio.Future[Any]] = [self._task, self._ready]
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            await self.close()
            raise self._unavailable(f"was not ready in {START_SECONDS:g} s") from None
        except asyncio.CancelledError:
            await self.close()
            raise
        if not self._ready.done():
            raise self._reason_of_end()

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool once; its answer may be an error of the tool. Raises `ProviderError`."""
        seconds = self._endpoint.seconds
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=dict(arguments)))
        refusals: list[httpx2.Response] = []
        token = _refusal.set(refusals)
        try:
            async with asyncio.timeout(seconds + STALLED_SECONDS):
                # Not `call_tool`, which runs the patterns of a schema that the server chooses.
                result = await self._ready.result().session.send_request(request, CallToolResult, seconds)
        except TimeoutError:
            self.broken = True
            raise self._unavailable(f"took no request in {seconds + STALLED_SECONDS:g} s") from None
        except MCPError as error:
            raise self._translate(error, refusals) from None
        except ValidationError:
            raise AnswerMalformed(f"{self._endpoint.name}: {MALFORMED}") from None
        finally:
            _refusal.reset(token)
        self._timeouts = 0
        return result

    async def close(self) -> None:
        """End the connection, and the program with it."""
        self.broken = True
        self._stop.set()
        if not self._ready.done():
            self._task.cancel()
        await asyncio.wait({self._task})
        self._ready.cancel()
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            logger.info("server.connection_ended", name=self._endpoint.name, error=type(error).__name__)

    async def _own(self) -> None:
        """Hold the connection from its beginning to its end."""
        _refusal.set(self._refusals)
        try:
            async with AsyncExitStack() as stack:
                if self._endpoint.command:
                    transport = self._program()
                else:
                    transport = await self._address(stack)
                client = await stack.enter_async_context(Client(transport, client_info=CLIENT, cache=None))
                self.tools = await _list_tools(client)
                self._ready.set_result(client)
                await self._stop.wait()
        finally:
            self.broken = True

    def _reason_of_end(self) -> BaseException:
        """Return the house's error for a connection that ended before it was ready; an unforeseen one as it is."""
        errors = list(_leaves(self._task.exception()))
        for error in errors:
            if isinstance(error, ProviderError):
                return error
            if isinstance(error, MCPError):
                return self._translate(error, self._refusals)
        unforeseen = next((error for error in errors if not isinstance(error, FORESEEN)), None)
        return unforeseen or self._unavailable("the connection failed")

    def _unavailable(self, reason: str) -> Unavailable:
        return Unavailable(f"{self._endpoint.name}: {self._failure or reason}")

    def _translate(self, error: MCPError, refusals: list[httpx2.Response]) -> ProviderError:
        """Return the house's error for one of the protocol; the words of the server are omitted."""
        name = self._endpoint.name
        if refusals:
            response = refusals[-1]
            kind = classify(response.status_code)
            wait = retry_after_seconds(response.headers.multi_items())
            if kind is StatusKind.BUSY:
                return RateLimited(f"{name} asks to wait ({response.status_code})", retry_after=wait)
            if kind is StatusKind.INVALID:
                return InvalidCall(f"{name} does not take the call ({response.status_code})")
            self.broken = True  # a session may have ended with the server
            if kind is StatusKind.DENIED:
                return NotConfigured(f"{name} refuses the credentials ({response.status_code}): see its headers")
            if kind in (StatusKind.MOVED, StatusKind.UNKNOWN_ADDRESS) and not self._ready.done():
                return NotConfigured(f"{name} is not at this address ({response.status_code}): see its url")
            return Unavailable(f"{name} is not available ({response.status_code})", retry_after=wait)
        if error.code == REQUEST_TIMEOUT:
            self._timeouts += 1
            self.broken = self.broken or self._timeouts >= MAX_TIMEOUTS
            return self._unavailable(f"no answer in {self._endpoint.seconds:g} s")
        if error.code in (INVALID_PARAMS, METHOD_NOT_FOUND):
            return InvalidCall(f"{name} does not take the call ({error.code})")
        self.broken = True
        return self._unavailable(
            "ended during the call" if error.code == CONNECTION_CLOSED else f"failed ({error.code})"
        )

    # --- a program -------------------------------------------------------------------------------------------------
    @asynccontextmanager
    async def _program(self) -> AsyncIterator[Any]:
        """Run the program below a guardian, and exchange lines with it."""
        program, *arguments = self._endpoint.command
        path = shutil.which(program)
        if path is None:
            raise NotConfigured(f"{self._endpoint.name}: there is no program of the name in its command")
        environment = dict(self._endpoint.environment or {})
        reading, writing = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", guardian.__file__, str(reading), ",".join(environment)),
                path,
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment,
                pass_fds=(reading,),
                limit=MAX_MESSAGE_BYTES,
            )
        except OSError:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        try:
            async with anyio.create_task_group() as tasks:
                incoming, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
                write_stream, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
                tasks.start_soon(self._receive, process, incoming)
                tasks.start_soon(self._send, process, outgoing, incoming)
                with read_stream, write_stream:
                    yield read_stream, write_stream
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process, lambda: os.close(writing))

    async def _receive(self, process: asyncio.subprocess.Process, incoming: Any) -> None:
        """Pass on each line as a message; a line that is too long or no message ends the connection."""
        assert process.stdout is not None
        async with incoming:
            while not self.broken:
                try:
                    line = await process.stdout.readuntil(b"\n")
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except asyncio.IncompleteReadError:
                    self._failure = "its program ended"
                    return
                except asyncio.LimitOverrunError:
                    self._failure = f"an answer exceeds {MAX_MESSAGE_BYTES // 1_000_000} MB"
                    return
                except ValueError:
                    if not line.strip():
                        continue
                    self._failure = "its program writes lines that are no messages of the protocol"
                    return
                finally:
                    self.broken = self.broken or bool(self._failure)
                with contextlib.suppress(anyio.BrokenResourceError):
                    await incoming.send(SessionMessage(message))

    async def _send(self, process: asyncio.subprocess.Process, outgoing: Any, incoming: Any) -> None:
        assert process.stdin is not None
        async with outgoing:
            async for item in outgoing:
                line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    process.stdin.write(line.encode() + b"\n")
                    await process.stdin.drain()
                except OSError:
                    await incoming.aclose()
                    return

    # --- an address ------------------------------------------------------------------------------------------------
    async def _address(self, stack: AsyncExitStack) -> Any:
        """Return a transport to the address; a redirect is followed within its origin alone."""
        endpoint = self._endpoint
        client = httpx2.AsyncClient(
            transport=BoundedTransport(httpx2.AsyncHTTPTransport(verify=trusted_certificates(), trust_env=False)),
            trust_env=False,
            headers={"user-agent": endpoint.user_agent, **(endpoint.headers or {}), "accept-encoding": "identity"},
            timeout=endpoint.seconds,
            event_hooks={"response": [_note_refusal]},
        )
        await stack.enter_async_context(client)
        return streamable_http_client(endpoint.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES)


def _leaves(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the errors within groups of groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    elif error is not None:
        yield error


async def _end(process: asyncio.subprocess.Process, let_go: Callable[[], None]) -> None:
    """Close the input of a program, wait a moment for its end, and let its guardian end what is left."""
    assert process.stdin is not None
    process.stdin.close()
    is_over = await _ends(process)
    let_go()
    if not is_over:
        await _ends(process)
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001  a descendant may hold the pipe


async def _ends(process: asyncio.subprocess.Process) -> bool:
    """Wait a moment for the end of a process, and return whether it came."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), CLOSE_SECONDS)
    return process.returncode is not None


async def _list_tools(client: Client) -> dict[str, list[str]]:
    tools: dict[str, list[str]] = {}
    cursor = None
    for _ in range(MAX_TOOL_PAGES):
        page = await client.session.list_tools(params=None if cursor is None else PaginatedRequestParams(cursor=cursor))
        for tool in page.tools:
            properties = tool.input_schema.get("properties")
            tools[tool.name] = list(properties) if isinstance(properties, dict) else []
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


# --- answers over HTTP -----------------------------------------------------------------------------------------------
class BoundedTransport(httpx2.AsyncBaseTransport):
    """Ends a response that is larger than a message may be, or that was compressed although that was not allowed."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; the size of its response is counted as it is read."""
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.DecodingError("a compressed answer", request=request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        if not is_stream:  # events are bounded one by one
            response.stream = _Counted(response.stream)
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_MESSAGE_BYTES:
                raise httpx2.StreamError("the answer is too large")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _note_refusal(response: httpx2.Response) -> None:
    if response.status_code >= 300:
        _refusal.get([]).append(response)
