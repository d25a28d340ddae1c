"""The only way out: every request to a host named by a user, a model or a page goes through an `Egress`.

`address_rules` check the text of each URL. `GuardedBackend` opens the sockets below the client: it resolves a name
once, checks all of its addresses and connects to a checked one. Redirects are followed here, each through both checks.
No cookies, proxies, credentials or environment variables are used. Bodies are measured unpacked as they arrive.
"""

import asyncio
import contextlib
import ipaddress
import re
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import httpcore2
import httpx2

from contracts.evidence import Validators
from contracts.sentences import Message
from providers.certificates import trusted_certificates
from providers.errors import InvalidCall, RateLimited, SourceUnreadable, Unavailable
from providers.reading.document_kinds import parse_content_type
from providers.reading.egress.address_rules import (
    HostPort,
    IpAddress,
    canonical_host,
    check_characters,
    check_url,
    is_public,
    refused,
)
from providers.request_spans import STATUS, request_span
from providers.service_calls import StatusKind, classify, retry_after_seconds

MAX_REDIRECTS: Final = 5
STEP_TIMEOUTS: Final = {"connect": 5.0, "read": 15.0, "write": 5.0, "pool": 15.0}
"""Timeout of each step in seconds; the whole has a deadline of its own, because a trickle never exceeds a step's."""
KEEP_ALIVE_SECONDS: Final = 5.0
MAX_CONNECTIONS: Final = 64
SCHEME_PREFIX: Final = re.compile(r"[^/?#]*:")
NOT_MODIFIED: Final = 304
SENDABLE: Final = re.compile(r"[!-~][ -~]{0,199}")
"""A validator that may be sent back: a server may choose it freely."""
GZIP_OR_ZLIB: Final = 47  # zlib's code for either header and the largest window
COMPRESSIONS: Final = frozenset(("gzip", "x-gzip", "deflate"))
CODINGS: Final = COMPRESSIONS | {"compress", "x-compress", "br", "zstd"}
"""Values of `Content-Encoding`; any other, usually a character set, is a mistake of the server."""

MAX_ADDRESSES: Final = 4  # addresses to try of one host, each with its share of the time
MAX_THREADS: Final = 32
LOOK_UP_TIMEOUT_SECONDS: Final = 5.0
TRANSIENT_FAILURES: Final = {socket.EAI_AGAIN, socket.EAI_MEMORY, socket.EAI_SYSTEM}

LookUp = Callable[[str], Sequence[IpAddress]]
Permit = Callable[[httpx2.URL], Awaitable[None]]


@dataclass(frozen=True)
class FetchPolicy:
    """Responses accepted for a kind of request."""

    accept: str
    max_bytes: int
    seconds: float
    """Total for look-up, redirects, rules of the site and the body."""
    is_document: bool = True
    """True if status and declared type must be those of a document; else any success counts, and its body is cut."""


@dataclass(frozen=True)
class Fetched:
    """The final URL, the declared media type and character set, the unpacked body, the status.

    The body is empty only for status 304: the document is the one named by the validators of the request.
    """

    url: str
    media_type: str | None
    charset: str | None
    body: bytes
    status: int
    validators: Validators | None = None
    """None if the server sent none."""


