"""Names and connections: every address of a host is judged before one packet is sent, and no name holds up others."""

import asyncio
import ipaddress
import json
import socket
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from providers.errors import SourceUnreadable, Unavailable
from providers.reading.egress.address_rules import IpAddress
from providers.reading.egress.client import MOST_THREADS, Egress
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


async def test_a_name_leads_to_its_checked_address_and_keeps_its_name() -> None:
    """One look-up per connection; the connection goes to that address, the request names the host."""
    async with WebServer({"/a": page("Words.")}) as server:
        network, resolver = RecordingNetwork({PUBLIC_ADDRESS: server.port}), FixedResolver(NAMES)
        egress = Egress("test", look_up=resolver, network=network)
        await egress.fetch("http://PUBLIC.test./a", POLICY)
        await egress.close()
    assert resolver.asked == ["public.test"]
    assert network.connects == [(PUBLIC_ADDRESS, 80)]
    assert server.asked == [("public.test", "/a")]


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


async def test_a_connection_is_used_again_for_its_own_host_only() -> None:
    """Two hosts at one address never share a connection; two requests to one host do."""
    async with WebServer({"/": page("Words.")}) as server:
        network = RecordingNetwork({PUBLIC_ADDRESS: server.port})
        names = {"one.test": [[PUBLIC_ADDRESS]], "two.test": [[PUBLIC_ADDRESS]]}
        egress = Egress("test", look_up=FixedResolver(names), network=network)
        for host in ("one.test", "two.test", "one.test"):
            await egress.fetch(f"http://{host}/", POLICY)
        await egress.close()
    assert len(network.connects) == 2
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
            hosts = [f"http://slow{number}.silent.test/" for number in range(MOST_THREADS - 1)]
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
