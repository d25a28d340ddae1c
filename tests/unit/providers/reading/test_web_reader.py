"""The reader of pages: from a URL to a document, as a worker has it."""

from collections.abc import AsyncIterator

import pytest

from providers.errors import SourceUnreadable
from providers.interfaces import Reader
from providers.reading.egress import Egress
from providers.reading.egress_addresses import host_and_port
from providers.reading.robots import Robots
from providers.reading.web_reader import WebReader
from providers.subprocess_pool import SubprocessPool
from tests.fakes.web import WebServer, page, redirect, reply

SENTENCE = "Vacuum removes dead rows from a table and makes their space free for others."


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    """A server without pages."""
    async with WebServer({}) as running:
        yield running


@pytest.fixture
async def reader(server: WebServer) -> AsyncIterator[Reader]:
    """A reader that may ask this server."""
    egress = Egress("test", allow_hosts={host_and_port(server.host)})
    async with SubprocessPool(1) as pool:
        yield WebReader(egress, pool, Robots(egress, "durable-research"))
    await egress.close()


async def test_a_page_becomes_a_document(server: WebServer, reader: Reader) -> None:
    """Title, text and the bytes as they came, under the address that the redirects ended at (S0-055)."""
    server.pages |= {"/old": redirect("/new?a=1#top", 301), "/new?a=1": page(SENTENCE, title="Vacuum")}
    document = await reader.read(server.url("/old"))
    assert (document.url, document.title, document.media_type) == (server.url("/new?a=1"), "Vacuum", "text/html")
    assert SENTENCE in document.text
    assert document.raw == server.pages["/new?a=1"].partition(b"\r\n\r\n")[2]  # type: ignore[union-attr]


async def test_the_character_set_of_the_server_is_heard(server: WebServer, reader: Reader) -> None:
    """A page that only the header explains is read in its letters, and archived as it came."""
    body = "<html><body><p>Очистка удаляет мёртвые строки.</p></body></html>".encode("koi8-r")
    server.pages["/"] = reply(body, content_type="text/html; charset=koi8-r")
    document = await reader.read(server.url())
    assert "Очистка удаляет мёртвые строки." in document.text
    assert document.raw == body


async def test_texts_keep_their_kind(server: WebServer, reader: Reader) -> None:
    """Plain text, Markdown and JSON are read without an extension in the address."""
    server.pages |= {
        "/a": reply(SENTENCE, content_type="text/plain"),
        "/b": reply(f"# Vacuum\n\n{SENTENCE}\n", content_type="text/markdown; charset=utf-8"),
        "/c": reply('{"text": "words"}', content_type="application/json"),
    }
    kinds = [(await reader.read(server.url(path))).media_type for path in ("/a", "/b", "/c")]
    assert kinds == ["text/plain", "text/markdown", "application/json"]


async def test_a_hostile_page_costs_its_child_only(server: WebServer, reader: Reader) -> None:
    """What would make a parser hang is refused in the child, and the next page is read."""
    server.pages |= {"/bad": reply("<html><p " + "a=1 " * 5_000 + ">x</html>"), "/good": page(SENTENCE)}
    with pytest.raises(SourceUnreadable) as raised:
        await reader.read(server.url("/bad"))
    assert raised.value.kind == "too_large"
    assert SENTENCE in (await reader.read(server.url("/good"))).text


async def test_the_rules_of_each_site_on_the_way_are_asked(server: WebServer, reader: Reader) -> None:
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


async def test_private_places_are_refused_without_an_exception(server: WebServer, reader: Reader) -> None:
    """The exception is for one port of one host."""
    for url in (f"http://localhost:{server.port}/", "http://127.0.0.1/", f"http://127.1:{server.port}/"):
        with pytest.raises(SourceUnreadable) as raised:
            await reader.read(url)
        assert raised.value.kind.startswith("refused_")
    assert server.asked == []
