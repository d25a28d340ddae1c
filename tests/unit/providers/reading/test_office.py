"""Word, PowerPoint, Excel and OpenDocument: every word as its author wrote it, and the numbers that the program shows."""

from datetime import UTC, date, datetime, time, timedelta
from io import BytesIO

import docx
import openpyxl
import pptx
import pytest
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from lxml import etree  # type: ignore[import-untyped]

from providers.errors import SourceUnreadable
from providers.reading.document_kinds import MAX_UNPACKED_BYTES
from providers.reading.documents import extract
from providers.reading.notation import DRAWING, diagram_lines
from providers.reading.office import cell_text
from tests.fakes.office_documents import archive_of, changed, odt, open_document, presentation, saved, workbook

W = nsdecls("w")
BOX_SPACES = (
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
)


def word(*blocks: str, numbering: str = "", styles: str = "") -> bytes:
    """A Word document of these elements, with definitions of lists and styles."""
    document = docx.Document()
    body = document.element.body
    for block in blocks:
        body.insert(len(body) - 1, parse_xml(block.replace(">", f" {W} {BOX_SPACES}>", 1)))
    if numbering:
        root = document.part.numbering_part.element
        for child in parse_xml(f"<w:numbering {W}>{numbering}</w:numbering>"):
            root.insert(0, child) if child.tag.endswith("abstractNum") else root.append(child)
    if styles:
        document.styles.element.extend(parse_xml(f"<w:styles {W}>{styles}</w:styles>"))
    return saved(document)


