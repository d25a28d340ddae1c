"""Sheets, presentations, texts, books, mails, notebooks, values and logs: their text, facts and what is left out."""

import openpyxl
import pytest

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import BlockKind, Extraction
from providers.reading.extraction import extract
from providers.reading.formats import grids
from providers.reading.web_page import read_page
from tests.fakes.office_documents import (
    cell,
    chapter,
    epub,
    mail,
    notebook,
    odt,
    odt_style,
    presentation,
    saved,
    unseen_presentation,
    white_on_a_picture,
    workbook,
)


def blocks_of(found: Extraction, kind: BlockKind) -> list[str]:
    return [found.text[block.start : block.end] for block in found.blocks if block.kind is kind]


def test_a_workbook_is_its_visible_sheets_and_tables():
    """Hidden sheets, rows, columns, letters like their ground and values without a format are left out."""
    found = extract(saved(workbook()), "figures")
    assert found.text == (
        "# Backups\n\nStorage of the year\n\n| Site | Share |\n| --- | --- |\n| North | 25.0% |\n| South | 3 |"
    )
    assert (found.title, found.authors) == ("Figures", ["Ada"])
    assert found.warnings == ["hidden sheets of the workbook that are left out: 2"]


def test_a_merged_cell_stands_in_each_place_and_a_merged_title_above_the_table():
    """The columns of a table keep their meaning, as they do on pages."""
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["All figures", None, None], ["Site", "Year", "Cost"], ["North", 2023, 1], [None, 2024, 2]):
        sheet.append(row)
    sheet.merge_cells("A1:C1")
    sheet.merge_cells("A3:A4")
    assert extract(saved(book), "x").text == (
        "# Sheet\n\nAll figures\n\n| Site | Year | Cost |\n| --- | --- | --- |\n| North | 2023 | 1 |\n| North | 2024 | 2 |"
    )


def test_a_long_sheet_is_cut_at_a_row_and_says_so(monkeypatch: pytest.MonkeyPatch):
    """The beginning of a table is kept, whole rows of it."""
    monkeypatch.setattr(grids, "MOST_CELLS", 6)
    book = openpyxl.Workbook()
    for row in (["Site", "Cost"], ["North", 1], ["South", 2], ["West", 3]):
        book.active.append(row)
    found = extract(saved(book), "x")
    assert found.text.endswith("| North | 1 |\n| South | 2 |")
    assert found.cut
    assert found.warnings == ["the workbook is large: only its beginning is kept"]


def test_a_presentation_is_its_visible_slides_with_their_numbers():
    """Titles are headings, bodies lists, tables rows; notes are marked; a hidden slide keeps its number."""
    found = extract(saved(presentation()), "plan")
    assert found.text == (
        "# Goals\n\n- Fewer failures\n  - Above all at night\n\nNotes: Speak slowly.\n\n# Costs\n\n"
        "| Year | Cost |\n| --- | --- |\n| 2024 | 12 |"
    )
    assert (found.title, found.authors) == ("Plan", ["Ada"])
    assert found.pages == [0, found.text.index("# Costs"), found.text.index("# Costs")]
    assert found.warnings == ["hidden slides of the presentation that are left out: 1"]


def test_words_that_nobody_sees_on_a_slide_are_left_out():
    """Hidden shapes and those beside the slide, tiny letters, those without filling or like their ground."""
    assert (
        extract(saved(unseen_presentation("beside the slide", "hidden shape", "tiny letters")), "x").text
        == "seen words"
    )
    for hidden in ("white on white", "like their box", "no filling"):
        assert extract(saved(unseen_presentation(hidden)), "x").text == "seen words"


def test_white_letters_on_a_dark_shape_are_read():
    """What lies under the words is not known, so that they are not taken for hidden."""
    assert extract(saved(white_on_a_picture()), "x").text == "seen words"


