"""What each search provider can do, as data: what it looks for, what it narrows down itself, where queries go."""

from dataclasses import dataclass
from typing import Final

from contracts.request import SourceType

WEB, ACADEMIC, NEWS = SourceType.WEB, SourceType.ACADEMIC, SourceType.NEWS


@dataclass(frozen=True)
class ProviderTraits:
    """What a provider can be asked for. Whatever it does not filter is filtered here, or told in a warning."""

    source_types: tuple[SourceType, ...]
    filters_domains_allow: bool = False
    """Whether any number of domains can be searched alone; without it, hits elsewhere are left out afterwards."""
    filters_domains_deny: bool = False
    filters_language: bool = False
    filters_dates: bool = False
    host: str | None = None
    """Where queries go unless another address is configured; null for a folder, and for an instance of one's own."""
    paid: bool = False
    """Whether a search may be charged; how much depends on the account's plan, so that the amount is not known."""


TRAITS: Final[dict[str, ProviderTraits]] = {
    "tavily": ProviderTraits(
        (WEB, NEWS),
        filters_domains_allow=True,
        filters_domains_deny=True,
        filters_dates=True,
        host="api.tavily.com",
        paid=True,
    ),
    "google": ProviderTraits(
        (WEB,),
        filters_domains_allow=True,
        filters_domains_deny=True,
        filters_language=True,
        filters_dates=True,
        host="customsearch.googleapis.com",
        paid=True,
    ),
    "semantic_scholar": ProviderTraits((ACADEMIC,), filters_dates=True, host="api.semanticscholar.org"),
    "brave": ProviderTraits(
        (WEB, NEWS), filters_language=True, filters_dates=True, host="api.search.brave.com", paid=True
    ),
    "searxng": ProviderTraits((WEB, NEWS, ACADEMIC), filters_language=True, filters_dates=True),
    "wikipedia": ProviderTraits(
        (WEB,), filters_domains_allow=True, filters_domains_deny=True, filters_language=True, host="wikipedia.org"
    ),
    "anthropic": ProviderTraits((WEB,), host="api.anthropic.com", paid=True),
    "corpus": ProviderTraits(()),
}
"""By provider. Articles of Wikipedia have one host: it is not asked if that is outside the domains. `anthropic`
takes a list of domains to keep to or one of domains to avoid, never both, and so promises neither.
"""
