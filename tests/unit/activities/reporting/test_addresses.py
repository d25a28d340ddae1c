"""Addresses that a report may have."""

import pytest

from activities.reporting.links import REMOVED, Registry, addresses, clean_links

REGISTRY = Registry.of(
    ["https://good.test/page", "https://good.test/a_(b)", "corpus:manual/my file.html"], "What is https://asked.test/x?"
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("See https://a.test/x.", ["https://a.test/x"]),
        ("(https://a.test/x_(y))", ["https://a.test/x_(y)"]),
        ("https://doi.org/10.1000/182(3)5;", ["https://doi.org/10.1000/182(3)5"]),
        ("www.a.test, HTTP://A.TEST", ["www.a.test", "HTTP://A.TEST"]),
        ("corpus:manual/a.html and corpus: nothing", ["corpus:manual/a.html"]),
        ("postgresql://host/db and a://b", []),
        ("https://", []),
    ],
)
def test_finds_addresses_in_prose(text: str, found: list[str]) -> None:
    """C.8: parentheses belong to an address when they are balanced, punctuation after it does not."""
    assert addresses(text) == found


@pytest.mark.parametrize(
    "url", ["https://good.test/page", "HTTPS://GOOD.test:443/page#part", "https://good.test/page?utm_source=x"]
)
def test_spelling_of_an_address_does_not_matter(url: str) -> None:
    """C.8: case of the host, default port, fragment and tracking parameters do not make another source."""
    assert REGISTRY.links(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://good.test/other",
        "//good.test/page",
        "good.test/page",
        "corpus:manual/my file.html",
        "https://asked.test/x",
        "javascript:alert(1)",
        "https://[broken/",
        "https://good.test:99999/page",
        "",
    ],
)
def test_anything_else_is_no_link(url: str) -> None:
    """Only addresses of sources that a browser can open are links."""
    assert not REGISTRY.links(url)


@pytest.mark.parametrize(
    ("draft", "text"),
    [
        ("[a](https://good.test/page)", "[a](https://good.test/page)"),
        ("[a](<https://good.test/a_(b)>)", "[a](<https://good.test/a_(b)>)"),
        ("<https://good.test/page>", "<https://good.test/page>"),
        ("At https://asked.test/x they say", "At https://asked.test/x they say"),
        ("At corpus:manual/my file.html", "At corpus:manual/my file.html"),
        ("[a](https://asked.test/x)", "a"),
        ("[a](https://evil.test/)", "a"),
        ("![a](https://good.test/page)", "a"),
        ("[a *b* `c`](https://evil.test/)", "a *b* `c`"),
        ("At https://evil.test/x, they say", f"At {REMOVED}, they say"),
        ("At corpus:manual/other.html", f"At {REMOVED}"),
        ("[https://bank.test](https://good.test/page)", f"[{REMOVED}](https://good.test/page)"),
        ("a < b and <b>c</b>", "a < b and \\<b>c\\</b>"),
        ("`a <b>` stays", "`a <b>` stays"),
        ("[a][r]\n\n[r]: https://evil.test/", "a\n\n"),
        ("[r]\n\n[r]: https://good.test/page", "[r]\n\n"),
        ("![a][r]\n\n[r]: javascript:alert(1)", "!\\[a\\]\\[r\\]\n\n[r]: javascript:alert(1)"),
        ("a.com, `b.com`, setup.py and `c.py`", "a\\.com, `b.com`, `setup.py` and `c.py`"),
    ],
)
def test_links_outside_the_registry_become_their_words(draft: str, text: str) -> None:
    """A link to a source stays; any other link becomes its words, any other address is taken out."""
    assert clean_links(draft, REGISTRY)[0] == text


def test_foreign_addresses_are_reported_once() -> None:
    """Every address that was taken out is reported, in order, once."""
    draft = "[a](https://evil.test/1) https://evil.test/2 [b](//evil.test/3) https://evil.test/1"
    assert clean_links(draft, REGISTRY)[1] == ["https://evil.test/1", "//evil.test/3", "https://evil.test/2"]
