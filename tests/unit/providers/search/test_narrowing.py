"""Domains, days and languages of a request, read strictly."""

from datetime import date
from typing import Any

import pytest

from contracts.request import SourceType
from providers.errors import InvalidCall
from providers.search.availability import TRAITS
from providers.search.narrowing import (
    Days,
    brave_language,
    days_of,
    domains_of,
    google_language,
    language_of,
    unmet,
    wikipedia_language,
)
from providers.search.searxng import time_range
from tests.fakes.search_clients import asking
from tests.fakes.search_narrowing import BRAVE_LANGUAGES, _google_languages


@pytest.mark.parametrize(
    ("url", "within"),
    [
        ("https://nature.com/x", True),
        ("https://www.Nature.COM:443/x", True),
        ("https://a.b.nature.com./", True),
        ("https://notnature.com/", False),
        ("https://nature.com.evil.example/", False),
        ("https://evil.example/nature.com", False),
        ("https://evil.example/?u=https://nature.com/", False),
        ("https://xn--bcher-kva.example/", True),
        ("https://b\u00fccher.example/", True),
        ("https://B\u00dcCHER.example/", True),
        ("https://data.gov/", True),
        ("https://gov.example/", False),
        ("no address", False),
    ],
)
def test_a_domain_is_a_host_and_everything_below_it(url: str, within: bool) -> None:
    """Whole labels count, in one spelling, never parts of them: for keeping to as for avoiding."""
    names = ["Nature.com", "b\u00fccher.example", "gov"]
    assert domains_of(asking("tavily", domains_allow=names)).admit(url) is within
    if url != "no address":
        assert domains_of(asking("tavily", domains_deny=names)).admit(url) is not within


def test_avoiding_counts_before_keeping_to() -> None:
    """A part of an allowed domain can be left out."""
    domains = domains_of(asking("tavily", domains_allow=["gov"], domains_deny=["old.nasa.gov"]))
    assert domains.admit("https://nasa.gov/")
    assert not domains.admit("https://www.old.nasa.gov/")


@pytest.mark.parametrize("name", ["", " ", "a/b", "*.example", "a b", "https://a.example", "a..b"])
def test_what_is_no_host_name_is_refused(name: str) -> None:
    """A filter that would match nothing, or everything, is an error."""
    with pytest.raises(InvalidCall, match="host name"):
        domains_of(asking("tavily", domains_allow=[name]))


@pytest.mark.parametrize(
    ("given", "first", "last"),
    [
        ((None, None), None, None),
        (("2024-02-03", "2024-02-03"), date(2024, 2, 3), date(2024, 2, 3)),
        (("2024", "2024"), date(2024, 1, 1), date(2024, 12, 31)),
        (("2024-02", "2024-02"), date(2024, 2, 1), date(2024, 2, 29)),
        ((None, "2023-02"), None, date(2023, 2, 28)),
    ],
)
def test_days_reach_from_first_to_last(given: tuple[Any, Any], first: date | None, last: date | None) -> None:
    """A year or a month stands for all its days."""
    request = asking("tavily", published_from=given[0], published_to=given[1])
    assert days_of(request) == Days(first, last)


@pytest.mark.parametrize(
    ("first", "last"), [("2024-02-30", None), ("soon", None), ("2024-13", None), ("2024-02", "2024-01"), ("0000", None)]
)
def test_days_that_are_none_are_refused(first: str, last: str | None) -> None:
    """Nothing is guessed of a date."""
    with pytest.raises(InvalidCall, match="publication"):
        days_of(asking("tavily", published_from=first, published_to=last))


@pytest.mark.parametrize(
    ("published", "outside"),
    [
        (None, False), ("2024", False), ("2023", True), ("2024-06", False), ("2024-05", True), ("2024-06-15", False),
        ("2024-06-14", True), ("2024-07-31", False), ("2024-08-01", True), ("2025", True),
    ],
)  # fmt: skip
def test_only_what_lies_outside_for_certain_is_excluded(published: str | None, outside: bool) -> None:
    """An unknown date, or one that is known to the year, gets the benefit of the doubt."""
    assert Days(date(2024, 6, 15), date(2024, 7, 31)).exclude(published) is outside


def test_an_open_end_is_closed_for_those_who_want_both() -> None:
    """A first day in the future still gives a range."""
    first, last = Days(date(2999, 1, 1), None).between()
    assert first == last == date(2999, 1, 1)
    assert Days(None, date(1950, 1, 1)).between() == (date(1950, 1, 1), date(1950, 1, 1))
    assert Days(None, date(2020, 1, 1)).between() == (date(1970, 1, 1), date(2020, 1, 1))


@pytest.mark.parametrize("language", ["EN", "e", "english", "d/", "../", "en.evil", ""])
def test_a_language_is_two_or_three_letters(language: str) -> None:
    """It becomes a part of a host name: nothing else is let through."""
    with pytest.raises(InvalidCall, match="ISO 639"):
        language_of(asking("wikipedia", language=language))


def test_each_service_has_its_own_spelling_of_languages() -> None:
    """Every value that is sent is one that the service documents; others are told as not known."""
    codes = [a + b for a in "abcdefghijklmnopqrstuvwxyz" for b in "abcdefghijklmnopqrstuvwxyz"]
    assert {google_language(code) for code in codes} - {None} <= set(_google_languages())
    assert {brave_language(code) for code in codes} - {None} <= BRAVE_LANGUAGES
    assert [google_language(code) for code in ("he", "zh", "uk")] == ["lang_iw", "lang_zh-CN", None]
    assert [brave_language(code) for code in ("ja", "pt", "eo")] == ["jp", "pt-br", None]
    assert [wikipedia_language(code) for code in ("de", "nb", "xx")] == ["de", "no", None]


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (date(2024, 6, 15), "day"), (date(2024, 6, 14), "day"), (date(2024, 6, 8), "week"), (date(2024, 5, 16), "month"),
        (date(2023, 6, 15), "year"), (date(2022, 1, 1), None), (None, None),
    ],
)  # fmt: skip
def test_a_range_reaches_back_at_least_to_the_first_day(first: date | None, expected: str | None) -> None:
    """Nothing that was asked for is cut off; the rest is done by the dates of the hits."""
    assert time_range(Days(first, None), date(2024, 6, 15)) == expected


def test_what_cannot_be_done_is_told_line_by_line() -> None:
    """Types, domains, language and days, each in words; nothing is told when nothing was asked for (X-16)."""
    everything = {
        "source_type": SourceType.NEWS,
        "domains_allow": ["a.example"],
        "domains_deny": ["b.example"],
        "language": "de",
        "published_from": "2024",
    }
    assert len(unmet(asking("anthropic", **everything), TRAITS["anthropic"])) == 4
    assert unmet(asking("tavily", **everything), TRAITS["tavily"]) == ["cannot keep to a language"]
    assert all(unmet(asking(name), traits) == [] for name, traits in TRAITS.items())
