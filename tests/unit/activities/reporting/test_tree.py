"""The tree of a text: what is written is read again as it was, whatever the draft."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from activities.reporting.tree import (
    Blocks,
    Sentence,
    clean_characters,
    escape,
    one_line,
    paragraph,
    parse,
    parse_plain_text,
    write,
)
from tests.drawn import draws

SCRAPS = """* ** _ ` `` [ ] ( ) < > & \\ ! | \n \n\n # ## - + 1. 12) > a b. Word É === --- ~~~ ``` |---| [1] &#91; &amp; ~ = : $
{ } % ; ? @ / , ' " 0 <a> <!-- ev-1""".split(" ")
SCRAPS += [" ", "  ", "    ", "\t", "\\\n", "  \n", "| a | b |\n|---|:-:|\n", "[x](http://x.test/a_b)", "`a|b`", "\\["]
DRAFTS = st.lists(st.sampled_from(SCRAPS), max_size=40).map("".join)


def data(blocks: Blocks) -> list[Any]:
    """Blocks with their words as plain data, without emphasis, which cannot always be written."""

    def words(sentence: Sentence) -> str:
        return sentence.gap + "".join(each.text for each in sentence.inlines)

    return [
        (
            (block.kind, block.level, block.start, block.info, block.aligns),
            "".join(map(words, block.sentences)),
            [list(map(words, row)) for row in block.rows],
            list(map(data, block.parts)),
        )
        for block in blocks
    ]


@draws(25)
@given(DRAFTS)
def test_what_is_written_is_read_as_it_was(draft: str) -> None:
    """Parsing, writing and parsing again gives the same words in the same blocks, and the same Markdown."""
    tree = parse(draft)
    written = write(tree)
    again = parse(written.text)
    assert data(again) == data(tree)
    assert write(again).text == written.text
    for sentence, (start, end) in written.spans.items():
        assert sentence.words == "" or written.text[start:end].strip()


@pytest.mark.parametrize(
    ("draft", "written"),
    [
        ("Title\n=====\n\n* a\n* b\n\n_x_ __y__", "# Title\n\n- a\n- b\n\n*x* **y**\n"),
        ("a  \nb\nc", "a\\\nb c\n"),
        ("[a][r] ![b](x.png)\n\n[r]: https://evil.test", "\\[a\\]\\[r\\] [b](x.png)\n\n\\[r\\]: https://evil.test\n"),
        ("<b>x</b> &lt;y&gt;", "\\<b>x\\</b> \\<y>\n"),
        ("*Manual › 3. How it works*\n\n**Yes. It does.**", "*Manual › 3. How it works*\n\n**Yes. It does.**\n"),
        ("> `a && b` a && b > c | d; not yet: 2>&1", "> `a && b` a && b > c | d; not yet: 2>&1\n"),
        ("a  b `cp  a   b`\n\n```\nx:\n\tcp  a   b\n```", "a b `cp  a   b`\n\n```\nx:\n\tcp  a   b\n```\n"),
        ("\\> a\n\n\\| a | b\n\n:\\-- | --", "\\> a\n\n\\| a | b\n\n\\:-- | --\n"),
        ("See example.com and pg_class.relfrozenxid", "See example\\.com and pg_class.relfrozenxid\n"),
        ("\\# no heading\n\n\\- no item\n\n1\\. no number", "\\# no heading\n\n\\- no item\n\n1\\. no number\n"),
        ("|a|b|\n|--|-:|\n|`x\\|y`|\\||", "| a | b |\n| --- | ---: |\n| `x\\|y` | \\| |\n"),
    ],
)
def test_markdown_has_one_form(draft: str, written: str) -> None:
    """Headings, lists, emphasis and code are written one way; what is no markup of ours is escaped."""
    assert write(parse(draft)).text == written


@given(st.text(alphabet=st.one_of(st.sampled_from("\\`*_[]<>|~&#!-+.():/ a1"), st.characters(codec="utf-8"))))
@example("0?:?")  # a sentence ends where no blank follows
def test_escaped_words_are_shown_as_they_are(text: str) -> None:
    """Markdown shows foreign words as they are, in the middle of a line and as a paragraph."""
    assert parse_plain_text(f"x {escape(one_line(text))} x") == one_line(f"x {text} x")
    assert parse_plain_text(write((paragraph(text),)).text) == one_line(text)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("\u202egpj.exe\u202c \u2066x\u2069 \u200fy", "gpj.exe x y"),
        ("a\u200bb\u00adc\ufeffd\u2060e", "abcde"),
        ("x\U000e0069\U000e0067y a\ue000b\U000f0000c", "xy abc"),
        ("a\x00b\x1bc\x85d\ud800e\uffff", "abcde"),
        ("e\u0301 🐘 ✔\ufe0f\tü a" + "\ufe0f" * 3, "e\u0301 🐘 ✔\ufe0f\tü a"),
        ("o" + "\u0301" * 100_000 + "k", "o" + "\u0301" * 30 + "k"),
        ("¹ ² ⁹ ① ፩", "¹ ² ⁹ ① ፩"),
    ],
)
def test_invisible_characters_are_removed(text: str, cleaned: str) -> None:
    """Controls, bidirectional, zero-width, tag and private characters go; accents, emoji and digits of any kind stay."""
    assert clean_characters(text) == cleaned
