"""Which URLs may be asked for at all: decided on the text, before any name is looked up.

The text is judged first as it is written, then as the library parses it that will send the request, and both must
agree: most ways past such a gate are two parsers that read one URL differently (reliability-and-security 2.1, 2 to 4).
"""

import ipaddress
import re
import unicodedata
from collections.abc import Set as AbstractSet
from typing import Final

import httpx2

from contracts.addresses import normalize
from providers.errors import SourceUnreadable
from providers.reading.egress.address_rules import HostPort, canonical_host, is_public

LONGEST_URL: Final = 2_048
LONGEST_NAME: Final = 253
DEFAULT_PORTS: Final = {"http": 80, "https": 443}

SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
WEB_URL: Final = re.compile(r"(https?)://([^/?#]+)", re.IGNORECASE)
AUTHORITY: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]+)(?::([0-9]*))?")
UNFIT_CATEGORIES: Final = {"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"}
"""Controls, invisible marks (soft hyphen, zero width, writing direction), surrogates, private and unknown, spaces."""
IDEOGRAPHIC_FULL_STOP: Final = "\u3002"
"""Parts labels for encoders of names, and is no look-alike by the rules of Unicode."""

LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
LAST_LABEL: Final = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""No top-level domain begins with a digit; whatever does may be read as a number, which is an address."""
DOTTED_QUAD: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")

INNER_NAMES: Final = (
    "localhost", "local", "internal", "localdomain", "home.arpa", "lan", "corp", "home", "intranet", "private", "onion",
)  # fmt: skip
NAMES_FOR_ANY_ADDRESS: Final = (
    "nip.io", "sslip.io", "xip.io", "localtest.me", "lvh.me", "vcap.me", "lacolhost.com", "traefik.me", "rbndr.us",
    "1u.ms",
)  # fmt: skip
"""Public services whose names resolve to whatever address is written into them."""


def refused(kind: str, message: str) -> SourceUnreadable:
    """A refusal: its kind begins with `refused`, and trying again is of no use."""
    return SourceUnreadable(f"refused_{kind}", message)


def check_url(text: str, allow_hosts: AbstractSet[HostPort] = frozenset()) -> httpx2.URL:
    """The URL to send to, in canonical form and without its fragment.

    A pair of host and port in `allow_hosts` is let through whatever it stands for. Raises `SourceUnreadable`:
    refused_url, refused_scheme, refused_host, refused_port, refused_address.
    """
    check_characters(text)
    scheme, written_host, port = _split(text)
    url = _parse(text)
    host = _agree_on_host(url, written_host)
    if url.scheme != scheme or (url.port or DEFAULT_PORTS[scheme]) != port:
        raise refused("url", "the address can be read in two ways")
    if (host, port) not in allow_hosts:
        if port != DEFAULT_PORTS[scheme]:
            raise refused("port", "only the standard ports of http and https are asked")
        _check_host(host)
    return url.copy_with(host=host, fragment=None)


def check_characters(text: str) -> None:
    """Refuse what no honest URL holds. Raises `SourceUnreadable` refused_url."""
    if len(text) > LONGEST_URL:
        raise refused("url", f"the address is longer than {LONGEST_URL} characters")
    if "\\" in text or any(unicodedata.category(character) in UNFIT_CATEGORIES for character in text):
        raise refused("url", "the address holds a space, a backslash or an invisible character")


def _split(text: str) -> tuple[str, str, int]:
    """Scheme, host as written, and port."""
    scheme = SCHEME.match(text)
    if scheme is None or scheme[1].lower() not in DEFAULT_PORTS:
        raise refused("scheme", "only http and https are read")
    found = WEB_URL.match(text)
    if found is None:
        raise refused("url", "an address begins with http:// or https:// and a host")
    authority = found[2]
    if "@" in authority or "%" in authority:
        raise refused("url", "the address holds a user name or an encoded host")
    if normalize("NFKC", authority) != authority or IDEOGRAPHIC_FULL_STOP in authority:
        raise refused("host", "the host is written in look-alike characters")
    parts = AUTHORITY.fullmatch(authority)
    if parts is None:
        raise refused("url", "the host or the port is malformed")
    return found[1].lower(), parts[1], _port(parts[2], found[1].lower())


def _port(written: str | None, scheme: str) -> int:
    if not written:
        return DEFAULT_PORTS[scheme]
    if not written.isascii() or written.startswith("0") or len(written) > 5 or int(written) > 65_535:
        raise refused("port", "the port is not a plain number up to 65535")
    return int(written)


def _parse(text: str) -> httpx2.URL:
    try:
        return httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError) as error:
        raise refused("url", "the address is malformed") from error


def _agree_on_host(url: httpx2.URL, written: str) -> str:
    """The canonical host, which is what was written."""
    try:
        parsed, mine = canonical_host(url.raw_host.decode("ascii")), canonical_host(written)
    except ValueError as error:
        raise refused("host", "the host is malformed") from error
    if mine.isascii() and mine != parsed:
        raise refused("url", "the address can be read in two ways")
    return parsed


def _check_host(host: str) -> None:
    """Names that stand for this machine or its network, and addresses in any form but the plain one."""
    if ":" in host or DOTTED_QUAD.fullmatch(host):
        try:
            address = ipaddress.ip_address(host)
        except ValueError as error:
            raise refused("host", "the host is malformed") from error
        if not is_public(address):
            raise refused("address", "the address is not on the public internet")
        return
    *labels, last = host.split(".")
    if len(host) > LONGEST_NAME or not LAST_LABEL.fullmatch(last) or not all(map(LABEL.fullmatch, labels)):
        raise refused("host", "the host is no plain name and no plain address")
    if not labels or any(host == name or host.endswith(f".{name}") for name in INNER_NAMES):
        raise refused("host", "the host is a name of a local network")
    if any(host == name or host.endswith(f".{name}") for name in NAMES_FOR_ANY_ADDRESS):
        raise refused("host", "the host is a name that stands for any address")