def run(words: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{words}</w:t></w:r>'


def paragraph(inner: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{inner}</w:p>"


def numbered(words: str, number: int, level: int = 0) -> str:
    return paragraph(run(words), f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


def moment(*parts: int) -> datetime:
    """A moment without a time zone, as sheets have them."""
    return datetime(*parts, tzinfo=UTC).replace(tzinfo=None)


def read(raw: bytes) -> str:
    return extract(raw, "x").text


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        ("<w:r><w:t>Rent</w:t><w:tab/><w:t>700 euro</w:t></w:r>", "Rent 700 euro"),
        ("<w:r><w:t>Rent</w:t></w:r><w:r><w:ptab/></w:r><w:r><w:t>700</w:t></w:r>", "Rent 700"),
        ("<w:r><w:t>5</w:t><w:noBreakHyphen/><w:t>7 years, e</w:t><w:softHyphen/><w:t>mail</w:t></w:r>", "5-7 years, email"),
        ("<w:r><w:t>one</w:t><w:br/><w:t>two</w:t><w:cr/><w:t>three</w:t></w:r>", "one\ntwo\nthree"),
        (run("41,300") + "<w:r><w:rPr><w:i/></w:rPr><w:t xml:space='preserve'> euro*</w:t></w:r>", "41,300 euro*"),
        (run("a") + "<w:del>" + run("b") + "</w:del><w:ins>" + run("c") + "</w:ins>", "ac"),
        ("<w:moveFrom>" + run("gone ") + "</w:moveFrom><w:moveTo>" + run("here") + "</w:moveTo>", "here"),
        (run("seen") + "<w:r><w:rPr><w:vanish/></w:rPr><w:t> unseen</w:t></w:r>", "seen"),
        ("<w:sdt><w:sdtPr/><w:sdtContent>" + run("in a control") + "</w:sdtContent></w:sdt>", "in a control"),
        ("<w:hyperlink>" + run("linked") + "</w:hyperlink><w:smartTag>" + run(" tagged") + "</w:smartTag>", "linked tagged"),
        (run("See") + "<w:r><w:footnoteReference w:id='2'/></w:r>" + run(" it"), "See it"),
        ("<w:r><w:fldChar w:fldCharType='begin'/><w:instrText>PAGE</w:instrText></w:r>" + run("page 3"), "page 3"),
        ("<w:r><w:sym w:font='Arial' w:char='20AC'/><w:sym w:font='Wingdings' w:char='F04A'/></w:r>" + run(" 5"), "€ 5"),
        ("<w:r><w:t>CO</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='subscript'/></w:rPr><w:t>2</w:t></w:r>", "CO_2"),
        ("<w:r><w:t>1</w:t></w:r><w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>st</w:t></w:r>", "1st"),
        (run("E=") + "<m:oMath><m:sSup><m:e><m:r><m:t>c</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:oMath>", "E=c^2"),
        ("<m:oMath><m:f><m:num><m:r><m:t>a+b</m:t></m:r></m:num><m:den><m:r><m:t>c</m:t></m:r></m:den></m:f></m:oMath>", "(a+b)/c"),
    ],
)  # fmt: skip
def test_each_sign_within_a_word_paragraph_is_read_as_it_is_shown(inner: str, text: str) -> None:
    """Tabs separate, hyphens that do not break are hyphens, what was deleted or moved away is not there."""
    assert read(word(paragraph(inner))) == text


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        (run("at 20 ") + "<w:r><w:sym w:font='Symbol' w:char='F0B1'/></w:r>" + run("2 degrees"), "at 20 ±2 degrees"),
        ("<w:r><w:sym w:font='Symbol' w:char='00A3'/></w:r>" + run(" 40 ") + "<w:r><w:sym w:font='Symbol' w:char='F057'/></w:r>", "≤ 40 Ω"),
        ("<w:r><w:rPr><w:rFonts w:ascii='Symbol'/></w:rPr><w:t>5 \uf06dm</w:t></w:r>", "5 μm"),
        ("<w:r><w:rPr><w:rFonts w:ascii='Arial'/></w:rPr><w:t>5 µm, 3 − 1</w:t></w:r>", "5 µm, 3 − 1"),
        ("<w:r><w:sym w:font='Wingdings' w:char='F0FE'/><w:sym w:font='Wingdings' w:char='F0A8'/></w:r>" + run(" Agreed"), "☑☐ Agreed"),
        ("<w:r><w:sym w:font='Symbol' w:char='F0F0'/><w:sym w:font='Symbol' w:char='what'/></w:r>" + run("none"), "none"),
    ],
)  # fmt: skip
def test_signs_of_fonts_without_letters_are_the_characters_for_which_they_stand(inner: str, text: str) -> None:
    """A plus or minus, a unit or a ticked box that a program writes as a code of a font is a part of the sentence."""
    assert read(word(paragraph(inner))) == text


def test_signs_of_fonts_in_slides_are_the_characters_for_which_they_stand() -> None:
    """A slide names the font of such signs beside that of its letters, and has both in one run."""
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    piece = slide.placeholders[1].text_frame.paragraphs[0].add_run()
    piece.text = "at 20 \uf0b1 2 degrees"
    piece.font._rPr.append(parse_xml(f'<a:sym {nsdecls("a")} typeface="Symbol"/>'))
    assert read(saved(show)) == "at 20 ± 2 degrees"


def test_a_text_box_is_read_once_and_its_paragraph_too() -> None:
    """The paragraph that anchors a box keeps its own words; the fallback for old programs is the same box again."""
    box = "<wps:txbx><w:txbxContent><w:p><w:r><w:t>Inside.</w:t></w:r></w:p></w:txbxContent></wps:txbx>"
    old = "<w:pict><v:textbox><w:txbxContent><w:p><w:r><w:t>Inside.</w:t></w:r></w:p></w:txbxContent></v:textbox></w:pict>"
    both = f"<mc:AlternateContent><mc:Choice Requires='wps'>{box}</mc:Choice><mc:Fallback>{old}</mc:Fallback></mc:AlternateContent>"
    assert read(word(paragraph(run("Before ") + f"<w:r>{both}</w:r>" + run("after.")))) == "Before after.\n\nInside."
    assert read(word(paragraph(f"<w:r>{old}</w:r>" + run("Around.")))) == "Around.\n\nInside."
    alone = f"<mc:AlternateContent><mc:Fallback>{old}</mc:Fallback></mc:AlternateContent>"
    assert read(word(paragraph(f"<w:r>{alone}</w:r><w:r><mc:AlternateContent/></w:r>" + run("x")))) == "x\n\nInside."


