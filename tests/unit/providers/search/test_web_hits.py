"""Cleaning what services found."""

import json
from datetime import date

import pytest
from hypothesis import given as generated
from hypothesis import strategies

from contracts.addresses import canonical_url
from providers.reading.page_dates import iso_date
from providers.search.narrowing import Days
from providers.search.web_api import _mend
from providers.search.web_hits import RawResult, hits_of, plain, shorten_query, usable_doi, usable_url
from tests.fakes.search_clients import asking

ANY_TEXT = strategies.text(strategies.characters(exclude_categories=()))
"""Lone surrogates and control characters included."""


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("A <strong>bold</strong> &amp; <span class='x'>plain</span> word", "A bold & plain word"),
        ("if a < b and c > d", "if a < b and c > d"),
        ("two\n lines\t\x00 and \u202eback\u202c\u200b", "two lines and back"),
        ("<script>alert(1)</script>", "alert(1)"),
        ("&lt;b&gt; is a tag", "<b> is a tag"),
        ("e\u0301", "é"),
        (None, ""),
        ("\ud800x", "x"),
        ("a &#" + "1" * 500 + "; number", "a number"),
    ],
)
def test_texts_are_one_line_without_markup(given: str | None, shown: str) -> None:
    """Tags, control and bidirectional characters go, signs that only look like tags stay."""
    assert plain(given, 100) == shown


def test_long_texts_are_cut() -> None:
    """A text never exceeds its limit, even one of megabytes of markup."""
    assert plain("word " * 100, 20) == "word word word word…"
    assert len(plain("<" * 5_000_000, 50)) == 50
    assert len(plain("<a " * 2_000_000, 50)) == 50


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2024-05-17T08:00:00Z", "2024-05-17"),
        ("2024-05-17", "2024-05-17"),
        ("2024-05", "2024-05"),
        ("2024", "2024"),
        ("Tue, 05 Mar 2024 10:00:00 GMT", "2024-03-05"),
        ("3 days ago", None),
        ("2024-99-99", None),
        ("0000", None),
        ("0000-05", None),
        ("Jan 0, 0000", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Mon, 01 Jan 2024 00:00:00 +99999999999999999999", "2024-01-01"),
        ("Mon, 01 Jan 2024 99999999999999999999:00:00", "2024-01-01"),
        ("Mon, 01 Jan " + "9" * 5_000, None),
        ("", None),
        (None, None),
    ],
)
def test_dates_are_iso_or_unknown(given: str | None, expected: str | None) -> None:
    """A date is kept as far as it is known, and nothing is guessed."""
    assert iso_date(given) == expected


ALMOST_DATES = strategies.lists(
    strategies.one_of(
        strategies.sampled_from(
            ["Mon", ",", " ", "01", "Jan", "May 17", "2024", "00:00:00", "GMT", "-", "+", "W", "("]
        ),
        strategies.integers(-1, 10**25).map(str),
        ANY_TEXT,
    ),
    max_size=9,
).map("".join)


@generated(strategies.one_of(ALMOST_DATES, strategies.lists(ALMOST_DATES, max_size=6).map(" ".join)))
def test_whatever_a_page_calls_its_date(text: str) -> None:
    """It is a date of the calendar or none; neither reading it nor comparing it ever raises."""
    stated = iso_date(text)
    assert stated is None or date.fromisoformat(f"{stated}-01-01"[:10])
    days = Days(date(2024, 1, 1), date(2024, 12, 31))
    assert days.exclude(text) in {True, False}
    assert days.exclude(stated) in {True, False}


async def test_an_odd_date_costs_nothing_where_days_are_asked_for() -> None:
    """It counts as not known, and so its page is kept, like the pages beside it (X-16)."""
    found = [
        RawResult(url=f"https://{n}.example/", published=text) for n, text in enumerate(["2024-05-01", "0000", "x"])
    ]
    hits = hits_of(asking("tavily", published_from="2024"), "tavily", found)
    assert [hit.published_at for hit in hits] == ["2024-05-01", None, None]


def test_identifiers_are_bare() -> None:
    """A DOI is kept without the address in front of it, whole or not at all."""
    old = "10.1002/(SICI)1097-4571(199806)49:8<693::AID-ASI4>3.0.CO;2-O"
    assert usable_doi("https://doi.org/10.1234/abc.5") == "10.1234/abc.5"
    assert usable_doi(old) == usable_doi(f"doi:{old}") == old
    assert usable_doi("none") is None
    assert usable_doi('10.1234/abc"5') is None
    assert usable_doi("10.1234/" + "x" * 201) is None


@pytest.mark.parametrize(
    "url", ["", None, "https:///path", "http://", "file:///etc/passwd", "https://a.example/" + "x" * 3_000]
)
def test_no_address_is_no_hit(url: str | None) -> None:
    """What cannot be read on the web is no result."""
    assert usable_url(url) is None


def test_queries_are_cut_at_a_word() -> None:
    """The limit of a service is kept, in characters and in words."""
    assert shorten_query("one two three", 8) == "one two"
    assert shorten_query("one two three", 7) == "one two"
    assert shorten_query("onetwothree", 5) == "onetw"
    assert shorten_query("a b c d", 100, 2) == "a b"


@generated(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_no_text_at_all_breaks_a_hit(title: str, rest: str, published: str) -> None:
    """Whatever a service sends, hits are made that can be written down, or none."""
    found = [
        RawResult(url=f"https://{rest}", title=title, snippet=rest, published=published, authors=[title], doi=rest)
    ]
    for hit in hits_of(asking("tavily"), "tavily", found):
        assert hit.model_validate_json(hit.model_dump_json()) == hit
        assert canonical_url(hit.url)
        assert "\n" not in hit.title + hit.snippet


@generated(ANY_TEXT)
def test_json_is_mend_without_touching_whole_characters(text: str) -> None:
    """Only lone halves of surrogate pairs change; everything else of the text arrives as it was."""
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")  # halves that meet are one
    mended = json.loads(_mend(json.dumps({"a": text}).encode()))["a"]
    assert mended == "".join("\ufffd" if 0xD800 <= ord(sign) <= 0xDFFF else sign for sign in text)
