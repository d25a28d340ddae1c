"""Which addresses count as the public internet: an explicit list of what may be reached, not of what may not.

The standard library's `is_global` is no guard: it lets tunnels and translations of private addresses through, and its
meaning has changed between versions. IPv4 is the special-purpose registry of IANA; IPv6 is global unicast without the
blocks that are set apart in it (reliability-and-security 2.1, rule 5).
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
HostPort = tuple[str, int]
"""A host in canonical form (lower case, no brackets, no last dot) and a port."""

SPECIAL_IPV4: Final = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "168.63.129.16/32",
    )
)  # fmt: skip
"""The last one is a public address that a cloud answers on from inside, with its machines' secrets."""
GLOBAL_IPV6: Final = ipaddress.IPv6Network("2000::/3")
SPECIAL_IPV6: Final = tuple(
    ipaddress.IPv6Network(network)
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "3ffe::/16", "2620:4f:8000::/48")
)
ISATAP: Final = {0x00005EFE, 0x02005EFE}
"""Upper half of an interface identifier whose lower half is an IPv4 address."""
HOST_AND_PORT: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+):([1-9][0-9]{0,4})")


def is_public(address: IpAddress) -> bool:
    """Whether an address may be reached because of what it is."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in SPECIAL_IPV4)
    if address not in GLOBAL_IPV6 or any(address in network for network in SPECIAL_IPV6):
        return False
    return (int(address) >> 32) & 0xFFFFFFFF not in ISATAP


def canonical_host(host: str) -> str:
    """A host in lower case, without brackets and last dot, an address in its shortest form. Raises ValueError."""
    name = host.lower()
    if ":" in name:
        return str(ipaddress.IPv6Address(name.removeprefix("[").removesuffix("]")))
    name = name.removesuffix(".")
    if not name:
        raise ValueError("an empty host")
    return name


def host_and_port(text: str) -> HostPort:
    """Read `host:port` as an operator writes it. Raises ValueError."""
    found = HOST_AND_PORT.fullmatch(text.strip().lower())
    if found is None or int(found[2]) > 65_535:
        raise ValueError("not of the form host:port")
    return canonical_host(found[1]), int(found[2])


def hosts_and_ports(texts: Iterable[str]) -> frozenset[HostPort]:
    """All of a list. Raises ValueError."""
    return frozenset(host_and_port(text) for text in texts)
