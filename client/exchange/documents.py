"""A report as a Word document or a PDF, both made from its parsed tree, in which markup is resolved."""

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib import resources
from typing import Any, Final, NamedTuple

import typst
from docx import Document
from docx.document import Document as WordDocument
from docx.enum.text import WD_PARAGRAPH_ALIGNMENT
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Cm, Pt, RGBColor
from docx.text.paragraph import Paragraph
from docx.text.run import Run as WordRun

from activities.reporting.references import KnownAddresses, ReportMarks
from activities.reporting.report_messages import ReportMessages
from activities.reporting.tree import Block, Blocks, Run, Sentence, one_line, parse, sentences
from contracts.report import Report

PROPERTY_CHARACTERS: Final = 255
"""Longest property of a Word document."""
INDENT: Final = Cm(0.75)
"""Indentation per level of quotations and lists."""
MAX_LIST_LEVELS: Final = 3
"""Number of list levels for which Word has styles."""
LINK_COLOUR: Final = RGBColor(0x0B, 0x58, 0x66)


class Piece(NamedTuple):
    """A run of text in a document; a link within the document begins with `#`."""

    run: Run
    anchor: str = ""
    """Name of this place, as the target of links to a source."""


@dataclass(frozen=True)
class ReportDocument:
    """The text of a report, prepared for a document."""

    blocks: Blocks
    title: str
    language: str
    """Two or three letters."""
    sources: Mapping[Sentence, int]
    """First sentences of the entries in the list of sources, with their numbers."""

    @classmethod
    def of(cls, report: Report) -> "ReportDocument":
        """Parse a report."""
        quotes = (item.quote for item in report.evidence)
        urls = {source.id: source.shown_url for source in report.sources}
        registry = KnownAddresses.of([*urls.values(), *(source.url for source in report.sources)], report.query, quotes)
        labels = {(item.label, urls.get(item.source_id, "")): item.number for item in report.citations if item.label}
        blocks = parse(report.report.markdown, ReportMarks(labels), registry.filter([]))
        titled = bool(blocks) and blocks[0].kind == "heading" and blocks[0].level == 1
        title = blocks[0].words if titled else one_line(report.query)
        output = report.effective_request.get("output")
        asked = None
        if isinstance(output, dict):
            asked = output.get("language")
        words = ReportMessages.of(report.engine_by_role, asked, report.language)
        code = re.match(r"[a-z]{2,3}(?=-|\Z)", words.language.lower())
        sources = _source_entries(blocks, words("sources"))
        return cls(blocks, title, code[0] if code else "en", sources)

    def pieces(self, parts: Iterable[Sentence]) -> list[Piece]:
        """Return the pieces of sentences; a citation links to its source entry."""
        return [piece for part in parts for piece in self._pieces(part) if piece.run.text]

    def _pieces(self, part: Sentence) -> Iterator[Piece]:
        yield Piece(Run(part.gap))
        own = self.sources.get(part)
        for inline in part.inlines:
            if isinstance(inline, Run):
                yield Piece(inline)
            elif inline.sign:
                yield Piece(Run(f"({inline.sign})", italic=True))
            elif inline.link:
                yield Piece(Run(inline.label, link=inline.link))
            elif inline.number == own:
                yield Piece(Run(f"[{own}]"), f"source-{own}")
                own = None
            else:
                listed = inline.number in self.sources.values()
                yield Piece(Run(f"[{inline.number}]", link=f"#source-{inline.number}" if listed else None))


def _source_entries(blocks: Blocks, title: str) -> dict[Sentence, int]:
    """Return the first sentences of the list items below a heading that begin with a number, one per number."""
    entries: dict[int, Sentence] = {}
    in_list_of_sources = False
    for block in blocks:
        if block.kind == "heading":
            in_list_of_sources = block.words == title
        if block.kind != "list" or not in_list_of_sources:
            continue
        for item in block.parts:
            first = next(sentences(item), None)
            if first and first.marks:
                entries.setdefault(first.marks[0].number, first)
    return {sentence: number for number, sentence in entries.items()}


# --- PDF -------------------------------------------------------------------------------------------------------------
def to_pdf(report: Report) -> bytes:
    """Typeset a report with Typst and the fonts in its wheel: no program, no network, no file. Raises `TypstError`.

    The text reaches the template as JSON and is shown as strings. Equal reports give equal bytes.
    """
    content = ReportDocument.of(report)
    data = {
        "title": content.title,
        "language": content.language,
        "footer": f"{one_line(report.research_id)} · durable-research {one_line(report.product_version)}".strip(),
        "blocks": [_block_data(block, content) for block in content.blocks],
    }
    template = (resources.files(__package__ or "") / "report.typ").read_bytes()
    pdf = typst.compile(template, format="pdf", sys_inputs={"report": json.dumps(data)})
    assert isinstance(pdf, bytes)
    return pdf


def _block_data(block: Block, content: ReportDocument) -> dict[str, Any]:
    return {
        "kind": block.kind,
        "level": block.level,
        "start": block.start,
        "text": block.sentences[0].text if block.kind == "code" else "",
        "runs": _run_data(block.sentences, content),
        "parts": [[_block_data(child, content) for child in part] for part in block.parts],
        "rows": [[_run_data([cell], content) for cell in row] for row in block.rows],
    }


def _run_data(parts: Sequence[Sentence], content: ReportDocument) -> list[dict[str, Any]]:
    return [asdict(piece.run) | {"anchor": piece.anchor} for piece in content.pieces(parts)]


