"""Presentations by python-pptx: each slide under its title, with its lists, tables and the notes of the speaker.

Hidden slides and what nobody sees of the others are left out; slides keep the numbers that they have in the file.
"""

import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Any, Final

import pptx
from lxml.etree import LxmlError  # type: ignore[import-untyped]
from pptx.exc import PythonPptxError

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import BlockKind, Extraction, TextBuilder
from providers.reading.cleaning import clean, escape_markup, one_line
from providers.reading.formats.archives import office_facts, open_archive
from providers.reading.formats.pptx_unseen import SeenShapes
from providers.reading.html.tables import Cell, TableRow, write_rows

MOST_SLIDES: Final = 2_000
MOST_SHAPES: Final = 2_000
"""Of one slide."""
DEEPEST_ITEM: Final = 5
NOTES: Final = "Notes: "
LEFT_OUT: Final = "the presentation is long: only its beginning is kept"
HIDDEN: Final = "hidden slides of the presentation that are left out: {count}"


def extract_pptx(raw: bytes) -> Extraction:
    """The canonical text of a presentation. Raises `SourceUnreadable` malformed, too_large, encrypted or no_text."""
    facts = office_facts(open_archive(raw))
    builder, pages, hidden = TextBuilder(), [], 0
    shown: set[str] = set()
    try:
        slides = pptx.Presentation(BytesIO(raw)).slides
        for number, slide in enumerate(slides):
            pages.append(builder.length + 2 if builder.blocks else 0)
            if number >= MOST_SLIDES or builder.cut:
                builder.cut = True
                break
            if slide.part.partname in shown:
                continue
            shown.add(slide.part.partname)
            if slide._element.get("show") in {"0", "false"}:  # noqa: SLF001  # the library does not tell
                hidden += 1
            else:
                _write_slide(builder, slide)
    except (PythonPptxError, zipfile.BadZipFile, KeyError, ValueError, AttributeError, LxmlError) as error:
        raise SourceUnreadable("malformed", "a damaged presentation") from error
    if not builder.blocks:
        raise SourceUnreadable("no_text", "the presentation holds no text that is shown")
    stated = vars(facts) | {"title": facts.title or builder.first()[:300], "pages": pages}
    return builder.finish(
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        LEFT_OUT,
        **stated,
        warnings=[HIDDEN.format(count=hidden)] if hidden else [],
    )


def _write_slide(builder: TextBuilder, slide: Any) -> None:
    seen = SeenShapes(slide)
    title = slide.shapes.title
    if title is not None and (words := " ".join(words for words, _ in _lines(title, seen))):
        builder.add(BlockKind.HEADING, words, before="# ", level=1)
    for number, shape in enumerate(seen.shapes()):
        if number >= MOST_SHAPES:
            builder.cut = True
            return
        if shape.has_text_frame and (title is None or shape.shape_id != title.shape_id):
            _write_frame(builder, shape, seen)
        elif getattr(shape, "has_table", False):
            write_rows(builder, _rows(shape, seen))
    if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
        words = one_line(clean(frame.text))
        if words:
            builder.add(BlockKind.PARAGRAPH, escape_markup(NOTES + words))


def _write_frame(builder: TextBuilder, shape: Any, seen: SeenShapes) -> None:
    lines = list(_lines(shape, seen))
    for words, level in lines:
        if len(lines) > 1 and shape.is_placeholder:
            builder.add(BlockKind.ITEM, words, before="  " * min(level, DEEPEST_ITEM) + "- ")
        else:
            builder.add(BlockKind.PARAGRAPH, escape_markup(words))


def _lines(shape: Any, seen: SeenShapes) -> Iterator[tuple[str, int]]:
    """Words and depth of each paragraph of a shape of which something is seen."""
    for paragraph in shape.text_frame.paragraphs:
        words = one_line(clean(seen.words_of(paragraph, shape)))
        if words:
            yield words, paragraph.level


def _rows(shape: Any, seen: SeenShapes) -> list[TableRow]:
    table = shape.table
    rows: list[TableRow] = []
    for row in table.rows:
        cells = [
            Cell(" ".join(one_line(clean(seen.words_of(line))) for line in cell.text_frame.paragraphs).strip(), 0.0)
            for cell in row.cells
        ]
        if any(cell.words for cell in cells):
            rows.append(TableRow(cells, header=bool(table.first_row) and not rows))
    return rows
