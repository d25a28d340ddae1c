"""Charts of Office and OpenDocument: what they say in words and numbers."""

from datetime import date

import docx
import openpyxl
import pptx
import pytest
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from openpyxl.chart import BarChart, Reference
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE

from providers.reading.charts import CHART, chart_blocks
from providers.reading.documents import extract
from providers.reading.notation import DRAWING
from tests.fakes.office_documents import ODT_SPACES, changed, odt, open_document, saved

SPACES = f'xmlns:c="{CHART[1:-1]}" xmlns:a="{DRAWING[1:-1]}"'


def show_of(data: CategoryChartData | XyChartData, kind: XL_CHART_TYPE, title: str = "") -> bytes:
    """A slide with a chart."""
    show = pptx.Presentation()
    chart = show.slides.add_slide(show.slide_layouts[6]).shapes.add_chart(kind, 0, 0, 9, 9, data).chart
    if title:
        chart.chart_title.text_frame.text = title
    return saved(show)


def shares() -> CategoryChartData:
    """Two series of percentages over three years, one without a value."""
    data = CategoryChartData(number_format="0.0%")
    data.categories = ["2023", "2024", "2025"]
    data.add_series("Visitors", (0.125, 0.5, 0.75))
    data.add_series("Members", (0.3, 0.2, None))
    return data


def months() -> CategoryChartData:
    """Categories of two levels."""
    data = CategoryChartData()
    north = data.add_category("North")
    north.add_sub_category("January")
    north.add_sub_category("February")
    data.add_category("South").add_sub_category("January")
    data.add_series("Boats", (1, 2, 3))
    return data


def days() -> CategoryChartData:
    """Categories that are dates."""
    data = CategoryChartData()
    data.categories = [date(2025, 6, 3), date(2025, 6, 4)]
    data.add_series("Rain", (1.5, 0))
    return data


def points() -> XyChartData:
    """Pairs of numbers."""
    data = XyChartData()
    series = data.add_series("Depth")
    series.add_data_point(1.5, 20)
    series.add_data_point(2.25, 30)
    return data


@pytest.mark.parametrize(
    ("data", "kind", "rows"),
    [
        (shares(), XL_CHART_TYPE.COLUMN_CLUSTERED, ["|  | Visitors | Members |", "| 2023 | 12.5% | 30% |", "| 2024 | 50% | 20% |", "| 2025 | 75% |  |"]),
        (months(), XL_CHART_TYPE.BAR_CLUSTERED, ["|  | Boats |", "| North January | 1 |", "| North February | 2 |", "| South January | 3 |"]),
        (days(), XL_CHART_TYPE.LINE, ["|  | Rain |", "| 2025-06-03 | 1.5 |", "| 2025-06-04 | 0 |"]),
        (points(), XL_CHART_TYPE.XY_SCATTER, ["|  | Depth |", "| 1.5 | 20 |", "| 2.25 | 30 |"]),
    ],
)  # fmt: skip
def test_a_chart_of_a_slide_is_a_table(
    data: CategoryChartData | XyChartData, kind: XL_CHART_TYPE, rows: list[str]
) -> None:
    """Each category with the values of all series, as the chart shows them, below its title."""
    found = extract(show_of(data, kind, "Berths"), "x")
    title, table = found.text.split("\n\n")
    assert title == "Berths"
    lines = table.split("\n")
    assert [lines[0], *lines[2:]] == rows
    assert found.warnings == []


def test_a_chart_of_a_text_is_read_at_its_anchor() -> None:
    """Its part is beside the text; one that is not there is nothing."""
    document = docx.Document()
    raw = (
        f"<c:chartSpace {SPACES}><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Fees</a:t></a:r></a:p></c:rich></c:tx></c:title>"
        "<c:plotArea><c:pieChart><c:ser><c:tx><c:strRef><c:strCache><c:pt idx='0'><c:v>Euro</c:v></c:pt></c:strCache></c:strRef></c:tx>"
        "<c:cat><c:strLit><c:pt idx='0'><c:v>007</c:v></c:pt></c:strLit></c:cat>"
        "<c:val><c:numLit><c:pt idx='0'><c:v>300.10000000000002</c:v></c:pt></c:numLit></c:val></c:ser></c:pieChart></c:plotArea></c:chart></c:chartSpace>"
    )
    part = Part(PackURI("/word/charts/chart1.xml"), "application/xml", raw.encode(), document.part.package)
    name = document.part.relate_to(part, RELATIONSHIP_TYPE.CHART)
    for words, target in (("Before.", name), ("After.", "rId999")):
        paragraph = document.add_paragraph(words)
        drawn = f'<w:drawing {nsdecls("w", "r")} {SPACES}><c:chart r:id="{target}"/></w:drawing>'
        paragraph.add_run()._r.append(parse_xml(drawn))
    assert extract(saved(document), "x").text == (
        "Before.\n\nFees\n\n|  | Euro |\n| --- | --- |\n| 007 | 300.1 |\n\nAfter."
    )