# --- connections to checked addresses
def ask_system(host: str) -> list[IpAddress]:
    """Return all addresses of a name, each once, in the system's order. Raises `OSError`, `ValueError`."""
    entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ipaddress.ip_address(entry[4][0]) for entry in entries))


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections only to public addresses and to `allow_hosts`.

    A look-up cannot be interrupted, and without an answer it takes the system half a minute: it runs in one of a few
    threads of its own.
    """

    def __init__(
        self, look_up: LookUp, allow_hosts: AbstractSet[HostPort], inner: httpcore2.AsyncNetworkBackend | None = None
    ) -> None:
        self._look_up = look_up
        self._allow_hosts = allow_hosts
        self._inner = inner or httpcore2.AnyIOBackend()
        self._threads = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="name-look-up")

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the signature of httpcore2
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that answers. Raises `SourceUnreadable` if any of them is not public."""
        addresses = await self._checked_addresses(host, port)
        share = None if timeout is None else timeout / len(addresses)
        failure: Exception = httpcore2.ConnectError("no address")
        for address in addresses:
            try:
                stream = await self._inner.connect_tcp(str(address), port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
                continue
            peer = stream.get_extra_info("server_addr")
            if peer is not None and ipaddress.ip_address(peer[0]) == address and peer[1] == port:
                return stream
            await stream.aclose()
            raise refused("address", "the connection ended somewhere else")
        raise failure

    async def check_public(self, host: str) -> None:
        """Raise `SourceUnreadable` for a host with an address that is not public, even if it may be read from here."""
        await self._checked_addresses(host, 0)

    async def _checked_addresses(self, host: str, port: int) -> list[IpAddress]:
        """Return the addresses to try: all of a host that is allowed by name, else all if every one is public."""
        try:
            addresses: Sequence[IpAddress] = [ipaddress.ip_address(host)]
        except ValueError:
            addresses = await self._resolve(host)
        if not addresses:
            raise refused("unresolved", "the host has no address")
        if (canonical_host(host), port) not in self._allow_hosts and not all(map(is_public, addresses)):
            raise refused("address", "the host has an address that is not on the public internet")
        return list(addresses)[:MAX_ADDRESSES]

    async def _resolve(self, host: str) -> Sequence[IpAddress]:
        """Return all addresses of a name. Raises `Unavailable`, `SourceUnreadable` refused_unresolved, refused_host."""
        try:
            async with asyncio.timeout(LOOK_UP_TIMEOUT_SECONDS):
                return await asyncio.get_running_loop().run_in_executor(self._threads, self._look_up, host)
        except ValueError as error:
            raise refused("host", "the host is malformed") from error
        except OSError as error:  # TimeoutError is one
            if isinstance(error, socket.gaierror) and error.errno not in TRANSIENT_FAILURES:
                raise refused("unresolved", "the host has no address") from error
            raise Unavailable("names cannot be looked up at the moment") from error


# --- requests
class Egress:
    """Fetches by GET, and posts notices, over HTTP/1.1. An instance belongs to one event loop."""

    def __init__(
        self,
        user_agent: str,
        *,
        allow_hosts: AbstractSet[HostPort] = frozenset(),
        look_up: LookUp = ask_system,
        network: httpcore2.AsyncNetworkBackend | None = None,
        tls: ssl.SSLContext | None = None,
        timeouts: Mapping[str, float] = STEP_TIMEOUTS,
    ) -> None:
        self._headers = {"User-Agent": user_agent, "Accept-Encoding": "gzip", "Accept-Language": "*"}
        self._allow_hosts = allow_hosts
        self._timeouts = timeouts
        self._backend = GuardedBackend(look_up, allow_hosts, network)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls or trusted_certificates(),
            max_connections=MAX_CONNECTIONS,
            # The pool checks every idle connection whenever a request begins or ends.
            max_keepalive_connections=MAX_CONNECTIONS // 4,
            keepalive_expiry=KEEP_ALIVE_SECONDS,
            network_backend=self._backend,
        )

    async def fetch(
        self, url: str, policy: FetchPolicy, permit: Permit | None = None, known: Validators | None = None
    ) -> Fetched:
        """Fetch a document, unless it is the `known` one; `permit` is awaited before each request and may raise.

        Raises `SourceUnreadable`: a kind that starts with `refused` if nothing was sent to the place in question,
        else not_found, permission_denied, http_status, certificate, too_large, wrong_type, malformed, empty. Raises
        `Unavailable` and `RateLimited` if a retry may help, also when the time is over.
        """
        target = check_url(url, self._allow_hosts)
        try:
            async with asyncio.timeout(policy.seconds):
                return await self._follow(target, policy, permit, _conditions(known))
        except TimeoutError as error:
            raise Unavailable("the server took too long") from error

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], seconds: float) -> int:
        """Send a body once, within so many seconds, and return the status; the answer's body is not read.

        Raises `InvalidCall` if the receiver refuses it or answers with a redirect, which is not followed,
        `SourceUnreadable` refused_… or certificate if nothing was sent, `Unavailable` and `RateLimited` if a retry may
        help.
        """
        target = check_url(url, self._allow_hosts)
        length = {"Content-Length": str(len(body))}
        sent = {"Host": target.netloc.decode("ascii")} | self._headers | length | dict(headers)
        place = httpcore2.URL(scheme=target.raw_scheme, host=target.raw_host, port=target.port, target=target.raw_path)
        request = self._pool.stream(
            "POST", place, headers=list(sent.items()), content=body, extensions={"timeout": self._timeouts}
        )
        try:
            async with asyncio.timeout(seconds):
                with request_span("notice", {"http.request.method": "POST"}) as span, _translate_errors():
                    async with request as response:
                        status = response.status
                        span.set_attribute(STATUS, status)
                        answered = httpx2.Headers(response.headers)
        except TimeoutError as error:
            raise Unavailable("the receiver took too long") from error
        kind = classify(status)
        wait = retry_after_seconds(answered.multi_items())
        if kind is StatusKind.BUSY:
            raise RateLimited("the receiver asks to wait", retry_after=wait)
        if kind is StatusKind.UNAVAILABLE:
            raise Unavailable(f"the receiver answered {status}", retry_after=wait)
        if kind is StatusKind.MOVED:
            raise InvalidCall(f"the receiver answered {status}, a redirect: name the address to which it leads")
        if kind is not StatusKind.DONE:
            raise InvalidCall(f"the receiver answered {status}")
        return status

    async def check_public(self, url: str) -> str:
        """Return an address that may go to a service outside: public, and of no host that is allowed here alone.

        Raises `SourceUnreadable` whose kind starts with `refused`; `Unavailable` if the host cannot be looked up.
        """
        target = check_url(url)
        await self._backend.check_public(target.host)
        return str(target)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    async def _follow(
        self, target: httpx2.URL, policy: FetchPolicy, permit: Permit | None, conditions: dict[str, str]
    ) -> Fetched:
        for _ in range(MAX_REDIRECTS + 1):
            if permit is not None:
                await permit(target)
            sent = {"Host": target.netloc.decode("ascii")} | self._headers | {"Accept": policy.accept} | conditions
            url = httpcore2.URL(
                scheme=target.raw_scheme, host=target.raw_host, port=target.port, target=target.raw_path
            )
            request = self._pool.stream("GET", url, headers=list(sent.items()), extensions={"timeout": self._timeouts})
            with request_span("page", {"http.request.method": "GET"}) as span, _translate_errors():
                async with request as response:
                    span.set_attribute(STATUS, response.status)
                    headers = httpx2.Headers(response.headers)
                    if conditions and response.status == NOT_MODIFIED:
                        return Fetched(str(target), None, None, b"", NOT_MODIFIED)
                    location = _redirection(response.status, headers, is_document=policy.is_document)
                    if location is None:
                        return await _document(target, response, headers, policy)
            target = self._next(target, location)
            conditions = {}  # validators are only for the first address
        raise refused("redirect", f"more than {MAX_REDIRECTS} redirects")

    def _next(self, current: httpx2.URL, location: str) -> httpx2.URL:
        """Check the target of a redirect as written, before any URL is built from it."""
        check_characters(location)
        if SCHEME_PREFIX.match(location):
            written = location
        elif location.startswith("//"):
            written = f"{current.scheme}:{location}"
        else:
            try:
                written = str(current.join(location))
            except (httpx2.InvalidURL, ValueError) as error:
                raise refused("url", "the address is malformed") from error
        target = check_url(written, self._allow_hosts)
        if current.scheme == "https" and target.scheme == "http":
            raise refused("redirect", "a redirect from https to http")
        return target


