"""Filters of a search request: domains, dates of publication, a language, and each service's language codes."""

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from contracts.addresses import host_of
from contracts.messages import SearchRequest
from contracts.request import SourceType
from providers.domains import Domains
from providers.errors import InvalidCall
from providers.search.availability import ProviderTraits

HOST: Final = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}")
NOT_OF_A_NAME: Final = re.compile(r"[\s/:@?#*]")
LANGUAGE: Final = re.compile(r"[a-z]{2,3}")
DAY: Final = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
EARLIEST: Final = date(1970, 1, 1)
"""Stands for no first day where a service wants both ends."""
GOOGLE: Final = frozenset(
    "ar bg ca cs da de el en es et fi fr hr hu id is it ja ko lt lv nl no pl pt ro ru sk sl sr sv tr".split()
)
"""Those of its parameter `lr` that are written as ISO 639 does."""
GOOGLE_OWN: Final = {"he": "iw", "nb": "no", "nn": "no", "zh": "zh-CN"}
"""Chinese means simplified characters: one value is taken, and most pages use these."""
BRAVE: Final = frozenset(
    """ar eu bn bg ca hr cs da nl en et fi fr gl de gu he hi hu is it kn ko lv lt ms ml mr nb pl pa ro ru sr sk sl es
    sv ta te th tr uk vi""".split()
)
"""Those of its parameter `search_lang` that are written as ISO 639 does."""
BRAVE_OWN: Final = {"ja": "jp", "no": "nb", "nn": "nb", "pt": "pt-br", "zh": "zh-hans"}
WIKIPEDIAS: Final = frozenset(
    """ab af am an ar as av ay az ba be bg bi bm bn bo br bs ca ce co cr cs cu cv cy da de dv dz ee el en eo es et eu fa
    ff fi fj fo fr fy ga gd gl gn gu gv ha he hi hr ht hu hy ia id ie ig ik io is it iu ja jv ka kg ki kk km kn ko ks
    ku kv kw ky la lb lg li ln lo lt lv mg mi mk ml mn mr ms mt my ne nl nn no nv ny oc om or os pa pi pl ps pt qu rm
    rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk
    ur uz ve vi vo wa wo xh yi yo za zh zu
    als arz ast bar bcl bug ceb ckb diq fur gor haw hif hsb ilo kab lad lij lmo mai mzn nap nds new nso pag pam pcd pms
    pnb sah scn sco szl tum vec war xal""".split()
)
"""Languages with a Wikipedia whose host begins with the code; others exist, this list is what is asked for."""
WIKIPEDIAS_OWN: Final = {"nb": "no"}


@dataclass(frozen=True)
class Days:
    """The first and the last day of publication, None where there is no bound."""

    first: date | None
    last: date | None

    @property
    def given(self) -> bool:
        """Whether there is a bound at all."""
        return self.first is not None or self.last is not None

    def between(self) -> tuple[date, date]:
        """Both ends, for services that want both: an open one is long ago, or today."""
        first = self.first or min(EARLIEST, self.last or EARLIEST)
        return first, self.last or max(today(), first)

    def exclude(self, published: str | None) -> bool:
        """Whether a stated date (a day, a month or a year) lies outside for certain; what is no date does not."""
        try:
            earliest, latest = _span(published or "")
        except InvalidCall:  # of a request it would be an error; this one a service stated
            return False
        return (self.first is not None and latest < self.first) or (self.last is not None and earliest > self.last)


@dataclass(frozen=True)
class Narrowing:
    """All filters of a request."""

    domains: Domains
    days: Days
    language: str | None
    """Two or three lower-case letters."""


def narrowing_of(request: SearchRequest) -> Narrowing:
    """The filters of a request. Raises `InvalidCall` for one that cannot be read."""
    return Narrowing(domains_of(request), days_of(request), language_of(request))


def domains_of(request: SearchRequest) -> Domains:
    """The request's domains. Raises `InvalidCall` for one that is no host name."""
    return Domains(tuple(_domains(request.domains_allow)), tuple(_domains(request.domains_deny)))


def days_of(request: SearchRequest) -> Days:
    """The request's days; a month or a year means its first day, or its last. Raises `InvalidCall`."""
    first = _span(request.published_from)[0] if request.published_from else None
    last = _span(request.published_to)[1] if request.published_to else None
    if first is not None and last is not None and first > last:
        raise InvalidCall("the first day of publication lies after the last one")
    return Days(first, last)


def language_of(request: SearchRequest) -> str | None:
    """The request's language. Raises `InvalidCall` for anything but two or three lower-case letters."""
    if request.language is None or LANGUAGE.fullmatch(request.language):
        return request.language
    raise InvalidCall("a language is two or three lower-case letters, as ISO 639 has it")


def unmet(request: SearchRequest, traits: ProviderTraits) -> list[str]:
    """What the provider cannot do of what is asked: one line each. Web pages are the least that any of them has."""
    asked_type = request.source_type
    lines = {
        f"has no {asked_type.value} search of its own": (
            asked_type is not SourceType.WEB and asked_type not in traits.source_types
        ),
        "cannot search the allowed domains alone: hits elsewhere were left out": (
            bool(request.domains_allow) and not traits.filters_domains_allow
        ),
        "cannot keep to a language": request.language is not None and not traits.filters_language,
        "cannot keep to dates of publication: some hits may lie outside": (
            bool(request.published_from or request.published_to) and not traits.filters_dates
        ),
    }
    return [line for line, holds in lines.items() if holds]


def today() -> date:
    """The date in UTC."""
    return datetime.now(UTC).date()


def _domains(names: list[str]) -> list[str]:
    hosts = ["" if NOT_OF_A_NAME.search(name) else host_of(f"https://{name.strip('.')}/") for name in names]
    if not all(HOST.fullmatch(host) for host in hosts):
        raise InvalidCall("a domain is a host name, without scheme, path or wildcard")
    return list(dict.fromkeys(hosts))


def _span(text: str) -> tuple[date, date]:
    """First and last day of a day, a month or a year."""
    found = DAY.fullmatch(text)
    if found is None:
        raise InvalidCall("a date of publication is YYYY, YYYY-MM or YYYY-MM-DD")
    year, month, day = (int(part) if part else None for part in found.groups())
    try:
        assert year is not None
        last_month = month or 12
        first = date(year, month or 1, day or 1)
        return first, date(year, last_month, day or calendar.monthrange(year, last_month)[1])
    except (ValueError, calendar.IllegalMonthError):
        raise InvalidCall("a date of publication is no day of the calendar") from None


def spell_language(language: str | None, spell: Callable[[str], str | None]) -> tuple[str | None, list[str]]:
    """The language as a service writes it, and a warning where the service cannot keep to it."""
    known = spell(language) if language else None
    return known, [f"cannot keep to the language {language}"] if language and not known else []


def google_language(code: str) -> str | None:
    """The value for `lr`, or None for a language that it cannot be limited to."""
    own = GOOGLE_OWN.get(code, code if code in GOOGLE else None)
    return None if own is None else f"lang_{own}"


def brave_language(code: str) -> str | None:
    """The value for `search_lang`, or None."""
    return BRAVE_OWN.get(code, code if code in BRAVE else None)


def wikipedia_language(code: str) -> str | None:
    """The first label of the host, or None where there is no Wikipedia that this list knows."""
    own = WIKIPEDIAS_OWN.get(code, code)
    return own if own in WIKIPEDIAS else None
