"""The reader of pages: from a URL to a document, as a worker has it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from providers.errors import RateLimited, SourceUnreadable
from providers.isolation.pool import SubprocessPool
from providers.reading.egress.address_rules import host_and_port
from providers.reading.egress.client import Egress
from providers.reading.reader import Visit, WebReader
from providers.reading.robots import Robots
from tests.fakes.office_documents import presentation, saved
from tests.fakes.web import WebServer, endless, page, redirect, reply

SENTENCE = "Vacuum removes dead rows from a table and makes their space free for others."


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    """A server without pages."""
    async with WebServer({}) as running:
        yield running


@pytest.fixture
async def reader(server: WebServer) -> AsyncIterator[WebReader]:
    """A reader that may ask this server."""
    egress = Egress("test", allow_hosts={host_and_port(server.host)})
    async with SubprocessPool(1) as pool:
        yield WebReader(egress, pool, Robots(egress, "durable-research"))
    await egress.close()


async def test_a_page_becomes_a_document(server: WebServer, reader: WebReader) -> None:
    """Title, text and the bytes as they came, under the address that the redirects ended at (S0-055)."""
    server.pages |= {"/old": redirect("/new?a=1#top", 301), "/new?a=1": page(SENTENCE, title="Vacuum")}
    document = await reader.read(server.url("/old"))
    assert (document.url, document.title, document.media_type) == (server.url("/new?a=1"), "Vacuum", "text/html")
    assert SENTENCE in document.text
    assert document.raw == server.pages["/new?a=1"].partition(b"\r\n\r\n")[2]  # type: ignore[union-attr]


async def test_the_character_set_of_the_server_is_used(server: WebServer, reader: WebReader) -> None:
    """A page that only the header explains is read in its letters, and archived as it came."""
    body = "<html><body><p>Очистка удаляет мёртвые строки.</p></body></html>".encode("koi8-r")
    server.pages["/"] = reply(body, content_type="text/html; charset=koi8-r")
    document = await reader.read(server.url())
    assert "Очистка удаляет мёртвые строки." in document.text
    assert document.raw == body


async def test_pages_and_slides_are_known(server: WebServer, reader: WebReader) -> None:
    """What a document of the web says has a page to be cited by, as far as its text is kept."""
    kind = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
    server.pages["/"] = reply(saved(presentation()), content_type=kind)
    document = await reader.read(server.url())
    assert document.media_type == kind
    assert document.pages == [0, document.text.index("## Hidden"), document.text.index("## Costs")]


async def test_texts_keep_their_kind(server: WebServer, reader: WebReader) -> None:
    """Plain text, Markdown and JSON are read without an extension in the address."""
    server.pages |= {
        "/a": reply(SENTENCE, content_type="text/plain"),
        "/b": reply(f"# Vacuum\n\n{SENTENCE}\n", content_type="text/markdown; charset=utf-8"),
        "/c": reply('{"text": "words"}', content_type="application/json"),
    }
    kinds = [(await reader.read(server.url(path))).media_type for path in ("/a", "/b", "/c")]
    assert kinds == ["text/plain", "text/markdown", "application/json"]


async def test_a_hostile_page_costs_its_child_only(server: WebServer, reader: WebReader) -> None:
    """What would make a parser hang is refused in the child, and the next page is read."""
    server.pages |= {"/bad": reply("<html><p " + "a=1 " * 5_000 + ">x</html>"), "/good": page(SENTENCE)}
    with pytest.raises(SourceUnreadable) as raised:
        await reader.read(server.url("/bad"))
    assert raised.value.kind == "too_large"
    assert SENTENCE in (await reader.read(server.url("/good"))).text


async def test_the_rules_of_each_site_on_the_way_are_asked(server: WebServer, reader: WebReader) -> None:
    """A page that its site keeps from robots is not fetched, not even behind a redirect."""
    server.pages |= {
        "/robots.txt": reply("User-agent: *\nDisallow: /private", content_type="text/plain"),
        "/open": redirect("/private/page"),
        "/private/page": page(SENTENCE),
    }
    with pytest.raises(SourceUnreadable) as raised:
        await reader.read(server.url("/open"))
    assert raised.value.kind == "robots"
    assert [path for _, path in server.asked] == ["/robots.txt", "/open"]


async def test_private_places_are_refused_without_an_exception(server: WebServer, reader: WebReader) -> None:
    """The exception is for one port of one host."""
    for url in (f"http://localhost:{server.port}/", "http://127.0.0.1/", f"http://127.1:{server.port}/"):
        with pytest.raises(SourceUnreadable) as raised:
            await reader.read(url)
        assert raised.value.kind.startswith("refused_")
    assert server.asked == []


class NotedVisits:
    """Politeness that notes who comes and goes, and makes those wait who come to a host of `busy`."""

    def __init__(self, busy: str = "") -> None:
        self.busy = busy
        self.begun: list[tuple[str, str, float]] = []
        self.open: list[str] = []

    @asynccontextmanager
    async def visit(self, host: str, delay_seconds: float) -> AsyncIterator[None]:
        """A visit."""
        if host == self.busy:
            raise RateLimited("wait", retry_after=3)
        self.begun.append((host, delay_seconds))
        self.open.append(host)
        try:
            yield
        finally:
            self.open.remove(host)


@asynccontextmanager
async def polite_reader(visit: Visit, *servers: WebServer) -> AsyncIterator[WebReader]:
    """A reader that may ask these servers, and minds its manners."""
    egress = Egress("test", allow_hosts={host_and_port(server.host) for server in servers})
    async with SubprocessPool(1) as pool:
        yield WebReader(egress, pool, Robots(egress, "durable-research"), visit=visit)
    await egress.close()


async def test_each_host_on_the_way_is_visited_once_and_left(server: WebServer) -> None:
    """With the delay that its robots.txt asks for; a redirect on the same host is the same visit."""
    async with WebServer({"/robots.txt": reply("User-agent: *\nCrawl-delay: 4", content_type="text/plain")}) as second:
        second.pages |= {"/b": redirect("/c"), "/c": page(SENTENCE)}
        server.pages["/a"] = redirect(second.url("/b"))
        visits = NotedVisits()
        async with polite_reader(visits.visit, server, second) as reader:
            await reader.read(server.url("/a"))
            await reader.read(server.url("/a"))
    hosts = [(host, delay) for host, delay in visits.begun]
    assert hosts == [(server.host, 0.0), (second.host, 4.0)] * 2
    assert visits.open == []


async def test_who_must_wait_asks_nothing_and_keeps_no_place(server: WebServer) -> None:
    """Told to wait at the second host, the first one is left, and no page of the second is asked for."""
    async with WebServer({"/b": page(SENTENCE)}) as second:
        server.pages["/a"] = redirect(second.url("/b"))
        visits = NotedVisits(busy=second.host)
        async with polite_reader(visits.visit, server, second) as reader:
            with pytest.raises(RateLimited) as raised:
                await reader.read(server.url("/a"))
    assert raised.value.retry_after == 3
    assert visits.open == []
    assert [path for _, path in second.asked] == ["/robots.txt"]


async def test_visits_end_with_errors_and_cancellation(server: WebServer) -> None:
    """A host is left whatever happens there."""
    reached = asyncio.Event()

    async def hold(writer: asyncio.StreamWriter) -> None:
        reached.set()
        await endless(b"", b"", 0.01)(writer)

    server.pages |= {"/limited": reply(status=429), "/slow": hold}
    visits = NotedVisits()
    async with polite_reader(visits.visit, server) as reader:
        with pytest.raises(RateLimited):
            await reader.read(server.url("/limited"))
        assert visits.open == []
        reading = asyncio.create_task(reader.read(server.url("/slow")))
        await reached.wait()
        assert visits.open == [server.host]
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    assert visits.open == []
    assert len(visits.begun) == 2


async def test_facts_come_with_a_page_and_too_little_text_is_a_reason(server: WebServer, reader: WebReader) -> None:
    """The language is part of a document; a page that says nothing without scripts says how little."""
    good = page(SENTENCE * 6, "By the way: the rest of the manual is about the other things that there are to know.")
    server.pages |= {"/empty": reply("<body><div id=app></div><p>Loading…</p></body>"), "/good": good}
    with pytest.raises(SourceUnreadable, match=r"too little text \(8 characters\), HTTP status 200") as raised:
        await reader.read(server.url("/empty"))
    assert raised.value.kind == "too_little_text"
    document = await reader.read(server.url("/good"))
    assert document.language == "en"
