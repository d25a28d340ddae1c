"""What is said in rare cases, word for word, and where the line to them is drawn."""

import pytest

from activities.roles.untrusted import LINE_CHARACTERS, break_lines


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("a" * LINE_CHARACTERS, ["a" * LINE_CHARACTERS]),
        ("a" * (LINE_CHARACTERS - 1) + " b", ["a" * (LINE_CHARACTERS - 1), "b"]),
        ("a" * LINE_CHARACTERS + " b", ["a" * LINE_CHARACTERS, "b"]),
        ("a" * (LINE_CHARACTERS + 50) + " b", ["a" * (LINE_CHARACTERS + 50), "b"]),
        ("a" * (LINE_CHARACTERS + 50), ["a" * (LINE_CHARACTERS + 50)]),
        ("a " + "b" * LINE_CHARACTERS, ["a " + "b" * LINE_CHARACTERS]),
        ("one\ntwo", ["one", "two"]),
    ],
)
def test_a_long_line_is_broken_at_a_space(words: str, lines: list[str]) -> None:
    """In the second half of what fits, else at the next one; a word is never broken."""
    assert list(break_lines(words)) == lines