LEVELS = "".join(
    f'<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/></w:lvl>'
    for level, (form, text) in enumerate((("decimal", "%1."), ("decimal", "%1.%2"), ("lowerLetter", "(%3)"), ("upperRoman", "%4"), ("bullet", "•")))
)  # fmt: skip
LISTS = (
    f'<w:abstractNum w:abstractNumId="70">{LEVELS}</w:abstractNum><w:num w:numId="70"><w:abstractNumId w:val="70"/></w:num>'
    '<w:num w:numId="71"><w:abstractNumId w:val="70"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="9"/></w:lvlOverride></w:num>'
)


def test_lists_in_word_have_the_numbers_that_are_shown() -> None:
    """A list goes on after other paragraphs, restarts where it says so, and shows the numbers of the levels above."""
    found = read(word(
        numbered("Close", 70), numbered("Open", 70), paragraph(run("Wait.")), numbered("Press", 70),
        numbered("Softly", 70, 1), numbered("Twice", 70, 1), numbered("Quickly", 70, 2), numbered("Deep", 70, 3),
        numbered("Point", 70, 4), numbered("Last", 70), numbered("Inner", 70, 1), numbered("Anew", 71), numbered("On", 70),
        numbering=LISTS,
    ))  # fmt: skip
    lines = [line for line in found.split("\n") if line]
    assert lines == ["1. Close", "2. Open", "Wait.", "3. Press", "3.1 Softly", "3.2 Twice", "(a) Quickly", "I Deep",
                     "        - Point", "4. Last", "4.1 Inner", "9. Anew", "10. On"]  # fmt: skip


def test_headings_in_word_have_the_numbers_of_their_style() -> None:
    """A style may number its paragraphs, and inherit that; a clause is cited by that number."""
    style = (
        '<w:style w:type="paragraph" w:styleId="Clause"><w:name w:val="Clause"/><w:pPr><w:numPr><w:ilvl w:val="{}"/>'
        '<w:numId w:val="70"/></w:numPr><w:outlineLvl w:val="{}"/></w:pPr></w:style>'
    )
    styles = style.format(0, 0) + style.format(1, 1).replace("Clause", "Sub")
    styles += '<w:style w:type="paragraph" w:styleId="Heir"><w:name w:val="Heir"/><w:basedOn w:val="Sub"/></w:style>'
    of = '<w:pStyle w:val="{}"/>'.format
    found = read(word(
        paragraph(run("Fees"), of("Clause")), paragraph(run("Due"), of("Sub")), paragraph(run("Late"), of("Heir")),
        paragraph(run("End"), of("Clause")), numbering=LISTS, styles=styles,
    ))  # fmt: skip
    assert found == "# 1. Fees\n\n## 1.1 Due\n\n## 1.2 Late\n\n# 2. End"


def test_page_headers_of_a_word_document_are_read_once() -> None:
    """A contract's number may stand in them alone; an unused one, of first pages, is not read."""
    document = docx.Document()
    document.sections[0].header.paragraphs[0].text = "Contract RX-5512"
    document.sections[0].footer.paragraphs[0].text = "Signed in Bonn"
    document.sections[0].first_page_header.paragraphs[0].text = "Never shown"
    document.add_paragraph("Text.")
    document.add_section().header.is_linked_to_previous = True
    assert read(saved(document)) == "Contract RX-5512\n\nText.\n\nSigned in Bonn"


