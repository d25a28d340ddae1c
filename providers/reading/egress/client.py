"""The one way out: every request to a host that a user, a model or a page named goes through `Egress.fetch`.

Checks are made where they cannot be left out: the text of each URL in `url_gate`, the address of each connection
in `network`, below the client. Redirects are followed here, each one through both again. No cookies, proxies,
credentials or environment variables take part.
"""

import asyncio
import contextlib
import re
import ssl
from collections.abc import Awaitable, Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

import httpcore2
import httpx2

from providers.certificates import trusted_certificates
from providers.errors import ProviderError, RateLimited, SourceUnreadable, Unavailable
from providers.reading.document_kinds import ContentType, parse_content_type
from providers.reading.egress.address_rules import HostPort
from providers.reading.egress.body import BodyLimits, BodyReader, FetchPolicy
from providers.reading.egress.name_lookup import SystemResolver
from providers.reading.egress.network import GuardedBackend, Resolver
from providers.reading.egress.url_gate import check_characters, check_url, refused
from providers.retry_after import retry_after_seconds

MOST_REDIRECTS: Final = 5
HEADER_BYTES: Final = 65_536
WAITS: Final = httpx2.Timeout(connect=5, read=15, write=5, pool=15)
"""Seconds for one step; the whole has a deadline of its own, because a trickle never exceeds a step's."""
KEEP_ALIVE_SECONDS: Final = 5.0
MOST_CONNECTIONS: Final = 64

REDIRECTS: Final = {301, 302, 303, 307, 308}
NOT_THERE: Final = {404, 410}
NOT_FOR_US: Final = {401, 402, 403, 407, 451}
BEFORE_ANY_SCHEME: Final = re.compile(r"[^/?#]*:")

Permit = Callable[[httpx2.URL], Awaitable[None]]


@dataclass(frozen=True)
class Fetched:
    """What came: the final URL, the kind it is read as, the character set by the server's word, the unpacked body."""

    url: str
    kind: str
    charset: str | None
    body: bytes
    status: int


class Egress:
    """Fetches by GET, over HTTP/1.1. One of it belongs to one event loop."""

    def __init__(
        self,
        user_agent: str,
        *,
        allow_hosts: AbstractSet[HostPort] = frozenset(),
        resolver: Resolver | None = None,
        network: httpcore2.AsyncNetworkBackend | None = None,
        tls: ssl.SSLContext | None = None,
        waits: httpx2.Timeout = WAITS,
    ) -> None:
        self._headers = {"User-Agent": user_agent, "Accept-Encoding": "gzip", "Accept-Language": "*"}
        self._allow_hosts = allow_hosts
        self._waits = waits.as_dict()
        backend = GuardedBackend(resolver or SystemResolver(), allow_hosts, network)
        self._transport = _GuardedTransport(backend, tls or trusted_certificates())

    async def fetch(self, url: str, policy: FetchPolicy, permit: Permit | None = None) -> Fetched:
        """Get a document; `permit` is asked before each request and may raise.

        Raises `SourceUnreadable`: a kind that begins with `refused` before anything is sent to the place in question,
        otherwise not_found, permission_denied, http_status, certificate, timeout, too_large, wrong_type, malformed.
        Raises `Unavailable` and `RateLimited` where trying again may help.
        """
        target = check_url(url, self._allow_hosts)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        deadline = asyncio.timeout(policy.seconds)

        def found(limits: BodyLimits) -> None:
            deadline.reschedule(begun + limits.seconds)

        try:
            async with deadline:
                return await self._follow(target, policy, permit, found)
        except TimeoutError as error:
            raise SourceUnreadable("timeout", "the server took too long") from error

    async def close(self) -> None:
        """Let go of all connections."""
        await self._transport.aclose()

    async def _follow(
        self, target: httpx2.URL, policy: FetchPolicy, permit: Permit | None, found: Callable[[BodyLimits], None]
    ) -> Fetched:
        seen = {str(target)}
        for _ in range(MOST_REDIRECTS + 1):
            if permit is not None:
                await permit(target)
            with _translate_errors():
                response = await self._transport.handle_async_request(self._request(target, policy))
                try:
                    location = _redirection(response, policy.statuses)
                    if location is None:
                        return await _document(target, response, policy, found)
                finally:
                    await response.aclose()
            target = self._next(target, location)
            if str(target) in seen:
                raise refused("redirect", "the redirects lead in a circle")
            seen.add(str(target))
        raise refused("redirect", f"more than {MOST_REDIRECTS} redirects")

    def _request(self, target: httpx2.URL, policy: FetchPolicy) -> httpx2.Request:
        headers = self._headers | {"Accept": policy.accept}
        return httpx2.Request("GET", target, headers=headers, extensions={"timeout": self._waits})

    def _next(self, current: httpx2.URL, location: str) -> httpx2.URL:
        """Where a redirect leads, judged as it is written, before anything is put together from it."""
        check_characters(location)
        if BEFORE_ANY_SCHEME.match(location):
            written = location
        elif location.startswith("//"):
            written = f"{current.scheme}:{location}"
        else:
            written = _join_location(current, location)
        target = check_url(written, self._allow_hosts)
        if current.scheme == "https" and target.scheme == "http":
            raise refused("redirect", "a redirect from https to http")
        return target


