"""Connections to checked addresses only: names are resolved once, every answer is judged, the judged one is used.

This is below the HTTP client, where it opens its sockets: no request, redirect or reused client bypasses it.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

import httpcore2

from providers.errors import Unavailable
from providers.reading.egress.address_rules import HostPort, IpAddress, canonical_host, is_public, refused

MOST_ADDRESSES: Final = 4
"""Addresses of one host that are tried, each for its share of the time."""
MOST_THREADS: Final = 32
LONGEST_WAIT: Final = 5.0
"""Seconds after which a name counts as not answered."""
UNANSWERED: Final = "names cannot be looked up at the moment"
PASSING_FAILURES: Final = {socket.EAI_AGAIN, socket.EAI_MEMORY, socket.EAI_SYSTEM}

LookUp = Callable[[str], Sequence[IpAddress]]


class Resolver(Protocol):
    """Resolves names."""

    async def resolve(self, host: str) -> Sequence[IpAddress]:
        """Return all addresses of a name. Raises `Unavailable`, or `SourceUnreadable` refused_unresolved."""


def ask_system(host: str) -> list[IpAddress]:
    """Return all addresses of a name, each once, in the system's order. Raises `OSError`, `ValueError`."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ipaddress.ip_address(entry[4][0]) for entry in found))


class SystemResolver:
    """The resolver of the operating system.

    A lookup cannot be interrupted, and one without an answer takes the system half a minute: it runs in one of a few
    threads of its own.
    """

    def __init__(self, look_up: LookUp = ask_system) -> None:
        self._look_up = look_up
        self._threads = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="name-look-up")

    async def resolve(self, host: str) -> Sequence[IpAddress]:
        """Return all addresses of a name, each once, in the system's order.

        Raises `Unavailable`, or `SourceUnreadable` refused_unresolved, refused_host.
        """
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                return await asyncio.get_running_loop().run_in_executor(self._threads, self._look_up, host)
        except TimeoutError as error:
            raise Unavailable(UNANSWERED) from error
        except ValueError as error:
            raise refused("host", "the host is malformed") from error
        except OSError as error:
            if isinstance(error, socket.gaierror) and error.errno not in PASSING_FAILURES:
                raise refused("unresolved", "the host has no address") from error
            raise Unavailable(UNANSWERED) from error


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections to public addresses and to `allow_hosts` alone."""

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
                addresses = await self._checked_addresses(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout("names are looked up too slowly") from error
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

    async def _checked_addresses(self, host: str, port: int) -> list[IpAddress]:
        """The addresses to try: all of a host that is allowed by name, else all if every one is public."""
        try:
            addresses: Sequence[IpAddress] = [ipaddress.ip_address(host)]
        except ValueError:
            addresses = await self._resolver.resolve(host)
        if not addresses:
            raise refused("unresolved", "the host has no address")
        if (canonical_host(host), port) not in self._allow_hosts and not all(map(is_public, addresses)):
            raise refused("address", "the host has an address that is not on the public internet")
        return list(addresses)[:MOST_ADDRESSES]
