"""Rows of cells, as sheets and files of values have them, written as the tables of pages are."""

import re
from collections.abc import Iterable
from typing import Final

from providers.reading.canonical_text import BlockKind, TextBuilder
from providers.reading.cleaning import clean, escape_markup, one_line
from providers.reading.html.tables import Cell, TableRow, write_rows

NAMING: Final = re.compile(r"[^\W\d_]|^(?:19|20)\d\d$")
"""What a cell that names a column holds: a letter, or a year."""
MOST_CELLS: Final = 200_000
"""Cells of a document that are read, the empty ones within its rows included."""


class GridWriter:
    """Writes rows as tables, parted where a row is empty, up to a number of cells."""

    def __init__(self, builder: TextBuilder) -> None:
        self._builder = builder
        self._rows: list[list[str]] = []
        self._cells = 0

    @property
    def full(self) -> bool:
        """Whether no more is taken."""
        return self._builder.cut or self._cells >= MOST_CELLS

    def add(self, cells: Iterable[str]) -> None:
        """Take the next row, if there is room; an empty one ends the table."""
        if self.full:
            self.close()
            self._builder.cut = True
            return
        row = [one_line(clean(cell)) for cell in cells]
        self._cells += len(row)
        if any(row):
            self._rows.append(row)
        else:
            self.close()

    def close(self) -> None:
        """Write the table so far."""
        rows, self._rows = self._rows, []
        while rows and (title := _title_of(rows)):
            self._builder.add(BlockKind.PARAGRAPH, escape_markup(title))
            rows = rows[1:]
        if rows:
            width = max(map(len, rows))
            used = [column for column in range(width) if any(column < len(row) and row[column] for row in rows)]
            kept = [[row[column] if column < len(row) else "" for column in used] for row in rows]
            header = _names_columns(kept)
            write_rows(
                self._builder,
                [TableRow([Cell(cell, 0.0) for cell in row], header and not place) for place, row in enumerate(kept)],
            )


def _title_of(rows: list[list[str]]) -> str:
    """What stands above a table: a cell alone in the first row, perhaps over all columns; empty if none does."""
    filled = [cell for cell in rows[0] if cell]
    alone = len(filled) == 1 and (len(rows) == 1 or len(rows[0]) > 1)
    over_all = len(filled) > 1 and len(set(filled)) == 1 and NAMING.search(filled[0])
    return filled[0] if alone or over_all else ""


def _names_columns(rows: list[list[str]]) -> bool:
    """Whether the first row names the columns: each cell has a name of its own, but perhaps the one in the corner."""
    first = rows[0]
    named = [cell for cell in first if cell]
    return (
        len(rows) > 1
        and len(set(named)) == len(named) >= len(first) - (not first[0])
        and all(map(NAMING.search, named))
        and rows[0] != rows[1]
    )
