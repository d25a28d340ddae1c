"""One request whose answer is limited in time and size, as services of others get it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from providers.request_spans import STATUS, mark_failed, request_span

CONNECT_SECONDS: Final = 5.0
"""Longest wait for a connection."""


@dataclass(frozen=True)
class BoundedAnswer:
    """What arrived, as far as it did: an answer with another status than 200 explains itself even if it is cut."""

    status: int = 0
    """HTTP status; 0 if no answer began."""
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    failure: str = ""
    """Why the body is not whole, without any address; empty for a whole one."""
    is_too_large: bool = False

    @property
    def is_refused(self) -> bool:
        """Return whether a status other than 200 came."""
        return self.status not in (0, httpx2.codes.OK)


async def send_once(
    client: httpx2.AsyncClient,
    method: str,
    url: str,
    *,
    seconds: float,
    max_bytes: int,
    headers: Mapping[str, str] | None = None,
    service: str,
    **sent: Any,
) -> BoundedAnswer:
    """Send exactly one request, and return its answer of at most `max_bytes`, unpacked, within `seconds` in all.

    `service` is the kind of service that its span names. `sent` are further arguments of the client: `json`, `data`,
    `params`. Raises `httpx2.InvalidURL`.
    """
    with request_span(service, {"http.request.method": method}) as span:
        answer = await _send(client, method, url, seconds=seconds, max_bytes=max_bytes, headers=headers, **sent)
        if answer.status:
            span.set_attribute(STATUS, answer.status)
        if answer.failure:
            mark_failed(span, "Unanswered")
        elif answer.is_refused:
            mark_failed(span, str(answer.status))
    return answer


async def _send(
    client: httpx2.AsyncClient,
    method: str,
    url: str,
    *,
    seconds: float,
    max_bytes: int,
    headers: Mapping[str, str] | None,
    **sent: Any,
) -> BoundedAnswer:
    timeout = httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
    body = bytearray()
    response = None
    failure = ""
    try:
        # Timeouts of the transport measure silence; a body that trickles needs a limit on the whole.
        async with (
            asyncio.timeout(seconds),
            client.stream(method, url, headers=headers, timeout=timeout, **sent) as response,
        ):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > max_bytes:
                    failure = f"the answer exceeds {max_bytes // 1_000_000} MB"
                    break
    except (TimeoutError, httpx2.TimeoutException):
        failure = f"no answer in {seconds:g} s"
    except httpx2.HTTPError as error:
        failure = f"the connection failed ({type(error).__name__})"
    if response is None:
        return BoundedAnswer(failure=failure)
    is_too_large = len(body) > max_bytes
    return BoundedAnswer(response.status_code, response.headers.multi_items(), bytes(body), failure, is_too_large)
