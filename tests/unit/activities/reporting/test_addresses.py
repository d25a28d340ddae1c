"""Addresses that a report may name."""

import pytest

from activities.reporting.addresses import REMOVED, KnownAddresses, find_addresses
from activities.reporting.markdown import write
from activities.reporting.tree import parse

REGISTRY = KnownAddresses.of(
    ["https://good.test/page", "https://good.test/a_(b)", "corpus:manual/my file.html"],
    "What is https://asked.test/x?",
    ["Write to someone@good.test."],
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
    assert find_addresses(text) == found


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("https://good.test/page", "https://good.test/page"),
        ("HTTPS://GOOD.test:443/page#part", "https://good.test/page"),
        ("https://good.test/page?utm_source=x", "https://good.test/page"),
        ("https://good.test/other", None),
        ("//good.test/page", None),
        ("good.test/page", None),
        ("corpus:manual/my file.html", None),
        ("https://asked.test/x", None),
        ("javascript:alert(1)", None),
        ("https://[broken/", None),
        ("https://good.test:99999/page", None),
        ("", None),
    ],
)
def test_only_addresses_of_sources_are_links(url: str, own: str | None) -> None:
    """C.8: case of the host, default port, fragment and tracking parameters do not make another source."""
    assert REGISTRY.link_of(url) == own


@pytest.mark.parametrize(
    ("draft", "text", "foreign"),
    [
        ("[a](https://good.test/page)", "[a](https://good.test/page)", 0),
        ("[a](<https://good.test/a_(b)>)", "[a](https://good.test/a_(b))", 0),
        ("<https://good.test/page#x>", "<https://good.test/page>", 0),
        ("At https://good.test/page?utm_source=x.", "At <https://good.test/page>.", 0),
        ("At https://asked.test/x they say", "At https://asked.test/x they say", 0),
        ("At corpus:manual/my file.html", "At corpus:manual/my file.html", 0),
        ("[a](https://asked.test/x)", "a", 1),
        ("[a *b* `c`](https://evil.test/)", "a *b* `c`", 1),
        ("![a](https://evil.test/)", "a", 1),
        ("At https://evil.test/, they say", f"At {REMOVED}, they say", 1),
        ("At corpus:manual/other.html", f"At {REMOVED}", 1),
        ("[https://bank.test](https://good.test/page)", f"[{REMOVED}](https://good.test/page)", 1),
        ("[a][r]\n\n[r]: https://evil.test/", f"\\[a\\]\\[r\\]\n\n\\[r\\]: {REMOVED}", 1),
        ("`curl https://evil.test/`", f"`curl {REMOVED}`", 1),
        ("Ask someone@good.test or other@evil.test", f"Ask `someone@good.test` or {REMOVED}", 1),
        ("http&#58;//evil.test/ and `http&#58;//evil.test/`", f"{REMOVED} and `{REMOVED}`", 1),
    ],
)
def test_links_outside_the_registry_become_their_words(draft: str, text: str, foreign: int) -> None:
    """A link to a source stays; any other link becomes its words, any other address is taken out and noted."""
    found: list[str] = []
    assert write(parse(draft, REGISTRY.filter(found))).text == text + "\n"
    assert len(set(found)) == foreign
