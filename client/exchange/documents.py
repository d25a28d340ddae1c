"""A report as a Word document or a PDF, both made of the tree of its text: nothing in a text is markup any more."""

import io
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from importlib import resources
from typing import Any, Final

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

from activities.reporting.addresses import KnownAddresses
from activities.reporting.tree import Block, Blocks, Run, Sentence, heading, one_line, paragraph, parse, parse_words
from activities.reporting.words import ReportWords
from contracts.evidence import CheckMethod
from contracts.report import Report, ReportUnusable

PROPERTY_CHARACTERS: Final = 255
"""The longest property of a Word document."""
INDENT: Final = Cm(0.75)
"""Of a quotation or a list."""
LINK_COLOUR: Final = RGBColor(0x0B, 0x58, 0x66)


def document_blocks(report: Report) -> Blocks:
    """Return the text of a report, and its statements that are no quotations with the result of their check."""
    quotes = (item.quote for item in report.evidence)
    registry = KnownAddresses.of([source.url for source in report.sources], report.query, quotes)
    blocks = parse(report.report.markdown, registry.filter([]))
    say, items = ReportWords(report.language), []
    for claim in report.claims:
        if claim.method == CheckMethod.VERBATIM:
            continue
        verdict = f"{say.name('judged', claim.verdict)} ({say.name('method', claim.method)}): "
        reason = f" {one_line(say.translated(claim.reason))}"
        words = parse_words(claim.text)
        items.append((paragraph(Run(one_line(verdict), bold=True), f" {words}", Run(reason, italic=True)),))
    listed = (heading(2, say("statements")), Block("list", parts=tuple(items), start=1))
    return (*blocks, *listed) if items else blocks


def _title(report: Report, blocks: Blocks) -> str:
    """Return the title of the text, else the question."""
    titled = bool(blocks) and blocks[0].kind == "heading" and blocks[0].level == 1
    return blocks[0].words if titled else one_line(report.query)


# --- PDF -------------------------------------------------------------------------------------------------------------
def to_pdf(report: Report) -> bytes:
    """Set a report with Typst and the fonts in its wheel: no program, no network, no file. Raises `ReportUnusable`.

    The text reaches the template as JSON and is shown as strings. Equal reports give equal bytes.
    """
    blocks = document_blocks(report)
    language = re.match(r"[a-z]{2,3}(?=-|\Z)", report.language.lower())
    data = {
        "title": _title(report, blocks),
        "language": language[0] if language else "en",
        "footer": f"{one_line(report.research_id)} · durable-research {one_line(report.product_version)}".strip(),
        "blocks": [_block_data(block) for block in blocks],
    }
    template = (resources.files("client.exchange") / "report.typ").read_bytes()
    try:
        made = typst.compile(template, format="pdf", sys_inputs={"report": json.dumps(data)})
    except typst.TypstError as error:
        raise ReportUnusable(f"the report cannot be set as a PDF: {error}") from None
    assert isinstance(made, bytes)
    return made


def _block_data(block: Block) -> dict[str, Any]:
    return {
        "kind": block.kind,
        "level": block.level,
        "start": block.start,
        "text": block.sentences[0].text if block.kind == "code" else "",
        "runs": _run_data(block.sentences),
        "parts": [[_block_data(each) for each in part] for part in block.parts],
        "rows": [[_run_data([cell]) for cell in row] for row in block.rows],
    }


def _run_data(sentences: Sequence[Sentence]) -> list[dict[str, Any]]:
    return [asdict(run) for run in _runs(sentences)]


def _runs(sentences: Iterable[Sentence]) -> list[Run]:
    found = [run for each in sentences for run in (Run(each.gap), *each.inlines) if isinstance(run, Run)]
    return [run for run in found if run.text]


# --- Word ------------------------------------------------------------------------------------------------------------
def to_docx(report: Report) -> bytes:
    """Make a Word document."""
    blocks = document_blocks(report)
    document = Document()
    properties = document.core_properties
    properties.title, properties.comments = _title(report, blocks)[:PROPERTY_CHARACTERS], ""
    properties.author = f"durable-research {one_line(report.product_version)}".strip()[:PROPERTY_CHARACTERS]
    properties.identifier = one_line(report.research_id)[:PROPERTY_CHARACTERS]
    with suppress(ValueError):  # a report of another program may have no time
        properties.created = properties.modified = datetime.fromisoformat(report.ended_at)
    _add_blocks(document, blocks, depth=0, quoted=False)
    whole = io.BytesIO()
    document.save(whole)
    return whole.getvalue()


def _add_blocks(document: WordDocument, blocks: Blocks, *, depth: int, quoted: bool) -> None:
    for block in blocks:
        match block.kind:
            case "heading":
                added = document.add_heading(level=min(block.level, 9) if block.level > 1 else 0)
                _add_runs(added, _runs(block.sentences))
            case "quote":
                _add_blocks(document, block.parts[0], depth=depth + 1, quoted=True)
            case "list":
                _add_list(document, block, depth=depth, quoted=quoted)
            case "table":
                _add_table(document, block)
            case "code":
                _add_runs(_paragraph(document, depth, quoted=False), _runs(block.sentences))
            case "rule":
                document.add_paragraph("⁂").alignment = WD_PARAGRAPH_ALIGNMENT.CENTER
            case "paragraph":
                _add_runs(_paragraph(document, depth, quoted=quoted), _runs(block.sentences))


def _paragraph(document: WordDocument, depth: int, *, quoted: bool) -> Paragraph:
    added = document.add_paragraph(style="Quote" if quoted else None)
    added.paragraph_format.left_indent = INDENT * depth
    return added


def _add_list(document: WordDocument, block: Block, *, depth: int, quoted: bool) -> None:
    """Add a list with numbers and bullets as text: they stay what they are when passages are copied."""
    for place, item in enumerate(block.parts):
        first, rest = (item[0].sentences, item[1:]) if item[0].kind == "paragraph" else ((), item)
        added = _paragraph(document, depth + 1, quoted=quoted)
        added.paragraph_format.first_line_indent = -INDENT
        added.paragraph_format.tab_stops.add_tab_stop(INDENT * (depth + 1))
        added.add_run("•\t" if block.start is None else f"{block.start + place}.\t")
        _add_runs(added, _runs(first))
        _add_blocks(document, rest, depth=depth + 1, quoted=quoted)


def _add_table(document: WordDocument, block: Block) -> None:
    table = document.add_table(rows=len(block.rows), cols=len(block.rows[0]), style="Table Grid")
    for number, (row, cells) in enumerate(zip(table.rows, block.rows, strict=True)):
        for added, cell in zip(row.cells, cells, strict=True):
            _add_runs(added.paragraphs[0], [replace(run, bold=run.bold or number == 0) for run in _runs([cell])])


def _add_runs(added: Paragraph, runs: Iterable[Run]) -> None:
    for run in runs:
        if run.link is None:
            words = added.add_run(run.text)
        else:
            link = OxmlElement("w:hyperlink")
            link.set(qn("r:id"), added.part.relate_to(run.link, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
            words = WordRun(OxmlElement("w:r"), added)
            words.text = run.text
            words.underline, words.font.color.rgb = True, LINK_COLOUR
            link.append(words._r)  # noqa: SLF001  python-docx has no call that makes a link
            added._p.append(link)  # noqa: SLF001
        words.bold, words.italic = run.bold or None, run.italic or None
        if run.code:
            words.font.name, words.font.size = "Courier New", Pt(9.5)