def test_an_opendocument_text_has_headings_lists_and_tables():
    """The same canonical forms as a Word document; facts come from its metadata."""
    found = extract(
        odt(
            '<text:h text:outline-level="2">Goals</text:h><text:p>Up to 2<text:span text:style-name="S">32</text:span>'
            "<text:note><text:note-body><text:p>a note</text:p></text:note-body></text:note></text:p>"
            "<text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>in it</text:p>"
            "</text:list-item></text:list></text:list-item></text:list>"
            "<table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell>"
            "<text:p>b</text:p></table:table-cell></table:table-row></table:table>",
            odt_style("S", 'style:text-position="super 58%"'),
            "<dc:title>Plan</dc:title><dc:creator>Ada</dc:creator><dc:date>2024-05-17T10:00:00</dc:date>",
        ),
        "x",
    )
    assert found.text == "## Goals\n\nUp to 2^32\n\n- one\n  - in it\n\n| a | b |\n| --- | --- |"
    assert (found.title, found.authors, found.published_at) == ("Plan", ["Ada"], "2024-05-17")


@pytest.mark.parametrize(
    "properties",
    ['text:display="none"', 'fo:color="#ffffff"', 'fo:color="#102030" fo:background-color="#102030"', 'fo:font-size="1pt"'],
)  # fmt: skip
def test_hidden_words_of_an_opendocument_text_are_left_out(properties):
    """A style that hides its words hides them directly, through the style it rests on, and for a whole paragraph."""
    styles = odt_style("H", properties) + odt_style("G", "", parent="H") + odt_style("P", properties, "paragraph")
    body = "".join(f'<text:p>seen<text:span text:style-name="{name}"> hidden</text:span></text:p>' for name in "HG")
    body += '<text:p text:style-name="P">hidden</text:p><text:section text:display="none"><text:p>hidden</text:p></text:section>'
    assert extract(odt(body, styles), "x").text == "seen\n\nseen"


def test_a_book_is_its_chapters_in_reading_order():
    """The spine orders them, the table of contents names those without a heading, and the book's own styles hide."""
    found = extract(
        epub(
            {
                "b.xhtml": chapter("<p>Second chapter.</p>"),
                "a.xhtml": chapter(
                    '<h1>One</h1><p>First <b class="x">hidden</b> words.</p>', '<link rel="stylesheet" href="s.css"/>'
                ),
                "cover.xhtml": chapter("<p>not read through</p>"),
            },
            spine='<itemref idref="cover.xhtml" linear="no"/><itemref idref="a.xhtml"/><itemref idref="b.xhtml"/>',
            facts="<dc:title>A book</dc:title><dc:creator>Ada</dc:creator><dc:language>en</dc:language>",
            extra={
                "OPS/s.css": ".x { display: none }",
                "OPS/toc.ncx": "<ncx><navPoint><navLabel><text>Two</text></navLabel><content src='b.xhtml#p'/></navPoint></ncx>",
            },
            items='<item id="n" href="toc.ncx" media-type="application/x-dtbncx+xml"/>',
        ),
        "x",
    )
    assert found.text == "# One\n\nFirst words.\n\n# Two\n\nSecond chapter."
    assert (found.title, found.authors, found.language) == ("A book", ["Ada"], "en")
    assert blocks_of(found, BlockKind.HEADING) == ["One", "Two"]


def test_a_mail_is_what_its_reader_sees_of_it():
    """Subject, sender and date are facts and words; of two forms the last counts; a mail inside follows."""
    inner = mail("Words of the\ninner mail.", subject="Größe")
    found = extract(
        bytes(mail("a form that nobody sees", "<p>Seen <b hidden>hidden</b> words.</p>", inner=inner)), "a.eml"
    )
    about = "- From: Ada <ada@site.test>\n- To: team@site.test\n- Date: Fri, 17 May 2024 09:30:00 +0200"
    assert found.text == f"# Backups\n\n{about}\n\nSeen words.\n\n## Größe\n\n{about}\n\nWords of the inner mail."
    assert (found.title, found.authors, found.published_at) == ("Backups", ["Ada"], "2024-05-17")


def test_attachments_of_a_mail_are_counted_and_not_read():
    """Nobody is left to think that they were."""
    message = mail("Words of the mail.")
    message.add_attachment(b"attached words", maintype="text", subtype="plain", filename="a.txt")
    found = extract(bytes(message), "a.eml")
    assert "attached" not in found.text
    assert found.warnings == ["attachments of the mail that are not read: 1"]


