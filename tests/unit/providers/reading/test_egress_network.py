"""Addresses, names and connections: every address of a host is judged before one packet is sent."""

import asyncio
import ipaddress
import json
import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.errors import SourceUnreadable, Unavailable
from providers.reading.egress.address_rules import (
    GLOBAL_IPV6,
    SPECIAL_IPV4,
    IpAddress,
    canonical_host,
    check_url,
    hosts_and_ports,
    is_public,
)
from providers.reading.egress.client import MAX_THREADS, Egress
from providers.reading.reader import POLICY
from providers.reading.robots import Robots
from providers.storage.content import ObstoreContentStore
from tests.fakes.web import PUBLIC_ADDRESS, FixedResolver, RecordingNetwork, WebServer, page, reply
from tests.unit.providers.reading.conftest import kind_of
from workers.own_process import run_to_end

REFUSED = json.loads(Path(__file__).with_name("refused_urls.json").read_text(encoding="utf-8"))
NAMES = {
    "public.test": [[PUBLIC_ADDRESS]],
    "rebind-private.test": [["10.0.0.1"]],
    "mixed-public-private.test": [[PUBLIC_ADDRESS, "192.168.0.1"]],
    "aaaa-mapped.test": [["::ffff:127.0.0.1"]],
    "cname-private.test": [["169.254.169.254"]],
    "127.0.0.1.nip.io": [["127.0.0.1"]],
}


@pytest.mark.parametrize(("kind", "url"), [(kind, url) for kind, urls in REFUSED.items() for url in urls])
async def test_refused_urls_open_no_connection(kind: str, url: str) -> None:
    """Each is refused with a typed reason, by the page and by robots.txt, and nobody is connected to."""
    network = RecordingNetwork()
    egress = Egress("test", look_up=FixedResolver(NAMES), network=network)
    for permit in (None, Robots(egress, "test").check):
        with pytest.raises(SourceUnreadable) as raised:
            await egress.fetch(url, POLICY, permit)
        assert raised.value.kind.startswith("refused_")
    assert network.connects == []
    await egress.close()


async def test_a_second_answer_that_is_private_is_refused() -> None:
    """The name is public for robots.txt and private for the page: the page is refused, not fetched (rebinding)."""
    robots = reply("", content_type="text/plain", Connection="close")
    async with WebServer({"/robots.txt": robots, "/": page("Words.")}) as server:
        network = RecordingNetwork({PUBLIC_ADDRESS: server.port, "127.0.0.1": server.port})
        resolver = FixedResolver({"flip.test": [[PUBLIC_ADDRESS], ["127.0.0.1"]]})
        egress = Egress("test", look_up=resolver, network=network)
        # The server says that it closes the connection, so that the page needs a second one.
        assert (
            await kind_of(egress.fetch("http://flip.test/", POLICY, Robots(egress, "test").check)) == "refused_address"
        )
        await egress.close()
    assert network.connects == [(PUBLIC_ADDRESS, 80)]
    assert server.asked == [("flip.test", "/robots.txt")]


async def test_each_step_of_a_chain_of_redirects_is_looked_up() -> None:
    """A chain that comes back to its first name, private by then, is refused, and nobody is connected to there."""
    pages = {
        "/1": reply(status=302, Location="http://other.test/2", Connection="close"),
        "/2": reply(status=302, Location="http://flip.test/3", Connection="close"),
        "/3": page("Words."),
    }
    async with WebServer(pages) as server:
        network = RecordingNetwork({PUBLIC_ADDRESS: server.port, "127.0.0.1": server.port})
        resolver = FixedResolver({"flip.test": [[PUBLIC_ADDRESS], ["127.0.0.1"]], "other.test": [[PUBLIC_ADDRESS]]})
        egress = Egress("test", look_up=resolver, network=network)
        assert await kind_of(egress.fetch("http://flip.test/1", POLICY)) == "refused_address"
        await egress.close()
    assert network.connects == [(PUBLIC_ADDRESS, 80)] * 2
    assert server.asked == [("flip.test", "/1"), ("other.test", "/2")]


async def test_a_connection_is_used_again_for_its_own_host_only() -> None:
    """Each name is looked up once and leads to its checked address; two hosts there never share a connection."""
    async with WebServer({"/": page("Words.")}) as server:
        network = RecordingNetwork({PUBLIC_ADDRESS: server.port})
        resolver = FixedResolver({"one.test": [[PUBLIC_ADDRESS]], "two.test": [[PUBLIC_ADDRESS]]})
        egress = Egress("test", look_up=resolver, network=network)
        for host in ("ONE.test.", "two.test", "one.test"):
            await egress.fetch(f"http://{host}/", POLICY)
        await egress.close()
    assert resolver.asked == ["one.test", "two.test"]
    assert network.connects == [(PUBLIC_ADDRESS, 80)] * 2
    assert [host for host, _ in server.asked] == ["one.test", "two.test", "one.test"]


