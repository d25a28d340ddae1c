"""The search pool's activities: every provider behind its limits and the cache that all workers share."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final

from activities.searching import SearchingActivities
from providers.errors import ProviderError
from providers.interfaces import Limiter, SearchProvider
from providers.search.corpus import CorpusLibrary
from providers.search.decorators import CachedSearch, LimitedSearch, PricedSearch, WatchedSearch, instance_of
from providers.search.reachability import probe
from providers.shared.circuit_breaker import CircuitBreaker
from providers.shared.service_limits import ServiceLimits
from workers.search_providers import open_search_providers, search_model
from workers.settings.loading import Settings
from workers.shared_state import SharedState

KEPT_SECONDS: Final = 60.0
"""How long a worker goes by what it found out about a provider's address."""
LEFT_ALONE: Final = "failed again and again, left alone for a while"


class Availability:
    """Whom a run can ask: whose addresses answer, found out at most once a minute each, and who is not left alone."""

    def __init__(self, providers: Mapping[str, SearchProvider], circuits: CircuitBreaker) -> None:
        self._providers = providers
        self._circuits = circuits
        self._known: dict[str, tuple[float, str | None]] = {}

    async def unavailable(self, names: Sequence[str]) -> dict[str, str]:
        """Those of these providers that are not to be asked, each with the reason.

        One that failed again and again is left alone while another can be asked; after half a minute one run in turn
        finds out whether it works again. If nobody else can be reached, all that can are asked nevertheless: as with
        models, a circuit saves time where another stands by and is no reason to refuse a run.
        """
        reasons = await asyncio.gather(*(self._why_unreachable(name) for name in names))
        missing = {name: why for name, why in zip(names, reasons, strict=True) if why is not None}
        reachable = [name for name in names if name not in missing]
        allowed = await asyncio.gather(*(self._allows(name) for name in reachable))
        alone = [name for name, allows in zip(reachable, allowed, strict=True) if not allows]
        return missing if len(alone) == len(reachable) else missing | dict.fromkeys(alone, LEFT_ALONE)

    async def _allows(self, name: str) -> bool:
        try:
            return await self._circuits.allow(service_of(name))
        except ProviderError:  # circuits only save time: without them everybody is asked
            return True

    async def _why_unreachable(self, name: str) -> str | None:
        known = self._known.get(name)
        if known is None or time.monotonic() - known[0] > KEPT_SECONDS:
            known = (time.monotonic(), await probe(self._providers[name]))
            self._known[name] = known
        return known[1]


async def searching_activities(
    settings: Settings, library: CorpusLibrary, shared: SharedState, limiter: Limiter, stack: AsyncExitStack
) -> SearchingActivities:
    """Made with every provider that can be asked; the stack closes their connections."""
    opened = open_search_providers(settings.web_search, contact=settings.web.contact, model=search_model(settings))
    web = await stack.enter_async_context(opened)
    prices = settings.search.usd_per_1000
    priced = {
        name: PricedSearch(provider, prices[name] / 1_000) if name in prices else provider
        for name, provider in web.items()
    }
    circuits = CircuitBreaker(shared.store)
    watched = {name: WatchedSearch(provider, circuits, service_of(name)) for name, provider in priced.items()}
    limited = {name: LimitedSearch(provider, limiter, service_of(name)) for name, provider in watched.items()}
    cached = {name: CachedSearch(provider, shared.cache, instance_of(web[name])) for name, provider in limited.items()}
    return SearchingActivities({library.name: library, **cached}, Availability(web, circuits).unavailable)


def service_of(provider: str) -> str:
    """What a provider is called where limits and circuits are kept."""
    return f"search/{provider}"


def search_limits(settings: Settings) -> dict[str, ServiceLimits]:
    """The configured limits by service."""
    configured = settings.search.requests_per_minute
    return {service_of(name): _per_minute(rate) for name, rate in configured.items()}


def _per_minute(rate: float) -> ServiceLimits:
    """A whole number of requests in the shortest window that has one."""
    requests = max(1, int(rate))
    return ServiceLimits(requests=requests, window_seconds=60.0 * requests / rate)
