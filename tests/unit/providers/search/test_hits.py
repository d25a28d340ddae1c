"""Cleaning the results of services."""

from typing import Any

import pytest
from hypothesis import given as generated
from hypothesis import strategies

from contracts.addresses import canonical_url
from providers.search.hits import RawResult, hits_of, plain, shorten_query
from tests.fakes.search_apis import asking

ANY_TEXT = strategies.text(strategies.characters(exclude_categories=()))
"""Lone surrogates and control characters included."""


def hits_among(*found: RawResult, **narrowed: Any) -> list[Any]:
    """The hits that a provider makes of results."""
    return hits_of(asking("tavily", **narrowed), "tavily", found)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("A <strong>bold</strong> &amp; <span class='x'>plain</span> word", "A bold & plain word"),
        ("if a < b and c > d", "if a < b and c > d"),
        ("two\n lines\t\x00 and \u202eback\u202c\u200b", "two lines and back"),
        ("&lt;b&gt; is a tag", "<b> is a tag"),
        ("a &#" + "1" * 500 + "; number", "a number"),
        ("word " * 100, "word " * 19 + "word…"),
        ("<a " * 2_000_000, "<a " * 32 + "<a…"),
    ],
)
def test_texts_are_one_line_without_markup(given: str | None, shown: str) -> None:
    """Tags, control and bidirectional characters go, signs that are no tags stay; a limit is never exceeded."""
    assert plain(given, 100) == shown


@pytest.mark.parametrize(
    ("given", "doi"),
    [
        ("https://doi.org/10.1234/abc.5", "10.1234/abc.5"),
        ("doi:10.1002/(SICI)1097-4571(199806)49:8<693::AID-ASI4>3.0.CO;2-O",
         "10.1002/(SICI)1097-4571(199806)49:8<693::AID-ASI4>3.0.CO;2-O"),
        ("10.1234/" + "x" * 201, None),
    ],
)  # fmt: skip
def test_identifiers_are_bare(given: str, doi: str | None) -> None:
    """A DOI is taken without the address in front of it, whole or not at all."""
    (hit,) = hits_among(RawResult("https://a.example/", doi=given))
    assert hit.doi == doi


def test_queries_are_cut_at_a_word() -> None:
    """The limit of a service is in characters and in words."""
    assert shorten_query("one two three", 8) == shorten_query("one two three", 7) == "one two"
    assert shorten_query("onetwothree", 5) == "onetw"
    assert shorten_query("a b c d", 100, 2) == "a b"


@generated(ANY_TEXT, ANY_TEXT, ANY_TEXT)
def test_no_text_at_all_breaks_a_hit(title: str, rest: str, published: str) -> None:
    """From any text of a service come hits that can be serialized, or none."""
    found = RawResult(f"https://{rest}", title, rest, published, authors=[title], doi=rest)
    for hit in hits_among(found, published_from="2024-01-01"):
        assert hit.model_validate_json(hit.model_dump_json()) == hit
        assert canonical_url(hit.url)
        assert "\n" not in hit.title + hit.snippet
