"""Filters of a search request: domains, days of publication, and a language."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from contracts.messages import SearchRequest
from contracts.request import SourceType
from providers.domains import Domains, domains_named
from providers.search.declarations import SearchDeclaration

EARLIEST: Final = "1970-01-01"  # replaces a missing first day if a service requires both ends


@dataclass(frozen=True)
class Days:
    """First and last day of publication in ISO 8601; None if there is no bound."""

    first: str | None
    last: str | None

    @property
    def given(self) -> bool:
        """True if there is any bound."""
        return self.first is not None or self.last is not None

    def both(self) -> tuple[str, str]:
        """Return both ends, for services that require them: an open end becomes long ago, or today."""
        first = self.first or min(EARLIEST, self.last or EARLIEST)
        return first, self.last or max(datetime.now(UTC).date().isoformat(), first)

    def exclude(self, published: str) -> bool:
        """Return true if a day, month or year, as `iso_date` returns it, lies entirely outside."""
        early = self.first is not None and published < self.first[: len(published)]
        return early or (self.last is not None and published > self.last[: len(published)])


@dataclass(frozen=True)
class Filters:
    """All filters of a request; the language is two or three lower-case letters."""

    domains: Domains
    days: Days
    language: str | None


def filters_of(request: SearchRequest) -> Filters:
    """Return the filters of a request."""
    domains = domains_named(request.domains_allow, request.domains_deny)
    return Filters(domains, Days(request.published_from, request.published_to), request.language)


def unmet(request: SearchRequest, provider: SearchDeclaration) -> list[str]:
    """List the parts of a request that the provider cannot fulfil, one line each. Every provider has web pages."""
    source_type = request.source_type
    days = request.published_from or request.published_to
    lines = []
    if source_type is not SourceType.WEB and source_type not in provider.source_types:
        lines.append(f"has no {source_type.value} search of its own")
    if request.domains_allow and "domains_allow" not in provider.filters:
        lines.append("cannot search the allowed domains alone: hits elsewhere were left out")
    if request.language and "language" not in provider.filters:
        lines.append("cannot keep to a language")
    elif request.language and provider.languages and not provider.language_code(request.language):
        lines.append(f"cannot keep to the language {request.language}")
    if days and "dates" not in provider.filters:
        lines.append("cannot keep to dates of publication: some hits may lie outside")
    return lines
