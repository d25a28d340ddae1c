"""Numbers in the place of markers."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.reporting.citations import NumberedText, number_citations, numbers_in
from activities.reporting.links import Registry
from contracts.addresses import digest
from contracts.evidence import Evidence
from contracts.outcome import Citation

REGISTRY = Registry.of(["https://good.test/page", "corpus:manual/a.html"], "How does it work?")


def passage(identity: str, source: str) -> Evidence:
    """An evidence of which only the source matters here."""
    return Evidence(id=identity, source_id=source, start=0, end=1, quote_hash=digest("x"))


EVIDENCE = {
    item.id: item
    for item in (
        passage("ev-a1", "src-a"),
        passage("ev-a2", "src-a"),
        passage("ev-b1", "src-b"),
        passage("ev-c1", "src-c"),
    )
}


def number(draft: str, given_before: list[Citation] | None = None) -> NumberedText:
    """The draft with numbers, by the evidence and the registry of this module."""
    return number_citations(draft, EVIDENCE, given_before or [], REGISTRY)


@pytest.mark.parametrize(
    ("draft", "text"),
    [
        ("One [ev-b1]. Two [ev-a1].", "One [1]. Two [2]."),
        ("One [ev-a1, ev-b1].", "One [1][2]."),
        ("One [ev-a1; ev-a2].", "One [1]."),
        ("One [ev-a1][ev-a2].", "One [1]."),
        ("One [ev-a1] [ev-b1], [ev-a2].", "One [1][2]."),
        ("One [[ev-a1]].", "One [1]."),
        ("One [^ev-a1].", "One [1]."),
        ("One [ev-a1, 7].", "One [1]."),
        ("| x | [ev-a1] |\n|---|---|\n| y | [ev-b1] |\n", "| x | [1] |\n|---|---|\n| y | [2] |\n"),
        ("One [ev-a1](https://evil.test/x).", "One [1]."),
        ("One [ev-a1](note).", "One [1]."),
        ("[ev-a1]: yes", "[1]\\: yes"),
        ("One [ev-a1](see below).", "One [1]\\(see below)."),
    ],
)
def test_numbers_sources_by_first_appearance(draft: str, text: str) -> None:
    """A number stands for a source; it is given at first appearance, neighbours of one source become one (X-7)."""
    assert number(draft).text == text


def test_keeps_numbers_that_were_given_before() -> None:
    """A number never changes; a new source takes the next one, although the order is another (invariant 4, X-7)."""
    before = [Citation(number=1, source_id="src-c"), Citation(number=2, source_id="src-b")]
    numbered = number("First [ev-a1], then [ev-b1], then [ev-c1].", before)
    assert numbered.text == "First [3], then [2], then [1]."
    assert numbered.citations == [*before, Citation(number=3, source_id="src-a")]
    assert number("Only [ev-a1].", numbered.citations).citations == numbered.citations


def test_number_leads_to_the_named_passages() -> None:
    """A mark knows every passage that its markers named, so a citation opens the passage itself."""
    numbered = number("One [ev-a1] [ev-b1] [ev-a2]. Two [ev-a2].")
    assert [(mark.number, mark.evidence_ids) for mark in numbered.marks] == [
        (1, ("ev-a1", "ev-a2")),
        (2, ("ev-b1",)),
        (1, ("ev-a2",)),
    ]
    assert all(numbered.text[mark.start : mark.end] == f"[{mark.number}]" for mark in numbered.marks)


@pytest.mark.parametrize(
    "draft",
    [
        "```\n[ev-a1] [7]\n```\n",
        "Use `a[1]` and `[ev-a1]`.",
        "    [ev-a1] indented\n",
        "Twice ``x ` [7] `` here.",
        "> ```\n> [7]\n> ```\n",
        "- item\n\n  ```sql\n  tags[1]\n  ```\n",
    ],
)
def test_leaves_code_alone(draft: str) -> None:
    """A marker or a number inside code is code (C.8)."""
    numbered = number(draft)
    assert numbered.text == draft
    assert (numbered.marks, numbered.unresolved) == ([], [])


@pytest.mark.parametrize(
    ("draft", "text", "unresolved"),
    [
        ("Known [7] by hand.", "Known by hand.", ["7"]),
        ("Known [1, 2].", "Known.", ["1", "2"]),
        ("Known [[3]].", "Known.", ["3"]),
        ("Known [^4].", "Known.", ["4"]),
        ("Known [1-3].", "Known.", ["1-3"]),
        ("Unknown [ev-zz].", "Unknown.", ["ev-zz"]),
        ("Source [src-a].", "Source.", ["src-a"]),
        ("[7] first.", "first.", ["7"]),
        ("[1](https://evil.test) x", "x", ["1"]),
    ],
)
def test_removes_and_reports_what_does_not_resolve(draft: str, text: str, unresolved: list[str]) -> None:
    """A marker that names nothing, and a number that somebody wrote by hand, is removed and reported (X-7)."""
    numbered = number(draft)
    assert numbered.text == text
    assert numbered.unresolved == unresolved
    assert numbered.marks == []


@pytest.mark.parametrize(
    "draft",
    [
        "Page text \\[ev-a1\\] and \\[5\\].",
        "> Page text \\[ev-a1\\] and \\[5\\], [a1\\].",
        "Page text 【ev-a1】, ［ev-a1］, (ev-a1), (src-a) and 【5】.",
        "An escaped backslash: \\\\\\[ev-a1\\].",
        "In words: ev-a1, src-a.",
    ],
)
def test_words_of_a_page_are_no_markers(draft: str) -> None:
    """Only names in square brackets that nothing escapes count in a stored draft; all else is somebody's words."""
    numbered = number(draft)
    assert (numbered.text, numbered.marks, numbered.unresolved) == (draft, [], [])


