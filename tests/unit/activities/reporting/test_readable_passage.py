"""Passages as a reader sees them."""

import pytest

from activities.reporting.readable_passage import passage_parts, without_marks


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("## Table of settings\n\nText.", "Table of settings\n\nText."),
        ("- one\n- two", "• one\n• two"),
        ("| a | b |\n| --- | --- |\n| 1 | x \\| y |", "a · b\n1 · x | y"),
        ("```\ncode | here\n```", "code | here"),
        ("\\# no heading, \\*stars\\*", "# no heading, *stars*"),
        ("5. a numbered line, 3 - 2 = 1", "5. a numbered line, 3 - 2 = 1"),
        ("a -- b\nC#", "a -- b\nC#"),
    ],
)
def test_our_marks_are_gone_and_the_words_stay(stored: str, shown: str) -> None:
    """Stored texts are Markdown whatever the document was: the marks are ours."""
    assert without_marks(stored) == shown


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        (
            ("Commands\n\n- ", "Run it.\n- Check it.", "\n\n## Next"),
            ("Commands\n\n• ", "Run it.\n• Check it.", "\n\nNext"),
        ),
        (("", "| a | b |", "\n| --- | --- |\n| c | d |"), ("", "a · b", "\nc · d")),
        (("| a | ", "b", " | c |\n"), ("a", " · b", " · c\n")),
        (("before ", "quote", " after"), ("before ", "quote", " after")),
        (("x\ue104", "y\ue105", "z"), ("x", "y", "z")),
    ],
)
def test_a_quote_keeps_its_place(parts: tuple[str, str, str], shown: tuple[str, str, str]) -> None:
    """Also in the middle of a line or of a row, and whatever characters the page has."""
    got = passage_parts(*parts)
    assert [part.strip(" ·") for part in got] == [part.strip(" ·") for part in shown]
