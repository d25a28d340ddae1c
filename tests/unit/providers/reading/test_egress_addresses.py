"""The gate for URLs and the list of public addresses."""

import ipaddress

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.errors import SourceUnreadable
from providers.reading.egress.address_rules import (
    GLOBAL_IPV6,
    SPECIAL_IPV4,
    canonical_host,
    check_url,
    hosts_and_ports,
    is_public,
)


def refusal(url: str) -> str:
    with pytest.raises(SourceUnreadable) as raised:
        check_url(url)
    assert raised.value.kind.startswith("refused_")
    return raised.value.kind


def passed(url: str) -> httpx2.URL | None:
    try:
        return check_url(url)
    except SourceUnreadable as error:
        if not error.kind.startswith("refused_"):
            raise
        return None


@pytest.mark.parametrize(
    ("url", "host", "target"),
    [
        ("http://public.test#@127.0.0.1/", b"public.test", b"/"),
        ("http://public.test.:80/", b"public.test", b"/"),
        ("http://bücher.example/", b"xn--bcher-kva.example", b"/"),
        ("http://93.184.216.34/", b"93.184.216.34", b"/"),
        ("https://[2606:4700:0::1111]:443/p#f", b"2606:4700::1111", b"/p"),
        ("https://public.test/?next=http://127.0.0.1/@x", b"public.test", b"/?next=http://127.0.0.1/@x"),
        ("https://a_b.xn--p1ai/ж", b"a_b.xn--p1ai", b"/%D0%B6"),
    ],
)
def test_honest_urls_reach_the_host_that_they_name(url: str, host: bytes, target: bytes) -> None:
    """Case, a last dot, a stated standard port and a fragment change nothing."""
    checked = check_url(url)
    assert (checked.raw_host, checked.raw_path, checked.port) == (host, target, None)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("http://" + "a" * 2_048 + ".com/", "refused_url"),
        ("http://public.test/\u202egpj.exe", "refused_url"),
        ("http://pub\u00adlic.test/", "refused_url"),
        ("public.test/x", "refused_scheme"),
        ("http://public.test:٨٠/", "refused_url"),
        ("http://public.test:8_0/", "refused_url"),
        ("http://public.test:443/", "refused_port"),
        ("http://public。test/", "refused_host"),
        ("http://public.test../", "refused_host"),
        ("http://a..b.test/", "refused_host"),
        ("http://1.2.3.4.5/", "refused_host"),
        ("http://public.0x1/", "refused_host"),
        ("http://" + "a" * 64 + ".test/", "refused_host"),
        ("http://app.localhost./", "refused_host"),
        ("http://printer.home.arpa/", "refused_host"),
        ("http://[fe80::1%eth0]/", "refused_url"),
    ],
)
def test_refusals_are_typed(url: str, kind: str) -> None:
    """Each class of bad URL has its reason, beside those of `refused_urls.json`."""
    assert refusal(url) == kind


def test_only_the_exact_pair_is_excepted() -> None:
    """An allowed host is allowed on its port and in its plain spelling; nothing else of it is."""
    allowed = {("127.0.0.1", 8080), ("wiki", 80), ("::1", 81)}
    assert str(check_url("http://127.0.0.1:8080/a", allowed)) == "http://127.0.0.1:8080/a"
    assert check_url("http://WIKI./", allowed).raw_host == b"wiki"
    assert check_url("http://[0::1]:81/", allowed).port == 81
    for url in ["http://127.0.0.1/", "http://127.0.0.1:8081/", "http://2130706433:8080/", "http://a@127.0.0.1:8080/"]:
        with pytest.raises(SourceUnreadable):
            check_url(url, allowed)


@given(st.text(max_size=40))
def test_any_text_is_refused_or_leads_to_a_plain_host(text: str) -> None:
    """Whatever is written: either a typed refusal, or a host of letters, digits and dots, or a public address."""
    for url in (text, f"http://{text}", f"https://{text}/x"):
        target = passed(url)
        if target is None:
            continue
        host = target.raw_host.decode("ascii")
        try:
            assert is_public(ipaddress.ip_address(host))
        except ValueError:
            assert "." in host
            assert all(character.isalnum() or character in "-_." for character in host)


PRIVATE_IPV4 = st.sampled_from(SPECIAL_IPV4).flatmap(
    lambda network: st.integers(int(network[0]), int(network[-1])).map(ipaddress.IPv4Address)
)


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
    assert hosts_and_ports([" Wiki.Intern:8080 ", "[0:0::1]:80"]) == {("wiki.intern", 8080), ("::1", 80)}
    assert canonical_host("Public.Test.") == "public.test"
    for wrong in ["wiki", "wiki:", "wiki:0", "wiki:99999", "http://wiki:80", "*:80", "10.0.0.0/8:80", "a b:80", ".:80"]:
        with pytest.raises(ValueError):
            hosts_and_ports([wrong])
