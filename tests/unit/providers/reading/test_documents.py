"""Documents of every kind: recognised by their bytes, read as canonical text, or refused with a typed reason."""

import re
from collections import Counter
from io import BytesIO

import docx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import (
    MAX_FACT_LENGTH,
    Heading,
    Item,
    Page,
    Paragraph,
    canonical_text,
    clean,
    iso_date,
    text_of_blocks,
)
from providers.reading.character_sets import decode
from providers.reading.document_kinds import kind_of_page
from providers.reading.documents import extract, read_page
from tests.fakes.hostile_pages import pdf
from tests.fakes.office_documents import (
    archive_of,
    cell,
    chapter,
    epub,
    mail,
    notebook,
    odt,
    one_page_pdf,
    pdf_of,
    presentation,
    saved,
    stream_of,
    text_at,
    workbook,
)

URL = "https://site.test/x"
SENTENCE = "The worker removes dead rows from its table."
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500)


def word_document() -> bytes:
    """A document with a heading, a superscript and a table."""
    document = docx.Document()
    document.core_properties.title, document.core_properties.author = "Plan", "Ada"
    document.add_heading("Goals", 1)
    document.add_paragraph("Up to 2").add_run("32").font.superscript = True
    table = document.add_table(2, 2)
    for place, words in enumerate(("a", "b", "1", "2")):
        table.cell(place // 2, place % 2).text = words
    buffer = BytesIO()
    document.save(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("raw", "name", "media_type", "text"),
    [
        (b"<!DOCTYPE html><html><body><p>Real type.</p>", "page.txt", "text/html", "Real type."),
        (b"<p>Short &amp; sweet</p>", "page.html", "text/html", "Short & sweet"),
        (b"# Head\n\nSome *emphasis* and `code`.\n", "a.md", "text/markdown", "# Head\n\nSome emphasis and `code`."),
        (b"Title\n=====\n\n- one\n  more\n- two", "README", "text/plain", "# Title\n\n- one more\n- two"),
        (b"1. one\n\n   more of `__one__`\n\n   * inner\n\n     last", "a.md", "text/markdown",
         "1. one\n\nmore of `__one__`\n\n  - inner\n\nlast"),
        (b'1. "__enter__()" & *args\n\n   Note:\n\n     <b> \\n [x](y)', "a.txt", "text/plain",
         '1. "__enter__()" & *args\n\nNote:\n\n<b> \\n [x](y)'),
        (b"---\ntitle: Named\n---\n# Head\n\n<!-- unseen --><p hidden>Or this</p>\n\nSeen.", "a.md", "text/markdown",
         "# Head\n\nSeen."),
        ("\ufeffh\u00e9".encode("utf-16-le"), "a.txt", "text/plain", "h\u00e9"),
        ("<meta charset=iso-8859-1><p>Caf\u00e9</p>".encode("latin-1"), "a.html", "text/html", "Caf\u00e9"),
        (b"12:01 ERROR *disk*\n  at 3\n# x\n", "server.log", "text/x-log", "```\n12:01 ERROR *disk*\n  at 3\n# x\n```"),
        (b"Site,Cost\nNorth,1\n", "v.csv", "text/csv", "| Site | Cost |\n| --- | --- |\n| North | 1 |"),
    ],
)  # fmt: skip
def test_each_kind_of_text_is_read_by_what_it_is(raw: bytes, name: str, media_type: str, text: str) -> None:
    """The bytes decide, then the name; the text is canonical."""
    found = extract(raw, name)
    assert (found.media_type, found.text) == (media_type, text)


@pytest.mark.parametrize("name", ["a.md", "a.txt"])
def test_deep_lists_and_long_texts_keep_their_words(name: str) -> None:
    """Thirty levels of a list are read; of a very long text the beginning is, and a warning says so."""
    items = "\n".join("  " * level + f"- level{level}" for level in range(30))
    found = extract(f"{items}\n\nend".encode(), name).text
    assert re.findall(r"level\d+|end", found) == [*(f"level{level}" for level in range(30)), "end"]
    long = extract((b"Some words of a line. " * 40 + b"\n\n") * 3_000, name)
    assert 1_999_000 < len(long.text) <= 2_000_000
    assert "only its first" in long.warnings[0]


def test_a_long_list_of_links_ends_at_a_line_with_a_warning() -> None:
    """Markup can be much longer than its words: the page is cut before it is rendered, and the warning says so."""
    lines = (f"- [word {number}](https://site.test/{'x' * 90}/{number})\n" for number in range(20_000))
    found = read_page("".join(lines).encode(), "text/markdown", None, URL)
    assert re.fullmatch(r"(- word \d+\n)+- word \d{4}", found.text)
    assert found.warnings == [f"the text is long: only its first {len(found.text):,} characters are read"]


WORDS = st.text("ab_", min_size=1, max_size=4).filter(lambda word: word.strip("_"))
LINES = st.builds(
    "{}{}{}".format,
    st.sampled_from(("", "  ", "   ", "    ", "        ")),
    st.sampled_from(("", "", "* ", "- ", "1. ", "> ", "# ", "| ", "**")),
    st.lists(WORDS, max_size=4).map(" ".join),
)


@given(st.lists(LINES, max_size=12).map("\n".join))
def test_every_word_of_a_plain_text_is_read(text: str) -> None:
    """Whatever its lines look like, none of its words is lost or changed: a passage is quoted as its author wrote it."""
    words = Counter(re.findall("[ab_]+", text))  # items of a list are counted anew
    assume(words)
    assert Counter(re.findall("[ab_]+", extract(text.encode(), "a.txt").text)) == words


@pytest.mark.parametrize(
    ("raw", "text", "title", "authors"),
    [
        (word_document(), "# Goals\n\nUp to 2^32\n\n| a | b |\n| --- | --- |\n| 1 | 2 |", "Plan", ["Ada"]),
        (saved(workbook()), "## Backups\n\n| Site | Share |\n| --- | --- |\n| North | 0.25 |\n| South | 3 |", "Figures",
         ["Ada"]),
        (odt('<text:h text:outline-level="2">Goals</text:h><text:p>Fewer failures</text:p>',
             meta="<dc:title>Plan</dc:title><dc:creator>Ada</dc:creator>"), "## Goals\n\nFewer failures", "Plan", ["Ada"]),
        (epub({"b.xhtml": chapter("<p>Second.</p>"), "a.xhtml": chapter("<h1>One</h1><p>Run <code>-v</code>.</p>")},
              spine='<itemref idref="a.xhtml"/><itemref idref="b.xhtml"/>',
              facts="<dc:title>A book</dc:title><dc:creator>Ada</dc:creator>"),
         "# One\n\nRun `-v`.\n\nSecond.", "A book", ["Ada"]),
        (notebook(cell("markdown", "# Study\n\nWe *measure* it."), cell("code", "run(1)")),
         "# Study\n\nWe measure it.\n\n```\nrun(1)\n```", "Study", []),
    ],
)  # fmt: skip
def test_documents_keep_their_structure(raw: bytes, text: str, title: str, authors: list[str]) -> None:
    """Word, sheets, OpenDocument, books and notebooks give the same canonical forms as pages."""
    found = extract(raw, "x")
    assert (found.text, found.title, found.authors) == (text, title, authors)


def test_slides_have_page_numbers() -> None:
    """Titles are headings, and every slide begins a page."""
    found = extract(saved(presentation()), "plan")
    assert found.text.startswith("## Goals\n\nFewer failures\n\n- Above all at night")
    assert found.text.endswith("## Costs\n\n| Year | Cost |\n| --- | --- |\n| 2024 | 12 |")
    assert [found.text[start:].split("\n")[0] for start in found.pages] == ["## Goals", "## Hidden slide", "## Costs"]


def test_a_mail_has_its_subject_sender_and_date() -> None:
    """They are statements about it, and words of it."""
    found = extract(bytes(mail("Words of the\nmail.")), "a.eml")
    assert (found.title, found.authors, found.published_at) == ("Backups", ["Ada"], "2024-05-17")
    assert found.text.startswith("Subject: Backups")
    assert "Words of the" in found.text


def test_a_pdf_has_headings_and_page_numbers() -> None:
    """Large letters are headings; every page begins at its first words."""
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R/Resources<</Font<</F1 5 0 R>>>>>>"
    first = text_at(72, 700, "Big Title", 24) + b" " + text_at(72, 660, SENTENCE)
    found = extract(pdf_of([
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R 6 0 R]/Count 2>>", page % 4, stream_of(first),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>", page % 7, stream_of(text_at(72, 700, "Second page, other words.")),
    ]), "x")  # fmt: skip
    assert found.text == f"# Big Title\n\n{SENTENCE}\n\nSecond page, other words."
    assert (found.title, found.pages) == ("Big Title", [0, found.text.index("Second")])