async def test_a_connection_that_ends_elsewhere_is_closed() -> None:
    """The other end must be the address that was checked."""
    async with WebServer({"/": page("Words.")}) as server:
        network = RecordingNetwork({PUBLIC_ADDRESS: server.port}, peer="10.0.0.1")
        egress = Egress("test", look_up=FixedResolver(NAMES), network=network)
        assert await kind_of(egress.fetch("http://public.test/", POLICY)) == "refused_address"
        await egress.close()
    assert server.asked == []


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    """A dead first address does not make a host unreachable; a host without any that answers may be tried again."""
    async with WebServer({"/": page("Words.")}) as server:
        network = RecordingNetwork({PUBLIC_ADDRESS: server.port})
        names = {"two.test": [["2606:4700::1111", PUBLIC_ADDRESS]], "dead.test": [["1.1.1.1"]], "empty.test": [[]]}
        egress = Egress("test", look_up=FixedResolver(names), network=network)
        assert (await egress.fetch("http://two.test/", POLICY)).url == "http://two.test/"
        with pytest.raises(Unavailable):
            await egress.fetch("http://dead.test/", POLICY)
        assert await kind_of(egress.fetch("http://empty.test/", POLICY)) == "refused_unresolved"
        await egress.close()
    assert [address for address, _ in network.connects] == ["2606:4700::1111", PUBLIC_ADDRESS, "1.1.1.1"]


class SlowNames:
    """A look-up in which names that begin with `slow` wait until they are let go, then fail."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.waiting = 0

    def __call__(self, host: str) -> Sequence[IpAddress]:
        if not host.startswith("slow"):
            return [ipaddress.ip_address(PUBLIC_ADDRESS)]
        self.waiting += 1
        self.let_go.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")


def test_silent_names_hold_up_neither_reading_nor_archiving(tmp_path: Path) -> None:
    """While many names hang, another site is read with its rules, and content is written."""
    names = SlowNames()

    async def work() -> bytes:
        async with WebServer({"/a": page("Words.")}) as server:
            recording = RecordingNetwork({PUBLIC_ADDRESS: server.port})
            egress = Egress("test", look_up=names, network=recording)
            hosts = [f"http://slow{number}.silent.test/" for number in range(MAX_THREADS - 1)]
            reads = [asyncio.create_task(egress.fetch(host, POLICY)) for host in hosts]
            while names.waiting < len(hosts):
                await asyncio.sleep(0.001)
            await ObstoreContentStore(tmp_path).put_text("Words.", "text/plain")
            fetched = await egress.fetch("http://good.test/a", POLICY, Robots(egress, "test").check)
            for read in reads:
                read.cancel()
            await asyncio.gather(*reads, return_exceptions=True)
            await egress.close()
            return fetched.body

    try:
        assert b"Words." in run_to_end(work())
    finally:
        names.let_go.set()


# --- the gate for URLs, and public addresses --------------------------------------------------------------------------
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
        ("http://public.test:443/", "refused_port"),
        ("http://public。test/", "refused_host"),
        ("http://public.test../", "refused_host"),
        ("http://public.0x1/", "refused_host"),
        ("http://" + "a" * 64 + ".test/", "refused_host"),
        ("http://printer.home.arpa/", "refused_host"),
        ("http://[fe80::1%eth0]/", "refused_url"),
    ],
)
def test_refusals_are_typed(url: str, kind: str) -> None:
    """Each class of bad URL has its reason, beside those of `refused_urls.json`."""
    with pytest.raises(SourceUnreadable) as raised:
        check_url(url)
    assert raised.value.kind == kind


def test_only_the_exact_pair_is_excepted() -> None:
    """An allowed host is allowed on its port and in its plain spelling; nothing else of it is."""
    allowed = {("127.0.0.1", 8080), ("wiki", 80), ("::1", 81)}
    assert str(check_url("http://127.0.0.1:8080/a", allowed)) == "http://127.0.0.1:8080/a"
    assert check_url("http://WIKI./", allowed).raw_host == b"wiki"
    assert check_url("http://[0::1]:81/", allowed).port == 81
    for url in ["http://127.0.0.1/", "http://127.0.0.1:8081/", "http://2130706433:8080/", "http://a@127.0.0.1:8080/"]:
        with pytest.raises(SourceUnreadable):
            check_url(url, allowed)


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


@given(PRIVATE_IPV4, st.integers(0, 2**128 - 1).map(ipaddress.IPv6Address))
def test_no_ipv6_form_of_a_private_address_is_public(
    inner: ipaddress.IPv4Address, any_six: ipaddress.IPv6Address
) -> None:
    """Nothing of the special registry, no form of IPv6 that carries it, and no IPv6 that was not given out is reached."""
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
    assert any_six in GLOBAL_IPV6 or not is_public(any_six)
    assert not any(is_public(ipaddress.IPv6Address(carrier)) for carrier in carriers)


def test_an_exception_is_one_host_and_one_port() -> None:
    """Hosts are brought into one form; anything but host:port is refused."""
    assert hosts_and_ports([" Wiki.Intern:8080 ", "[0:0::1]:80"]) == {("wiki.intern", 8080), ("::1", 80)}
    assert canonical_host("Public.Test.") == "public.test"
    for wrong in ["wiki", "wiki:", "wiki:0", "wiki:99999", "http://wiki:80", "*:80", "10.0.0.0/8:80", "a b:80", ".:80"]:
        with pytest.raises(ValueError):
            hosts_and_ports([wrong])
