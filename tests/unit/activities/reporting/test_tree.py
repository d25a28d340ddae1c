"""The tree of a text: what is written is read again as it was, whatever the draft."""

from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.reporting.markdown import escape, write
from activities.reporting.tree import Blocks, Run, clean_characters, one_line, paragraph, parse, parse_words, sentences
from tests.unit.activities.reporting.hostile import HOSTILE
from tests.unit.activities.reporting.page import link_targets

SCRAPS = """* ** _ ` `` [ ] ( ) < > & \\ ! | \n \n\n # ## - + 1. 12) > a b. Word É === --- ~~~ ``` |---| [1] &#91; &amp; ~ = : $
{ } % ; ? @ / , ' " 0 <a> <!-- ev-1""".split(" ")
SCRAPS += [" ", "  ", "    ", "\t", "\\\n", "  \n", "| a | b |\n|---|:-:|\n", "[x](http://x.test/a_b)", "`a|b`", "\\["]
DRAFTS = st.lists(st.sampled_from(SCRAPS), max_size=40).map("".join)


def data(blocks: Blocks, *, looks: bool = True) -> list[Any]:
    """A tree as plain data; without `looks` its words alone, for emphasis that cannot be written is given up."""

    def inlines(sentence: Any) -> Any:
        found = [each if isinstance(each, Run) else ("mark", each) for each in sentence.inlines]
        return found if looks else "".join(each.text for each in found)

    return [
        (
            block.kind, block.level, block.start, block.info, block.aligns,
            [(each.gap, inlines(each)) for each in block.sentences] if looks
            else "".join(each.gap + inlines(each) for each in block.sentences),
            [[inlines(cell) for cell in row] for row in block.rows],
            [data(part, looks=looks) for part in block.parts],
        )
        for block in blocks
    ]  # fmt: skip


@settings(max_examples=100, deadline=None, derandomize=True)
@given(DRAFTS)
def test_what_is_written_is_read_as_it_was(draft: str) -> None:
    """Parsing, writing and parsing again gives the same words in the same blocks, and the same Markdown."""
    tree = parse(draft)
    written = write(tree)
    again = parse(written.text)
    assert data(again, looks=False) == data(tree, looks=False)
    assert write(again).text == written.text
    for sentence, (start, end) in written.places.items():
        assert sentence.words == "" or written.text[start:end].strip()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_as_it_was(name: str) -> None:
    """Looks survive, too; links are those of a plain parser, and no definition and no tag comes into being."""
    tree = parse(HOSTILE[name])
    written = write(tree).text
    assert data(parse(written)) == data(tree)
    links = [each.link for sentence in sentences(tree) for each in sentence.inlines if each.link]
    assert {unquote(link) for link in link_targets(written)} <= {unquote(link) for link in links}


@pytest.mark.parametrize(
    ("draft", "written"),
    [
        ("Title\n=====\n\n* a\n* b\n\n_x_ __y__", "# Title\n\n- a\n- b\n\n*x* **y**\n"),
        ("a  \nb\nc", "a\\\nb c\n"),
        ("[a][r] ![b](x.png)\n\n[r]: https://evil.test", "\\[a\\]\\[r\\] [b](x.png)\n\n\\[r\\]: https://evil.test\n"),
        ("<b>x</b> &lt;y&gt;", "\\<b\\>x\\</b\\> \\<y\\>\n"),
        ("See example.com and pg_class.relfrozenxid", "See example\\.com and pg_class.relfrozenxid\n"),
        ("\\# no heading\n\n\\- no item\n\n1\\. no number", "\\# no heading\n\n\\- no item\n\n1\\. no number\n"),
        ("|a|b|\n|--|-:|\n|`x\\|y`|\\||", "| a | b |\n| --- | ---: |\n| `x\\|y` | \\| |\n"),
    ],
)
def test_markdown_has_one_form(draft: str, written: str) -> None:
    """Headings, lists, emphasis and code are written one way; what is no markup of ours is escaped."""
    assert write(parse(draft)).text == written


@given(st.text(alphabet=st.one_of(st.sampled_from("\\`*_[]<>|~&#!-+.():/ a1"), st.characters(codec="utf-8"))))
def test_escaped_words_are_shown_as_they_are(text: str) -> None:
    """Markdown shows foreign words as they are, in the middle of a line and as a paragraph."""
    assert parse_words(f"x {escape(one_line(text))} x") == one_line(f"x {text} x")
    assert parse_words(write((paragraph(text),)).text) == one_line(text)


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
