"""Connections to checked addresses only: names are looked up once, every answer is judged, the judged one is used.

This sits below the HTTP client, where it opens its sockets: no request, redirect or reused client gets around it.
"""

import asyncio
import ipaddress
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Protocol

import httpcore2

from providers.reading.egress.address_rules import HostPort, IpAddress, canonical_host, is_public
from providers.reading.egress.url_gate import refused

MOST_ADDRESSES: Final = 4
"""Addresses of one host that are tried, each for its share of the time."""


class Resolver(Protocol):
    """Looks names up."""

    async def resolve(self, host: str) -> Sequence[IpAddress]:
        """All addresses of a name. Raises `Unavailable`, or `SourceUnreadable` refused_unresolved."""


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections to public addresses and to `allow_hosts`; to nothing else."""

    def __init__(
        self,
        resolver: Resolver,
        allow_hosts: AbstractSet[HostPort] = frozenset(),
        inner: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        self._resolver = resolver
        self._allow_hosts = allow_hosts
        self._inner = inner or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the signature of httpcore2
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that answers.

        Raises `SourceUnreadable` refused_address before any packet is sent if one address of the host is not public.
        """
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._permit(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("names are looked up too slowly") from error
        share = None if timeout is None else timeout / len(addresses)
        failure: Exception | None = None
        for address in addresses:
            try:
                stream = await self._inner.connect_tcp(str(address), port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
                continue
            return await _verify(stream, address, port)
        assert failure is not None
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  the signature of httpcore2
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Never: what is asked for lives on the web."""
        del path, timeout, socket_options
        raise refused("address", "no local socket is opened")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def _permit(self, host: str, port: int) -> list[IpAddress]:
        """The addresses to try: all of a host that is allowed by name, else all if every one is public."""
        addresses = _literal(host) or await self._resolver.resolve(host)
        if not addresses:
            raise refused("unresolved", "the host has no address")
        if (canonical_host(host), port) not in self._allow_hosts and not all(map(is_public, addresses)):
            raise refused("address", "the host has an address that is not on the public internet")
        return list(addresses)[:MOST_ADDRESSES]


def _literal(host: str) -> list[IpAddress]:
    try:
        return [ipaddress.ip_address(host)]
    except ValueError:
        return []


async def _verify(stream: httpcore2.AsyncNetworkStream, address: IpAddress, port: int) -> httpcore2.AsyncNetworkStream:
    """The stream, if its other end is the one that was meant; otherwise it is closed."""
    peer = stream.get_extra_info("server_addr")
    if peer is not None and ipaddress.ip_address(peer[0]) == address and peer[1] == port:
        return stream
    await stream.aclose()
    raise refused("address", "the connection ended somewhere else")
