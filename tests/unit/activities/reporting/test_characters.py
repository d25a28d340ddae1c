"""Characters and escaping."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.reporting.markdown_layout import (
    PARSER,
    clean_characters,
    code_span,
    escape_markdown,
    layout,
    one_line,
    plain_text,
)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("\u202egpj.exe\u202c \u2066x\u2069 \u200fy", "gpj.exe x y"),
        ("a\u200bb\u00adc\ufeffd\u2060e", "abcde"),
        ("x\U000e0069\U000e0067y", "xy"),
        ("a\ue000b\U000f0000c", "abc"),
        ("a\x00b\x1bc\x85d\ud800e", "abcde"),
        ("e\u0301 🐘 ✔\ufe0f\tü", "e\u0301 🐘 ✔\ufe0f\tü"),
        ("a" + "\ufe0f" * 3, "a"),
    ],
)
def test_invisible_characters_are_removed(text: str, cleaned: str) -> None:
    """Controls, bidirectional, zero-width, tag and private characters go; accents, emoji and tabs stay."""
    assert clean_characters(text) == cleaned


@given(
    st.text(alphabet=st.one_of(st.sampled_from("\\`*_[]<>|~&#!-+.():/ a1"), st.characters(codec="utf-8")), max_size=60)
)
def test_escaped_text_is_shown_as_it_is(text: str) -> None:
    """Markdown shows escaped foreign text as it is, in the middle of a line."""
    assert plain_text(f"x {escape_markdown(text)} x") == one_line(f"x {text} x")


@settings(deadline=None, derandomize=True)
@given(st.text(alphabet="`a \\*", min_size=1, max_size=30).filter(lambda text: text.strip()))
def test_code_span_holds_any_text(text: str) -> None:
    """Inline code holds any text, whatever backticks it has."""
    (token,) = PARSER.parseInline(code_span(text))
    assert [(child.type, child.content.strip()) for child in token.children or []] == [("code_inline", one_line(text))]


def test_layout_masks_code_and_keeps_offsets() -> None:
    """Code is masked, character by character; everything else stays in its place."""
    text = "A `b` c\n\n```\nd\n```\n\n> e `f\n> g` h\n\n| `i` | j |\n|---|---|\n"
    masked = layout(text).masked
    assert len(masked) == len(text)
    kept = "".join(character for character in masked if character != "\ue000")
    assert "".join(kept.split()) == "Ac>eh||j||---|---|"
