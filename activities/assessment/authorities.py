"""Authority of hosts: a table of domains, never the page's own words."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Final

from pydantic import Field

from contracts.addresses import host_of
from contracts.base import StrictContract
from contracts.evidence import CHOSEN_BY_OPERATOR
from contracts.request import SourceType
from contracts.vocabulary import Quality

GENERAL: Final = "general"
COMMUNITY: Final = "community"
PUBLISHER: Final = "publisher"
DECLARED: Final[Mapping[Quality, float]] = {Quality.HIGH: 0.95, Quality.MEDIUM: 0.6, Quality.LOW: 0.1}


class AuthorityTier(StrictContract):
    """A sort of site, and what it is worth for each kind of search, 0 to 1."""

    phrase: str
    """Words of a reason for it."""
    web: float = Field(ge=0, le=1)
    academic: float = Field(ge=0, le=1)
    news: float = Field(ge=0, le=1)
    user_generated: bool = False
    """True if its readers can write there."""
    domains: str = ""
    """Domains with everything below them, between blanks."""

    def authority(self, mode: SourceType) -> float:
        """Return what it is worth in a kind of search."""
        return {SourceType.WEB: self.web, SourceType.ACADEMIC: self.academic, SourceType.NEWS: self.news}[mode]


@dataclass(frozen=True)
class Authority:
    """Authority of one host."""

    tier: str
    authority: float
    phrase: str
    user_generated: bool = False
    declared: Quality | None = None
    """Set where the operator's word decides."""


class Authorities(StrictContract):
    """The table that comes with the product."""

    as_of: str
    forum_labels: str
    general: AuthorityTier
    tiers: Mapping[str, AuthorityTier]

    def standing(self, url: str, mode: SourceType, declared: Mapping[str, Quality] | None = None) -> Authority:
        """The standing of an address' host: the operator's word, else the longest domain of the table, else general.

        `declared` maps domains in lower case to labels; each stands for what lies below it, too.
        """
        host = host_of(url)
        for domain in _upwards(host):
            label = (declared or {}).get(domain, Quality.UNKNOWN)
            if label in DECLARED:
                return Authority("declared", DECLARED[label], CHOSEN_BY_OPERATOR, declared=label)
        domain = next((domain for domain in _upwards(host) if domain in self._tier_by_domain), "")
        name = self._tier_by_domain.get(domain, GENERAL)
        if domain != host and host.partition(".")[0] in self._forum_labels:
            name = COMMUNITY
        tier = self.tiers.get(name, self.general)
        return Authority(name, tier.authority(mode), tier.phrase, tier.user_generated)

    @cached_property
    def _tier_by_domain(self) -> dict[str, str]:
        return {domain: name for name, tier in self.tiers.items() for domain in tier.domains.split()}

    @cached_property
    def _forum_labels(self) -> frozenset[str]:
        return frozenset(self.forum_labels.split())


@lru_cache(maxsize=1)
def load_authorities() -> Authorities:
    """The table that comes with the product, read once."""
    text = files("activities.assessment").joinpath("authorities.toml").read_text(encoding="utf-8")
    return Authorities.model_validate(tomllib.loads(text))


def _upwards(host: str) -> Iterator[str]:
    """The host, then each domain above it."""
    while host:
        yield host
        host = host.partition(".")[2]
