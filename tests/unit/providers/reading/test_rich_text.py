"""Rich Text (RTF): the words of a document, its lists and tables, and sources that are made to hold up their reader."""

import time
from contextlib import suppress

import pytest

from providers.errors import SourceUnreadable
from providers.reading.document_kinds import DocumentKind, kind_of_page
from providers.reading.documents import extract
from providers.reading.rich_text import MAX_BYTES


def rich(body: str, head: str = r"\ansi\ansicpg1252") -> bytes:
    return rf"{{\rtf1{head} {body}}}".encode("cp1252")


def text(body: str, head: str = r"\ansi\ansicpg1252") -> str:
    return extract(rich(body, head), "a.rtf").text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (r"The fee is \'80300 \endash  no more.\tab Due", "The fee is €300 – no more. Due"),
        (r"10\_20 degrees, na\u239?ve, soft\-ly a\~b", "10-20 degrees, naïve, softly a b"),
        (r"\u-10179?\u-8704? \u26412?", "\N{GRINNING FACE} 本"),
        (r"the {\v hidden }{\deleted gone }end", "the end"),
        (r'see {\field{\*\fldinst{HYPERLINK "http://a.b" }}{\fldrslt the rules}} first', "see the rules first"),
        (r"a{\*\shppict{\pict\pngblip " + "89ab" * 100 + "}} b", "a b"),
        (r"one\line two\par three", "one\n\ntwo\n\nthree"),
    ],
)
def test_words_are_those_that_a_program_shows(body: str, words: str) -> None:
    """Escapes of every kind are letters; hidden and deleted text, addresses of links and pictures are no words."""
    assert text(body) == words


SIGN_FONTS = r"{\fonttbl{\f0\fcharset0 Arial;}{\f3\fcharset2{\*\panose 05050102}Symbol;}{\f14\fcharset2 Wingdings;}}"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (r"x {\f3\'b3} 5", "x ≥ 5"),
        (r"20 \f3\'b1\f0  2, {\f3 \u-3913\'b7}, \f3\plain\'b1", "20 ± 2, •, ±"),
        (r'{\field{\*\fldinst SYMBOL 163 \\f "Symbol" \\s 12}{\fldrslt\f3\fs24}} 7', "≤ 7"),
        (
            r"{\field{\*\fldinst {SYMBOL 254 \\f Wingdings \\s 12}}{\fldrslt{\f14}}} paid, {\f14\'4a}smile",
            "☑ paid, smile",
        ),
        (r"{\listtext\f3\'b7\tab}first\par{\listtext\f14\'4a\tab}second", "- first\n- second"),
    ],
)
def test_signs_of_symbol_fonts_are_characters(body: str, words: str) -> None:
    """By their code in the font, however a program writes it; a picture before an item is its bullet."""
    assert text(SIGN_FONTS + body) == words


def test_each_font_has_a_character_set() -> None:
    """Bytes are letters of the set of their font, which the table of fonts states."""
    fonts = r"{\fonttbl{\f0\fswiss\fcharset0 Arial;}{\f7\froman\fcharset204{\*\panose 02020}Times;}}"
    assert text(rf"{fonts}\f0 caf\'e9 {{\f7 \'ef\'f0\'e8\'e2\'e5\'f2}}") == "café привет"


@pytest.mark.parametrize("command", ["listtext", "pntext"])
def test_items_have_the_numbers_that_are_saved(command: str) -> None:
    """A number is saved before its paragraph, by old programs under another name."""
    made = text(rf"{{\{command} 7.\tab}}Open\par{{\{command}\'b7\tab}}Close\par{{\{command} b)\tab}}Lock\par")
    assert made == "7. Open\n- Close\n\nb) Lock"


def test_rows_of_a_table_keep_their_cells() -> None:
    """Cells end with a command, and empty ones are cells, too."""
    made = text(r"Berth\cell Price\cell\row A 1\cell\cell\row\pard After\par")
    assert made == "| Berth | Price |\n| --- | --- |\n| A 1 |  |\n\nAfter"


def test_facts_and_footnotes_of_a_document() -> None:
    """Title, author and date are those that it states, and what its footnotes say is counted."""
    body = r"{\info{\title R\'e8gles}{\author Ann Quill}{\creatim\yr2021\mo5\dy4\hr1}}One{\footnote two three} four."
    read = extract(rich(body), "a.rtf")
    assert (read.title, read.authors, read.published_at) == ("Règles", ["Ann Quill"], "2021-05-04")
    assert read.text == "One four."
    assert read.warnings == ["50% of the words are read; not read: footnotes (2)"]


def test_bytes_decide_and_a_page_that_declares_it_must_be_it() -> None:
    """A rich text is recognised under any name, and other text is not taken for one."""
    assert extract(rich("Words"), "a.doc").media_type == DocumentKind.RTF
    assert kind_of_page(rich("Words"), "text/rtf", "") is DocumentKind.RTF
    with pytest.raises(SourceUnreadable, match="not of the type"):
        kind_of_page(b"Words", "application/rtf", "")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "body",
    [
        r"{\field{\*\fldinst{" * 60_000,
        r"{\fonttbl" + r"\f1\fcharset0 " * 60_000,
        r"{\fonttbl" + r"{\f1\fcharset0 A" * 60_000,
        r"{\title " * 100_000,
        "{a " * 200_000,
        r"\u26412" * 100_000,
    ],
)
def test_no_source_takes_the_square_of_its_length(body: str) -> None:
    """Sources that hang the library alone are read, or refused, within seconds."""
    begun = time.process_time()
    with suppress(SourceUnreadable):
        extract(rich(body), "a.rtf")
    assert time.process_time() - begun < 20


@pytest.mark.parametrize("body", [r"a\uc b", r"a{\pict\binx}", r"a\u99999999999 ?"])
def test_a_damaged_source_is_named(body: str) -> None:
    """A command with a number that is none ends with a reason."""
    with pytest.raises(SourceUnreadable) as caught:
        text(body)
    assert caught.value.kind == "malformed"


def test_only_pictures_may_be_large() -> None:
    """A source of many megabytes is read if they are of pictures, and refused if they are words."""
    assert text(r"a {\pict " + "0a" * MAX_BYTES + "} b") == "a b"
    with pytest.raises(SourceUnreadable, match="without its pictures"):
        text("word " * (MAX_BYTES // 5 + 1))
