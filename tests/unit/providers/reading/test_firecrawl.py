"""Pages that need a browser: which are given to Firecrawl, what may be given to it, and what comes of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

import pytest

from contracts.sentences import READ_IN_BROWSER, Message
from providers.domains import domains_named
from providers.errors import NotConfigured, ProviderError, RateLimited, SourceUnreadable, Unavailable
from providers.reading.egress.address_rules import hosts_and_ports
from providers.reading.egress.client import Egress
from providers.reading.firecrawl import DailyPages, Firecrawl
from providers.reading.reader import WebReader
from providers.reading.robots import Robots
from providers.search.web_api import web_client
from tests.fakes.firecrawl import KEY, FirecrawlServer
from tests.fakes.killers import HereCalls
from tests.fakes.shared_stores import MemorySharedStore
from tests.fakes.web import PUBLIC_ADDRESS, FixedResolver, RecordingNetwork, WebServer, page, reply
from tests.unit.providers.reading.conftest import kind_of

PAGE = "http://shop.example/"
SENTENCE = "The red chair costs 40 euros and comes with a cushion of wool."
SHELL = reply('<html><body><div id="root"></div><script src="/app.js"></script></body></html>', etag='"shell"')
NOTICE = "Please accept our cookies before you go on reading here."
OPENED = (
    f"<html><head><meta charset='iso-8859-1'><title>Chairs</title></head><body><p>{SENTENCE} Größe 3.</p></body></html>"
)


class Shop:
    """A web of one public site, a Firecrawl, and a reader of both."""

    def __init__(self, site: WebServer, service: FirecrawlServer) -> None:
        self.site = site
        self.service = service
        self.store = MemorySharedStore()
        self.key: str | None = KEY
        self.most = 10
        self.seconds = 10.0

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[WebReader]:
        addresses = {name: [[PUBLIC_ADDRESS]] for name in ("shop.example", "other.example")}
        addresses["inner.example"] = [["10.0.0.7"]]
        network = RecordingNetwork({PUBLIC_ADDRESS: self.site.port, "127.0.0.1": self.site.port})
        hosts = hosts_and_ports([self.site.host])
        egress = Egress("test", allow_hosts=hosts, look_up=FixedResolver(addresses), network=network)
        try:
            async with web_client("test") as client:
                pages = DailyPages(self.store, self.most)
                browser = Firecrawl(client, self.service.base_url, self.key, self.seconds, nullcontext, pages)
                yield WebReader(egress, HereCalls(), Robots(egress, "durable-research"), browser=browser)
        finally:
            await egress.close()

    async def refusal(self, url: str = PAGE) -> ProviderError:
        """The error of a reading, which names neither the key nor the page."""
        async with self.reader() as reader:
            with pytest.raises(ProviderError) as raised:
                await reader.read(url)
        assert not any(word in str(raised.value) for word in (KEY, "it failed for"))
        return raised.value


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with WebServer({"/": SHELL}) as site, FirecrawlServer({PAGE: OPENED}) as service:
        yield Shop(site, service)


async def test_a_page_without_text_is_read_in_a_browser_and_says_so(shop: Shop) -> None:
    """Its HTML after the scripts is archived and extracted like any page; only its address and the wait are sent."""
    async with shop.reader() as reader:
        document = await reader.read(PAGE)
    assert (document.url, document.title, document.text) == (PAGE, "Chairs", f"{SENTENCE} Größe 3.")
    assert document.raw == OPENED.encode()
    assert document.validators is None, "those of the shell say nothing about the text"
    (note,) = document.warnings
    assert isinstance(note, Message)
    assert (note.id, shop.service.host in note) == (READ_IN_BROWSER, True)
    (asked,) = shop.service.asked
    assert (asked["url"], asked["formats"], asked["proxy"]) == (PAGE, ["rawHtml"], "basic")
    assert (asked["maxAge"], asked["storeInCache"], asked["skipTlsVerification"]) == (0, False, False)
    assert 0 < asked["waitFor"] <= asked["timeout"] / 2, "the service refuses a longer wait"


async def test_a_page_with_text_of_its_own_is_not_given_away(shop: Shop) -> None:
    """Nor is one without scripts, one that its site keeps from robots, one that is refused, or another kind of file."""
    long = f"<script src=a></script><p>{SENTENCE * 5}</p>"
    shop.site.pages |= {
        "/long": reply(long),
        "/short": page(NOTICE),
        "/text": reply("3", content_type="text/plain"),
        "/forbidden": reply("<script>check()</script>", 403),
        "/robots.txt": reply("User-agent: *\nDisallow: /kept", content_type="text/plain"),
        "/kept": SHELL,
    }
    async with shop.reader() as reader:
        for path in ("long", "short", "text"):
            assert (await reader.read(PAGE + path)).warnings == []
        assert await kind_of(reader.read(f"{PAGE}forbidden")) == "permission_denied"
        assert await kind_of(reader.read(f"{PAGE}kept")) == "robots"
    assert shop.service.asked == []


async def test_no_address_of_a_private_place_is_given_away(shop: Shop) -> None:
    """A host that only this machine may read stays here, although the operator allows it to be read."""
    async with shop.reader() as reader:
        assert await kind_of(reader.read(shop.site.url())) == "too_little_text"
        shop.site.pages["/"] = reply(f"<p>{NOTICE}</p><script src=a></script>")
        assert (await reader.read(shop.site.url())).text == NOTICE
    assert shop.service.asked == []


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        ("http://inner.example/", "refused_address"),
        ("http://127.0.0.1:8080/", "refused_port"),
        ("http://localhost/", "refused_host"),
        ("file:///etc/passwd", "refused_scheme"),
        ("http://other.example/", "refused_domains_allow"),
        ("http://shop.example/kept/", "robots"),
    ],
)
async def test_a_browser_that_ends_elsewhere_is_under_the_same_rules(shop: Shop, end: str, kind: str) -> None:
    """Private places, hosts outside the domains of the run, and pages kept from robots give no source."""
    shop.site.pages["/robots.txt"] = reply("User-agent: *\nDisallow: /kept", content_type="text/plain")
    shop.service.ends[PAGE] = end
    async with shop.reader() as reader:
        assert await kind_of(reader.read(PAGE, domains_named(["shop.example"], []))) == kind


async def test_a_short_page_of_scripts_stays_as_it_is_where_a_browser_shows_no_more(shop: Shop) -> None:
    """It is given to the browser; without more text, or after a failure, its own counts, in the latter case with a note."""
    shop.site.pages["/"] = reply(f"<p>{NOTICE}</p><script src=a></script>")
    async with shop.reader() as reader:
        assert (await reader.read(PAGE)).text == f"{SENTENCE} Größe 3."
        shop.service.pages[PAGE] = f"<p>{NOTICE}</p>"
        same = await reader.read(PAGE)
        shop.service.failures[PAGE] = (500, "UNKNOWN_ERROR")
        failed = await reader.read(PAGE)
    assert (same.text, same.warnings, failed.text) == (NOTICE, [], NOTICE)
    (note,) = failed.warnings
    reason = "did not give it: Firecrawl is not available (500)"
    assert note == f"may show more in a browser; the service at {shop.service.host} {reason}"


@pytest.mark.parametrize(
    ("failure", "error", "words"),
    [
        ((500, "SCRAPE_ALL_ENGINES_FAILED"), SourceUnreadable, "no browser of the service could read it"),
        ((408, "SCRAPE_TIMEOUT"), SourceUnreadable, "not ready in time"),
        ((500, "SCRAPE_DNS_RESOLUTION_ERROR"), SourceUnreadable, "no address"),
        ((503, "UNKNOWN_ERROR"), Unavailable, "not available"),
        ((429, ""), RateLimited, "asks to wait"),
        ((402, ""), NotConfigured, "no credits left"),
        ((400, "BAD_REQUEST"), NotConfigured, "see web.firecrawl.url"),
    ],
)
async def test_a_failure_of_the_service_is_typed(
    shop: Shop, failure: tuple[int, str], error: type[ProviderError], words: str
) -> None:
    """What only the page can mend is not tried again, since each attempt is paid; the service's words stay out."""
    shop.service.failures[PAGE] = failure
    refusal = await shop.refusal()
    assert type(refusal) is error
    assert words in str(refusal)


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {},
        {"success": False},
        {"success": True, "data": {}},
        {"success": True, "data": {"rawHtml": 7, "metadata": {}}},
    ],
)
async def test_an_answer_of_another_form_is_a_failure(shop: Shop, answer: object) -> None:
    """It is never an empty page."""
    shop.service.answer = answer
    assert "documented form" in str(await shop.refusal())


async def test_a_wrong_key_and_a_page_that_the_site_refuses(shop: Shop) -> None:
    """The key's variable is named; a status that the site gave the browser is the page's."""
    shop.key = "fc-another"
    assert "FIRECRAWL_API_KEY" in str(await shop.refusal())
    shop.key = KEY
    shop.service.statuses[PAGE] = 404
    refusal = await shop.refusal()
    assert isinstance(refusal, SourceUnreadable)
    assert "404" in str(refusal)


async def test_a_day_has_so_many_pages(shop: Shop) -> None:
    """All workers together ask for no more than the operator allows; the next page fails with the setting's name."""
    shop.most = 2
    async with shop.reader() as reader:
        for _ in range(2):
            await reader.read(PAGE)
    refusal = await shop.refusal()
    assert "the 2 pages of a day are used up: see web.firecrawl.pages_per_day" in str(refusal)
    assert len(shop.service.asked) == 2