# --- Word ------------------------------------------------------------------------------------------------------------
def to_docx(report: Report) -> bytes:
    """Make a Word document."""
    content = ReportDocument.of(report)
    document = Document()
    properties = document.core_properties
    properties.title = content.title[:PROPERTY_CHARACTERS]
    properties.comments = ""
    properties.author = "durable-research"
    properties.language = content.language
    for language in document.styles.element.iter(qn("w:lang")):
        language.set(qn("w:val"), content.language)
    with suppress(ValueError):  # a report of another program may have no time
        properties.created = properties.modified = datetime.fromisoformat(report.ended_at)
    _WordWriter(document, content).add(content.blocks)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


class _WordWriter:
    """Adds blocks to a Word document."""

    def __init__(self, document: WordDocument, content: ReportDocument) -> None:
        self._document = document
        self._content = content
        self._anchors = 0

    def add(self, blocks: Blocks, *, depth: int = 0, level: int = 0, quoted: bool = False) -> None:
        """Add blocks; `depth` counts the enclosing quotations and lists, `level` only the lists."""
        for block in blocks:
            match block.kind:
                case "heading":
                    heading = self._document.add_heading(level=min(block.level, 9) if block.level > 1 else 0)
                    self._add_text(heading, block.sentences)
                case "quote":
                    self.add(block.parts[0], depth=depth + 1, level=level, quoted=True)
                case "list":
                    self._add_list(block, depth + 1, level + 1, quoted=quoted)
                case "table":
                    self._add_table(block)
                case "code":
                    self._add_text(self._add_paragraph(depth), block.sentences)
                case "rule":
                    self._document.add_paragraph("⁂").alignment = WD_PARAGRAPH_ALIGNMENT.CENTER
                case "paragraph":
                    self._add_text(self._add_paragraph(depth, "Quote" if quoted else None), block.sentences)

    def _add_paragraph(self, depth: int, style: str | None = None) -> Paragraph:
        paragraph = self._document.add_paragraph(style=style)
        paragraph.paragraph_format.left_indent = INDENT * depth
        return paragraph

    def _add_list(self, block: Block, depth: int, level: int, *, quoted: bool) -> None:
        """Add a list in Word's own style for its level; each list has its own numbering."""
        suffix = f" {min(level, MAX_LIST_LEVELS)}" if level > 1 else ""
        style = f"List {'Bullet' if block.start is None else 'Number'}{suffix}"
        number = None
        if block.start is not None:
            number = self._new_numbers(style, block.start)
        for item in block.parts:
            paragraph = self._add_paragraph(depth, style)
            paragraph.paragraph_format.first_line_indent = -INDENT
            if number is not None:
                properties = paragraph._p.get_or_add_pPr().get_or_add_numPr()  # noqa: SLF001  python-docx has no call
                properties.get_or_add_numId().val = number
                properties.get_or_add_ilvl().val = 0
            first, rest = (item[0].sentences, item[1:]) if item[0].kind == "paragraph" else ((), item)
            self._add_text(paragraph, first)
            self.add(rest, depth=depth, level=level, quoted=quoted)

    def _new_numbers(self, style: str, start: int) -> int:
        """Return the id of a numbering that looks like the style's and begins at `start`."""
        numbering = self._document.part.numbering_part.element
        style_number = self._document.styles[style].element.pPr.numPr.numId.val
        numbers = numbering.add_num(numbering.num_having_numId(style_number).abstractNumId.val)
        numbers.add_lvlOverride(ilvl=0).add_startOverride(min(start, 32_767))  # the largest number that Word accepts
        return int(numbers.numId)

    def _add_table(self, block: Block) -> None:
        table = self._document.add_table(rows=len(block.rows), cols=len(block.rows[0]), style="Table Grid")
        for number, (row, cells) in enumerate(zip(table.rows, block.rows, strict=True)):
            for word_cell, cell in zip(row.cells, cells, strict=True):
                self._add_text(word_cell.paragraphs[0], [cell], bold=number == 0)

    def _add_text(self, added: Paragraph, parts: Iterable[Sentence], *, bold: bool = False) -> None:
        for run, anchor in self._content.pieces(parts):
            word_run = WordRun(OxmlElement("w:r"), added)
            word_run.text = run.text
            word_run.bold = run.bold or bold or None
            word_run.italic = run.italic or None
            if run.code:
                word_run.font.name = "Courier New"
                word_run.font.size = Pt(9.5)
            outer = added._p  # noqa: SLF001  python-docx has no calls that make links and bookmarks
            if run.link:
                outer = OxmlElement("w:hyperlink")
                if run.link.startswith("#"):
                    outer.set(qn("w:anchor"), run.link[1:])
                else:
                    outer.set(qn("r:id"), added.part.relate_to(run.link, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
                    word_run.underline = True
                word_run.font.color.rgb = LINK_COLOUR
                added._p.append(outer)  # noqa: SLF001
            if anchor:
                self._anchors += 1
                outer.append(_bookmark("w:bookmarkStart", self._anchors, anchor))
            outer.append(word_run._r)  # noqa: SLF001
            if anchor:
                outer.append(_bookmark("w:bookmarkEnd", self._anchors))


def _bookmark(tag: str, number: int, name: str = "") -> Any:
    bookmark = OxmlElement(tag)
    bookmark.set(qn("w:id"), str(number))
    if name:
        bookmark.set(qn("w:name"), name)
    return bookmark
