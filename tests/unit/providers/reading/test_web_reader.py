"""The reader of pages: from a URL to a document, within the rules of sites and the domains of a run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from contracts.evidence import Validators
from providers.domains import Domains, domains_named
from providers.errors import RateLimited, SourceUnreadable
from providers.isolation.pool import SubprocessPool
from providers.reading.egress.address_rules import hosts_and_ports
from providers.reading.egress.client import Egress
from providers.reading.reader import Visit, WebReader
from providers.reading.robots import Robots
from tests.fakes.web import WebServer, page, redirect, reply
from tests.unit.providers.reading.conftest import kind_of

SENTENCE = "Vacuum removes dead rows from a table and makes their space free for others."
HERE, THERE = "127.0.0.1", "localhost"


@pytest.fixture
async def other() -> AsyncIterator[WebServer]:
    """Another server, which the reader knows by another name as well."""
    async with WebServer({}) as running:
        yield running


@asynccontextmanager
async def reader_of(*servers: WebServer, visit: Visit | None = None) -> AsyncIterator[WebReader]:
    """A reader that may ask these servers, under both names of this machine."""
    hosts = hosts_and_ports(f"{name}:{server.port}" for server in servers for name in (HERE, THERE))
    egress = Egress("test", allow_hosts=hosts)
    try:
        async with SubprocessPool(1) as pool:
            options = {} if visit is None else {"visit": visit}
            yield WebReader(egress, pool, Robots(egress, "durable-research"), **options)
    finally:
        await egress.close()


@pytest.fixture
async def reader(server: WebServer, other: WebServer) -> AsyncIterator[WebReader]:
    async with reader_of(server, other) as made:
        yield made


async def test_a_page_becomes_a_document(server: WebServer, reader: WebReader) -> None:
    """Title, text and the bytes as they came, under the address that the redirects ended at (S0-055)."""
    body = f"<html><head><title>Vacuum</title></head><body><p>{SENTENCE * 6} Größe.</p></body></html>".encode("cp1252")
    found = reply(body, content_type="text/html; charset=windows-1252")
    server.pages |= {"/old": redirect("/new?a=1#top", 301), "/new?a=1": found}
    document = await reader.read(server.url("/old"))
    assert (document.url, document.title, document.media_type) == (server.url("/new?a=1"), "Vacuum", "text/html")
    assert document.text == f"{SENTENCE * 6} Größe."
    assert document.language == "en"
    assert document.raw == body


@pytest.mark.usefixtures("no_children")
async def test_a_page_with_too_little_text_says_so(server: WebServer, reader: WebReader) -> None:
    """A page that says nothing without scripts is no source; the reason says how little there was."""
    server.pages["/"] = reply("<body><div id=app></div><p>Loading…</p></body>")
    with pytest.raises(SourceUnreadable, match=r"too little text \(8 characters\), HTTP status 200") as raised:
        await reader.read(server.url())
    assert raised.value.kind == "too_little_text"


async def test_the_rules_of_each_site_on_the_way_are_asked(server: WebServer, reader: WebReader) -> None:
    """A page that its site keeps from robots is not fetched, not even behind a redirect."""
    server.pages |= {
        "/robots.txt": reply("User-agent: *\nDisallow: /private", content_type="text/plain"),
        "/open": redirect("/private/page"),
        "/private/page": page(SENTENCE),
    }
    assert await kind_of(reader.read(server.url("/open"))) == "robots"
    assert [path for _, path in server.asked] == ["/robots.txt", "/open"]


# --- politeness ------------------------------------------------------------------------------------------------------
class NotedVisits:
    """Politeness that notes who comes and goes, and makes those wait who come to a host of `busy`."""

    def __init__(self, busy: str = "") -> None:
        self.busy = busy
        self.begun: list[tuple[str, float]] = []
        self.open: list[str] = []

    @asynccontextmanager
    async def visit(self, host: str, delay_seconds: float) -> AsyncIterator[None]:
        if host == self.busy:
            raise RateLimited("wait", retry_after=3)
        self.begun.append((host, delay_seconds))
        self.open.append(host)
        try:
            yield
        finally:
            self.open.remove(host)


@pytest.mark.usefixtures("no_children")
async def test_each_host_on_the_way_is_visited_once_and_left(server: WebServer, other: WebServer) -> None:
    """With the delay that its robots.txt asks for; a redirect on the same host is the same visit."""
    delay = reply("User-agent: *\nCrawl-delay: 4", content_type="text/plain")
    other.pages |= {"/robots.txt": delay, "/b": redirect("/c"), "/c": page(SENTENCE)}
    server.pages["/a"] = redirect(other.url("/b"))
    visits = NotedVisits()
    async with reader_of(server, other, visit=visits.visit) as reader:
        await reader.read(server.url("/a"))
    assert visits.begun == [(server.host, 0.0), (other.host, 4.0)]
    assert visits.open == []


async def test_a_page_that_waits_at_a_second_host_leaves_the_first(server: WebServer, other: WebServer) -> None:
    """Made to wait at the second host, the first one is left, and no page of the second is asked for."""
    server.pages["/a"] = redirect(other.url("/b"))
    visits = NotedVisits(busy=other.host)
    async with reader_of(server, other, visit=visits.visit) as reader:
        with pytest.raises(RateLimited) as raised:
            await reader.read(server.url("/a"))
    assert raised.value.retry_after == 3
    assert visits.open == []
    assert [path for _, path in other.asked] == ["/robots.txt"]


# --- domains of a run ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("domains", "kind"),
    [
        (domains_named([], [THERE]), "refused_domains_deny"),
        (domains_named([HERE], []), "refused_domains_allow"),
        (domains_named([THERE, HERE], [THERE]), "refused_domains_deny"),
    ],
)
@pytest.mark.usefixtures("no_children")
async def test_no_host_outside_the_domains_is_asked(
    server: WebServer, other: WebServer, reader: WebReader, domains: Domains, kind: str
) -> None:
    """Neither behind a redirect, nor between two pages within, nor for its robots.txt; the reason names the list."""
    foreign = f"http://{THERE}:{other.port}/counter"
    server.pages |= {"/docs": redirect(foreign), "/end": page(SENTENCE)}
    other.pages["/counter"] = redirect(server.url("/end"))
    assert (await reader.read(server.url("/docs"))).way == [server.url("/docs"), foreign, server.url("/end")]
    other.asked.clear()
    for url in (server.url("/docs"), foreign):
        with pytest.raises(SourceUnreadable, match=r"search\.domains_") as raised:
            await reader.read(url, domains)
        assert raised.value.kind == kind
    assert other.asked == []


@pytest.mark.usefixtures("no_children")
async def test_a_page_is_read_again_by_its_validators(server: WebServer, reader: WebReader) -> None:
    """Those of its site are sent back to its address alone; 304 means the known one, anything else is read as ever."""
    body = f"<html><body><p>{SENTENCE * 6}</p></body></html>"
    given = {"ETag": 'W/"v1"', "Last_Modified": "Wed, 21 Oct 2026 07:28:00 GMT"}
    server.pages["/"] = reply(body, **given)
    known = (await reader.read(server.url())).validators
    assert known == Validators(etag='W/"v1"', last_modified="Wed, 21 Oct 2026 07:28:00 GMT")
    assert not {"if-none-match", "if-modified-since"} & server.heads[-1].keys()
    server.pages["/"] = reply(status=304)
    assert await reader.read_again(server.url(), known) is None
    assert server.heads[-1]["if-none-match"] == 'W/"v1"'
    assert server.heads[-1]["if-modified-since"] == "Wed, 21 Oct 2026 07:28:00 GMT"
    server.pages |= {"/": redirect("/elsewhere"), "/elsewhere": reply(body)}
    moved = await reader.read_again(server.url(), known)
    assert moved is not None
    assert (moved.url, moved.validators) == (server.url("/elsewhere"), None)
    assert "if-none-match" not in server.heads[-1]
