"""Whether a provider's address answers: a connection only, no query, nothing that could be charged."""

import asyncio
import os
import socket
import ssl
from typing import Final, Protocol, runtime_checkable
from urllib.parse import urlsplit

from providers.certificates import trusted_certificates
from providers.interfaces import SearchProvider

PROBE_SECONDS: Final = 3.0
DEFAULT_PORTS: Final = {"https": 443, "http": 80}


@runtime_checkable
class Addressed(Protocol):
    """A provider that asks one service over the network."""

    @property
    def address(self) -> str:
        """The URL that its requests begin with."""
        ...


async def probe(provider: SearchProvider, *, seconds: float = PROBE_SECONDS) -> str | None:
    """Why the provider cannot be reached, or None. One without an address of its own (a folder) always can."""
    return await probe_address(provider.address, seconds=seconds) if isinstance(provider, Addressed) else None


async def probe_address(address: str, *, seconds: float = PROBE_SECONDS) -> str | None:
    """Connect, with TLS where the address has it, and hang up; the reason if that fails within `seconds`."""
    parts = urlsplit(address)
    try:
        host, port = parts.hostname, parts.port or DEFAULT_PORTS[parts.scheme]
    except ValueError:
        return "its address is no usable one"
    tls = trusted_certificates() if parts.scheme == "https" else None
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port, ssl=tls)
    except TimeoutError:
        return f"{host} gave no answer in {seconds:g} s: check the network"
    except ssl.SSLCertVerificationError:
        return f"{host} shows a certificate that is not trusted"
    except ssl.SSLError:
        return f"{host} does not speak TLS at port {port}"
    except OSError as error:
        return f"{host} is not reachable at port {port} ({_why(error)}): check the network"
    writer.transport.abort()
    return None


def _why(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "its name is not known"
    return os.strerror(error.errno).lower() if error.errno else "no connection"
