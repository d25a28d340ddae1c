"""The filters of a search request: domains, days of publication, and a language."""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from contracts.messages import SearchRequest
from contracts.request import SourceType
from providers.domains import Domains, domains_named
from providers.search.declarations import SearchDeclaration

EARLIEST: Final = date(1970, 1, 1)  # in place of no first day where a service requires both ends


@dataclass(frozen=True)
class Days:
    """The first and the last day of publication, None where there is no bound."""

    first: date | None
    last: date | None

    @property
    def given(self) -> bool:
        """True if there is a bound at all."""
        return self.first is not None or self.last is not None

    def both(self) -> tuple[date, date]:
        """Both ends, for services that require them: an open one is long ago, or today."""
        first = self.first or min(EARLIEST, self.last or EARLIEST)
        return first, self.last or max(today(), first)

    def exclude(self, published: str | None) -> bool:
        """Return true if a day, month or year, as `iso_date` gives it, lies outside as a whole."""
        if published is None:
            return False
        early = self.first is not None and published < self.first.isoformat()[: len(published)]
        return early or (self.last is not None and published > self.last.isoformat()[: len(published)])


@dataclass(frozen=True)
class Filters:
    """All filters of a request; the language is two or three lower-case letters."""

    domains: Domains
    days: Days
    language: str | None


def filters_of(request: SearchRequest) -> Filters:
    """The filters of a request, which has been validated."""
    first, last = (date.fromisoformat(day) if day else None for day in (request.published_from, request.published_to))
    return Filters(domains_named(request.domains_allow, request.domains_deny), Days(first, last), request.language)


def unmet(request: SearchRequest, provider: SearchDeclaration) -> list[str]:
    """List the parts of a request that the provider cannot do, one line each. Every provider has web pages."""
    strange = bool(provider.languages) and not provider.language_code(request.language)
    dates = bool(request.published_from or request.published_to)
    lines = {
        f"has no {request.source_type.value} search of its own": (
            request.source_type is not SourceType.WEB and request.source_type not in provider.source_types
        ),
        "cannot search the allowed domains alone: hits elsewhere were left out": (
            bool(request.domains_allow) and "domains_allow" not in provider.filters
        ),
        f"cannot keep to the language {request.language}": request.language is not None and strange,
        "cannot keep to a language": request.language is not None and "language" not in provider.filters,
        "cannot keep to dates of publication: some hits may lie outside": dates and "dates" not in provider.filters,
    }
    return [line for line, applies in lines.items() if applies]


def today() -> date:
    """The date in UTC."""
    return datetime.now(UTC).date()