def test_merged_cells_and_frames_of_word_tables() -> None:
    """A cell over two columns is written once; a table of one column is a frame around a text."""
    document = docx.Document()
    table = document.add_table(2, 3)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "Both"
    table.cell(0, 2).text, table.cell(1, 0).text, table.cell(1, 2).text = "c", "1", "3"
    frame = document.add_table(1, 1).cell(0, 0)
    frame.text = "Framed."
    assert read(saved(document)) == "| Both |  | c |\n| --- | --- | --- |\n| 1 |  | 3 |\n\nFramed."


@pytest.mark.parametrize(
    "content_type",
    ["application/vnd.ms-word.document.macroEnabled.main+xml",
     "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml"],
)  # fmt: skip
def test_templates_and_documents_with_macros_are_read(content_type: str) -> None:
    """Their text is that of any document; macros are never run."""
    raw = word(paragraph(run("Words.")))
    usual = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    types = docx.opc.package.OpcPackage.open(BytesIO(raw))
    assert types.main_document_part.content_type == usual
    made = changed(raw, "[Content_Types].xml", _types(raw).replace(usual, content_type))
    assert read(made) == "Words."


def _types(raw: bytes) -> str:
    import zipfile

    with zipfile.ZipFile(BytesIO(raw)) as archive:
        return archive.read("[Content_Types].xml").decode()


def test_strict_workbooks_are_read() -> None:
    """The strict variant names its elements otherwise; a reader that does not know them finds no sheet."""
    import zipfile

    raw = saved(workbook())
    with zipfile.ZipFile(BytesIO(raw)) as archive:
        names = archive.namelist()
    for name in names:
        with zipfile.ZipFile(BytesIO(raw)) as archive:
            part = archive.read(name)
        for kind in ("spreadsheetml", "officeDocument"):
            part = part.replace(
                f"schemas.openxmlformats.org/{kind}/2006/".encode(), f"purl.oclc.org/ooxml/{kind}/".encode()
            )
        raw = changed(raw, name, part)
    assert "| North | 0.25 |" in read(raw)


def test_an_archive_that_unpacks_to_too_much_is_refused() -> None:
    """The sizes that an archive states are added up before any part is opened."""
    raw = changed(saved(workbook()), "xl/media/a.bin", bytes(MAX_UNPACKED_BYTES))
    with pytest.raises(SourceUnreadable) as caught:
        extract(raw, "x")
    assert caught.value.kind == "too_large"


def test_notes_and_line_breaks_of_slides_are_read() -> None:
    """The notes of a slide follow it; stars are letters, a line break separates words; groups are opened."""
    show = presentation()
    slide = show.slides[0]
    slide.shapes.title.text = "Goals\vof the year"
    slide.placeholders[1].text_frame.paragraphs[0].text = "Fewer *failures*"
    box = slide.shapes.add_group_shape().shapes.add_textbox(0, 0, 9, 9)
    box.text_frame.text = "In a group"
    found = extract(saved(show), "x")
    assert found.text.startswith(
        "## Goals of the year\n\nFewer *failures*\n\n- Above all at night\n\nIn a group\n\nSpeak slowly.\n\n## Hidden slide"
    )
    assert found.pages[1] == found.text.index("## Hidden slide")


def test_an_empty_presentation_has_no_text() -> None:
    """Slides without words are refused as other documents are."""
    with pytest.raises(SourceUnreadable):
        extract(saved(pptx.Presentation()), "x")


