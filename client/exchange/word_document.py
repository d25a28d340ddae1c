"""A report as a Word document (.docx)."""

import io
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from docx import Document
from docx.document import Document as WordDocument
from docx.enum.text import WD_PARAGRAPH_ALIGNMENT
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Cm, Pt, RGBColor
from docx.text.paragraph import Paragraph
from docx.text.run import Run

from client.exchange.exported_report import ExportedReport, safe_line, safe_text
from client.exchange.report_blocks import ReportBlock, TextRun, blocks_of, title_of

PROPERTY_CHARACTERS: Final = 255
STEP: Final = Cm(0.75)
"""By which a quotation or a list is set in."""
CODE_FONT: Final = "Courier New"
LINK_COLOUR: Final = RGBColor(0x0B, 0x58, 0x66)


def to_docx(report: ExportedReport) -> bytes:
    """The document as bytes."""
    document = Document()
    properties = document.core_properties
    properties.title, properties.comments = title_of(report)[:PROPERTY_CHARACTERS], ""
    properties.author = f"durable-research {safe_line(report.product_version)}".strip()[:PROPERTY_CHARACTERS]
    properties.identifier = safe_line(report.research_id)[:PROPERTY_CHARACTERS]
    written = _moment(report.ended_at)
    if written is not None:
        properties.created = properties.modified = written
    _add_blocks(document, blocks_of(report), depth=0, quoted=False)
    whole = io.BytesIO()
    document.save(whole)
    return whole.getvalue()


def _add_blocks(document: WordDocument, blocks: Sequence[ReportBlock], *, depth: int, quoted: bool) -> None:
    for block in blocks:
        match block.kind:
            case "heading":
                heading = document.add_heading(level=min(block.level, 9) if block.level > 1 else 0)
                _add_runs(heading, block.runs)
            case "quote":
                _add_blocks(document, block.parts[0], depth=depth + 1, quoted=True)
            case "list":
                _add_list(document, block, depth=depth, quoted=quoted)
            case "table":
                _add_table(document, block)
            case "code":
                paragraph = _paragraph(document, depth, quoted=False)
                _look(paragraph.add_run(safe_text(block.text)), TextRun("", code=True))
            case "rule":
                document.add_paragraph("⁂").alignment = WD_PARAGRAPH_ALIGNMENT.CENTER
            case _:
                _add_runs(_paragraph(document, depth, quoted=quoted), block.runs)


def _paragraph(document: WordDocument, depth: int, *, quoted: bool) -> Paragraph:
    paragraph = document.add_paragraph(style="Quote" if quoted else None)
    paragraph.paragraph_format.left_indent = STEP * depth
    return paragraph


def _add_list(document: WordDocument, block: ReportBlock, *, depth: int, quoted: bool) -> None:
    """Numbers and bullets as text: they stay what they are when passages are copied."""
    for place, item in enumerate(block.parts):
        sign = "•" if block.start is None else f"{block.start + place}."
        first, rest = (item[0], item[1:]) if item and item[0].kind == "paragraph" else (ReportBlock("paragraph"), item)
        paragraph = _paragraph(document, depth + 1, quoted=quoted)
        paragraph.paragraph_format.first_line_indent = -STEP
        paragraph.paragraph_format.tab_stops.add_tab_stop(STEP * (depth + 1))
        paragraph.add_run(f"{sign}\t")
        _add_runs(paragraph, first.runs)
        _add_blocks(document, rest, depth=depth + 1, quoted=quoted)


def _add_table(document: WordDocument, block: ReportBlock) -> None:
    columns = max((len(row) for row in block.rows), default=0)
    if not columns:
        return
    table = document.add_table(rows=len(block.rows), cols=columns, style="Table Grid")
    for row, cells in zip(table.rows, block.rows, strict=True):
        for cell, runs in zip(row.cells, cells, strict=False):
            _add_runs(cell.paragraphs[0], runs)
    for cell in table.rows[0].cells:
        for run in cell.paragraphs[0].runs:
            run.bold = True


def _add_runs(paragraph: Paragraph, runs: Sequence[TextRun]) -> None:
    for run in runs:
        if run.link is None:
            _look(paragraph.add_run(safe_text(run.text)), run)
        else:
            _add_link(paragraph, run, run.link)


def _add_link(paragraph: Paragraph, run: TextRun, address: str) -> None:
    link = OxmlElement("w:hyperlink")
    link.set(qn("r:id"), paragraph.part.relate_to(address, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
    words = Run(OxmlElement("w:r"), paragraph)
    words.text = safe_text(run.text)
    words.underline, words.font.color.rgb = True, LINK_COLOUR
    _look(words, run)
    link.append(words._r)  # noqa: SLF001  python-docx has no call that makes a link
    paragraph._p.append(link)  # noqa: SLF001


def _look(words: Run, run: TextRun) -> None:
    words.bold, words.italic = run.bold or None, run.italic or None
    if run.code:
        words.font.name, words.font.size = CODE_FONT, Pt(9.5)


def _moment(timestamp: str) -> datetime | None:
    try:
        return datetime.fromisoformat(timestamp)
    except ValueError:
        return None
