"""The table of `docs/corpora.md` held against documents: what it names as read is read, and what it names as not is not."""

import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
from openpyxl.chart import BarChart
from openpyxl.comments import Comment
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE

from providers.reading.documents import extract
from tests.fakes.office_documents import (
    cell,
    changed,
    chapter,
    epub,
    mail,
    notebook,
    odt,
    open_document,
    page_pdf,
    saved,
    text_at,
)

PAGE = Path("docs/corpora.md")
ROOT = Path(__file__).parents[4]
WORDS = "Seen words of the text. " * 3


def page_of(body: str) -> bytes:
    return f"<html><body><p>seen {WORDS}</p>{body}</body></html>".encode()


def word_document() -> bytes:
    document = docx.Document()
    document.sections[0].header.paragraphs[0].text = "seenheader"
    document.sections[0].footer.paragraphs[0].text = "seenfooter"
    document.add_heading("seenheading", 1)
    document.add_paragraph("seenitem", style="List Number")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "seencell", "b"
    run = document.add_paragraph(WORDS).runs[0]
    document.add_comment(run, text="unseencomment", author="Ada")
    hidden = document.add_paragraph().add_run("unseenhidden")
    hidden.font.hidden = True
    return saved(document)


def workbook() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "seensheet"
    sheet.append(["seencell", 0.075, 12])
    sheet["B1"].number_format, sheet["C1"].number_format = "0.0%", "00000"
    sheet["A1"].comment = Comment("unseencomment", "Ada")
    chart = BarChart()
    chart.title = "seencharttitle"
    sheet.add_chart(chart, "E2")
    book.create_sheet("seenhidden").append(["x"])
    book["seenhidden"].sheet_state = "hidden"
    return saved(book)


def show() -> bytes:
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[5])
    slide.shapes.title.text = "seentitle"
    slide.notes_slide.notes_text_frame.text = "seennotes"
    data = CategoryChartData()
    data.categories = ["seencategory"]
    data.add_series("seenseries", (1,))
    chart = slide.shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, 9, 9, data).chart
    chart.chart_title.text_frame.text = "seencharttitle"
    return saved(slides)


def opendocument() -> bytes:
    note = "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>unseennote</text:p></text:note-body></text:note>"
    remark = "<office:annotation><text:p>unseencomment</text:p></office:annotation>"
    header = "<style:master-page><style:header><text:p>seenheader</text:p></style:header></style:master-page>"
    return odt(f"<text:h>seenheading</text:h><text:p>{WORDS}{note}{remark}</text:p>{header}")


def sheet_of(words: str, remark: str) -> str:
    cell = f"<table:table-cell>{remark}<text:p>{words}</text:p></table:table-cell>"
    return f"<table:table table:name='seensheet' table:display='false'><table:table-row>{cell}</table:table-row></table:table>"


SLIDE = (
    "<draw:page><draw:frame presentation:class='title'><draw:text-box><text:p>seentitle</text:p></draw:text-box></draw:frame>"
    "<draw:frame><draw:image/><svg:desc>unseen</svg:desc></draw:frame>"
    "<presentation:notes><draw:text-box><text:p>seennotes</text:p></draw:text-box></presentation:notes></draw:page>"
)


def message() -> bytes:
    outer, inner = mail("seentext"), mail("seeninside")
    outer.add_attachment("unseenattachment", filename="a.txt")
    outer.add_attachment(inner)
    return bytes(outer)


