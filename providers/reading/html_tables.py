"""Tables: which hold data, and their rows as Markdown."""

from collections.abc import Callable
from typing import Final, NamedTuple

from providers.reading.canonical import BlockKind, TextBuilder
from providers.reading.html_rules import Element, is_hidden

LAYOUT_CONTENT: Final = ("table", "h1", "h2", "h3", "h4", "pre", "dl", "section", "article", "form")
"""What stands in cells of tables that only arrange a page."""


class Cell(NamedTuple):
    """The words of a cell and the share of them that are links."""

    words: str
    link_share: float


class Row(NamedTuple):
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


def rows_of(table: Element, read: Callable[[Element], Cell]) -> list[Row]:
    """The visible rows of a table."""
    rows = []
    for row in table.iter("tr"):
        cells = [cell for cell in row if cell.tag in {"td", "th"}]
        if not cells or is_hidden(row):
            continue
        parent = row.getparent()
        header = all(cell.tag == "th" for cell in cells) or (parent is not None and parent.tag == "thead")
        rows.append(Row([read(cell) for cell in cells], header))
    return [row for row in rows if any(cell.words for cell in row.cells)]


def write_rows(builder: TextBuilder, rows: list[Row]) -> None:
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
        if number == 0 and row.header:
            builder.mark("|" + " --- |" * columns)
