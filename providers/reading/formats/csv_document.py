"""Files of values, separated by commas, semicolons, tabs or bars: one table."""

import csv
from io import StringIO
from typing import Final

from providers.errors import SourceUnreadable
from providers.reading.canonical_text import Extraction, TextBuilder
from providers.reading.formats.grids import GridWriter
from providers.reading.formats.plain_text import extract_plain_text

SEPARATORS: Final = ",;\t|"
LOOKED_AT: Final = 20_000
"""Characters from which the separator is known."""
LEAST_SHARE: Final = 0.6
"""Of the rows that have as many cells as most have: prose with commas in it is no table."""
MOST_COLUMNS: Final = 1_000
ROWS_LEFT_OUT: Final = "the table is long: only its beginning is kept"


def extract_csv(text: str) -> Extraction:
    """The table of a file; what has no columns is read as plain text. Raises `SourceUnreadable` empty, malformed."""
    text = text.removeprefix("\ufeff")
    separator = separator_of(text)
    if separator is None:
        return extract_plain_text(text)
    builder = TextBuilder()
    grid = GridWriter(builder)
    try:
        for row in csv.reader(StringIO(text.replace("\0", "")), delimiter=separator):
            grid.add(row[:MOST_COLUMNS])
            if builder.cut:
                break
    except csv.Error as error:
        raise SourceUnreadable("malformed", "a quoted value of the table does not end") from error
    grid.close()
    if not builder.blocks:
        raise SourceUnreadable("empty", "the file holds nothing but separators")
    return builder.finish("text/csv", ROWS_LEFT_OUT)


def separator_of(text: str) -> str | None:
    """The sign that parts most rows of the beginning into the same number of cells; None if there are no columns."""
    sample = text[:LOOKED_AT]
    if len(sample) < len(text):
        sample = sample.rpartition("\n")[0] or sample
    best, separator = LEAST_SHARE, None
    for sign in SEPARATORS:
        try:
            widths = [len(row) for row in csv.reader(StringIO(sample.replace("\0", "")), delimiter=sign) if row]
        except csv.Error:
            continue
        usual = max(set(widths), key=lambda width: (widths.count(width), width), default=1)
        # Wider tables win where two signs part as evenly.
        score = widths.count(usual) / len(widths) + usual / 10_000 if usual > 1 else 0.0
        if score > best:
            best, separator = score, sign
    return separator
