"""Pages are kept to the domains of a run at every step on the way to them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from providers.domains import Domains, domains_named
from providers.errors import SourceUnreadable
from providers.isolation.pool import SubprocessPool
from providers.reading.egress.address_rules import host_and_port
from providers.reading.egress.client import Egress
from providers.reading.reader import WebReader
from providers.reading.robots import Robots
from tests.fakes.web import WebServer, page, redirect

SENTENCE = "Vacuum removes dead rows from a table and makes their space free for others."
HERE, THERE = "127.0.0.1", "localhost"


@asynccontextmanager
async def two_hosts() -> AsyncIterator[tuple[WebServer, WebServer, WebReader]]:
    """A server under one name, another one under another, and a reader that may ask both."""
    async with WebServer({}) as here, WebServer({}) as there:
        egress = Egress("test", allow_hosts={host_and_port(here.host), host_and_port(f"{THERE}:{there.port}")})
        try:
            async with SubprocessPool(1) as pool:
                yield here, there, WebReader(egress, pool, Robots(egress, "durable-research"))
        finally:
            await egress.close()


@pytest.mark.parametrize(
    ("domains", "kind"),
    [
        (domains_named([], [THERE]), "refused_domains_deny"),
        (domains_named([HERE], []), "refused_domains_allow"),
        (domains_named([THERE, HERE], [THERE]), "refused_domains_deny"),
    ],
)
async def test_a_redirect_out_of_the_domains_is_not_followed(domains: Domains, kind: str) -> None:
    """Nothing of the other host is asked for, not even its robots.txt; the reason names the list."""
    async with two_hosts() as (here, there, reader):
        here.pages["/docs"] = redirect(f"http://{THERE}:{there.port}/denied")
        there.pages["/denied"] = page(SENTENCE)
        with pytest.raises(SourceUnreadable, match=r"search\.domains_") as raised:
            await reader.read(here.url("/docs"), domains)
        assert raised.value.kind == kind
        assert there.asked == []


async def test_a_host_in_between_counts_although_the_page_lies_within() -> None:
    """Whoever is avoided learns of no visit."""
    async with two_hosts() as (here, there, reader):
        here.pages |= {"/docs": redirect(f"http://{THERE}:{there.port}/counter"), "/end": page(SENTENCE)}
        there.pages["/counter"] = redirect(here.url("/end"))
        document = await reader.read(here.url("/docs"))
        assert document.way == [here.url("/docs"), f"http://{THERE}:{there.port}/counter", here.url("/end")]
        there.asked.clear()
        with pytest.raises(SourceUnreadable):
            await reader.read(here.url("/docs"), domains_named([], [THERE]))
        assert there.asked == []


async def test_a_page_outside_is_not_asked_for_at_all() -> None:
    """A hit that was stored before the lists were made is no way around them."""
    async with two_hosts() as (here, _, reader):
        with pytest.raises(SourceUnreadable):
            await reader.read(here.url("/"), domains_named(["example.org"], []))
        assert here.asked == []


def test_names_are_compared_in_one_spelling() -> None:
    """Case, dots at the end and international letters do not matter, parts of labels do."""
    domains = domains_named([], ["Bücher.example.", "nature.com"])
    assert not domains.admit("https://www.xn--bcher-kva.example/a")
    assert not domains.admit("https://WWW.Nature.com/")
    assert domains.admit("https://notnature.com/")
