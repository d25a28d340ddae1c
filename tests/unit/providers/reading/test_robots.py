"""robots.txt: read once, obeyed, and never a way around the guard."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import httpx2
import pytest

from providers.errors import RateLimited, SourceUnreadable, Unavailable
from providers.reading.egress.address_rules import hosts_and_ports
from providers.reading.egress.client import Egress
from providers.reading.robots import FAILURE_SECONDS, FRESH_SECONDS, POLICY, Robots, parse
from tests.fakes.web import Reply, WebServer, endless, reply

AGENT = "durable-research"


@dataclass
class Site:
    """A site and somebody who asks for its rules."""

    server: WebServer
    robots: Robots
    now: float = 0.0

    async def allows(self, path: str) -> bool:
        try:
            await self.robots.check(httpx2.URL(self.server.url(path)))
        except SourceUnreadable as error:
            if error.kind != "robots":
                raise
            return False
        return True


@pytest.fixture
async def site(server: WebServer) -> AsyncIterator[Site]:
    egress = Egress("test", allow_hosts=hosts_and_ports([server.host]))
    here = Site(server, Robots(egress, AGENT, clock=lambda: here.now))
    yield here
    await egress.close()


def rules(text: str, **headers: str) -> bytes:
    return reply(text, content_type="text/plain", **headers)


async def test_the_most_specific_rule_for_us_counts(site: Site) -> None:
    """Our own group beats that of all, the longest rule beats shorter ones, wildcards and ends count (RFC 9309)."""
    site.server.pages["/robots.txt"] = rules(
        "\ufeffUser-agent: *\nDisallow: /\n\n"
        f"User-Agent: {AGENT.upper()}\nDisallow: /private\nAllow: /private/open\nDisallow: /*.gif$\nDisallow: /q?*x=\n"
    )
    expected = {
        "/": True, "/private/a": False, "/private/open/b": True, "/a.gif": False, "/a.gif?b": True, "/q?y=1": True,
        "/q?y=1&x=2": False, "/%70rivate/a": False,
    }  # fmt: skip
    assert {path: await site.allows(path) for path in expected} == expected
    assert len(site.server.asked) == 1


async def test_rules_are_fetched_once_a_day(site: Site) -> None:
    """A site is asked for its rules once a day, not once a page."""
    site.server.pages["/robots.txt"] = rules("User-agent: *\nDisallow: /x")
    assert not await site.allows("/x")
    site.server.pages["/robots.txt"] = rules("")
    assert not await site.allows("/x")
    site.now = FRESH_SECONDS + 1
    assert await site.allows("/x")
    assert len(site.server.asked) == 2


@pytest.mark.parametrize("answer", [reply(status=404), reply(status=403), reply(status=204), rules("")])
async def test_a_site_without_rules_may_be_read(site: Site, answer: Reply) -> None:
    """4xx and an empty file mean that everything is allowed (RFC 9309 2.3.1.3)."""
    site.server.pages["/robots.txt"] = answer
    assert await site.allows("/x")


@pytest.mark.parametrize(("status", "kind"), [(503, Unavailable), (429, RateLimited)])
async def test_a_site_whose_rules_cannot_be_had_is_not_read(site: Site, status: int, kind: type[Unavailable]) -> None:
    """All its pages fail by one request for a while; once the rules can be had again they count (RFC 9309 2.3.1.4)."""
    site.server.pages["/robots.txt"] = reply(status=status, Retry_After="100")
    for path in ("/a", "/b"):
        with pytest.raises(kind) as raised:
            await site.allows(path)
        assert raised.value.retry_after == 100
    assert len(site.server.asked) == 1
    site.now = FAILURE_SECONDS + 1
    site.server.pages["/robots.txt"] = rules("")
    assert await site.allows("/a")


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("User-agent: *\nCrawl-delay: 2.5\n", 2.5),
        (f"User-agent: *\nCrawl-delay: 9\n\nUser-agent: {AGENT}\nCrawl-delay: 1\n", 1.0),
        ("User-agent: *\nCrawl-delay: 86400\n", 10.0),
        ("User-agent: *\nCrawl-delay: nan\n", 0.0),
        ("", 0.0),
    ],
)
async def test_a_site_may_ask_for_a_delay_up_to_a_limit(site: Site, text: str, delay: float) -> None:
    """The delay of our own group, at most ten seconds; nonsense is none."""
    site.server.pages["/robots.txt"] = rules(text)
    assert await site.robots.check(httpx2.URL(site.server.url("/x"))) == delay


async def test_only_the_first_part_of_a_huge_file_counts(site: Site) -> None:
    """At most 500 KiB are read; what stands before that is obeyed."""
    filler = "# " + "x" * 70 + "\n"
    text = "User-agent: *\nDisallow: /x\n" + filler * (POLICY.max_bytes // len(filler) + 100) + "Disallow: /y\n"
    site.server.pages["/robots.txt"] = rules(text)
    assert [await site.allows(path) for path in ("/x", "/y")] == [False, True]


def test_a_file_made_to_be_slow_is_refused() -> None:
    """Many agents times many rules would keep the parser busy for minutes."""
    slow = "".join(f"User-agent: b{number}\n" for number in range(15_000)) + "Disallow: /a\n" * 15_000
    for text in (slow, slow.replace("User-agent:", "user agent "), "useragent: a\n" * 1_500 + "Allow: /\n" * 9_000):
        with pytest.raises(SourceUnreadable) as raised:
            parse(text)
        assert raised.value.kind == "robots"
    assert not parse("User-agent: a\nDisallow: /" + "*a" * 200_000).can_fetch("/" + "a" * 200_000 + "x", "a")


async def test_a_site_that_does_not_answer_is_an_outage(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pages are asked for again, as those of a site that refuses connections, once the failure is forgotten."""
    monkeypatch.setattr("providers.reading.robots.POLICY", replace(POLICY, seconds=0.05))
    site.server.pages["/robots.txt"] = endless(b"", b"", 0.01)
    with pytest.raises(Unavailable, match="the server took too long"):
        await site.allows("/x")
    site.server.pages["/robots.txt"] = rules("")
    site.now = FAILURE_SECONDS + 1
    assert await site.allows("/x")
