"""The reader of web pages from the configuration, and the name that the product gives itself on the web."""

import importlib.metadata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from providers.isolation.pool import SubprocessPool
from providers.reading.egress.address_rules import hosts_and_ports
from providers.reading.egress.client import Egress
from providers.reading.reader import PolitenessOfHosts, WebReader
from providers.reading.robots import Robots
from workers.settings.loading import Settings
from workers.settings.sections import APPLICATION


@asynccontextmanager
async def open_web_reader(
    settings: Settings, pool: SubprocessPool, *, politeness: PolitenessOfHosts | None = None
) -> AsyncIterator[WebReader]:
    """Open a reader until the end of the block; every request carries the configured contact."""
    egress = Egress(user_agent(settings.web.contact), allow_hosts=hosts_and_ports(settings.web.allow_hosts))
    try:
        yield WebReader(egress, pool, Robots(egress, APPLICATION), politeness=politeness)
    finally:
        await egress.close()


def user_agent(contact: str | None = None) -> str:
    """Name the product and a contact, which Wikimedia requires of every client."""
    return f"{APPLICATION}/{importlib.metadata.version(APPLICATION)} ({contact or 'self-hosted research'})"