def test_invisible_words_of_a_scan_are_read() -> None:
    """Render mode 3 hides words, but over an image it is what was recognised on it."""
    image = "q 500 0 0 500 50 100 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x41 EI Q"
    scan = pdf([], unseen=SENTENCE, before=image, inside="3 Tr").encode()
    assert SENTENCE in read_page(scan, "application/pdf", None, URL).text


@pytest.mark.parametrize(
    ("raw", "name", "kind", "reason"),
    [
        (b"", "a.txt", "empty", ""),
        (b" \n\t\n", "a.txt", "no_text", ""),
        (bytes(range(256)) * 8, "a.md", "binary", ""),
        (b"body { color: red }", "a.css", "wrong_type", ""),
        (b"PK\x03\x04 and no more", "a.docx", "malformed", ""),
        (b"%PDF-1.4 and no more", "a.pdf", "malformed", ""),
        (one_page_pdf(""), "scan.pdf", "no_text", ""),
        (OLE + "EncryptedPackage".encode("utf-16-le"), "a.docx", "encrypted", ""),
        (OLE, "a.doc", "wrong_type", "save it as .docx"),
        (OLE, "a.msg", "wrong_type", "save it as .eml"),
        (archive_of({"x": "x"}), "a.xlsb", "wrong_type", "save it as .xlsx"),
    ],
)
def test_what_cannot_be_read_has_a_typed_reason(raw: bytes, name: str, kind: str, reason: str) -> None:
    """No file is skipped without a reason, and an old format names one that can be read."""
    with pytest.raises(SourceUnreadable) as caught:
        extract(raw, name)
    assert caught.value.kind == kind
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "charset", "text"),
    [
        ("Очистка".encode("koi8-r"), "koi8-r", "Очистка"),
        ("会费在三月支付。 Fee: 40 ~ 50".encode("hz"), None, "会费在三月支付。 Fee: 40 ~ 50"),
        (b"a ~{1}~ b ~{x}", None, "a ~{1}~ b ~{x}"),
        ("<meta charset=shift_jis>日本語".encode("shift_jis"), None, "<meta charset=shift_jis>日本語"),
        ("Größe und Ähnliches über München".encode("cp1252"), "utf-8", "Größe und Ähnliches über München"),
        (b"\xff\xfe" + "größer".encode("utf-16-le") + b"\x00\xd8!\x00!", "utf-8", "größer\ufffd!\ufffd"),
        ("größer und größer ".encode() * 9 + b"\xff", None, "größer und größer " * 9 + "\ufffd"),
    ],
)
def test_text_is_decoded_by_what_fits(raw: bytes, charset: str | None, text: str) -> None:
    """A byte order mark, UTF-8 if it fits, what is declared if that fits, a guess, or UTF-8 with damage."""
    assert decode(raw, charset=charset) == text