@pytest.mark.parametrize(
    ("value", "number_format", "text"),
    [
        (timedelta(hours=37, minutes=30), "[h]:mm", "37:30"),
        (timedelta(hours=37, minutes=30), "[hh]:mm:ss", "37:30:00"),
        (timedelta(minutes=90, seconds=5), "[mm]:ss", "90:05"),
        (-timedelta(minutes=30), "[h]:mm", "-00:30"),
        (time(8, 30), "hh:mm", "08:30"),
        (time(8, 30, 15), "h:mm:ss AM/PM", "08:30:15"),
        (moment(1899, 12, 31, 8, 30), "hh:mm", "08:30"),
        (moment(2026, 3, 15), "dd/mm/yyyy", "2026-03-15"),
        (moment(2026, 3, 15, 9, 5), 'd. mmm yyyy "at" hh:mm', "2026-03-15 09:05"),
        (moment(2026, 3, 15, 9, 5), "yyyy-mm-dd", "2026-03-15 09:05"),
        (date(2026, 3, 15), "General", "2026-03-15"),
        (1234, "00000", "01234"),
        (0.075, "0.0%", "7.5%"),
        (0.07525, "0%", "7.525%"),
        (0.5, "0.00%", "50.00%"),
        (-0.021, "0.0 %;[Red]-0.0 %", "-2.1 %"),
        (0.1 + 0.2, "General", "0.3"),
        (1e15, "0", "1000000000000000"),
        (1234.5, '"$"#,##0.00', "$1234.50"),
        (-1234.5, "_-* #,##0.00 [$€-407]_-;-* #,##0.00 [$€-407]_-", "-1234.50 €"),
        (30, '0 "m²"', "30 m²"),
        (7, '"No. "0', "No. 7"),
        (5550199, "000-0000", "555-0199"),
        (2025550199, "(000) 000-0000", "(202) 555-0199"),
        (1234567, '0.0,"k"', "1234.567k"),
        (0, '0;-0;"none"', "none"),
        (0, '"yes";;"no"', "no"),
        (5, ";;;", "5"),
        (0.5, "# ?/?", "0.5"),
        (timedelta(minutes=72), "[m]", "72"),
        (moment(2026, 3, 15), "mmm yyyy", "2026-03"),
        (moment(2026, 3, 15), "yyyy", "2026"),
        (time(0, 0), "yyyy-mm-dd", "0"),
        (3.0, "General", "3"),
        (True, "General", "TRUE"),
        ("01234", "@", "01234"),
    ],
)
def test_values_of_sheets_are_never_false_dates(value: object, number_format: str, text: str) -> None:
    """Durations, times, percentages and codes with leading zeros are as the program shows them, with all digits."""
    assert cell_text(value, number_format) == text


def test_sheets_keep_their_gaps_short() -> None:
    """Empty rows go, empty cells within a row stay, and a value thousands of columns away does not fill the text."""
    book = openpyxl.Workbook()
    sheet = book.active
    sheet["A1"], sheet["C1"], sheet["A9"], sheet["XFD9"] = "a", "c", "x", "far"
    found = read(saved(book))
    assert found.startswith("## Sheet\n\n| a |  | c |\n| --- | --- | --- |\n| x |")
    assert found.endswith("| far |")
    assert len(found) < 400


NOTE = "<text:note-body><text:p>Not now.</text:p></text:note-body>"
CHANGE = "<text:changed-region><text:deletion><text:p>gone</text:p></text:deletion></text:changed-region>"
INNER = "<text:list><text:list-item><text:p>b</text:p></text:list-item></text:list>"
ITEM = "<text:list-item><text:p>c</text:p></text:list-item>"
CELLS = (
    "<table:table-cell><text:p>a</text:p></table:table-cell>"
    "<table:table-cell table:number-columns-repeated='2'><text:p>b</text:p></table:table-cell>"
)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<text:p>Rent<text:tab/>700<text:s text:c='3'/>euro<text:line-break/>next</text:p>", "Rent 700 euro\nnext"),
        (f"<text:p>Nine<text:note><text:note-citation>1</text:note-citation>{NOTE}</text:note> sharp.</text:p>", "Nine sharp."),
        ("<text:p>A <office:annotation><text:p>remark</text:p></office:annotation>B</text:p>", "A B"),
        (f"<text:tracked-changes>{CHANGE}</text:tracked-changes><text:p>there</text:p>", "there"),
        ("<text:section><text:p>in\na section</text:p></text:section>", "in a section"),
        (f"<text:list><text:list-item><text:p>a</text:p>{INNER}</text:list-item>{ITEM}</text:list>", "- a\n  - b\n- c"),
        (f"<table:table><table:table-row>{CELLS}</table:table-row></table:table>", "| a | b | b |\n| --- | --- | --- |"),
    ],
)  # fmt: skip
def test_opendocument_texts_are_read_as_they_are_shown(body: str, text: str) -> None:
    """White space has elements of its own; notes, remarks and deleted text leave no marks."""
    assert read(odt(body)) == text


