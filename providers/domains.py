"""The domains that a run allows or denies: one check for search hits and for pages."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from contracts.addresses import belongs_to, url_host
from providers.errors import SourceUnreadable


@dataclass(frozen=True)
class Domains:
    """Host names in normal form (lower case, punycode) that are allowed (empty: all), and that are denied."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def admit(self, url: str) -> bool:
        """Return whether the host of an address is permitted; a domain includes its subdomains, label by label."""
        return self._refusing_list(url) is None

    def check(self, url: str) -> None:
        """Raise `SourceUnreadable`, whose kind names the list, for an address that may not be read."""
        name = self._refusing_list(url)
        if name is not None:
            message = f"the way to the page leads over a host that search.{name} keeps out"
            raise SourceUnreadable(f"refused_{name}", message)

    @property
    def given(self) -> bool:
        """True if there are any."""
        return bool(self.allow or self.deny)

    def _refusing_list(self, url: str) -> str | None:
        host = url_host(url)
        if any(belongs_to(host, domain) for domain in self.deny):
            return "domains_deny"
        if self.allow and not any(belongs_to(host, domain) for domain in self.allow):
            return "domains_allow"
        return None


ANYWHERE: Final = Domains()


def domains_named(allow: Iterable[str], deny: Iterable[str]) -> Domains:
    """Return the domains with these names, in any spelling; an invalid host name matches no host."""
    names = ([url_host(f"https://{name.strip('.')}/") for name in domains] for domains in (allow, deny))
    return Domains(*map(tuple, names))
