"""Bibliographies: what is written is read back by parsers of others, whatever a title holds."""

import json
import re

import bibtexparser
import pytest

from activities.reporting.tree import one_line
from client.exchange.bibliography import to_bibtex, to_csl
from contracts.report import Report
from tests.unit.client.exchange.hostile_report import TITLES, report_of

LATEX_WORDS = {
    r"\textbackslash{}": "\\",
    r"\textbraceleft{}": "{",
    r"\textbraceright{}": "}",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
}


def plain(latex: str) -> str:
    names = re.compile("|".join(map(re.escape, LATEX_WORDS)) + r"|\\([&%$#_])")
    return names.sub(lambda found: found[1] or LATEX_WORDS[found[0]], latex)


def test_bibtex_is_read_back_with_every_title_as_it_was() -> None:
    """Braces, backslashes and line ends in a title end no field and begin no entry."""
    library = bibtexparser.parse_string(to_bibtex(report_of()).decode())
    assert library.failed_blocks == []
    titles = [re.sub(r"(?<!\S)\{(\S*)\}(?!\S)", r"\1", entry["title"]) for entry in library.entries]
    assert [plain(title) for title in titles] == [one_line(title) for title in TITLES]
    assert [entry.key for entry in library.entries] == [f"src-{number:032x}" for number in range(1, len(TITLES) + 1)]
    first = library.entries[0]
    assert first.entry_type == "article"
    assert first["url"] == "https://source1.test/a_(b)?q=1&r=%7Bx%7D#z"
    assert (first["year"], first["month"], first["urldate"]) == ("2025", "03", "2026-11-21")
    assert first["doi"] == r"10.1000/18\_2"
    assert first["author"].startswith("{Writer}, {A.} and {Black and White} and {Last}, {First} and ")


def with_first_source(**changes: object) -> Report:
    report = report_of()
    return report.model_copy(update={"sources": [report.sources[0].model_copy(update=changes), *report.sources[1:]]})


def test_csl_has_one_item_for_each_cited_source() -> None:
    """CSL-JSON: types of its list, dates and known names in parts."""
    items = json.loads(to_csl(report_of()))
    assert [item["title"] for item in items] == [one_line(title) for title in TITLES]
    assert [item["type"] for item in items[:4]] == ["article-journal", "article-newspaper", "document", "webpage"]
    assert items[0]["issued"] == {"date-parts": [[2025, 3, 4]]}
    assert items[0]["accessed"] == {"date-parts": [[2026, 11, 21]]}
    assert items[0]["author"][2] == {"family": "Last", "given": "First"}


@pytest.mark.parametrize(
    ("name", "kind", "bibtex", "csl"),
    [
        ("Doe, Jane Q.", "web", "{Doe}, {Jane Q.}", {"family": "Doe", "given": "Jane Q."}),
        ("Jane Q. Doe", "academic", "{Doe}, {Jane Q.}", {"family": "Doe", "given": "Jane Q."}),
        ("Ludwig van der Berg", "academic", "{van der Berg}, {Ludwig}", {"family": "van der Berg", "given": "Ludwig"}),
        ("PostgreSQL Global Development Group", "web", "{PostgreSQL Global Development Group}", None),
        ("Acme, Inc.", "web", "{Acme, Inc.}", None),
        ("Plato", "academic", "{Plato}", None),
    ],
)
def test_authors_are_split_where_their_names_are_known(
    name: str, kind: str, bibtex: str, csl: dict[str, str] | None
) -> None:
    """A comma, or an index of papers, tells family and given name apart; any other name stays whole."""
    report = with_first_source(authors=[name], source_type=kind)
    assert f"author = {{{bibtex}}}," in to_bibtex(report).decode()
    assert json.loads(to_csl(report))[0]["author"] == [csl or {"literal": name}]


def test_sources_that_are_not_cited_are_left_out() -> None:
    """A bibliography is of what the report cites, in the order of its numbers."""
    report = report_of(
        citations=[{"number": 2, "source_id": f"src-{1:032x}"}, {"number": 1, "source_id": f"src-{3:032x}"}]
    )
    assert [item["citation-number"] for item in json.loads(to_csl(report))] == [1, 2]
    assert to_bibtex(report_of(citations=[])) == b""


@pytest.mark.parametrize("published", [None, "soon", "2025", "2025-13-99x"])
def test_dates_that_are_none_are_left_out(published: str | None) -> None:
    """A page's own word for its date is not trusted to be one."""
    made = with_first_source(published_at=published)
    assert bibtexparser.parse_string(to_bibtex(made).decode()).failed_blocks == []
    assert json.loads(to_csl(made))[0].get("issued", {}).get("date-parts", [[0]])[0][0] in (0, 2025)


def test_an_abstract_is_marked_and_has_no_publisher_of_its_own() -> None:
    """Whoever cites the paper learns that its text was not read; its journal is named once."""
    report = with_first_source(abstract_only=True, venue="A Journal", publisher="A Journal")
    entry = bibtexparser.parse_string(to_bibtex(report).decode()).entries[0]
    assert entry["note"] == "[1] abstract only"
    assert "publisher" not in {field.key for field in entry.fields}
    first, second = json.loads(to_csl(report))[:2]
    assert (first["note"], first["container-title"], "publisher" in first) == ("abstract only", "A Journal", False)
    assert "note" not in second