MADE: dict[str, Callable[[], bytes]] = {
    "Markdown": lambda: (
        b"# seenheading\n\n*seen* <!-- unseen -->\n\n- seenitem\n\n| seencell | b |\n| - | - |\n| c | d |\n"
    ),
    "HTML": lambda: page_of(
        "<details><p>seendetails</details><nav>unseen</nav><p hidden>unseen</p><img alt=unseen><footer>unseen</footer>"
        "<dialog>unseen</dialog><select><option>unseen</select><del>unseen</del><ruby>seenbase<rt>unseen</rt></ruby>"
        "<button aria-controls=a>seentab</button><p id=a hidden>seenpanel</p>"
    ),
    "plain text": lambda: b"seentitle\n~~~~~~~~~\nseen __init__ *seenstars*\n",
    ".pdf": lambda: page_pdf(text_at(72, 700, "seen") + b" BT /F1 9 Tf 3 Tr 72 600 Td (unseen) Tj ET"),
    ".docx": word_document,
    ".odt": opendocument,
    ".ods": lambda: open_document(
        "spreadsheet", sheet_of("seencell", "<office:annotation><text:p>unseen</text:p></office:annotation>")
    ),
    ".odp": lambda: open_document("presentation", SLIDE),
    ".xlsx": workbook,
    ".pptx": show,
    ".epub": lambda: epub({"a.xhtml": chapter("<h1>seen</h1><p>seenterm<a role='doc-noteref'>unseen</a></p>")}),
    ".eml": message,
    ".ipynb": lambda: notebook(cell("markdown", "# seen"), cell("code", "seencode")),
    ".rtf": lambda: (
        rb"{\rtf1 seen\par{\listtext 1.\tab}seenitem\par seencell\cell b\cell\row {\header unseen}{\footnote unseen}"
        rb"{\*\annotation unseen}{\v unseen}{\deleted unseen}{\*\shpinst{\shptxt unseen}}}"
    ),
    ".csv": lambda: b"seen;seenb\n1;2\n",
    ".log": lambda: b"seen *stars*\n",
}
"""A document of each row; words that begin with `seen` are to be read, and those with `unseen` are not."""
NAMES = {"Markdown": "a.md", "HTML": "a.html", "plain text": "a.txt"}


def rows() -> dict[str, tuple[str, str]]:
    """What the table says of each format: read, and not read."""
    lines = (ROOT / PAGE).read_text("utf-8").partition("| format | what is read | what is not |")[2].split("\n\n")[0]
    cells = [[part.strip() for part in line.split(" | ")] for line in lines.splitlines()[2:]]
    return {
        re.sub(r"^`(\.\w+)`.*", r"\1", each[0].removeprefix("| ")): (each[1], each[2].removesuffix(" |"))
        for each in cells
    }


def test_the_table_names_the_formats_that_are_tried() -> None:
    """A row without a document that proves it would be a promise."""
    assert set(rows()) == set(MADE)


@pytest.mark.parametrize("name", MADE)
def test_what_the_table_names_is_read_and_nothing_else(name: str) -> None:
    """The words of each document that are to be read are all in its text, and none of the others is."""
    raw = MADE[name]()
    text = extract(raw, NAMES.get(name, f"a{name}")).text
    assert "unseen" not in text
    made = raw.decode("utf-8", "replace") if not raw.startswith(b"PK") else _parts(raw)
    promised = set(re.findall(r"\bseen\w*", made)) or {"seen"}
    assert promised - set(re.findall(r"\bseen\w*", text)) == set()


def _parts(raw: bytes) -> str:
    import zipfile

    with zipfile.ZipFile(BytesIO(raw)) as archive:
        return " ".join(
            archive.read(name).decode("utf-8", "replace") for name in archive.namelist() if name.endswith("ml")
        )


def with_new_chart() -> bytes:
    """Slides with a chart of a kind that only the newest programs show."""
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[5])
    slide.shapes.title.text = "Fees of members"
    return changed(saved(slides), "ppt/charts/chartEx1.xml", "<x><t>Steps to fee</t></x>")


@pytest.mark.parametrize(
    ("raw", "warning"),
    [
        (word_document(), "96% of the words are read; not read: comments (1)"),
        (with_new_chart(), "50% of the words are read; not read: charts (3)"),
        (opendocument(), "90% of the words are read; not read: footnotes (1), comments (1)"),
    ],
)
def test_words_that_are_left_out_are_counted_by_kind(raw: bytes, warning: str) -> None:
    """The simplest extraction of all parts is the measure; the source says what share of it is in its text."""
    assert extract(raw, "x").warnings == [warning]


def test_a_document_read_to_the_last_word_has_no_warning() -> None:
    """Words that one run begins and the next one ends are one word to the measure, too."""
    document = docx.Document()
    paragraph = document.add_paragraph("All of it\tis re")
    paragraph.add_run("ad.")
    assert extract(saved(document), "x").warnings == []


def test_formulas_that_no_program_has_calculated_are_named() -> None:
    """A program that writes sheets saves no values; those of a program that shows them are there."""
    book = openpyxl.Workbook()
    book.active.append(["Total", "=1+2", "=A1"])
    assert extract(saved(book), "x").warnings == [
        "50% of the words are read; not read: formulas that no program has calculated (2)"
    ]
    book.active["B1"] = book.active["C1"] = 3
    assert extract(saved(book), "x").warnings == []
