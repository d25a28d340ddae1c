"""The search pool's activities: every provider behind its limits and the cache that all workers share."""

import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

from activities.searching import SearchingActivities
from providers.interfaces import Limiter, SearchProvider
from providers.limits.service_limits import ServiceLimits
from providers.search.cached_search import CachedSearch
from providers.search.corpus import CorpusLibrary
from providers.search.limited_search import LimitedSearch
from providers.search.priced_search import PricedSearch
from providers.search.reachability import probe
from workers.search_providers import open_search_providers, search_model
from workers.settings import Settings
from workers.shared_state import SharedState

KEPT_SECONDS: Final = 60.0
"""How long a worker goes by what it found out about a provider's address."""


class Reachability:
    """Whether providers' addresses answer, found out at most once a minute each."""

    def __init__(self, providers: Mapping[str, SearchProvider]) -> None:
        self._providers = providers
        self._known: dict[str, tuple[float, str | None]] = {}

    async def why_not(self, name: str) -> str | None:
        """The reason why a provider cannot be reached, or null."""
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
    limited = {name: LimitedSearch(provider, limiter, service_of(name)) for name, provider in priced.items()}
    cached = {name: CachedSearch(provider, shared.cache) for name, provider in limited.items()}
    return SearchingActivities({library.name: library, **cached}, Reachability(web).why_not)


def service_of(provider: str) -> str:
    """What a provider is called where limits are kept."""
    return f"search/{provider}"


def search_limits(settings: Settings) -> dict[str, ServiceLimits]:
    """The configured limits by service."""
    configured = settings.search.requests_per_minute
    return {service_of(name): _per_minute(rate) for name, rate in configured.items()}


def _per_minute(rate: float) -> ServiceLimits:
    """A whole number of requests in the shortest window that has one."""
    requests = max(1, int(rate))
    return ServiceLimits(requests=requests, window_seconds=60.0 * requests / rate)