class _GuardedTransport(httpx2.AsyncHTTPTransport):
    """The transport of httpx2 over a guarded network; it has no parameter for that."""

    def __init__(self, backend: GuardedBackend, tls: ssl.SSLContext) -> None:
        super().__init__(verify=tls, trust_env=False)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=MOST_CONNECTIONS,
            keepalive_expiry=KEEP_ALIVE_SECONDS,
            http1=True,
            http2=False,
            retries=0,
            network_backend=backend,
        )


def _join_location(current: httpx2.URL, location: str) -> str:
    try:
        return str(current.join(location))
    except (httpx2.InvalidURL, ValueError) as error:
        raise refused("url", "the address is malformed") from error


def _redirection(response: httpx2.Response, documents: AbstractSet[int]) -> str | None:
    """Where the answer points, None for the document itself. Raises for any answer that is neither."""
    status = response.status_code
    if status in documents:
        return None
    if status in REDIRECTS:
        targets = response.headers.get_list("location")
        if len(targets) != 1 or not targets[0]:
            raise SourceUnreadable("malformed", "a redirect to nowhere")
        return str(targets[0])
    raise _failure(status, response)


def _failure(status: int, response: httpx2.Response) -> ProviderError:
    if status == 429:
        wait = retry_after_seconds(response.headers.multi_items())
        return RateLimited("the server asks to wait", retry_after=wait)
    if 500 <= status <= 599 or status in {408, 425}:
        wait = retry_after_seconds(response.headers.multi_items())
        return Unavailable(f"the server answered {status}", retry_after=wait)
    if status in NOT_THERE:
        return SourceUnreadable("not_found", f"the server answered {status}")
    if status in NOT_FOR_US:
        return SourceUnreadable("permission_denied", f"the server answered {status}")
    if status == 204:
        return SourceUnreadable("empty", "the server answered without content")
    return SourceUnreadable("http_status", f"the server answered {status}")


async def _document(
    target: httpx2.URL, response: httpx2.Response, policy: FetchPolicy, found: Callable[[BodyLimits], None]
) -> Fetched:
    if sum(len(name) + len(value) for name, value in response.headers.raw) > HEADER_BYTES:
        raise SourceUnreadable("too_large", f"the headers are larger than {HEADER_BYTES} bytes")
    declared = ContentType()
    if policy.check_type is not None:
        declared = parse_content_type(response.headers.get("content-type"))
        policy.check_type(declared.media_type)
    reader = BodyReader(policy, declared.media_type, found)
    body = await reader.read(response)
    if not body:
        raise SourceUnreadable("empty", "the server sent an empty document")
    return Fetched(str(target), reader.kind, declared.charset, body, response.status_code)


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """What the client raises, as errors of ours; its messages may quote the server and are left out."""
    try:
        yield
    except (httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
        raise Unavailable("the server cannot be reached in time") from error
    except httpx2.TimeoutException as error:
        raise SourceUnreadable("timeout", "the server stopped answering") from error
    except httpx2.ConnectError as error:
        if _is_certificate_error(error):
            raise SourceUnreadable("certificate", "the server's certificate cannot be verified") from error
        raise Unavailable("the server cannot be reached") from error
    except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
        raise Unavailable("the server broke off, or does not speak HTTP") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise SourceUnreadable("malformed", "the server's answer is malformed") from error


def _is_certificate_error(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
