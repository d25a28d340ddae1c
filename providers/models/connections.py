"""Connections to the endpoints of models."""

import ssl
from collections.abc import Iterable
from typing import Any, Final

import httpcore2
import httpx2

from providers.certificates import trusted_certificates

LAST_LOOK_SECONDS: Final = 0.5
MAX_CONNECTIONS: Final = 250
IDLE_SECONDS: Final = 60.0  # a connection is reused by the next phase of a run, some seconds later


class AttentiveTransport(httpx2.AsyncHTTPTransport):
    """A transport that looks into the socket once more before it gives up a call for silence.

    While a process is stopped, by a signal or with its machine, the answer arrives, and the time for silence
    passes; when the process goes on, its timers are faster than its sockets. The answer is paid for.
    """

    def __init__(self, last_look_seconds: float = LAST_LOOK_SECONDS) -> None:
        certificates = trusted_certificates()
        super().__init__(verify=certificates, trust_env=False)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=certificates,
            max_connections=MAX_CONNECTIONS,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=_Backend(last_look_seconds),
        )


class _Backend(httpcore2.AnyIOBackend):
    def __init__(self, last_look_seconds: float) -> None:
        super().__init__()
        self._last_look_seconds = last_look_seconds

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the signature of httpcore2
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        stream = await super().connect_tcp(host, port, timeout, local_address, socket_options)
        return _Stream(stream, self._last_look_seconds)


class _Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, inner: httpcore2.AsyncNetworkStream, last_look_seconds: float) -> None:
        self._inner = inner
        self._last_look_seconds = last_look_seconds

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        try:
            return await self._inner.read(max_bytes, timeout)
        except httpcore2.ReadTimeout:
            return await self._inner.read(max_bytes, self._last_look_seconds)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._inner.start_tls(ssl_context, server_hostname, timeout), self._last_look_seconds)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