def _redirection(status: int, headers: httpx2.Headers, *, is_document: bool) -> str | None:
    """Return the target of a redirect, None for the document itself. Raises for any other answer."""
    if status == 200 or (not is_document and 200 <= status < 300 and status not in {204, 205}):
        return None
    if status in {301, 302, 303, 307, 308}:
        targets = headers.get_list("location")
        if len(targets) != 1 or not targets[0]:
            raise SourceUnreadable("malformed", "a redirect to nowhere")
        return targets[0]
    message = f"the server answered {status}"
    wait = retry_after_seconds(headers.multi_items())
    kind = classify(status)
    if kind is StatusKind.BUSY:
        raise RateLimited("the server asks to wait", retry_after=wait)
    if kind is StatusKind.UNAVAILABLE:
        raise Unavailable(message, retry_after=wait)
    if kind is StatusKind.DENIED:
        raise SourceUnreadable("permission_denied", message)
    raise SourceUnreadable({204: "empty", 404: "not_found", 410: "not_found"}.get(status, "http_status"), message)


async def _document(
    target: httpx2.URL, response: httpcore2.Response, headers: httpx2.Headers, policy: FetchPolicy
) -> Fetched:
    media_type: str | None = None
    charset: str | None = None
    if policy.is_document:
        media_type, charset = parse_content_type(headers.get("content-type"))
    body = await _read_body(response, headers, policy)
    if not body:
        raise SourceUnreadable("empty", "the server sent an empty document")
    etag, modified = (
        value if SENDABLE.fullmatch(value := headers.get(name, "")) else "" for name in ("etag", "last-modified")
    )
    validators = None
    if etag or modified:
        validators = Validators(etag=etag, last_modified=modified)
    return Fetched(str(target), media_type, charset, body, response.status, validators)