def test_opendocument_lists_and_headings_have_their_numbers() -> None:
    """Numbers are of the list's style; a list goes on where it says so; headings are numbered by the outline."""
    style = (
        "<text:list-style style:name='L'><text:list-level-style-number text:level='1' style:num-format='1' "
        "style:num-suffix='.'/><text:list-level-style-number text:level='2' style:num-format='a' style:num-prefix='(' "
        "style:num-suffix=')'/></text:list-style><text:outline-style><text:outline-level-style text:level='1' "
        "style:num-format='1'/><text:outline-level-style text:level='2' style:num-format='1' text:display-levels='2'/>"
        "</text:outline-style>"
    )
    item = "<text:list-item><text:p>{}</text:p>{}</text:list-item>".format
    inner = f"<text:list>{item('in', '')}</text:list>"
    body = (
        "<text:h text:outline-level='1'>Fees</text:h><text:h text:outline-level='2'>Due</text:h>"
        f"<text:list text:style-name='L'>{item('one', inner)}</text:list><text:p>Wait.</text:p>"
        f"<text:list text:style-name='L' text:continue-numbering='true'>{item('two', '')}</text:list>"
    )
    assert read(odt(style + body)) == "# 1 Fees\n\n## 1.1 Due\n\n1. one\n\n(a) in\n\nWait.\n\n2. two"


def test_text_of_hidden_styles_is_not_read() -> None:
    """A style hides as its own mark does, unless the run says that it is shown; a style based on it hides, too."""
    document = docx.Document()
    for name, base in (("Ghost", None), ("Heir", "Ghost")):
        style = document.styles.add_style(name, WD_STYLE_TYPE.CHARACTER)
        style.font.hidden = None if base else True
        style.base_style = document.styles[base] if base else None
    line = document.add_paragraph("seen")
    line.add_run(" unseen", style="Heir")
    line.add_run(" again", style="Ghost").font.hidden = False
    assert read(saved(document)) == "seen again"


def test_a_paragraph_whose_end_was_deleted_continues_in_the_next() -> None:
    """The words of both are one paragraph, as they are shown when the change is accepted."""
    first = paragraph(run("First "), "<w:rPr><w:del w:id='1' w:author='a'/></w:rPr>")
    assert read(word(first, paragraph(run("and second.")))) == "First and second."
    assert read(word(paragraph(run("One.")), first)) == "One.\n\nFirst"


def test_levels_of_one_use_of_a_list_and_those_that_never_begin_again() -> None:
    """A use of a list may write a level otherwise, and a level may count through the whole list."""
    level = '<w:lvl w:ilvl="{}"><w:start w:val="1"/><w:numFmt w:val="{}"/>{}<w:lvlText w:val="{}"/></w:lvl>'.format
    unbroken = "<w:lvlRestart w:val='0'/>"
    lists = (
        f'<w:abstractNum w:abstractNumId="70">{level(0, "decimal", "", "%1.")}{level(1, "decimal", unbroken, "(%2)")}'
        f"{level(2, 'bullet', '', ' ')}</w:abstractNum>"
        '<w:num w:numId="70"><w:abstractNumId w:val="70"/></w:num><w:num w:numId="71"><w:abstractNumId w:val="70"/>'
        f'<w:lvlOverride w:ilvl="0">{level(0, "upperLetter", "", "%1:")}</w:lvlOverride></w:num>'
    )
    items = ((70, 0, "a"), (70, 1, "in"), (70, 0, "b"), (70, 1, "in"), (70, 2, "under it"), (71, 0, "c"))
    body = [numbered(text, number, depth) for number, depth, text in items]
    assert read(word(*body, numbering=lists)) == "1. a\n\n(1) in\n\n2. b\n\n(2) in\n\nunder it\n\nC: c"


