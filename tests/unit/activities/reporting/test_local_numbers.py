"""Numbers of parallel authors under one numbering."""

import pytest

from activities.reporting.local_numbers import LocalReport, collapse_citations

FIRST = LocalReport("Alpha [1]. Beta [2].", {1: "A", 2: "B"})


def test_numbers_of_the_second_author_are_shifted() -> None:
    """{1:A, 2:B} and {1:C, 2:D} become {1:A, 2:B, 3:C, 4:D}, and `[1]` of the second report `[3]` (S3-024, S3-028)."""
    second = LocalReport("Gamma [1]. Delta [1, 2].", {1: "C", 2: "D"})
    collapsed = collapse_citations([FIRST, second])
    assert collapsed.documents == {1: "A", 2: "B", 3: "C", 4: "D"}
    assert collapsed.texts == ["Alpha [1]. Beta [2].", "Gamma [3]. Delta [3][4]."]


def test_a_document_has_one_number_and_given_ones_stay() -> None:
    """A document that has a number keeps it; what readers have seen never changes (S3-025, S3-026)."""
    second = LocalReport("Again [2], new [1].", {1: "C", 2: "A"})
    assert collapse_citations([FIRST, second]).texts[1] == "Again [1], new [3]."
    collapsed = collapse_citations([second], {1: "Z", 7: "A"})
    assert (collapsed.documents, collapsed.texts) == ({1: "Z", 7: "A", 8: "C"}, ["Again [7], new [8]."])


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("So [1, 2].", "So [3][4]."),
        ("So [1][2].", "So [3][4]."),
        ("So [[1]].", "So [3]."),
        ("So 【1】.", "So [3]."),
        ("So ［1］ and [^2].", "So [3] and [4]."),
        ("So [1-2].", "So [3][4]."),
        ("`a[1]` and [1](https://a.test) ![1](x.png) [1]", "`a[1]` and [1](https://a.test) ![1](x.png) [3]"),
        ("    code[1]\n\nSo [1](https://a.test).", "    code[1]\n\nSo [1](https://a.test)."),
    ],
)
def test_numbers_as_models_write_them(written: str, text: str) -> None:
    """Several in one pair of brackets, doubled or full-width ones; never in code, images or the words of a link."""
    assert collapse_citations([FIRST, LocalReport(written, {1: "C", 2: "D"})]).texts[1] == text


def test_number_that_stands_for_nothing_is_removed_and_reported() -> None:
    """An author's `[9]` must not become the ninth source of the whole (C.8)."""
    many = {number: f"D{number}" for number in range(1, 10)}
    collapsed = collapse_citations([LocalReport("All [9].", many), LocalReport("One [1], none [9].", {1: "C"})])
    assert collapsed.texts[1] == "One [10], none."
    assert collapsed.unmapped == [(1, 9)]
