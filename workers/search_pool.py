"""The search pool: every provider behind its rate limits and the cache that all workers share."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final

from activities.searching import SearchingActivities
from providers.errors import ProviderError
from providers.interfaces import Limiter, Notebooks, SearchProvider
from providers.search.availability import probe
from providers.search.corpus import CorpusLibrary
from providers.search.decorators import CachedSearch, LimitedSearch
from providers.shared.circuit_breaker import CircuitBreaker
from providers.shared.rates import ServiceLimits
from workers.search_providers import open_search_providers, search_model
from workers.settings.loading import Settings
from workers.shared_state import SharedState

REMEMBERED_SECONDS: Final = 60.0
"""How long a worker remembers whether a provider could be reached."""
CIRCUIT_OPEN: Final = "circuit breaker open after repeated failures"


class Availability:
    """Which providers a run can use: those that can be reached and whose circuit breaker is closed."""

    def __init__(self, providers: Mapping[str, SearchProvider], circuits: CircuitBreaker) -> None:
        self._providers = providers
        self._circuits = circuits
        self._known: dict[str, tuple[float, str | None]] = {}

    async def unavailable(self, names: Sequence[str]) -> dict[str, str]:
        """The providers that a run should not use, each with the reason.

        An open circuit breaker excludes a provider while another one is left; after half a minute one run tries it
        again. If no other provider can be reached, those with an open breaker are used nevertheless: as with models, a
        breaker saves time where there is an alternative, and is no reason to refuse a run.
        """
        reasons = await asyncio.gather(*(self._why_unreachable(name) for name in names))
        missing = {name: why for name, why in zip(names, reasons, strict=True) if why is not None}
        reachable = [name for name in names if name not in missing]
        allowed = await asyncio.gather(*(self._allows(name) for name in reachable))
        open_ = [name for name, allows in zip(reachable, allowed, strict=True) if not allows]
        return missing if len(open_) == len(reachable) else missing | dict.fromkeys(open_, CIRCUIT_OPEN)

    async def _allows(self, name: str) -> bool:
        try:
            return await self._circuits.allow(service_of(name))
        except ProviderError:  # breakers only save time: without them every provider is used
            return True

    async def _why_unreachable(self, name: str) -> str | None:
        known = self._known.get(name)
        if known is None or time.monotonic() - known[0] > REMEMBERED_SECONDS:
            known = (time.monotonic(), await probe(self._providers[name]))
            self._known[name] = known
        return known[1]


async def open_searching(
    settings: Settings,
    library: CorpusLibrary,
    shared: SharedState,
    limiter: Limiter,
    notebooks: Notebooks,
    stack: AsyncExitStack,
) -> SearchingActivities:
    """Create the activities with every usable provider; the stack closes their connections."""
    opened = open_search_providers(settings.web_search, contact=settings.web.contact, model=search_model(settings))
    web = await stack.enter_async_context(opened)
    circuits = CircuitBreaker(shared.store)
    prices = {name: usd / 1_000 for name, usd in settings.search.usd_per_1000.items()}
    cached = {
        name: CachedSearch(
            LimitedSearch(provider, service_of(name), limiter, circuits, prices.get(name)),
            shared.cache,
            getattr(provider, "instance", ""),
        )
        for name, provider in web.items()
    }
    return SearchingActivities({library.name: library, **cached}, Availability(web, circuits).unavailable, notebooks)


def service_of(provider: str) -> str:
    """The key of a provider in rate limits and circuit breakers."""
    return f"search/{provider}"


def search_limits(settings: Settings) -> dict[str, ServiceLimits]:
    """The configured rate limits by service."""
    configured = settings.search.requests_per_minute
    return {service_of(name): _per_minute(rate) for name, rate in configured.items()}


def _per_minute(rate: float) -> ServiceLimits:
    """A whole number of requests, in the shortest window that gives the rate."""
    requests = max(1, int(rate))
    return ServiceLimits(requests=requests, window_seconds=60.0 * requests / rate)
