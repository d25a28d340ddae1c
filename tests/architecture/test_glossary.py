"""The words of the project."""

import re

from tests.architecture.repository import ROOT

MOST_TERMS = 45


def test_the_glossary_is_short_and_says_everything_once() -> None:
    """Few words, each explained in one row of a table, so that people can keep to them."""
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|") and not re.match(r"\|(-+\||\s*word\s*\|)", line)]
    terms = [re.fullmatch(r"\| ([a-z][a-z -]*[a-z]) \| [^|]{10,} \|", row) for row in rows]
    assert all(terms), [row for row, term in zip(rows, terms, strict=True) if not term]
    names = [term[1] for term in terms if term]
    assert 20 < len(names) <= MOST_TERMS
    assert sorted(names) == sorted(set(names))
