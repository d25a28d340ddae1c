"""Hostile documents and texts in the children that work on them: each costs its deadline at most, and only itself."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from providers.errors import SourceUnreadable
from providers.isolation.pool import START_GRACE_SECONDS, SubprocessPool
from providers.reading.egress.address_rules import hosts_and_ports
from providers.reading.egress.client import Egress
from providers.reading.reader import WebReader
from providers.reading.robots import Robots
from tests.fakes.poison import POISON, READ, Poison
from tests.fakes.web import WebServer, page, reply

pytestmark = pytest.mark.integration

CHILDREN = 2
CPU_SECONDS, WALL_SECONDS = 2.0, 8.0
MEMORY_BYTES = 1_000_000_000
FETCHING_SECONDS = 30.0
"""For what is no child's work: making the document, sending and receiving it, on a machine that others use too."""
LONGEST_TURN = CPU_SECONDS / 2
"""Processor seconds that the loop may use without a pause; with what parses foreign documents in it, it would use as many
as a child may. The machine's other work takes none of them."""
GOOD = "Vacuum removes dead rows from a table and makes their space free for others."


@dataclass
class Results:
    """What became of each document, and how long it took."""

    outcomes: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    good_reads: int = 0
    longest_turn: float = 0.0
    """Processor seconds of the loop's thread from one heartbeat to the next."""


@asynccontextmanager
async def reader_of(server: WebServer) -> AsyncIterator[WebReader]:
    egress = Egress("test", allow_hosts=hosts_and_ports([server.host]))
    try:
        async with SubprocessPool(
            CHILDREN, cpu_seconds=CPU_SECONDS, wall_factor=WALL_SECONDS / CPU_SECONDS, memory_bytes=MEMORY_BYTES
        ) as pool:
            yield WebReader(egress, pool, Robots(egress, "durable-research"))
    finally:
        await egress.close()


@contextmanager
def ticking() -> Iterator[list[float]]:
    """Processor time of this thread at each heartbeat beside the reads."""
    beats = [time.thread_time()]

    async def beat() -> None:
        while True:
            await asyncio.sleep(0.02)
            beats.append(time.thread_time())

    task = asyncio.create_task(beat())
    try:
        yield beats
    finally:
        task.cancel()


async def read_all(names: list[str], server: WebServer, reader: WebReader, results: Results) -> None:
    """One reader's share of the documents, with a good page after each."""
    for name in names:
        poison = POISON[name]
        body = await asyncio.to_thread(poison.make)
        server.pages[f"/{name}"] = reply(body, content_type=poison.content_type)
        begun = time.monotonic()
        try:
            results.texts[name] = (await reader.read(server.url(f"/{name}"))).text
            results.outcomes[name] = READ
        except SourceUnreadable as error:
            results.outcomes[name] = error.kind
        results.seconds[name] = time.monotonic() - begun
        del server.pages[f"/{name}"]
        good = await reader.read(server.url("/good"))
        results.good_reads += GOOD in good.text


@pytest.fixture(scope="module")
def results() -> Results:
    """All documents, read once by as many readers as there are children."""

    async def work() -> Results:
        found = Results()
        names = list(POISON)
        async with WebServer({"/good": page(GOOD)}) as server, reader_of(server) as reader:
            with ticking() as beats:
                shares = (names[start::CHILDREN] for start in range(CHILDREN))
                await asyncio.gather(*(read_all(share, server, reader, found) for share in shares))
            found.longest_turn = max(later - earlier for earlier, later in pairwise(beats))
        return found

    return asyncio.run(work())


@pytest.mark.parametrize("name", POISON)
def test_each_document_ends_as_it_should(name: str, results: Results) -> None:
    """It is read, or it is refused with a typed reason; nothing else can come of it (S0-055)."""
    poison: Poison = POISON[name]
    assert results.outcomes[name] in poison.outcomes
    assert results.outcomes[name] != READ or poison.keeps in results.texts[name]


def test_each_costs_its_deadline_at_most(results: Results) -> None:
    """The time of a child, and what it takes to bring the document there and to start another child."""
    assert max(results.seconds.values()) < WALL_SECONDS + 1 + FETCHING_SECONDS < START_GRACE_SECONDS


def test_other_documents_are_read_at_the_same_time(results: Results) -> None:
    """After each hostile document, and while another one is being read, a good page is read."""
    assert results.good_reads == len(POISON)


def test_the_event_loop_continues_during_the_work(results: Results) -> None:
    """No document is parsed in the loop, so heartbeats go out in time, whatever the children do."""
    assert results.longest_turn < LONGEST_TURN


def test_nothing_of_the_machine_comes_out(results: Results) -> None:
    """No entity, include or frame brought a file of this machine into a text."""
    assert not [name for name, text in results.texts.items() if "root:" in text]
