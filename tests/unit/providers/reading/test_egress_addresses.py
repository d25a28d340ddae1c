"""Which addresses are public, and how an operator writes an exception."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.reading.egress.addresses import GLOBAL_IPV6, SPECIAL_IPV4, canonical_host, host_and_port, is_public

PRIVATE_IPV4 = st.sampled_from(SPECIAL_IPV4).flatmap(
    lambda network: st.integers(int(network[0]), int(network[-1])).map(ipaddress.IPv4Address)
)


@pytest.mark.parametrize("text", ["93.184.216.34", "1.1.1.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1"])
def test_addresses_of_the_internet_are_public(text: str) -> None:
    """Ordinary addresses may be reached."""
    assert is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "text",
    "192.0.0.8 192.88.99.1 224.0.0.1 168.63.129.16 100.100.100.200 fec0::1 5f00::1 2002:: 64:ff9b:1:: ::ffff:1.1.1.1"
    " 2001:4:112::1 2606:4700::5efe:7f00:1 2606:4700::200:5efe:7f00:1 4000::1 3fff::1".split(),
)
def test_what_other_lists_let_through_is_not_public(text: str) -> None:
    """Multicast, translations, tunnels and a cloud's own public address are refused."""
    assert not is_public(ipaddress.ip_address(text))


@given(PRIVATE_IPV4)
def test_no_ipv6_form_of_a_private_address_is_public(inner: ipaddress.IPv4Address) -> None:
    """Neither an address of the special registry nor any form of IPv6 that carries one may be reached."""
    number = int(inner)
    carriers = [
        number,
        0xFFFF << 32 | number,
        0xFFFF << 48 | number,
        0x0064FF9B << 96 | number,
        0x0064FF9B0001 << 80 | number,
        0x2002 << 112 | number << 80,
        0x20010000 << 96 | (number ^ 0xFFFFFFFF),
        0xFE80 << 112 | 0x5EFE << 32 | number,
        0x2A001450 << 96 | 0x5EFE << 32 | number,
    ]
    assert not is_public(inner)
    assert not any(is_public(ipaddress.IPv6Address(carrier)) for carrier in carriers)


@given(st.integers(0, 2**128 - 1).map(ipaddress.IPv6Address))
def test_ipv6_outside_global_unicast_is_never_public(address: ipaddress.IPv6Address) -> None:
    """What has not been given out cannot be reached."""
    assert not is_public(address) or address in GLOBAL_IPV6


def test_an_exception_is_one_host_and_one_port() -> None:
    """Hosts are brought into one form; anything but host:port is refused."""
    assert host_and_port(" Wiki.Intern:8080 ") == ("wiki.intern", 8080)
    assert host_and_port("[0:0::1]:80") == ("::1", 80)
    assert canonical_host("Public.Test.") == "public.test"
    for wrong in ["wiki", "wiki:", "wiki:0", "wiki:99999", "http://wiki:80", "*:80", "10.0.0.0/8:80", "a b:80", ".:80"]:
        with pytest.raises(ValueError):
            host_and_port(wrong)
