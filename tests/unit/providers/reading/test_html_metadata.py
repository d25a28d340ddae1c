"""What a page says of itself, wherever it says it."""

import json
from typing import Any

import pytest

from providers.reading.html.metadata import PageMetadata, metadata_of
from providers.reading.html.page import parse


def metadata(head: str = "", body: str = "<p>x</p>") -> PageMetadata:
    """The metadata of a page."""
    return metadata_of(parse(f"<html><head>{head}</head><body>{body}</body></html>"))


def linked(value: Any) -> str:
    """A JSON-LD script."""
    return f'<script type="application/ld+json">{json.dumps(value)}</script>'


def test_json_ld_fills_what_the_head_lacks() -> None:
    """The work that says most counts, in graphs and lists; names come in every form."""
    graph = {
        "@context": "https://schema.org",
        "@graph": [
            {"@type": "WebPage", "datePublished": "2020-01-01", "name": "Page"},
            {
                "@type": ["NewsArticle", "Article"],
                "author": [{"@type": "Person", "name": " Ada  L. "}, "Bob K.", {"name": ["Cy M."]}, "https://a.test/x"],
                "publisher": {"@type": "Organization", "name": "The Site"},
                "datePublished": "2024-05-17T08:00:00Z",
                "dateModified": "2024-06-01",
                "inLanguage": "de-AT",
            },
        ],
    }
    assert metadata(linked(graph)) == PageMetadata(
        language="de", authors=["Ada L.", "Bob K.", "Cy M."], publisher="The Site", published_at="2024-05-17"
    )
    head = "<meta name=author content='Eve'><meta property='article:published_time' content=2023-01-02>"
    found = metadata(head + linked(graph))
    assert (found.authors, found.published_at) == (["Eve"], "2023-01-02")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1, null, true]",
        '{"@type": 3}',
        '{"@type": "Article", "author": {"name": {"name": 1}}, "datePublished": 5}',
        '{"@graph": ' * 30 + "1" + "}" * 30,
        "[" * 5_000,
        '{"@type": "Article", "author": ' + json.dumps("x" * 300_000) + "}",
    ],
    ids=lambda value: value[:20],
)
def test_malformed_statements_say_nothing(text: str) -> None:
    """No page fails because of what it says for machines."""
    assert metadata(f'<script type="application/ld+json">{text}</script>') == PageMetadata()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<time datetime=2024-05-17>Friday</time>", "2024-05-17"),
        ("<time datetime=2024-05-17>a</time><time datetime=2024-05-17>b</time>", "2024-05-17"),
        ("<time datetime=2024-05-17>a</time><time datetime=2024-05-18>b</time>", None),
        ("<time datetime=2024-05-18>a</time><time class='entry-published' datetime=2024-05-17>b</time>", "2024-05-17"),
        ("<time datetime=2024-05-18>a</time><time itemprop=datePublished datetime=2024-05-17>b</time>", "2024-05-17"),
        ("<time datetime=PT5M>five minutes</time>", None),
    ],
)
def test_times_in_the_text_count_if_it_is_clear_which(body: str, expected: str | None) -> None:
    """The one that is marked, or the only date that there is: lists of other articles have several."""
    assert metadata(body=body).published_at == expected


def test_the_last_change_is_better_than_no_date() -> None:
    """It counts only where nothing says when the page was published."""
    changed = "<meta property='article:modified_time' content=2024-06-01>"
    assert metadata(changed).published_at == "2024-06-01"
    assert metadata(changed, "<time datetime=2024-05-17>a</time>").published_at == "2024-05-17"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p class=byline>By Ada Lovelace</p>", ["Ada Lovelace"]),
        ("<a rel=author href=/ada>Ada Lovelace</a>", ["Ada Lovelace"]),
        ("<span class='post author-name'>von Ada Lovelace</span>", ["Ada Lovelace"]),
        ("<p class=byline>By Ada Lovelace, 3 min read</p>", []),
        ("<p class=author>admin</p>", []),
        ("<div class=author>" + "Ada writes about tables and about much else. " * 3 + "</div>", []),
        ("".join(f"<p class=byline>Ada L{letter}</p>" for letter in "abcdefg"), []),
    ],
)
def test_bylines_are_short_names(body: str, expected: list[str]) -> None:
    """Biographies, nicknames and lists of other people's articles name no author."""
    assert metadata(body=body).authors == expected


def test_whether_a_page_is_free_is_what_it_says() -> None:
    """By tier, by microdata, by JSON-LD and its parts; null where it says nothing."""
    article = {"@type": "NewsArticle", "isAccessibleForFree": True}
    part = {"@type": "WebPageElement", "isAccessibleForFree": "http://schema.org/False", "cssSelector": ".p"}
    assert metadata().free is None
    assert metadata("<meta property='article:content_tier' content=free>").free is True
    assert metadata("<meta property='article:content_tier' content=metered>").free is False
    assert metadata("<meta itemprop=isAccessibleForFree content=false>").free is False
    assert metadata(linked(article)).free is True
    assert metadata(linked(article | {"hasPart": part})).free is False