def test_slides_have_their_numbers_formulas_and_diagrams() -> None:
    """Numbers that the program adds, raised letters, alternatives for older programs, diagrams; no invisible shapes."""
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[6])
    frame = slide.shapes.add_textbox(0, 0, 9, 9).text_frame
    for text in ("Open", "Close"):
        line = frame.add_paragraph()
        line.text = text
        numbered = etree.SubElement(line._p.get_or_add_pPr(), f"{DRAWING}buAutoNum")
        numbered.set("type", "arabicPeriod")
        numbered.set("startAt", "3")
    area = frame.add_paragraph()
    area.text = "30 m"
    raised = area.add_run()
    raised.text = "2"
    raised.font._rPr.set("baseline", "30000")
    hidden = slide.shapes.add_textbox(0, 0, 9, 9)
    hidden.text_frame.text = "unseen"
    hidden._element.nvSpPr.cNvPr.set("hidden", "1")
    boxed = slide.shapes.add_textbox(0, 0, 9, 9)
    boxed.text_frame.text = "In a choice"
    space = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    both = etree.Element(f"{{{space}}}AlternateContent")
    boxed._element.addprevious(both)
    etree.SubElement(both, f"{{{space}}}Choice").append(boxed._element)
    assert extract(saved(show), "x").text == "3. Open\n4. Close\n\n30 m^2\n\nIn a choice"


def test_a_diagram_is_read_in_its_order() -> None:
    """Its words are beside the slide, in a part of their own."""
    data = f'<x xmlns:a="{DRAWING[1:-1]}"><a:p><a:r><a:t>Ask</a:t></a:r></a:p><a:p/><a:p><a:r><a:t>An</a:t><a:t>swer</a:t></a:r></a:p></x>'
    assert list(diagram_lines(data.encode())) == ["Ask", "Answer"]


def test_sheets_of_opendocument_are_read_as_they_are_shown() -> None:
    """Each under its name, with the text that the program shows for a value, hidden ones too; remarks are not read."""
    cells = (
        "<table:table-cell office:value='0.075'><text:p>7.5 %</text:p></table:table-cell><table:table-cell/>"
        "<table:table-cell><office:annotation><text:p>remark</text:p></office:annotation><text:p>x</text:p></table:table-cell>"
    )
    sheet = (
        f"<table:table table:name='Fees' table:display='false'><table:table-row>{cells}</table:table-row></table:table>"
    )
    empty = "<table:table table:name='Empty'><table:table-row><table:table-cell/></table:table-row></table:table>"
    found = extract(open_document("spreadsheet", sheet + empty), "x")
    assert found.text == "## Fees\n\n| 7.5 % |  | x |\n| --- | --- | --- |"


def test_slides_of_opendocument_have_titles_notes_and_pages() -> None:
    """The title is the heading, wherever it stands; notes follow; fields of the program are not read."""
    box = "<draw:frame{}><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame>".format
    title = box(" presentation:class='title'", "Goals")
    notes = f"<presentation:notes>{box('', 'Slowly.')}{box('', '<text:page-number>9</text:page-number>')}</presentation:notes>"
    slides = "".join(
        f"<draw:page>{box('', text)}{title}<draw:g>{box('', 'In a group')}</draw:g>{notes}</draw:page>"
        for text in ("a", "b")
    )
    found = extract(open_document("presentation", slides), "x")
    assert found.text.startswith("## Goals\n\na\n\nIn a group\n\nSlowly.\n\n## Goals\n\nb")
    assert found.pages == [0, found.text.rindex("## Goals")]


