"""Word documents by python-docx: headings, paragraphs, lists and tables in their order."""

import re
import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Any, Final
from xml.etree.ElementTree import ParseError

import docx
from docx.opc.exceptions import PackageNotFoundError
from docx.table import Table
from docx.text.paragraph import Paragraph
from docx.text.run import Run
from lxml.etree import LxmlError  # type: ignore[import-untyped]

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import BlockKind, Extraction, TextBuilder
from providers.reading.cleaning import clean, escape_markup, one_line
from providers.reading.formats.archives import office_facts, open_archive
from providers.reading.formats.docx_unseen import SeenRuns
from providers.reading.html.rules import script_mark
from providers.reading.html.tables import Cell, TableRow, write_rows

HEADING_STYLE: Final = re.compile(r"^(?:heading|überschrift|titre)\s*([1-6])", re.IGNORECASE)
TITLE_STYLE: Final = re.compile(r"^(?:title|titel|titre)$", re.IGNORECASE)
LIST_STYLE: Final = re.compile(r"^list", re.IGNORECASE)


def extract_docx(raw: bytes) -> Extraction:
    """The canonical text of a Word document. Raises `SourceUnreadable` malformed, too_large, encrypted, no_text."""
    facts = office_facts(open_archive(raw))
    try:
        document = docx.Document(BytesIO(raw))
        builder, seen = TextBuilder(), SeenRuns(document)
        names = {style.style_id: style.name or "" for style in document.styles}
        for part in _parts(document):
            if isinstance(part, Table):
                write_rows(builder, _rows(part, seen))
            else:
                _write_paragraph(builder, part, seen, names)
    except (PackageNotFoundError, zipfile.BadZipFile, KeyError, ValueError, LxmlError, ParseError) as error:
        raise SourceUnreadable("malformed", "a damaged Word document") from error
    if not builder.blocks:
        raise SourceUnreadable("no_text", "the document holds no text")
    stated = vars(facts) | {"title": facts.title or builder.first()[:300]}
    return builder.finish("application/vnd.openxmlformats-officedocument.wordprocessingml.document", **stated)


def _parts(document: Any) -> Iterator[Paragraph | Table]:
    yield from document.iter_inner_content()


def _write_paragraph(builder: TextBuilder, paragraph: Paragraph, seen: SeenRuns, names: dict[Any, str]) -> None:
    words = _words(paragraph, seen)
    if not words:
        return
    style = names.get(paragraph._p.style, "")  # noqa: SLF001  # asking the library looks through all styles each time
    heading = HEADING_STYLE.match(style)
    level = int(heading.group(1)) if heading else 1 if TITLE_STYLE.match(style) else 0
    if level:
        builder.add(BlockKind.HEADING, words, before="#" * level + " ", level=level)
    elif LIST_STYLE.match(style) or paragraph._p.find(".//w:numPr", paragraph._p.nsmap) is not None:  # noqa: SLF001
        builder.add(BlockKind.ITEM, words, before="- ")
    else:
        builder.add(BlockKind.PARAGRAPH, escape_markup(words))


def _words(paragraph: Paragraph, seen: SeenRuns) -> str:
    return one_line(clean("".join(_run_text(Run(run, paragraph)) for run in seen.of(paragraph._p))))  # noqa: SLF001


def _run_text(run: Run) -> str:
    if run.font.superscript or run.font.subscript:
        return script_mark("sup" if run.font.superscript else "sub", run.text, linked=False)
    return run.text


def _rows(table: Table, seen: SeenRuns) -> list[TableRow]:
    rows = []
    for number, row in enumerate(table.rows):
        cells = [Cell(_cell_words(cell, seen), 0.0) for cell in row.cells]
        if any(cell.words for cell in cells):
            rows.append(TableRow(cells, header=number == 0))
    return rows


def _cell_words(cell: Any, seen: SeenRuns) -> str:
    return " ".join(filter(None, (_words(paragraph, seen) for paragraph in cell.paragraphs)))