@pytest.mark.parametrize(
    ("declared", "body", "name", "kind"),
    [
        ("text/plain", b"a,b\n1,2", "values.csv", "text/csv"),
        ("text/plain", b"<html>x", "x", "text/plain"),
        ("application/json", b'{"nbformat": 4}', "x", "application/x-ipynb+json"),
        (None, b"%PDF-1.4", "x", "application/pdf"),
        ("application/epub+zip", archive_of({"word/document.xml": "x"}), "x", DOCX),
        (None, archive_of({"word/document.xml": "x"}), "x", DOCX),
        ("text/html", archive_of({"word/document.xml": "x"}), "x", None),
        ("text/plain", b"\x7fELF", "x", None),
        ("application/pdf", b"<!doctype html><html>please log in</html>", "x", None),
        (None, b"\x1f\x8b\x08", "x", None),
    ],
)
def test_a_declared_type_must_agree_with_the_content(
    declared: str | None, body: bytes, name: str, kind: str | None
) -> None:
    """A wrong label is no way around the types that are read; one that is missing or vague is made up for."""
    if kind is None:
        with pytest.raises(SourceUnreadable) as caught:
            kind_of_page(body, declared, name)
        assert caught.value.kind == "wrong_type"
    else:
        assert kind_of_page(body, declared, name) == kind


