"""Looking names up: a name that nobody answers costs those who asked for it, and nobody else."""

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from providers.errors import SourceUnreadable
from providers.reading.egress.address_rules import IpAddress
from providers.reading.egress.client import Egress
from providers.reading.egress.network import MOST_THREADS, SystemResolver
from providers.reading.reader import POLICY
from providers.reading.robots import Robots
from providers.storage.content import ObstoreContentStore
from tests.fakes.web import PUBLIC_ADDRESS, RecordingNetwork, WebServer, page
from workers.process_exit import run_to_end


class Names:
    """A look-up under control: names that begin with `slow` wait until they are let go, then fail."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.asked: list[str] = []
        self.running = 0
        self.most = 0
        self._lock = threading.Lock()

    def __call__(self, host: str) -> Sequence[IpAddress]:
        """Addresses of a name."""
        with self._lock:
            self.asked.append(host)
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            if host.startswith("slow"):
                self.let_go.wait(60)
                raise socket.gaierror(socket.EAI_AGAIN, "no answer")
            return [ipaddress.ip_address(PUBLIC_ADDRESS)]
        finally:
            with self._lock:
                self.running -= 1

    async def hang(self, count: int) -> None:
        """Until so many look-ups hang."""
        while self.running < count:
            await asyncio.sleep(0.001)


@pytest.fixture
def names() -> Iterator[Names]:
    """A look-up whose threads end with the test."""
    made = Names()
    yield made
    made.let_go.set()


def test_silent_names_hold_up_neither_reading_nor_archiving(names: Names, tmp_path: Path) -> None:
    """While many names hang, another site is read with its rules, and content is written."""

    async def work() -> bytes:
        async with WebServer({"/a": page("Words.")}) as server:
            recording = RecordingNetwork({PUBLIC_ADDRESS: server.port})
            egress = Egress("test", resolver=SystemResolver(names), network=recording)
            hosts = [f"http://slow{number}.silent.test/" for number in range(MOST_THREADS - 1)]
            reads = [asyncio.create_task(egress.fetch(host, POLICY)) for host in hosts]
            await names.hang(len(hosts))
            await ObstoreContentStore(tmp_path).put_text("Words.", "text/plain")
            fetched = await egress.fetch("http://good.test/a", POLICY, Robots(egress, "test").check)
            for read in reads:
                read.cancel()
            await asyncio.gather(*reads, return_exceptions=True)
            await egress.close()
            return fetched.body

    assert b"Words." in run_to_end(work())


async def test_the_system_is_asked_for_each_address_once() -> None:
    """Literal addresses need no network; a name that cannot exist is refused."""
    resolver = SystemResolver()
    assert await resolver.resolve("127.0.0.1") == [ipaddress.ip_address("127.0.0.1")]
    for name in ("a" * 64 + ".test", "a\0b"):
        with pytest.raises(SourceUnreadable):
            await resolver.resolve(name)