def test_a_notebook_has_text_as_text_and_code_as_code():
    """What it printed is code too; cells and outputs that it hides are left out."""
    found = extract(
        notebook(
            cell("markdown", "# Study\n\nWe *measure* it."),
            cell("code", "run(1)", {"output_type": "stream", "text": ["42\n"]}),
            cell("code", "hidden()", {"output_type": "execute_result", "data": {"text/plain": "shown"}},
                 jupyter={"source_hidden": True}),
            cell("code", "quiet()", {"output_type": "stream", "text": "hidden"}, jupyter={"outputs_hidden": True}),
        ),
        "study",
    )  # fmt: skip
    assert found.text == (
        "# Study\n\nWe measure it.\n\n```\nrun(1)\n```\n\n```\n42\n```\n\n```\nshown\n```\n\n```\nquiet()\n```"
    )
    assert found.title == "Study"
    assert blocks_of(found, BlockKind.CODE) == ["run(1)", "42", "shown", "quiet()"]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"Site,Cost\nNorth,1\nSouth,2\n", "| Site | Cost |\n| --- | --- |\n| North | 1 |\n| South | 2 |"),
        ('Ort;Größe\nKöln;1,5\n"a;b";2\n'.encode("cp1252"), "| Ort | Größe |\n| --- | --- |\n| Köln | 1,5 |\n| a;b | 2 |"),
        ("a\tb\r\n1\t2\r\n".encode("utf-16"), "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        (b"1,2\n3,4\n", "| 1 | 2 |\n| 3 | 4 |"),
        (b'name,text\na,"two\nlines"\n', "| name | text |\n| --- | --- |\n| a | two lines |"),
        (b"just prose, with a comma.\nAnd more of it.\n", "just prose, with a comma. And more of it."),
    ],
)  # fmt: skip
def test_values_are_a_table_whatever_parts_them(raw, text):
    """Separator, character set, quoting and the row of names are found out; what is no table is read as text."""
    assert extract(raw, "values.csv").text == text


def test_lines_of_a_log_are_not_joined():
    """Each line stands as it was written, also where it would read as markup."""
    found = extract(b"12:00:01 ERROR disk full\n  at line 3\n# started\n\n12:00:02 ok\n", "server.log")
    assert found.text == "12:00:01 ERROR disk full\n  at line 3\n\\# started\n12:00:02 ok"


@pytest.mark.parametrize(
    ("raw", "media_type", "url"),
    [
        (saved(workbook()), "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "https://a.test/x"),
        (notebook(cell("markdown", "Words.")), "application/json", "https://a.test/x"),
        (notebook(cell("markdown", "Words.")), "text/plain", "https://a.test/n.ipynb"),
        (b"a,b\n1,2\n", "text/plain", "https://a.test/raw/values%2Ecsv?download=1"),
        (b"a\tb\n1\t2\n", "text/csv", "https://a.test/x"),
    ],
)  # fmt: skip
def test_pages_of_the_web_are_read_as_what_they_are(raw, media_type, url):
    """A label that is nearly right, or only says text, does not matter."""
    assert (
        read_page(raw, media_type, None, url).media_type not in {media_type, "text/plain"} or media_type == "text/csv"
    )


@pytest.mark.parametrize(
    ("name", "stream", "advice"),
    [
        ("a.doc", "WordDocument", "save it as .docx"),
        ("a.xls", "Workbook", "save it as .xlsx"),
        ("a.ppt", "PowerPoint Document", "save it as .pptx"),
        ("a.msg", "__properties_version1.0", "save it as .eml"),
    ],
)
def test_old_formats_are_refused_with_what_to_do(name, stream, advice):
    """The person who has the file is told in which form it can be read, whatever the file is called."""
    raw = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500) + f"{stream}\0".encode("utf-16-le")
    for called in (name, "a.pdf"):
        with pytest.raises(SourceUnreadable, match=advice) as caught:
            extract(raw, called)
        assert caught.value.kind == "wrong_type"