def test_unknown_names_in_a_quotation_are_shown_as_they_stand() -> None:
    """A quoted text loses no word: what looks like a citation and names nothing is escaped there."""
    assert number("> See [7], [ev-zz] and [src-a] [ev-a1]\n").text == "> See \\[7\\], \\[ev-zz\\] and \\[src-a\\] [1]\n"


def test_written_number_cannot_collide_with_ours() -> None:
    """C.8: an unmapped [1] beside a real citation does not become a second citation of source 1."""
    numbered = number("Real [ev-a1]. Invented [1].")
    assert numbered.text == "Real [1]. Invented."
    assert numbered.unresolved == ["1"]


def test_removal_never_turns_a_citation_into_code() -> None:
    """Where a removed marker kept a fence from the beginning of its line, a word stays in its place."""
    numbered = number("[ev-zz]```\n[ev-a1]")
    assert numbered.text == "(unresolved)```\n[1]"
    assert numbered.unresolved == ["ev-zz"]


def test_keeps_what_only_looks_like_a_citation() -> None:
    """Check boxes, years in brackets and words in brackets are text."""
    draft = "- [ ] open\n- [x] done\n\nIn [2024] and [sic] and [a, b].\n"
    assert number(draft).text == draft


MARKERS = st.sampled_from(["ev-a1", "ev-a2", "ev-b1", "ev-c1", "ev-zz", "7", "1", "src-a"])
GROUPS = st.lists(MARKERS, min_size=1, max_size=4).map(lambda items: f"[{', '.join(items)}]")
SCRAPS = st.sampled_from(
    [
        "word ",
        "`code` ",
        "`",
        "```\n",
        "\n\n",
        "> ",
        "- ",
        "1. ",
        "| a | b |\n|---|---|\n",
        "*",
        "**",
        "](",
        "[",
        "]",
        "(",
        ")",
        "\\",
        ": ",
        "e.g. ",
        "End. ",
        "é🐘 ",
        "#  ",
        "https://evil.test/x ",
        "[a](https://good.test/page) ",
        "<b>",
        "    ",
    ]
)
DRAFTS = st.lists(st.one_of(GROUPS, SCRAPS), max_size=40).map("".join)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(DRAFTS)
def test_numbers_are_a_bijection_for_every_draft(draft: str) -> None:
    """Numbers and sources are one to one, every number in the text is one of ours and is a mark (invariant 4)."""
    numbered = number(draft)
    numbers = [citation.number for citation in numbered.citations]
    sources = [citation.source_id for citation in numbered.citations]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(set(sources)) == len(sources)
    for mark in numbered.marks:
        assert numbered.text[mark.start : mark.end] == f"[{mark.number}]"
        assert {EVIDENCE[one].source_id for one in mark.evidence_ids} == {sources[mark.number - 1]}
    marked = {mark.start for mark in numbered.marks}
    written = {match.start() for match in numbers_in(numbered.text)}
    assert written == marked


@settings(max_examples=80, deadline=None, derandomize=True)
@given(DRAFTS)
def test_numbering_twice_gives_the_same_numbers(draft: str) -> None:
    """Numbers of a first rendering survive a second one (invariant 4)."""
    first = number(draft)
    second = number(draft, first.citations)
    assert (second.text, second.citations) == (first.text, first.citations)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(DRAFTS)
def test_no_foreign_address_survives_any_draft(draft: str) -> None:
    """No address outside the registry is left in any draft."""
    assert not re.search("evil", number(draft).text)
