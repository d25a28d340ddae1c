"""Jupyter notebooks: cells of text as Markdown, cells of code and what they printed as code. Nothing is run."""

from collections.abc import Iterator
from typing import Any, Final

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import BlockKind, Extraction, TextBuilder, add_code
from providers.reading.cleaning import clean, one_line
from providers.reading.formats.markdown_document import extract_markdown
from providers.strict_json import JsonError, parse_json

DEPTH: Final = 64
MOST_CELLS: Final = 5_000
LONGEST_OUTPUT: Final = 20_000
"""Characters of what one cell printed."""
CELLS_LEFT_OUT: Final = "the notebook is long: only its beginning is kept"


def extract_notebook(text: str) -> Extraction:
    """The canonical text of a notebook, without cells and outputs that it hides.

    Raises `SourceUnreadable` malformed, no_text.
    """
    try:
        notebook = parse_json(text.removeprefix("\ufeff").strip(), max_depth=DEPTH).value
    except (JsonError, RecursionError) as error:
        raise SourceUnreadable("malformed", "the notebook is no JSON, or nested too deep") from error
    cells = list(_cells(notebook))
    builder = TextBuilder()
    for cell in cells[:MOST_CELLS]:
        _write_cell(builder, cell)
    builder.cut = builder.cut or len(cells) > MOST_CELLS
    if not builder.blocks:
        raise SourceUnreadable("no_text", "the notebook holds no text")
    found = builder.text()
    headings = (found[block.start : block.end] for block in builder.blocks if block.kind is BlockKind.HEADING)
    title = _stated_title(notebook) or next(headings, "")
    return builder.finish("application/x-ipynb+json", CELLS_LEFT_OUT, title=title)


def _cells(notebook: Any) -> Iterator[dict[str, Any]]:
    """Cells of the forms 4 and 3."""
    for sheet in [notebook, *_list(notebook, "worksheets")]:
        yield from (cell for cell in _list(sheet, "cells") if isinstance(cell, dict))


def _write_cell(builder: TextBuilder, cell: dict[str, Any]) -> None:
    shown = _dict(_dict(cell, "metadata"), "jupyter")
    source = "" if shown.get("source_hidden") is True else _text(cell.get("source", cell.get("input")))
    kind = cell.get("cell_type")
    if kind == "code":
        add_code(builder, clean(source))
        if shown.get("outputs_hidden") is not True and cell.get("collapsed") is not True:
            for output in _list(cell, "outputs"):
                add_code(builder, clean(_read_output(output))[:LONGEST_OUTPUT])
    elif kind == "heading":
        words, level = one_line(clean(source)), min(max(_whole(cell.get("level")), 1), 6)
        if words:
            builder.add(BlockKind.HEADING, words, before="#" * level + " ", level=level)
    elif kind == "markdown":
        try:
            builder.extend(extract_markdown(source))
        except SourceUnreadable as error:
            # A cell that holds a picture alone, or nothing, is no reason to refuse the others.
            if error.kind != "no_text":
                raise


def _read_output(output: Any) -> str:
    """What a cell printed or returned, as text; errors with their message, pictures not at all."""
    if not isinstance(output, dict):
        return ""
    if output.get("output_type") in {"error", "pyerr"}:
        return f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
    return _text(output.get("text")) or _text(_dict(output, "data").get("text/plain"))


def _stated_title(notebook: Any) -> str:
    return one_line(clean(_text(_dict(notebook, "metadata").get("title"))))[:300]


def _text(value: Any) -> str:
    """A text, which may be stored as a list of lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _list(value: Any, name: str) -> list[Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _dict(value: Any, name: str) -> dict[str, Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 1
