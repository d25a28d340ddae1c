"""The filters of a search request: domains, days of publication, and a language."""

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from contracts.addresses import host_of
from contracts.messages import SearchRequest
from contracts.request import SourceType
from providers.domains import Domains
from providers.errors import InvalidCall
from providers.search.declarations import SearchDeclaration

HOST: Final = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}")
DAY: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
EARLIEST: Final = date(1970, 1, 1)
"""In place of no first day where a service requires both ends."""


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
        """Return true if a stated day, month or year certainly lies outside; a text that is no date never does."""
        try:
            earliest, latest = _span(published or "")
        except InvalidCall:
            return False
        return (self.first is not None and latest < self.first) or (self.last is not None and earliest > self.last)


@dataclass(frozen=True)
class Filters:
    """All filters of a request; the language is two or three lower-case letters."""

    domains: Domains
    days: Days
    language: str | None


def filters_of(request: SearchRequest) -> Filters:
    """The filters of a request. Raises `InvalidCall` for one that cannot be understood."""
    if request.language is not None and not re.fullmatch(r"[a-z]{2,3}", request.language):
        raise InvalidCall("a language is two or three lower-case letters, as ISO 639 has it")
    first = _span(request.published_from)[0] if request.published_from else None
    last = _span(request.published_to)[1] if request.published_to else None
    if first is not None and last is not None and first > last:
        raise InvalidCall("the first day of publication lies after the last one")
    domains = Domains(_hosts(request.domains_allow), _hosts(request.domains_deny))
    return Filters(domains, Days(first, last), request.language)


def unmet(request: SearchRequest, provider: SearchDeclaration) -> list[str]:
    """List the parts of a request that the provider cannot do, one line each. Every provider has web pages."""
    dates = bool(request.published_from or request.published_to)
    lines = {
        f"has no {request.source_type.value} search of its own": (
            request.source_type is not SourceType.WEB and request.source_type not in provider.source_types
        ),
        "cannot search the allowed domains alone: hits elsewhere were left out": (
            bool(request.domains_allow) and "domains_allow" not in provider.filters
        ),
        "cannot keep to a language": request.language is not None and "language" not in provider.filters,
        "cannot keep to dates of publication: some hits may lie outside": dates and "dates" not in provider.filters,
    }
    return [line for line, applies in lines.items() if applies]


def today() -> date:
    """The date in UTC."""
    return datetime.now(UTC).date()


def _hosts(names: list[str]) -> tuple[str, ...]:
    hosts = ["" if re.search(r"[\s/:@?#*]", name) else host_of(f"https://{name.strip('.')}/") for name in names]
    if not all(HOST.fullmatch(host) for host in hosts):
        raise InvalidCall("a domain is a host name, without scheme, path or wildcard")
    return tuple(dict.fromkeys(hosts))


def _span(text: str) -> tuple[date, date]:
    """First and last day of a day, a month or a year. Raises `InvalidCall`."""
    found = DAY.fullmatch(text)
    if found is None:
        raise InvalidCall("a date of publication is YYYY, YYYY-MM or YYYY-MM-DD")
    year, month, day = int(found[1]), int(found[2] or 0), int(found[3] or 0)
    try:
        last_month = month or 12
        return date(year, month or 1, day or 1), date(year, last_month, day or calendar.monthrange(year, last_month)[1])
    except (ValueError, calendar.IllegalMonthError):
        raise InvalidCall("a date of publication is no day of the calendar") from None
