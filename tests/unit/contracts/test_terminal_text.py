"""Text made safe for a terminal."""

import json

import pytest

from contracts.texts import visible, visible_json

HARMLESS = "Zürich\tα β — 研究 😀\u00a0½\nnext"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\ufffd[31mred"),
        ("\x1b]0;title\x07", "\ufffd]0;title\ufffd"),
        ("\x9b31m", "\ufffd31m"),
        ("good\rbad", "good\ufffdbad"),
        ("ab\x08c\x7f", "ab\ufffdc\ufffd"),
        ("one\r\ntwo", "one\ntwo"),
        ("\u202egnp.exe\u202c", "gnp.exe"),
        ("\u2066a\u2069\u200b\ufeff\u00ad\U000e0041", "a"),
        ("a\u2028b", "a\ufffdb"),
        ("\udc80", "\ufffd"),
    ],
)
def test_what_drives_a_terminal_shows_as_a_sign_or_goes(text: str, shown: str) -> None:
    """Escape sequences lose the sign that makes them one; what changes or hides other text is left out."""
    assert visible(text) == shown


def test_json_says_the_same_in_codes() -> None:
    """The document reads back as it was, and holds nothing that drives a terminal."""
    value = {"title": f"\x1b[31m\x9b\u202e\U000e0041\udc80 {HARMLESS}"}
    written = visible_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(written) == value
    assert visible(written) == written
    assert "研究 😀" in written
