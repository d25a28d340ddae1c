"""The domains that a run keeps to or avoids: one decision for hits and for pages."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from contracts.addresses import belongs_to, host_of
from providers.errors import SourceUnreadable

DENIED: Final = "refused_domains_deny"
NOT_ALLOWED: Final = "refused_domains_allow"


@dataclass(frozen=True)
class Domains:
    """Host names in their identity form (lower case, punycode): those to keep to, and those to avoid."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def admit(self, url: str) -> bool:
        """Return whether the host of an address is within; a domain includes everything below it, label by label."""
        return self._against(url) is None

    def check(self, url: str) -> None:
        """Raises `SourceUnreadable`, whose kind names the list, for an address that a page may not be read from."""
        kind = self._against(url)
        if kind is not None:
            name = kind.removeprefix("refused_")
            raise SourceUnreadable(kind, f"the way to the page leads over a host that search.{name} keeps out")

    @property
    def given(self) -> bool:
        """True if there are any."""
        return bool(self.allow or self.deny)

    def _against(self, url: str) -> str | None:
        host = host_of(url)
        if any(belongs_to(host, domain) for domain in self.deny):
            return DENIED
        if self.allow and not any(belongs_to(host, domain) for domain in self.allow):
            return NOT_ALLOWED
        return None


ANYWHERE: Final = Domains()


def domains_named(allow: Iterable[str], deny: Iterable[str]) -> Domains:
    """The domains of these names, in any spelling; one that is no host name fits no host."""
    return Domains(tuple(map(_host, allow)), tuple(map(_host, deny)))


def _host(name: str) -> str:
    return host_of(f"https://{name.strip('.')}/")