# --- canonical text and dates ----------------------------------------------------------------------------------------
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


def test_a_huge_first_heading_gives_a_short_title() -> None:
    """A title is compared with every query in the process that answers all runs; the text keeps the whole heading."""
    heading = "1." * 200_000
    found = text_of_blocks([Heading(heading, 1)], "x")
    assert found.title == heading[:MAX_FACT_LENGTH]
    assert heading in found.text


def test_blocks_and_pages_have_offsets() -> None:
    """Every block is a range of the text; a page begins at its first block, also one that has none of its own."""
    blocks = [Page(1), Heading("A", 1), Paragraph("first"), Page(3), Item("x"), Paragraph("`y`")]
    found = text_of_blocks(blocks, "x")
    words = [(found.text[block.start : block.end], block.level) for block in found.blocks]
    assert words == [("A", 1), ("first", 0), ("x", 0), ("`y`", 0)]
    assert found.pages == [0, found.text.index("- x"), found.text.index("- x")]


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


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("=====\nTitle\n=====\n\nPart one\n~~~~~~~~\nWords.\n", "# Title\n\n## Part one\n\nWords."),
        ("[source,python]\n----\nx = 1\ny = 2\n----\n", "[source,python]\n\nx = 1\ny = 2"),
        ("Soup: 4 euro and bread\n-----\nTotal: 6\n", "Soup: 4 euro and bread\n\nTotal: 6"),
        ("= Book\n\n== Part ==\nWords.\na == b\n", "# Book\n\n## Part\n\nWords.\na == b"),
        ("One line.\nTwo lines\n---------\n", "One line.\nTwo lines"),
    ],
)
def test_titles_of_plain_texts_have_a_line_of_signs_as_long_as_they_are(text: str, canonical: str) -> None:
    """A line of another length divides two parts, or is around a listing, and makes no heading of words above it."""
    assert extract(text.encode(), "a.txt").text == canonical


BACKSLASHES = r"C:\temp\new \* \( x \) \\server"


@pytest.mark.parametrize(
    ("raw", "name"),
    [(BACKSLASHES, "a.txt"), (f"<html><body><p>{BACKSLASHES}</p></body></html>", "a.html")],
)
def test_backslashes_are_those_of_the_page(raw: str, name: str) -> None:
    """Formulas and paths have backslashes before any sign; none is added, and none is lost."""
    assert extract(raw.encode(), name).text == BACKSLASHES
    cell = f"<html><body><table><tr><th>{BACKSLASHES}</th><th>b</th></tr><tr><td>c</td><td>d</td></tr></table></body></html>"
    assert extract(cell.encode(), "a.html").text.startswith(f"| {BACKSLASHES} | b |")


def test_signs_of_code_in_a_plain_text_are_signs() -> None:
    """A quotation with grave accents is no code that goes on to the next one."""
    quotes = "For each ``Name $$<a@b>$$'' or `x y` look up the person."
    assert extract(quotes.encode(), "a.txt").text == quotes


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (
            "text/html",
            "<!doctype html><title>T</title><p>A path a\ue003b&#xE003;c and \\d in a page of some words.</p>",
        ),
        ("text/markdown", "# T\n\nA path a\ue003bc and \\d in a page of some words."),
        ("text/plain", "A path a\ue003bc and \\d in a page of some words."),
    ],
)
def test_a_sign_of_our_own_is_no_backslash(kind: str, written: str) -> None:
    """A character of the private area, which fonts give any shape, is dropped; a backslash stays one."""
    text = read_page(written.encode(), kind, None, "https://a.test/x").text
    assert "A path abc and \\d in a page" in text