def test_signs_of_symbol_fonts_in_opendocument_are_characters() -> None:
    """Whether a style names the font by its face or by its family."""
    spaces = "xmlns:svg='urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0' xmlns:fo='urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0'"
    styles = (
        f"<office:font-face-decls {spaces}><style:font-face style:name='S1' svg:font-family='&apos;Symbol&apos;'/></office:font-face-decls>"
        "<style:style style:name='T1' style:family='text'><style:text-properties style:font-name='S1'/></style:style>"
        f"<style:style {spaces} style:name='T2' style:family='text'><style:text-properties fo:font-family='Wingdings'/></style:style>"
    )
    span = "<text:span text:style-name='{}'>{}</text:span>".format
    assert read(odt(f"{styles}<text:p>x {span('T1', chr(0xF0B3))} 5 {span('T2', chr(0xF0FE))}</text:p>")) == "x ≥ 5 ☑"


def test_what_is_drawn_over_a_sheet_is_read_below_its_cells() -> None:
    """Text boxes and diagrams, whose words are in other parts."""
    book = openpyxl.Workbook()
    book.active.append(["Fee"])
    drawn = f"<x xmlns:a='{DRAWING[1:-1]}'><a:p><a:r><a:t>{{}}</a:t></a:r></a:p></x>".format
    relation = "<x xmlns='http://schemas.openxmlformats.org/package/2006/relationships'><Relationship Type='x/{}' Target='{}'/></x>".format
    raw = saved(book)
    for part, content in {
        "xl/worksheets/_rels/sheet1.xml.rels": relation("drawing", "../drawings/drawing1.xml"),
        "xl/drawings/drawing1.xml": drawn("Members pay half."),
        "xl/drawings/_rels/drawing1.xml.rels": relation("diagramData", "/xl/diagrams/data1.xml"),
        "xl/diagrams/data1.xml": drawn("Ask first"),
    }.items():
        raw = changed(raw, part, content)
    assert read(raw) == "## Sheet\n\n| Fee |\n| --- |\n\nMembers pay half.\n\nAsk first"


def test_formulas_of_opendocument_are_read_from_their_parts() -> None:
    """A formula is a document inside the document; one of another kind is not read."""
    formula = "<math xmlns='http://www.w3.org/1998/Math/MathML'><msqrt><mi>x</mi></msqrt></math>"
    frame = "<text:p>It is <draw:frame><draw:object xlink:href='./{}'/></draw:frame>.</text:p>".format
    body = frame("Formula") + frame("Chart")
    spaces = "xmlns:draw='urn:oasis:names:tc:opendocument:xmlns:drawing:1.0' xmlns:xlink='http://www.w3.org/1999/xlink'"
    raw = changed(odt(f"<text:section {spaces}>{body}</text:section>"), "Formula/content.xml", formula)
    assert read(changed(raw, "Chart/content.xml", "<chart/>")) == "It is √x.\n\nIt is ."


def test_an_archive_of_another_kind_is_refused_with_a_reason() -> None:
    """The names and types of its parts decide; what none of them names is no document."""
    with pytest.raises(SourceUnreadable) as caught:
        extract(archive_of({"content.xml": "<x/>"}, "application/vnd.oasis.opendocument.graphics"), "a.odg")
    assert caught.value.kind == "wrong_type"


def test_a_large_initial_belongs_to_its_word() -> None:
    """Word keeps the letter at the beginning of a chapter in a frame of its own."""
    made = word(paragraph(run("T"), '<w:framePr w:dropCap="drop" w:lines="3"/>'), paragraph(run("he pier is long.")))
    assert extract(made, "a.docx").text == "The pier is long."
