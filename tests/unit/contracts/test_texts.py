"""Words of others on the pages of the engine's web UI, and on a terminal."""

import json

import pytest
from markdown_it import MarkdownIt

from contracts.texts import as_markdown, from_markdown, visible, visible_json
from tests.fakes import states
from workflows.status import details_markdown

ACTIVE = [
    "![x](https://evil.test/x.png)",
    "[home](https://evil.test)",
    "<img src=https://evil.test>",
    "<https://evil.test>",
    "# Big",
    "1. one",
    "12) twelve",
    "- item",
    "+ item",
    "> quoted",
    "===",
    "**bold** _slanted_ `code` ~~gone~~",
    "a | b",
    "&lt;b&gt;",
    "\\[x](y)",
    "``` fence",
    "[x]: https://evil.test",
    "one\n\n# two\n---",
]
PLAIN = MarkdownIt("commonmark").enable("table").enable("strikethrough")


@pytest.mark.parametrize("text", ACTIVE)
def test_words_stay_words(text: str) -> None:
    """No link, picture, heading, list or HTML comes of them: a page shows the very words on one line."""
    shown = as_markdown(text, 200, 400)
    rendered = PLAIN.parse(shown)
    assert [token.type for token in rendered] == ["paragraph_open", "inline", "paragraph_close"]
    assert {child.type for child in rendered[1].children or []} <= {"text", "text_special"}
    assert from_markdown(shown) == " ".join(text.split())


@pytest.mark.parametrize("text", ["https://evil.test/x", "WWW.evil.test", "who@evil.test"])
def test_addresses_are_no_links_by_themselves(text: str) -> None:
    """Addresses that Markdown turns into links are broken by an invisible character."""
    shown = as_markdown(f"see {text}", 200, 400)
    assert text not in shown
    assert from_markdown(shown) == f"see {text}"


@pytest.mark.parametrize(
    "text", ["_" * 500, "ä_" * 300, "数据库" * 100, "\\" * 300, '"' * 300, "🙂@" * 200, "a\u202eb" * 99]
)
@pytest.mark.parametrize(("characters", "most"), [(120, 200), (180, 200), (10, 40)])
def test_the_line_is_bounded_in_bytes(text: str, characters: int, most: int) -> None:
    """As JSON, with all that was put before its signs; and nothing is cut within an escape."""
    shown = as_markdown(text, characters, most)
    assert len(json.dumps(shown, ensure_ascii=False).encode()) <= most
    assert shown.endswith("…")
    assert len(from_markdown(shown)) <= characters
    assert "\u202e" not in shown


def test_details_hold_words_of_others_as_words() -> None:
    """Sub-queries, decisions and failures make nothing in the details, however many and long they are."""
    hostile = "\n".join(ACTIVE)
    state = states.state(plan=states.plan(*(states.sub_query(f"{number} {hostile}") for number in range(30))))
    state.work.last_failure = hostile * 50
    shown = details_markdown(state, 1.0)
    tokens = PLAIN.parse(shown)
    assert "heading_open" not in {token.type for token in tokens}
    inside = {child.type for token in tokens for child in token.children or []}
    assert inside <= {"text", "text_special", "strong_open", "strong_close", "softbreak"}
    assert len(shown.encode()) < 8_000


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


def test_a_line_break_within_a_paragraph_has_no_sign_on_a_terminal() -> None:
    """Markdown writes it as a backslash at the end of a line; one that is part of the text is escaped."""
    assert from_markdown("300 euro\\\na month\\") == "300 euro\na month"
    assert from_markdown("C:\\\\\nnext") == "C:\\\nnext"