def _conditions(known: Validators | None) -> dict[str, str]:
    """Return the headers that request a document only if it differs from the known one."""
    conditions = {}
    if known:
        conditions = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}
    return {name: value for name, value in conditions.items() if SENDABLE.fullmatch(value)}


async def _read_body(response: httpcore2.Response, headers: httpx2.Headers, policy: FetchPolicy) -> bytes:
    """Return the unpacked body. Raises `SourceUnreadable` too_large, wrong_type, malformed."""
    declared = headers.get_list("content-encoding", split_commas=True)
    codings = [coding for coding in map(str.lower, declared) if coding in CODINGS]
    if len(codings) > 1 or not COMPRESSIONS.issuperset(codings):
        raise SourceUnreadable("wrong_type", "the content is compressed in a way that was not requested")
    unpacker = zlib.decompressobj(GZIP_OR_ZLIB) if codings else None
    body = bytearray()
    received = 0
    async for data in response.aiter_stream():
        received += len(data)
        body += data if unpacker is None else unpacker.decompress(data, policy.max_bytes + 1 - len(body))
        if max(len(body), received) > policy.max_bytes:
            if not policy.is_document:
                return bytes(body[: policy.max_bytes])
            raise SourceUnreadable("too_large", Message("skip_large", size=policy.max_bytes))
        if unpacker is not None and unpacker.eof:
            return bytes(body)
    if unpacker is not None:
        raise SourceUnreadable("malformed", "the compressed content breaks off")
    return bytes(body)


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate errors of the client; its messages may quote the server and are dropped."""
    try:
        yield
    except (httpcore2.ConnectTimeout, httpcore2.PoolTimeout) as error:
        raise Unavailable("the server cannot be reached in time") from error
    except httpcore2.TimeoutException as error:
        raise Unavailable("the server stopped answering") from error
    except (httpcore2.NetworkError, httpcore2.RemoteProtocolError) as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise SourceUnreadable("certificate", "the server's certificate cannot be verified") from error
        raise Unavailable("the server cannot be reached, broke off, or does not speak HTTP") from error
    except zlib.error as error:
        raise SourceUnreadable("malformed", "the compressed content is damaged") from error
    except (httpcore2.ProtocolError, httpcore2.UnsupportedProtocol) as error:
        raise SourceUnreadable("malformed", "the server's answer is malformed") from error
