"""URLs and addresses that may be reached: the text check of URLs, and an explicit list of the public internet.

A URL is checked as written before any parser reads it, then parsed by the library that sends it, and both must agree:
most bypasses of such a check rely on two parsers that read one URL differently. The standard library's `is_global` is
no guard for addresses: it admits 6to4, site-local and translated addresses, and its answers change
with the version of Python.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

from contracts.addresses import normalize
from providers.errors import SourceUnreadable

if TYPE_CHECKING:
    import httpx2

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
HostPort = tuple[str, int]  # a host in canonical form (lower case, no brackets, no trailing dot) and a port

SPECIAL_IPV4: Final = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "168.63.129.16/32",
    )
)  # fmt: skip
"""IANA's special-purpose registry, and the public address at which a cloud gives secrets to its own machines."""
GLOBAL_IPV6: Final = ipaddress.IPv6Network("2000::/3")
SPECIAL_IPV6: Final = tuple(
    ipaddress.IPv6Network(network)
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "3ffe::/16", "2620:4f:8000::/48")
)
ISATAP: Final = {0x00005EFE, 0x02005EFE}  # upper half of an interface identifier whose lower half is an IPv4 address
INNER_NAMES: Final = (
    "localhost", "local", "internal", "localdomain", "home.arpa", "lan", "corp", "home", "intranet", "private", "onion",
)  # fmt: skip

MAX_URL_LENGTH: Final = 2_048
MAX_NAME_LENGTH: Final = 253
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
UNFIT_CATEGORIES: Final = {"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"}
"""Controls, invisible marks, surrogates, private and unassigned characters, spaces."""
IDEOGRAPHIC_FULL_STOP: Final = "\u3002"
"""Separates labels for name encoders, though Unicode does not fold it to a dot."""
SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
WEB_URL: Final = re.compile(r"https?://([^/?#]+)", re.IGNORECASE)
AUTHORITY: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]+)(?::([0-9]*))?")
LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
LAST_LABEL: Final = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""No top-level domain begins with a digit; anything that does may be parsed as a number, which is an address."""
DOTTED_QUAD: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
HOST_AND_PORT: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+):([1-9][0-9]{0,4})")


def refused(kind: str, message: str) -> SourceUnreadable:
    """Return a refusal: its kind starts with `refused`, and a retry would be refused, too."""
    return SourceUnreadable(f"refused_{kind}", message)


def check_url(text: str, allow_hosts: AbstractSet[HostPort] = frozenset()) -> "httpx2.URL":
    """Return the URL to request, in canonical form and without its fragment.

    A pair of host and port in `allow_hosts` always passes. Raises `SourceUnreadable`: refused_url,
    refused_scheme, refused_host, refused_port, refused_address.
    """
    import httpx2  # noqa: PLC0415  settings name this module, and most commands open no page

    check_characters(text)
    scheme, written_host, port = _split(text)
    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError) as error:
        raise refused("url", "the address is malformed") from error
    try:
        host = canonical_host(url.raw_host.decode("ascii"))
        written = canonical_host(written_host)
    except ValueError as error:
        raise refused("host", "the host is malformed") from error
    if (written.isascii() and written != host) or url.scheme != scheme or (url.port or DEFAULT_PORTS[scheme]) != port:
        raise refused("url", "the address can be read in two ways")
    if (host, port) not in allow_hosts:
        if port != DEFAULT_PORTS[scheme]:
            raise refused("port", "only the standard ports of http and https are asked, unless allow_hosts names it")
        _check_host(host)
    return url.copy_with(host=host, fragment=None)


def check_characters(text: str) -> None:
    """Refuse characters that no legitimate URL contains. Raises `SourceUnreadable` refused_url."""
    if len(text) > MAX_URL_LENGTH:
        raise refused("url", f"the address is longer than {MAX_URL_LENGTH} characters")
    if "\\" in text or any(unicodedata.category(character) in UNFIT_CATEGORIES for character in text):
        raise refused("url", "the address contains a space, a backslash or an invisible character")


def is_public(address: IpAddress) -> bool:
    """Return whether an address is on the public internet."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in SPECIAL_IPV4)
    if address not in GLOBAL_IPV6 or any(address in network for network in SPECIAL_IPV6):
        return False
    return (int(address) >> 32) & 0xFFFFFFFF not in ISATAP


def canonical_host(host: str) -> str:
    """Return a host in lower case without brackets or final dot, an address in shortest form. Raises ValueError."""
    name = host.lower()
    if ":" in name:
        return str(ipaddress.IPv6Address(name.removeprefix("[").removesuffix("]")))
    name = name.removesuffix(".")
    if not name:
        raise ValueError("an empty host")
    return name


def hosts_and_ports(texts: Iterable[str]) -> frozenset[HostPort]:
    """Parse a list of `host:port` written by an operator. Raises ValueError."""
    hosts = set()
    for text in texts:
        match = HOST_AND_PORT.fullmatch(text.strip().lower())
        if match is None or int(match[2]) > 65_535:
            raise ValueError("not of the form host:port")
        hosts.add((canonical_host(match[1]), int(match[2])))
    return frozenset(hosts)


def _split(text: str) -> tuple[str, str, int]:
    """Return scheme, host as written, and port of a URL. Raises `SourceUnreadable`."""
    scheme = SCHEME.match(text)
    if scheme is None or (name := scheme[1].lower()) not in DEFAULT_PORTS:
        raise refused("scheme", "only http and https are read")
    match = WEB_URL.match(text)
    if match is None:
        raise refused("url", "an address begins with http:// or https:// and a host")
    authority = match[1]
    if "@" in authority or "%" in authority:
        raise refused("url", "the address contains a user name or an encoded host")
    if normalize("NFKC", authority) != authority or IDEOGRAPHIC_FULL_STOP in authority:
        raise refused("host", "the host is written in look-alike characters")
    parts = AUTHORITY.fullmatch(authority)
    if parts is None:
        raise refused("url", "the host or the port is malformed")
    port = parts[2]
    if port and (port.startswith("0") or len(port) > 5 or int(port) > 65_535):
        raise refused("port", "the port is not a plain number up to 65535")
    return name, parts[1], int(port) if port else DEFAULT_PORTS[name]


def _check_host(host: str) -> None:
    """Refuse names of this machine or its network, and addresses in any unusual notation."""
    if ":" in host or DOTTED_QUAD.fullmatch(host):
        try:
            address = ipaddress.ip_address(host)
        except ValueError as error:
            raise refused("host", "the host is malformed") from error
        if not is_public(address):
            raise refused("address", "the address is not on the public internet")
        return
    *labels, last = host.split(".")
    if len(host) > MAX_NAME_LENGTH or not LAST_LABEL.fullmatch(last) or not all(map(LABEL.fullmatch, labels)):
        raise refused("host", "the host is no plain name and no plain address")
    if not labels or any(f".{host}".endswith(f".{name}") for name in INNER_NAMES):
        raise refused("host", "the host is a name of a local network")
