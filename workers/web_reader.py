"""The reader of the web, put together from the configuration: the same one for every process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from providers.interfaces import SharedStore
from providers.isolation.pool import SubprocessPool
from providers.reading.egress.address_rules import hosts_and_ports
from providers.reading.egress.client import Egress
from providers.reading.readers import PolitenessOfHosts, WebReader
from providers.reading.robots import Robots
from workers.settings.loading import APPLICATION, Settings


@asynccontextmanager
async def web_reader(
    settings: Settings,
    pool: SubprocessPool,
    version: str,
    *,
    store: SharedStore | None = None,
    politeness: PolitenessOfHosts | None = None,
) -> AsyncIterator[WebReader]:
    """A reader that is closed at the end; `version` is told to every site, with the configured contact.

    Workers that are given the same store ask a site for its robots.txt once a day together.
    """
    egress = Egress(user_agent(version, settings.web.contact), allow_hosts=hosts_and_ports(settings.web.allow_hosts))
    try:
        yield WebReader(egress, pool, Robots(egress, APPLICATION, store=store), politeness=politeness)
    finally:
        await egress.close()


def user_agent(version: str, contact: str | None) -> str:
    """Who we are, honestly, and whom to turn to."""
    return f"{APPLICATION}/{version}" + (f" ({contact})" if contact else "")
