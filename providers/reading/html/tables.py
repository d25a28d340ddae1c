"""Tables: which hold data, and their rows as Markdown."""

from collections.abc import Callable
from typing import Final, NamedTuple

from providers.reading.canonical_text import BlockKind, TextBuilder
from providers.reading.html.rules import Element, is_hidden

LAYOUT_CONTENT: Final = ("table", "h1", "h2", "h3", "h4", "pre", "dl", "section", "article", "form")
"""What stands in cells of tables that only arrange a page."""

MOST_SPANNED: Final = 1_000
"""Columns or rows of one cell, as in browsers."""
SPAN_DIGITS: Final = 4
MOST_REPEATED: Final = 20_000
"""Places of a table that are filled by a cell which stands elsewhere too."""
LONGEST_REPEATED: Final = 300
"""Characters of a cell that is written in every place that it spans."""


class Cell(NamedTuple):
    """The words of a cell and the share of them that are links."""

    words: str
    link_share: float


NOTHING: Final = Cell("", 0.0)


class TableRow(NamedTuple):
    """The cells of a row, and whether it is a header."""

    cells: list[Cell]
    header: bool


def is_data_table(table: Element) -> bool:
    """Whether a table holds data rather than the layout of a page."""
    if table.get("role") in {"presentation", "none"}:
        return False
    if any(next(table.iterdescendants(tag), None) is not None for tag in LAYOUT_CONTENT):
        return False
    rows = [row for row in table.iter("tr") if len(row)]
    if next(table.iter("th"), None) is not None:
        return True
    return len(rows) > 1 and max(len(row) for row in rows) > 1 and not _holds_paragraphs(table)


def _holds_paragraphs(table: Element) -> bool:
    """Long running text in the cells of a table without headers: columns of a page."""
    return any(len("".join(cell.itertext())) > 1_500 for cell in table.iter("td"))


def rows_of(table: Element, read: Callable[[Element], Cell]) -> list[TableRow]:
    """The visible rows of a table, a cell in each place that it spans.

    A hidden cell stays as an empty one: the columns keep their places.
    """
    grid = _Grid(read)
    group = None
    for row in table.iter("tr"):
        cells = [cell for cell in row if cell.tag in {"td", "th"}]
        parent = row.getparent()
        if parent is not group:
            grid.spanning, group = {}, parent
        if is_hidden(row) or (parent is not None and parent is not table and is_hidden(parent)):
            continue
        header = all(cell.tag == "th" for cell in cells) or (parent is not None and parent.tag == "thead")
        grid.add(cells, header=header)
    return [TableRow(row.cells[: grid.columns], row.header) for row in grid.rows]


class _Grid:
    """Rows of cells, each in the column in which a reader sees it."""

    def __init__(self, read: Callable[[Element], Cell]) -> None:
        self.read = read
        self.rows: list[TableRow] = []
        self.columns = 0
        """In which a cell begins; a span that reaches beyond them is wider than the table."""
        self.spanning: dict[int, tuple[Cell, int]] = {}
        """Cells of rows above by column, and for how many rows more."""
        self.repeated = 0

    def add(self, elements: list[Element], *, header: bool) -> None:
        """Lay out the next row of a group."""
        cells: list[Cell] = []
        above, self.spanning = self.spanning, {}
        said = False
        for element in elements:
            if above:
                self._fill(cells, above)
            self.columns = max(self.columns, len(cells) + 1)
            cell = NOTHING if is_hidden(element) else self.read(element)
            said = said or bool(cell.words)
            # Alone in its row it stands above what follows, whatever it spans.
            wide = _span(element, "colspan") if len(elements) > 1 or above else 1
            high = _span(element, "rowspan")
            if wide == high == 1:
                cells.append(cell)
            else:
                self._place(cells, cell, wide, high)
        self._fill(cells, above)
        for column in sorted(above):
            # To the right of a row that is shorter.
            gap = column - len(cells)
            if gap > 0 and self.repeated + gap <= MOST_REPEATED:
                self.repeated += gap
                cells += [NOTHING] * gap
            self._fill(cells, above)
        if said:
            self.rows.append(TableRow(cells, header))

    def _fill(self, cells: list[Cell], above: dict[int, tuple[Cell, int]]) -> None:
        """Repeat the cells from above that cover the next columns."""
        while len(cells) in above:
            cell, left = above.pop(len(cells))
            self._keep(len(cells), cell, left)
            cells.append(cell)

    def _place(self, cells: list[Cell], cell: Cell, wide: int, high: int) -> None:
        """Put a cell into its columns; a long one is not said again and again, it only keeps its places."""
        again = cell if len(cell.words) <= LONGEST_REPEATED else NOTHING
        for number in range(wide):
            self.repeated += number > 0
            if number and self.repeated > MOST_REPEATED:
                return
            self._keep(len(cells), again, high)
            cells.append(cell if number == 0 else again)

    def _keep(self, column: int, cell: Cell, rows: int) -> None:
        if rows > 1 and self.repeated < MOST_REPEATED:
            self.repeated += 1
            self.spanning[column] = (cell, rows - 1)


def _span(cell: Element, name: str) -> int:
    """Columns or rows of a cell; a height of 0 means all that follow."""
    stated = cell.get(name)
    if stated is None:
        return 1
    value = stated.strip()[:SPAN_DIGITS]
    if not (value.isascii() and value.isdigit()):
        return 1
    return min(int(value), MOST_SPANNED) or (MOST_SPANNED if name == "rowspan" else 1)


def write_rows(builder: TextBuilder, rows: list[TableRow]) -> None:
    """Append a table; the rule stands below the first row if that is a header."""
    if not rows:
        return
    columns = max(len(row.cells) for row in rows)
    for number, row in enumerate(rows):
        words = [cell.words.replace("|", "\\|") for cell in row.cells] + [""] * (columns - len(row.cells))
        size = sum(map(len, words))
        share = sum(len(cell.words) * cell.link_share for cell in row.cells) / size if size else 0.0
        line = "| " + " | ".join(words) + " |"
        builder.add(BlockKind.ROW, line, link_share=share, close=number > 0)
        if builder.cut:
            return
        if number == 0 and row.header:
            builder.mark("|" + " --- |" * columns)
