"""Cleaning what services found."""

import json

import pytest
from hypothesis import given as generated
from hypothesis import strategies

from contracts.identity import canonical_url
from providers.search.web_api import _mended
from providers.search.web_hits import Found, hits_of, iso_date, plain, shortened, usable_doi, usable_url
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
    ("given", "date"),
    [
        ("2024-05-17T08:00:00Z", "2024-05-17"),
        ("2024-05-17", "2024-05-17"),
        ("2024-05", "2024-05"),
        ("2024", "2024"),
        ("Tue, 05 Mar 2024 10:00:00 GMT", "2024-03-05"),
        ("3 days ago", None),
        ("2024-99-99", None),
        ("", None),
        (None, None),
    ],
)
def test_dates_are_iso_or_unknown(given: str | None, date: str | None) -> None:
    """A date is kept as far as it is known, and nothing is guessed."""
    assert iso_date(given) == date


def test_identifiers_are_bare() -> None:
    """A DOI is kept without the address in front of it."""
    assert usable_doi("https://doi.org/10.1234/abc.5") == "10.1234/abc.5"
    assert usable_doi("none") is None


@pytest.mark.parametrize(
    "url", ["", None, "https:///path", "http://", "file:///etc/passwd", "https://a.example/" + "x" * 3_000]
)
def test_no_address_is_no_hit(url: str | None) -> None:
    """What cannot be read on the web is no result."""
    assert usable_url(url) is None


def test_queries_are_cut_at_a_word() -> None:
    """The limit of a service is kept, in characters and in words."""
    assert shortened("one two three", 8) == "one two"
    assert shortened("one two three", 7) == "one two"
    assert shortened("onetwothree", 5) == "onetw"
    assert shortened("a b c d", 100, 2) == "a b"


@generated(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_no_text_at_all_breaks_a_hit(title: str, rest: str, published: str) -> None:
    """Whatever a service sends, hits are made that can be written down, or none."""
    found = [Found(url=f"https://{rest}", title=title, snippet=rest, published=published, authors=[title], doi=rest)]
    for hit in hits_of(asking("tavily"), "tavily", found):
        assert hit.model_validate_json(hit.model_dump_json()) == hit
        assert canonical_url(hit.url)
        assert "\n" not in hit.title + hit.snippet


@generated(ANY_TEXT)
def test_json_is_mended_without_touching_whole_characters(text: str) -> None:
    """Only lone halves of surrogate pairs change; everything else of the text arrives as it was."""
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")  # halves that meet are one
    mended = json.loads(_mended(json.dumps({"a": text}).encode()))["a"]
    assert mended == "".join("\ufffd" if 0xD800 <= ord(sign) <= 0xDFFF else sign for sign in text)
