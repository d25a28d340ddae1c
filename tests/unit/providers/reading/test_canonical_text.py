"""Markdown rewritten as canonical text with exact offsets, and dates in one form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.reading.canonical_text import canonical_text, clean
from providers.reading.page_dates import iso_date


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("# Head #\n\nSome *emphasis*, **strong** and [a link](x).\n", "# Head\n\nSome emphasis, strong and a link."),
        ("Run `ls *.py` and `a|b`, 2\\*3 and 10^32^.\n", "Run `ls *.py` and `a|b`, 2*3 and 10^32."),
        ("| A | B |\n|:--|--:|\n| 1 \\| 2 | **x** |\n|  |  |\n", "| A | B |\n| --- | --- |\n| 1 \\| 2 | x |"),
        ("- one\n\n  two\n\n- three\n  1. four\n", "- one\n\ntwo\n\n- three\n  1. four"),
        ("- x\n\n  ````\n  a\n    ```\n  ````\n", "- x\n\n````\na\n  ```\n````"),
        ("> quoted\n\n---\n\n\\# no heading\n\n\\`\\`\\` no fence", "quoted\n\n\\# no heading\n\n\\``` no fence"),
        ("\ue002term\ndefinition\nnext line\n\nmore", "term\ndefinition\nnext line\n\nmore"),
    ],
)
def test_markdown_becomes_canonical(markdown: str, text: str) -> None:
    """Inline markup goes, inline code stays; tables, lists and code have one form."""
    assert canonical_text(markdown, "x", escaped=True).text == text


def test_blocks_and_pages_have_offsets() -> None:
    """Every block is a range of the text; a page begins at its first block, also one that is not marked."""
    found = canonical_text("\ue0001\ue000\n\n# A\n\nfirst\n\n\ue0003\ue000\n\n- x\n\n`y`\n", "x", escaped=True)
    words = [(found.text[block.start : block.end], block.level) for block in found.blocks]
    assert words == [("A", 1), ("first", 0), ("x", 0), ("`y`", 0)]
    assert found.pages == [0, found.text.index("- x"), found.text.index("- x")]


def test_text_beyond_the_limit_is_dropped_in_whole_blocks() -> None:
    """A first block that is too long is cut between words."""
    found = canonical_text("one two\n\nthree\n\nfour", "x", escaped=True, limit=17)
    assert (found.text, len(found.warnings)) == ("one two\n\nthree", 1)
    assert canonical_text("one two three", "x", escaped=True, limit=9).text == "one two"


@given(st.text(st.sampled_from("a \n#`|-*\\[]()~^_1.>\u200b\ue000\ue002¹²⁹①፩é"), max_size=60))
def test_any_text_has_ordered_blocks_and_is_stable(markdown: str) -> None:
    """Odd signs break nothing, blocks do not overlap, and the same input has the same text."""
    cleaned = clean(markdown)
    assert clean(cleaned) == cleaned
    found = canonical_text(cleaned, "x", escaped=True)
    assert found == canonical_text(cleaned, "x", escaped=True)
    ends = [0]
    for block in found.blocks:
        assert ends[-1] <= block.start < block.end <= len(found.text)
        ends.append(block.end)


def test_invisible_characters_go() -> None:
    """Zero-width signs, direction marks and Unicode tags carry no words."""
    assert clean("a\u200bb\u202ec\U000e0041d\r\ne\u0301") == "abcd\n\u00e9"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-05-17T10:00:00+02:00", "2024-05-17"),
        (" 2024/5/7 ", "2024-05-07"),
        ("20240517T101010Z", "2024-05-17"),
        ("2024-05", "2024-05"),
        ("2024", "2024"),
        ("Fri, 17 May 2024 10:00:00 GMT", "2024-05-17"),
        *((value, None) for value in ("2024-13-01", "2023-02-29", "0001-01-01", "9999-01-01", "20245", "soon", "")),
    ],
)
def test_dates_go_as_far_as_they_are_written(value: str, expected: str | None) -> None:
    """To the day, the month or the year; what the calendar does not have is no date."""
    assert iso_date(value) == expected
