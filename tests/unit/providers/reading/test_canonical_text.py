"""Markdown rewritten as canonical text, with exact offsets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.reading.canonical_text import canonical_text, clean


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("# Head #\n\nSome *emphasis*, **strong** and [a link](x).\n", "# Head\n\nSome emphasis, strong and a link."),
        ("Run `ls *.py` and `a|b`, 2\\*3 and 10^32^.\n", "Run `ls *.py` and `a|b`, 2*3 and 10^32."),
        ("snake_case_name 2*3*4 ![picture](x.png)\n", "snake_case_name 2*3*4"),
        ("| A | B |\n|:--|--:|\n| 1 \\| 2 | **x** |\n|  |  |\n", "| A | B |\n| --- | --- |\n| 1 \\| 2 | x |"),
        ("- one\n\n  two\n\n- three\n  1. four\n", "- one\n\ntwo\n\n- three\n  1. four"),
        ("```sql\nSELECT  1;\n```\nafter", "```\nSELECT  1;\n```\n\nafter"),
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
    found = canonical_text(clean(markdown), "x", escaped=True)
    assert found == canonical_text(clean(markdown), "x", escaped=True)
    ends = [0]
    for block in found.blocks:
        assert ends[-1] <= block.start < block.end <= len(found.text)
        ends.append(block.end)


@given(st.text())
def test_cleaning_is_idempotent(text: str) -> None:
    """Cleaned text stays as it is: its hash is an identity."""
    assert clean(clean(text)) == clean(text)


def test_invisible_characters_go() -> None:
    """Zero-width signs, direction marks and Unicode tags carry no words."""
    assert clean("a\u200bb\u202ec\U000e0041d\r\ne\u0301") == "abcd\n\u00e9"