def test_a_chart_of_a_sheet_has_its_titles_below_the_cells() -> None:
    """Its values are those of the cells; a sheet that is nothing but a chart is read, too."""
    book = openpyxl.Workbook()
    book.active.append(["Item", "Fee"])
    book.active.append(["Boat", 300])
    for sheet in (book.active, book.create_sheet("Picture")):
        chart = BarChart()
        chart.title, chart.y_axis.title = f"Fees of {sheet.title}", "euro"
        chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=2), titles_from_data=True)
        sheet.add_chart(chart, "E2")
    assert extract(saved(book), "x").text == (
        "## Sheet\n\n| Item | Fee |\n| --- | --- |\n| Boat | 300 |\n\nFees of Sheet\n\neuro\n\n"
        "## Picture\n\nFees of Picture\n\neuro"
    )


CHART_OF_OPENDOCUMENT = (
    f"<office:document-content {ODT_SPACES} xmlns:chart='urn:oasis:names:tc:opendocument:xmlns:chart:1.0' "
    "xmlns:draw='urn:oasis:names:tc:opendocument:xmlns:drawing:1.0' xmlns:xlink='http://www.w3.org/1999/xlink'>"
    "<office:body><office:chart><chart:chart><chart:title><text:p>Fees<draw:object xlink:href='./Object 1'/></text:p></chart:title>"
    "<chart:plot-area><chart:axis><chart:title><text:p>euro</text:p></chart:title></chart:axis></chart:plot-area>"
    "<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p/></table:table-cell>"
    "<table:table-cell><text:p>Members</text:p></table:table-cell></table:table-row></table:table-header-rows>"
    "<table:table-rows><table:table-row><table:table-cell><text:p>Boat</text:p></table:table-cell>"
    "<table:table-cell><text:p>300</text:p></table:table-cell></table:table-row></table:table-rows></table:table>"
    "</chart:chart></office:chart></office:body></office:document-content>"
)
FRAME = (
    "<draw:frame xmlns:draw='urn:oasis:names:tc:opendocument:xmlns:drawing:1.0' xmlns:xlink='http://www.w3.org/1999/xlink'>"
    "<draw:object xlink:href='./Object 1'/></draw:frame>"
)


def test_a_chart_of_opendocument_is_read_from_its_part() -> None:
    """In a text with its values; one that names itself as a part of its title has an end."""
    raw = changed(odt(f"<text:p>Before.{FRAME}</text:p>"), "Object 1/content.xml", CHART_OF_OPENDOCUMENT)
    found = extract(raw, "x")
    assert found.text == "Before.\n\nFees\n\neuro\n\n|  | Members |\n| --- | --- |\n| Boat | 300 |"
    assert found.warnings == []


def test_a_chart_of_an_open_sheet_has_its_titles_below_the_cells() -> None:
    """Whether it is anchored in a cell or over the sheet."""
    cell = "<table:table-cell><text:p>300</text:p>{}</table:table-cell>".format
    for inner, over in ((FRAME, ""), ("", f"<table:shapes>{FRAME}</table:shapes>")):
        body = f"<table:table table:name='Fees'>{over}<table:table-row>{cell(inner)}{cell('')}</table:table-row></table:table>"
        raw = changed(open_document("spreadsheet", body), "Object 1/content.xml", CHART_OF_OPENDOCUMENT)
        assert extract(raw, "x").text == "## Fees\n\n| 300 | 300 |\n| --- | --- |\n\nFees\n\neuro"


@pytest.mark.parametrize(
    ("value", "number_format", "shown"),
    [
        ("0.075", "0%", "7.5%"), ("45811", "dd.mm.yyyy", "2025-06-03"), ("12", '0 "days"', "12"), ("12", "[Red]0", "12"),
        ("1e999999", "General", "1e999999"), ("NaN", "0%", "NaN"), ("many", "0%", "many"), ("99999999", "yyyy", "99999999"),
    ],
)  # fmt: skip
def test_values_are_shown_by_their_format(value: str, number_format: str, shown: str) -> None:
    """As percentages and dates; whatever is no number that people write stays as it is."""
    cached = (
        f"<c:numCache><c:formatCode>{number_format}</c:formatCode><c:pt idx='0'><c:v>{value}</c:v></c:pt></c:numCache>"
    )
    raw = f"<c:x {SPACES}><c:chart><c:ser><c:val>{cached}</c:val></c:ser></c:chart></c:x>".encode()
    assert [getattr(block, "cells", None) for block in chart_blocks(raw)] == [["", shown]]


def test_what_is_no_chart_has_no_blocks() -> None:
    """A damaged part beside a text does not make the text unreadable."""
    assert list(chart_blocks(b"no markup")) == list(chart_blocks(b"<x/>")) == []
